"""Upcoming and past firings of schedules, for display."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one, fetch_structs
from menuwatch.queue.schedules import due, store
from menuwatch.queue.schedules.model import Schedule

_q = sql.load(__package__, "timetable.sql")

AHEAD = timedelta(hours=24)
_MOST = 1500
"""Most firings of a day by a cron line: one a minute."""
STEP = timedelta(minutes=15)
"""Interval in which planned crawls are counted."""


class Run(Struct, frozen=True, kw_only=True):
    """A firing: its planned time, when it was made, how many tasks it added, and its error, if any."""

    fire_at: datetime
    ran_at: datetime
    task_count: int
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Crawls planned for one part of a day."""

    start: datetime
    count: int


async def upcoming(conn: AsyncConnection[Any], schedule: Schedule, now: datetime, count: int = 5) -> list[datetime]:
    """The next firings, also of a disabled schedule; an overdue one fires at once."""
    if schedule.cron is not None:
        found = (await store.timing(conn, schedule)).upcoming(now, count)
    else:
        every = due.interval(schedule.interval_hours)
        first = due.next_due(schedule.next_run_at, every, now)
        found = [first + n * every for n in range(count)]
    return ([now, *found] if schedule.next_run_at <= now else found)[:count]


async def next_runs(
    conn: AsyncConnection[Any], schedule: Schedule, now: datetime, ahead: timedelta = AHEAD
) -> list[datetime]:
    """Firings from now until `ahead`; an overdue one fires at once. None while it is disabled."""
    if not schedule.enabled:
        return []
    if schedule.cron is not None:
        some = await upcoming(conn, schedule, now, _MOST)
        return [at for at in some if at <= now + ahead]
    every = due.interval(schedule.interval_hours)
    found = [now] if schedule.next_run_at <= now else []
    moment = due.next_due(schedule.next_run_at, every, now)
    while moment <= now + ahead:
        found.append(moment)
        moment += every
    return found


async def run_counts(conn: AsyncConnection[Any], schedule_id: int) -> tuple[int, int]:
    """Firings of the last 30 days, and how many of them enqueued their tasks without an error."""
    found = await fetch_one(conn, _q.run_counts, {"id": schedule_id})
    return (found["runs"], found["succeeded"]) if found else (0, 0)


async def recent_runs(
    conn: AsyncConnection[Any], schedule_id: int, *, before: datetime | None = None, limit: int = 50
) -> list[Run]:
    """Past firings before that time, newest first."""
    values = {"id": schedule_id, "before": before, "limit": limit}
    return await fetch_structs(conn, Run, _q.runs_of_schedule, values)


async def planned_batches(conn: AsyncConnection[Any], now: datetime) -> Sequence[Batch]:
    """Planned crawls of the next hours, in intervals of STEP."""
    since = now.replace(minute=now.minute - now.minute % 15, second=0, microsecond=0)
    values = {"step": STEP, "since": since, "until": now + AHEAD}
    return [Batch(start=row["start"], count=row["n"]) for row in await fetch_all(conn, _q.planned_crawls, values)]


async def crawlable(conn: AsyncConnection[Any]) -> int:
    """Number of stores in a day's plan."""
    found = await fetch_one(conn, _q.crawlable_stores, {})
    return int(found["n"]) if found else 0
