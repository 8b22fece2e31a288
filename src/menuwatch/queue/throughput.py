"""Tasks enqueued and finished over time, with percentiles of their duration and of their wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.queue.model import NETWORK_ROLES

_q = sql.load(__package__, "throughput.sql")

STEPS = {hours: timedelta(minutes=minutes) for hours, minutes in ((1, 1), (3, 5), (12, 15), (24, 30))}
"""Length of an interval by the hours that are shown."""

PARTS = 5
"""Most parts of their own; the others are one."""

_START = datetime(2000, 1, 1, tzinfo=UTC)


class Interval(Struct, frozen=True, kw_only=True):
    """What came and ended from `start` on. Seconds: of completed tasks from start to end (`duration`), and of tasks that ended from
    when they were due until they were claimed (`wait`), by the median and the 95th percentile; None without such tasks."""

    start: datetime
    enqueued: int = 0
    completed: int = 0
    failed: int = 0
    duration_p50: float | None = None
    duration_p95: float | None = None
    wait_p50: float | None = None
    wait_p95: float | None = None


class Split(StrEnum):
    """By what tasks that ended are split; `pod` is that of the worker, `host` what they request."""

    STATE = "state"
    ROLE = "role"
    HOST = "host"
    POD = "pod"


class Part(Struct, frozen=True, kw_only=True):
    """Tasks of one role, of one host or of one pod, by interval: how many ended, and the 95th percentiles as in `Interval`. Without a
    `name` they are of none; `other` are all parts but the PARTS largest, of which the percentiles are not known."""

    name: str
    other: bool = False
    ended: list[int]
    duration_p95: list[float | None]
    wait_p95: list[float | None]


def floor(moment: datetime, step: timedelta) -> datetime:
    """The beginning of its interval."""
    return moment - (moment - _START) % step


async def throughput(conn: Connection, hours: int = 3) -> list[Interval]:
    """The intervals of the last `hours`, oldest first and without a gap; the last one is incomplete."""
    starts, step = await _starts(conn, hours)
    values = {"since": starts[0], "step": step}
    ended = {row["start"]: row for row in await fetch_all(conn, _q.ended, values, prepare=False)}
    enqueued = {row["start"]: row["enqueued"] for row in await fetch_all(conn, _q.enqueued, values, prepare=False)}
    series = []
    for since in starts:
        row = ended.get(since, {})
        durations, waits = _seconds(row.get("durations")), _seconds(row.get("waits"))
        series.append(
            Interval(
                start=since,
                enqueued=enqueued.get(since, 0),
                completed=row.get("completed", 0),
                failed=row.get("failed", 0),
                duration_p50=durations[0],
                duration_p95=durations[1],
                wait_p50=waits[0],
                wait_p95=waits[1],
            )
        )
    return series


async def throughput_by(conn: Connection, by: Split, hours: int = 3) -> tuple[list[datetime], timedelta, list[Part]]:
    """The starts of the intervals of the last `hours`, their length, and the parts, the largest first. Not by state."""
    starts, step = await _starts(conn, hours)
    values = {"since": starts[0], "step": step, "by": str(by), "network": [str(role) for role in NETWORK_ROLES]}
    places = {start: n for n, start in enumerate(starts)}
    parts: dict[str, Part] = {}
    for row in await fetch_all(conn, _q.ended_by, values, prepare=False):
        place = places.get(row["start"])
        if place is None:
            continue  # ended after the last interval began
        part = parts.setdefault(row["part"], _part(row["part"], len(starts)))
        part.ended[place] = row["ended"]
        for name in ("duration", "wait"):
            if row[name] is not None:
                getattr(part, f"{name}_p95")[place] = row[name].total_seconds()
    ranked = sorted(parts.values(), key=lambda part: (-sum(part.ended), part.name))
    if len(ranked) <= PARTS + 1:
        return starts, step, ranked
    rest = _part("", len(starts), other=True)
    rest.ended[:] = [sum(counts) for counts in zip(*(part.ended for part in ranked[PARTS:]), strict=True)]
    return starts, step, [*ranked[:PARTS], rest]


def _part(name: str, intervals: int, *, other: bool = False) -> Part:
    nothing: list[float | None] = [None] * intervals
    return Part(name=name, other=other, ended=[0] * intervals, duration_p95=nothing, wait_p95=[*nothing])


async def _starts(conn: Connection, hours: int) -> tuple[list[datetime], timedelta]:
    step = next(step for most, step in STEPS.items() if hours <= most)
    now = await database_now(conn)
    first = floor(now - timedelta(hours=hours), step)
    return [first + n * step for n in range((now - first) // step + 1)], step


def _seconds(percentiles: Sequence[timedelta] | None) -> tuple[float | None, float | None]:
    if percentiles is None:
        return None, None
    median, high = (one.total_seconds() for one in percentiles)
    return median, high
