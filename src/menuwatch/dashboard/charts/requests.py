"""Charts of the requests of the last 24 hours, of a host or through a proxy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from menuwatch.dashboard.charts.time_chart import Color, Series, TimeChart
from menuwatch.hosts.hourly import HOUR, RequestHour

_RESULTS: tuple[tuple[str, str, Color], ...] = (
    ("Succeeded", "succeeded", "good"),
    ("Failed", "failed", "amber"),
    ("Refused", "refused", "bad"),
)


def request_counts(hours: Sequence[RequestHour]) -> TimeChart:
    """Requests by result, stacked."""
    series = [Series(label, _values(hours, name), color) for label, name, color in _RESULTS]
    return _chart("requests", "Requests per hour, by result", hours, series, kind="stack")


def request_rate(hours: Sequence[RequestHour], limit: float, now: datetime) -> TimeChart:
    """Requests per second in the busiest minute of each hour and on average, with the present limit."""
    average: list[float | None] = [
        round(hour.total / min(max((now - hour.start).total_seconds(), 60.0), HOUR.total_seconds()), 3)
        for hour in hours
    ]
    none: list[float | None] = [None] * len(hours)
    used = any(hour.total for hour in hours)
    series = [
        Series("Busiest minute", _values(hours, "peak_per_second"), "info"),
        Series("Average", average if used else none, "none", line=True),
        Series("Limit now", [limit] * len(hours) if used else none, "bad", line=True, dash=True),
    ]
    return _chart("rate", "Requests per second, and the limit", hours, series, kind="stack", unit="number")


def response_time(hours: Sequence[RequestHour]) -> TimeChart:
    """Average response time of successful requests."""
    values = [None if hour.average_ms is None else hour.average_ms / 1000 for hour in hours]
    label = "Average response time of successful requests, by hour"
    return _chart("latency", label, hours, [Series("Average response time", values)], unit="seconds")


def _values(hours: Sequence[RequestHour], name: str) -> list[float | None]:
    """None for all, which the chart shows as no data, if there were no requests."""
    return [getattr(hour, name) if any(one.total for one in hours) else None for hour in hours]


def _chart(name: str, label: str, hours: Sequence[RequestHour], series: Sequence[Series], **more: Any) -> TimeChart:
    return TimeChart(name, label, [hour.start for hour in hours], series, step=HOUR, group="requests", **more)
