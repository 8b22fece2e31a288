"""Lanes on one time axis: tasks of each worker, the depth of the queue, and events of hosts and workers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from msgspec import Struct

from menuwatch.core.format import pluralize, timestamp
from menuwatch.dashboard.charts.svg import line, rect, svg
from menuwatch.queue.depth import Depth
from menuwatch.workers.timeline import Bar, Event, Lane

_LANE_WIDTH, _ROW, _TICKS = 1000, 10, 6
_DEPTH_HEIGHT, _EVENT_HEIGHT, _EVENT_WIDTH = 40, 16, 4
_LEAST = 2.0
"""Width of the shortest bar, so that it is visible."""
_ROWS = 12
"""Rows drawn at most; further concurrent tasks are drawn in the last one."""
_MEANINGFUL = timedelta(minutes=15)
"""Least age of a worker for which its longest idle time is shown."""

KINDS = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "open": "running",
    "stale": "stale",
}
"""Kinds of bars with their labels, in the order in which they are drawn."""


EVENTS = {
    "cooldown": ("amber", "Cool-down"),
    "rate_reduced": ("warn", "Rate reduced"),
    "circuit_opened": ("bad", "Circuit opened"),
    "circuit_closed": ("good", "Circuit closed"),
    "changed": ("info", "Changed by an operator"),
    "started": ("good", "Worker started"),
    "stopped": ("none", "Worker stopped"),
}
"""Colour and name of each kind of event."""


class LaneFigures(Struct, frozen=True, kw_only=True):
    """`busy` is the share of time spent on tasks, `gap` the longest idle time in seconds; None if the worker is too young, or the
    time of its start unknown."""

    tasks: int
    failed: int
    busy: float
    gap: float | None


def draw_lane(lane: Lane, since: datetime, until: datetime) -> Markup:
    """The tasks of a worker between two times, as one path for all bars of a kind, since there may be thousands."""
    height = min(lane.rows, _ROWS) * _ROW
    scale = _LANE_WIDTH / (until - since).total_seconds()
    paths: dict[str, list[str]] = {}
    for bar in lane.bars:
        left = max((bar.start - since).total_seconds(), 0.0) * scale
        right = min(((bar.end or until) - since).total_seconds() * scale, _LANE_WIDTH)
        wide = max(right - left, _LEAST)
        left = min(left, _LANE_WIDTH - wide)
        top = min(bar.row, _ROWS - 1) * _ROW + 1
        paths.setdefault(_kind(bar), []).append(f"M{left:.1f} {top}h{wide:.1f}v{_ROW - 2}h-{wide:.1f}z")
    bars = [Markup('<path class="{}" d="{}"/>').format(kind, "".join(paths[kind])) for kind in KINDS if kind in paths]
    figures = lane_figures(lane, since, until)
    label = f"{pluralize(figures.tasks, 'task')}, {figures.failed} failed, busy {figures.busy:.0%} of the time"
    return svg("lane", _LANE_WIDTH, height, label, [*_ticks(height), *bars], shown_height=height)


def _ticks(height: float) -> list[Markup]:
    return [line("tick", x, 0, x, height) for x in (_LANE_WIDTH * n / _TICKS for n in range(1, _TICKS))]


def draw_depth(depth: Depth) -> Markup:
    """How many tasks waited, on a scale from 0 to the peak."""
    scale = (_DEPTH_HEIGHT - 2) / (depth.peak or 1)
    each = _LANE_WIDTH / len(depth.most)
    steps = "".join(f"V{_DEPTH_HEIGHT - count * scale:.1f}h{each:.2f}" for count in depth.most)
    area = Markup('<path class="depth" d="M0 {}{}V{}z"/>').format(_DEPTH_HEIGHT, steps, _DEPTH_HEIGHT)
    label = f"Tasks waiting: at most {depth.peak:,}, at {timestamp(depth.peak_at)}; {depth.last:,} at the end"
    return svg("lane", _LANE_WIDTH, _DEPTH_HEIGHT, label, [*_ticks(_DEPTH_HEIGHT), area], shown_height=_DEPTH_HEIGHT)


def draw_events(events: Sequence[Event], since: datetime, until: datetime, root: str) -> Markup:
    """A mark for each event, which leads to the host or worker. By keyboard the table of events does; `root` is the prefix of page
    paths."""
    scale = (_LANE_WIDTH - _EVENT_WIDTH) / (until - since).total_seconds()
    marks = []
    for event in reversed(events):
        kind, name = EVENTS[event.kind]
        title = f"{timestamp(event.at)}: {event.name}, {name.lower()}" + (f" ({event.reason})" if event.reason else "")
        x = (event.at - since).total_seconds() * scale
        mark = rect(kind, x, 1, _EVENT_WIDTH, _EVENT_HEIGHT - 2, title)
        marks.append(
            Markup('<a href="{}" tabindex="-1" aria-hidden="true">{}</a>').format(event_path(event, root), mark)
        )
    label = f"{pluralize(len(events), 'event')}; the table of events lists them"
    parts = [*_ticks(_EVENT_HEIGHT), *marks]
    return svg("lane events", _LANE_WIDTH, _EVENT_HEIGHT, label, parts, role="group", shown_height=_EVENT_HEIGHT)


def event_path(event: Event, root: str) -> str:
    """The address of the event's host or worker."""
    if event.worker_id is None:
        return f"{root}/hosts/{quote(event.name, safe='')}"
    return f"{root}/workers/{quote(event.worker_id, safe='')}"


def bar_data(
    lanes: Iterable[Lane], since: datetime, until: datetime, depth: Depth | None, stores: Mapping[int, str], root: str
) -> dict[str, Any]:
    """What timeline.js needs to say what lies under the pointer. Times in milliseconds; a bar is [task, start, duration or null, row,
    role, outcome, store], the last three as places in `words`."""
    words: dict[str | None, int] = {}

    def place(word: str | None) -> int:
        return words.setdefault(word, len(words))

    def bar(one: Bar) -> list[int | None]:
        store = None if one.dispensary_id is None else stores.get(one.dispensary_id, f"store {one.dispensary_id}")
        took = None if one.end is None else _ms(one.end - one.start)
        row = min(one.row, _ROWS - 1)
        return [one.id, _ms(one.start - since), took, row, place(one.role), place(one.status), place(store)]

    found = {
        lane.worker_id: {"name": lane.name or lane.worker_id, "bars": [bar(one) for one in lane.bars]} for lane in lanes
    }
    return {
        "since": int(since.timestamp() * 1000),
        "span": _ms(until - since),
        "row": _ROW,
        "least": _LEAST / _LANE_WIDTH,
        "lanes": found,
        "depth": None if depth is None else depth.most,
        "words": list(words),
        "task": f"{root}/tasks/",
    }


def longest(lanes: Iterable[Lane], until: datetime, most: int) -> list[tuple[Lane, Bar]]:
    """The bars that took longest, or take so far, with their lanes."""
    bars = [(lane, bar) for lane in lanes for bar in lane.bars]
    return sorted(bars, key=lambda one: (one[1].start - (one[1].end or until), one[1].id))[:most]


def _ms(time: timedelta) -> int:
    return round(time.total_seconds() * 1000)


def _kind(bar: Bar) -> str:
    if bar.end is not None:
        return bar.status
    return "stale" if bar.status == "stale" else "open"


def lane_figures(lane: Lane, since: datetime, until: datetime) -> LaneFigures:
    if lane.began is not None:
        since = max(since, min(lane.began, *(bar.start for bar in lane.bars), until))
    if lane.left is not None:
        until = min(until, max(lane.left, *(bar.end or until for bar in lane.bars), since))
    spans = _joined((max(bar.start, since), min(bar.end or until, until)) for bar in lane.bars)
    busy = sum((end - start for start, end in spans), timedelta())
    edges = [since, *(moment for span in spans for moment in span), until]
    gap = max(edges[n + 1] - edges[n] for n in range(0, len(edges), 2))
    return LaneFigures(
        tasks=len(lane.bars),
        failed=sum(bar.status == "failed" for bar in lane.bars),
        busy=busy / (until - since) if until > since else 0.0,
        gap=gap.total_seconds() if lane.began is not None and until - since >= _MEANINGFUL else None,
    )


def _joined(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The same time without overlaps, in order."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if end < start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
