"""What one worker did, as a line of bars and in numbers."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from menuwatch.dashboard.charts.bars import lines
from menuwatch.dashboard.charts.lanes import draw_lane, lane_figures
from menuwatch.workers.timeline import Bar, Lane
from tests.dashboard.worker_rows import NOW

SINCE = NOW - timedelta(hours=1)


def bar(start: float, end: float | None, status: str = "completed", row: int = 0) -> Bar:
    """From and to so many minutes after the beginning."""
    return Bar(
        id=1, role="payload_fetch", dispensary_id=None, status=status, row=row, start=SINCE + timedelta(minutes=start),
        end=None if end is None else SINCE + timedelta(minutes=end),
    )  # fmt: skip


def lane(*bars: Bar, began: datetime | None = SINCE - timedelta(days=1), left: datetime | None = None) -> Lane:
    rows = max((one.row for one in bars), default=0) + 1
    return Lane(
        worker_id="w", name="Ada", pod="Xylos", status="active", began=began, left=left, rows=rows, bars=bars
    )  # fmt: skip


def test_busy_time_counts_once_and_the_longest_gap_is_found() -> None:
    # At work 0–12 (two at once from 6), 30–36 and from 57 on: 21 of 60 minutes; idle longest from 36 to 57.
    said = lane_figures(
        lane(bar(-5, 8), bar(6, 12, "failed", 1), bar(30, 36), bar(57, None, "running")), SINCE, NOW
    )  # fmt: skip
    assert (said.tasks, said.failed) == (4, 1)
    assert said.busy == pytest.approx(21 / 60)
    assert said.gap == 21 * 60


def test_time_in_which_a_worker_was_not_there_is_no_gap() -> None:
    # It came at minute 30: busy 6 of 30 minutes, idle longest from 36 to 60; not since the beginning of the picture.
    said = lane_figures(lane(bar(30, 36), began=SINCE + timedelta(minutes=30)), SINCE, NOW)
    assert (said.busy, said.gap) == (pytest.approx(6 / 30), 24 * 60)
    # It left at minute 50.
    said = lane_figures(lane(bar(30, 36), left=SINCE + timedelta(minutes=50)), SINCE, NOW)
    assert (said.busy, said.gap) == (pytest.approx(6 / 50), 30 * 60)
    young = lane_figures(lane(bar(50, 51), began=SINCE + timedelta(minutes=49)), SINCE, NOW)
    assert young.gap is None, "eleven minutes tell nothing"
    assert lane_figures(lane(bar(50, 51), began=None), SINCE, NOW).gap is None, "nobody knows when it was there"


def test_bars_lie_where_their_times_are_and_kinds_have_their_own_paths() -> None:
    text = str(draw_lane(lane(bar(15, 30), bar(30, 45, "failed"), bar(45, None, "stale", 1)), SINCE, NOW))
    paths = dict(re.findall(r'<path class="(\w+)" d="([^"]+)"', text))
    assert paths == {
        "completed": "M250.0 1h250.0v8h-250.0z", "failed": "M500.0 1h250.0v8h-250.0z", "stale": "M750.0 11h250.0v8h-250.0z",
    }  # fmt: skip
    assert 'viewBox="0 0 1000 20"' in text
    assert 'aria-label="3 tasks, 1 failed, busy 75% of the time"' in text


def test_a_short_bar_is_seen_and_stays_inside() -> None:
    text = str(draw_lane(lane(bar(59.9999, 60)), SINCE, NOW))
    assert 'd="M998.0 1h2.0v8h-2.0z"' in text


def test_lines_share_a_scale_from_zero_and_one_value_is_a_line_across() -> None:
    text = str(lines([("a", [0, 10]), ("b", [5])], "so <many>"))
    assert "so &lt;many&gt;" in text
    assert re.findall(r'<path class="(?:a|b)" d="([^"]+)"', text) == ["M0.0 98.0L600.0 2.0", "M0.0 50.0L600.0 50.0"]
    assert str(lines([("a", [])], "none")).count("<path") == 0
    assert "NaN" not in str(lines([("a", [0, 0, 0])], "zeros"))
