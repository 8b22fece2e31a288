"""Charts over time: what the script is given, and the table of the same data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from menuwatch.dashboard.charts.time_chart import Series, TimeChart

START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
STEP = timedelta(minutes=5)
TIMES = [START + n * STEP for n in range(3)]


def test_the_table_has_the_newest_interval_first_and_marks_the_incomplete_one() -> None:
    chart = TimeChart(
        "wait", "Wait", TIMES, [Series("p50", [0.25, None, 75.0]), Series("p95", [59.94, 3600, 90])],
        unit="seconds", step=STEP,
    )  # fmt: skip
    assert [(time.striptags(), values) for time, values in chart.rows] == [
        ("2026-03-01 08:10 (incomplete)", ["1 min 15 s", "1 min 30 s"]),
        ("2026-03-01 08:05", ["–", "1 h"]),
        ("2026-03-01 08:00", ["250 ms", "1 min"]),
    ]
    assert '<time datetime="2026-03-01T08:00:00+00:00" data-time="to-minute">' in chart.rows[2][0]
    ended = TimeChart("wait", "Wait", TIMES, [Series("p50", [1, 2, 3])], step=STEP, partial=False)
    assert [time.striptags() for time, _ in ended.rows] == ["2026-03-01 08:10", "2026-03-01 08:05", "2026-03-01 08:00"]


def test_days_are_those_of_utc_whatever_the_zone() -> None:
    days = TimeChart("n", "N", TIMES[:1], [Series("a", [1])], step=timedelta(days=1), partial=False)
    assert not days.zoned
    assert days.rows[0][0] == "2026-03-01"
    assert TimeChart("n", "N", TIMES[:1], [Series("a", [1])], step=STEP).zoned


def test_units_are_written_out() -> None:
    def written(unit: str, value: float) -> str:
        return TimeChart("x", "X", TIMES[:1], [Series("y", [value])], unit=unit).rows[0][1][0]  # type: ignore[arg-type]

    assert [written("count", 12345), written("percent", 0.125), written("bytes", 2_500_000), written("money", 9.5)] == [
        "12,345", "12.5 %", "2.5 MB", "$9.50",
    ]  # fmt: skip


def test_the_script_is_given_seconds_and_raw_values() -> None:
    chart = TimeChart(
        "n", "Tasks", TIMES, [Series("Completed", [1, 2, None], "good"), Series("Limit", [5, 5, 5], line=True)],
        kind="stack", step=STEP, group="page", href="/tasks?q=ended:>={from}",
    )  # fmt: skip
    assert chart.data["times"] == [1772352000, 1772352300, 1772352600]
    assert chart.data["step"] == 300
    assert chart.data["partial"]
    assert [(one["values"], one["color"], one["line"]) for one in chart.data["series"]] == [
        ([1, 2, None], "good", False),
        ([5, 5, 5], "info", True),
    ]
    moments = TimeChart("n", "Prices", TIMES, [Series("Price", [1, 1, 1], steps=True)])
    assert (moments.data["step"], moments.data["partial"]) == (None, False), "moments have no interval to be incomplete"


def test_a_chart_without_a_value_is_empty() -> None:
    assert TimeChart("n", "N", TIMES, [Series("a", [None, None, None])]).empty
    assert TimeChart("n", "N", [], []).empty
    assert not TimeChart("n", "N", TIMES, [Series("a", [None, 0, None])]).empty
