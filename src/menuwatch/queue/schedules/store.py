"""The rows of `task_schedules` and `schedule_runs`. Every function joins whatever transaction is open on its connection."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from msgspec import structs
from psycopg import AsyncConnection

from menuwatch.core.format import timestamp
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_struct, fetch_structs
from menuwatch.queue.schedules import due
from menuwatch.queue.schedules.model import DEFAULTS, STORE_LOCAL, NewSchedule, Schedule

_q = sql.load(__package__)
_Conn = AsyncConnection[Any]


async def create_missing(conn: _Conn, now: datetime, missing: Sequence[NewSchedule] = DEFAULTS) -> int:
    """Create those of these schedules that do not exist, due at once; returns how many."""
    return sum([await create(conn, new, now) is not None for new in missing])


async def create(conn: _Conn, new: NewSchedule, now: datetime) -> Schedule | None:
    """Create a schedule that is due at once; None if there is one of that name."""
    return await fetch_struct(conn, Schedule, _q.create, {**dataclasses.asdict(new), "at": now})


async def remove(conn: _Conn, schedule_id: int) -> None:
    """Delete a schedule with its runs."""
    await conn.execute(_q.remove, {"id": schedule_id})


async def list_schedules(conn: _Conn) -> list[Schedule]:
    """All schedules, by id."""
    return await fetch_structs(conn, Schedule, _q.list_schedules, {})


async def find(conn: _Conn, text: str) -> Schedule | None:
    """The schedule of that name or id."""
    number = int(text) if text.isdecimal() and len(text) < 10 else None
    return await fetch_struct(conn, Schedule, _q.find_schedule, {"text": text, "id": number})


async def lock(conn: _Conn, schedule_id: int) -> Schedule | None:
    """The schedule of that id, locked until the transaction ends."""
    return await fetch_struct(conn, Schedule, _q.lock_schedule, {"id": schedule_id})


async def take_due(conn: _Conn, now: datetime, *, done: Collection[int] = ()) -> int | None:
    """Id of a due schedule that no other process has locked, locked until the transaction ends; skips those in `done`."""
    row = await (await conn.execute(_q.take_due, {"now": now, "done": list(done)})).fetchone()
    return None if row is None else int(row[0])


async def fire(
    conn: _Conn,
    schedule_id: int,
    *,
    fire_at: datetime,
    now: datetime,
    next_run_at: datetime | None,
    zones: Sequence[str] | None = None,
) -> int | None:
    """Fire the schedule for `fire_at`: create its tasks and its run, and set its next time (None: unchanged). `zones`: only
    for stores of these time zones.

    Returns the number of new tasks, None if this firing exists already.
    """
    values = {"id": schedule_id, "fire_at": fire_at, "at": now, "next": next_run_at, "zones": zones and list(zones)}
    cursor = await conn.execute(_q.fire, values)
    row = await cursor.fetchone()
    assert row is not None, "a function answers with one row"
    return None if row[0] is None else int(row[0])


async def record_failure(conn: _Conn, schedule_id: int, *, fire_at: datetime, now: datetime, error: str) -> None:
    """Record why a firing failed; it stays due."""
    values = {"id": schedule_id, "fire_at": fire_at, "at": now, "error": error}
    await conn.execute(_q.record_failed_run, values)
    await record_error(conn, schedule_id, error)


async def record_error(conn: _Conn, schedule_id: int, error: str) -> None:
    """Record on the schedule itself why it could not be fired; it stays due."""
    await conn.execute(_q.record_error, {"id": schedule_id, "error": error})


Corrected = tuple[int, str, str, datetime]
"""A schedule whose next firing was corrected: its id, its name, the old time (text, in UTC) and the new one."""


async def correct_next_runs(conn: _Conn, now: datetime) -> list[Corrected]:
    """Correct schedules whose next firing is more than one interval ahead, and record that as their error; returns them."""
    return await (await conn.execute(_q.correct_next_runs, {"now": now, "slack": due.SLACK})).fetchall()


async def far_cron(conn: _Conn, now: datetime) -> list[int]:
    """Ids of the schedules with a cron line that are due later than this."""
    return [row[0] for row in await (await conn.execute(_q.far_cron, {"now": now})).fetchall()]


async def correct_cron(conn: _Conn, schedule_id: int, now: datetime) -> Corrected | None:
    """The same for a schedule with a cron line, in the caller's transaction; None if nothing was wrong. A firing that is earlier only
    because of the time zones of its stores is moved without an error. Raises what a line raises that cannot be evaluated."""
    schedule = await lock(conn, schedule_id)
    if schedule is None or schedule.cron is None or schedule.next_run_at <= now:
        return None
    at = (await timing(conn, schedule)).next_due(now)
    if schedule.next_run_at <= at + due.SLACK:
        return None
    if schedule.timezone == STORE_LOCAL and schedule.next_run_at <= due.latest_in_any_zone(schedule.cron, now):
        await conn.execute(_q.move, {"id": schedule.id, "at": at, "error": None})
        return None
    planned = timestamp(schedule.next_run_at)
    error = f"The next run ({planned}) was too far away. It was moved to {timestamp(at)}."
    await conn.execute(_q.move, {"id": schedule.id, "at": at, "error": error})
    return schedule.id, schedule.name, planned, at


async def timing(conn: _Conn, schedule: Schedule | NewSchedule) -> due.Cron:
    """The firings of a schedule with a cron line."""
    assert schedule.cron is not None, "the caller checked"
    if schedule.timezone != STORE_LOCAL:
        return due.Cron(schedule.cron, [schedule.timezone or "UTC"])
    rows = await fetch_all(conn, _q.zones, {"platform": schedule.platform, "state_code": schedule.state_code})
    return due.Cron(schedule.cron, [row["zone"] for row in rows] or ["UTC"])


async def pause_all(conn: _Conn) -> list[str]:
    """Disable every schedule; returns the names of those that were enabled."""
    return [row[0] for row in await (await conn.execute(_q.pause_all)).fetchall()]


async def resume_all(conn: _Conn) -> list[str]:
    """Enable those that `pause_all` disabled; returns their names."""
    return [row[0] for row in await (await conn.execute(_q.resume_all)).fetchall()]


async def change(conn: _Conn, schedule: Schedule, values: Mapping[str, Any]) -> Schedule:
    """Set these values of the schedule."""
    changed = await fetch_struct(conn, Schedule, _q.change, {**structs.asdict(schedule), **values})
    assert changed is not None, "the caller holds the row"
    return changed


async def generate_resync(conn: _Conn, batches_per_day: int, day: date, timezone: str | None) -> int:
    """Plan a day's crawls (12_schedules.sql); returns how many tasks were enqueued. Raises DataError for an unknown time zone."""
    values = {"batches": batches_per_day, "day": day, "timezone": timezone}
    row = await (await conn.execute(_q.generate_resync, values)).fetchone()
    assert row is not None, "a function answers with one row"
    return int(row[0])


async def prune(conn: _Conn, before: datetime) -> int:
    """Delete runs and day plans from before that time, except the latest run of each schedule; returns how many rows."""
    removed = 0
    for query in (_q.prune_runs, _q.prune_plans):
        removed += (await conn.execute(query, {"before": before})).rowcount
    return removed
