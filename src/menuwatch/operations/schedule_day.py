"""The next hours of the schedules, and how they fired before: what people want to see at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import row, rows
from menuwatch.schedules import due
from menuwatch.schedules.model import Schedule

_q = sql.load(__package__, "schedule_day.sql")

AHEAD = timedelta(hours=24)
STEP = timedelta(minutes=15)
"""Planned crawls are counted in parts of this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A firing: the moment it stands for, when it was made, how many tasks it added, and why it could not be made."""

    fire_at: datetime
    ran_at: datetime
    task_count: int
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Crawls that are planned for one part of a day."""

    start: datetime
    count: int


def firings(schedule: Schedule, now: datetime, ahead: timedelta = AHEAD) -> list[datetime]:
    """When it will fire from now on, as far as `ahead`; what is overdue fires at once. Nothing while it is disabled."""
    if not schedule.enabled:
        return []
    every = due.interval(schedule.interval_hours)
    found = [now] if schedule.next_run_at <= now else []
    moment = due.following(schedule.next_run_at, every, now)
    while moment <= now + ahead:
        found.append(moment)
        moment += every
    return found


async def runs(
    conn: AsyncConnection[Any], schedule_id: int, *, before: datetime | None = None, limit: int = 50
) -> list[Run]:
    """How it fired, newest first, before that moment."""
    values = {"id": schedule_id, "before": before, "limit": limit}
    return [Run(**one) for one in await rows(conn, _q.runs_of_schedule, values)]


async def planned(conn: AsyncConnection[Any], now: datetime) -> Sequence[Batch]:
    """The planned crawls of the next hours, in parts of STEP."""
    since = now.replace(minute=now.minute - now.minute % 15, second=0, microsecond=0)
    values = {"step": STEP, "since": since, "until": now + AHEAD}
    return [Batch(start=one["start"], count=one["n"]) for one in await rows(conn, _q.planned_crawls, values)]


async def crawlable(conn: AsyncConnection[Any]) -> int:
    """How many stores a day's plan would be for."""
    found = await row(conn, _q.crawlable_stores, {})
    return int(found["n"]) if found else 0
