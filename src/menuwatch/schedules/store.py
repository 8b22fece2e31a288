"""The rows of `task_schedules` and `schedule_runs`. Every function joins whatever transaction is open on its connection."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.db import sql
from menuwatch.schedules.model import DEFAULTS, NewSchedule, Schedule

_q = sql.load(__package__)
_Conn = AsyncConnection[Any]


async def create_missing(conn: _Conn, now: datetime, wanted: Sequence[NewSchedule] = DEFAULTS) -> int:
    """Creates those of these schedules that do not exist, due at once; returns how many."""
    made = 0
    for new in wanted:
        made += (await conn.execute(_q.create_missing, {**dataclasses.asdict(new), "at": now})).rowcount
    return made


async def listed(conn: _Conn) -> list[Schedule]:
    """All schedules, by number."""
    async with conn.cursor(row_factory=class_row(Schedule)) as cur:
        await cur.execute(_q.list_schedules)
        return await cur.fetchall()


async def find(conn: _Conn, text: str) -> Schedule | None:
    """The schedule of that name or number."""
    number = int(text) if text.isdecimal() and len(text) < 10 else None
    return await _one(conn, _q.find_schedule, {"text": text, "id": number})


async def lock(conn: _Conn, schedule_id: int) -> Schedule | None:
    """The schedule of that number, locked until the transaction ends."""
    return await _one(conn, _q.lock_schedule, {"id": schedule_id})


async def take_due(conn: _Conn, now: datetime, *, done: Collection[int] = ()) -> Schedule | None:
    """A due schedule that nobody has in hand, locked until the transaction ends; `done` are passed over."""
    return await _one(conn, _q.take_due, {"now": now, "done": list(done)})


async def fire(
    conn: _Conn, schedule_id: int, *, fire_at: datetime, now: datetime, next_run_at: datetime | None
) -> int | None:
    """Makes the firing that stands for `fire_at`: its tasks, its run, its next time (None leaves that as it is).

    Returns how many tasks are new, None where this firing was made already.
    """
    cursor = await conn.execute(_q.fire, {"id": schedule_id, "fire_at": fire_at, "at": now, "next": next_run_at})
    row = await cursor.fetchone()
    assert row is not None, "a function answers with one row"
    return None if row[0] is None else int(row[0])


async def failed(conn: _Conn, schedule_id: int, *, fire_at: datetime, now: datetime, error: str) -> None:
    """Notes why a firing could not be made; it stays due."""
    values = {"id": schedule_id, "fire_at": fire_at, "at": now, "error": error}
    await conn.execute(_q.note_failed_run, values)
    await conn.execute(_q.note_error, {"id": schedule_id, "error": error})


async def change(conn: _Conn, schedule: Schedule, values: Mapping[str, Any]) -> Schedule:
    """Gives the schedule these values in place of its own."""
    changed = await _one(conn, _q.change, {**dataclasses.asdict(schedule), **values})
    assert changed is not None, "the caller holds the row"
    return changed


async def generate_resync(conn: _Conn, batches_per_day: int, day: date, timezone: str | None) -> int:
    """Plans a day's crawls (see migration 0004); returns how many tasks were enqueued. An unknown time zone is a DataError."""
    values = {"batches": batches_per_day, "day": day, "timezone": timezone}
    row = await (await conn.execute(_q.generate_resync, values)).fetchone()
    assert row is not None, "a function answers with one row"
    return int(row[0])


async def prune(conn: _Conn, before: datetime) -> int:
    """Removes runs and day plans from before that time, but not the latest run of a schedule; returns how many rows."""
    gone = 0
    for query in (_q.prune_runs, _q.prune_plans):
        gone += (await conn.execute(query, {"before": before})).rowcount
    return gone


async def _one(conn: _Conn, query: Any, values: Mapping[str, Any]) -> Schedule | None:
    async with conn.cursor(row_factory=class_row(Schedule)) as cur:
        await cur.execute(query, values)
        return await cur.fetchone()
