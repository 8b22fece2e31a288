"""Schedules as people look at them and change them, and the work that people have generated."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.operations import audit
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.schedules import due
from menuwatch.schedules import store as schedules
from menuwatch.schedules.model import ROLES, Schedule, parse_state
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import UNHANDLED_ROLES, NewTask, Role

PLAN_AHEAD = timedelta(days=366)
_ROLES = tuple(role for role in ROLES if role not in UNHANDLED_ROLES)
"""What a schedule may be changed to: tasks that no worker of this version does would only wait."""


_EDITABLE = ("role", "platform", "enabled", "interval_hours", "priority", "state_code")


class Overtaken(Conflict):
    """Somebody else changed it since it was read. `current` is what it is now."""

    def __init__(self, current: Schedule) -> None:
        super().__init__(f"schedule {current.name} was changed by somebody else since you read it")
        self.current = current


def edition(schedule: Schedule) -> str:
    """A mark of what people can change about it: firings leave it as it is."""
    values = [str(getattr(schedule, name)) for name in _EDITABLE if name != "interval_hours"]
    values.append(f"{schedule.interval_hours.normalize():f}")
    return hashlib.blake2b("\n".join(values).encode(), digest_size=8).hexdigest()


async def listed(conn: AsyncConnection[Any]) -> list[Schedule]:
    """All schedules, by number."""
    return await schedules.listed(conn)


async def find(conn: AsyncConnection[Any], text: str) -> Schedule:
    """The schedule of that name or number; raises NotFound with the names there are."""
    found = await schedules.find(conn, text)
    if found is None:
        names = ", ".join(one.name for one in await schedules.listed(conn))
        raise NotFound(f"schedule {text!r} does not exist: there is {names or 'none yet'}")
    return found


async def one(conn: AsyncConnection[Any], schedule_id: int) -> Schedule:
    """The schedule of that number; raises NotFound."""
    found = next((one for one in await schedules.listed(conn) if one.id == schedule_id), None)
    if found is None:
        raise NotFound(f"schedule {schedule_id} does not exist")
    return found


async def lock(conn: AsyncConnection[Any], schedule_id: int) -> Schedule:
    """The schedule; nobody else changes it until the transaction ends. Raises NotFound."""
    return await _locked(conn, schedule_id)


async def _locked(conn: AsyncConnection[Any], schedule_id: int) -> Schedule:
    found = await schedules.lock(conn, schedule_id)
    if found is None:
        raise NotFound(f"schedule {schedule_id} does not exist")
    return found


async def change(
    conn: AsyncConnection[Any],
    schedule_id: int,
    changes: Mapping[str, Any],
    *,
    platforms: Sequence[str],
    now: datetime,
    made_from: str | None = None,
) -> Schedule:
    """Changes what is named in `changes` (role, platform, enabled, interval_hours, priority, state_code); returns the schedule.

    A new interval counts from the firing before. One that is enabled again after its time fires once, at the next poll.
    Raises NotFound, and Unusable for a value that cannot be used; the range of numbers is the caller's to check. With `made_from`, the
    `edition` that the changes were made from, raises Overtaken where it is another one by now.
    """
    schedule = await _locked(conn, schedule_id)
    if made_from is not None and made_from != edition(schedule):
        raise Overtaken(schedule)
    values = dict(changes)
    if "role" in values and values["role"] not in _ROLES:
        raise Unusable("role", f"a schedule cannot be of role {values['role']!s}: it is one of {', '.join(_ROLES)}")
    if "platform" in values and values["platform"] not in platforms:
        raise Unusable("platform", f"platform {values['platform']!r} is not known: it is one of {', '.join(platforms)}")
    if values.get("state_code") is not None:
        values["state_code"] = known_state(values["state_code"])
    if "interval_hours" in values:
        before, after = due.interval(schedule.interval_hours), due.interval(values["interval_hours"])
        values["next_run_at"] = due.rescheduled(schedule.next_run_at, before, after, now)
    changed = await schedules.change(conn, schedule, values)
    if changed != dataclasses.replace(schedule, updated_at=changed.updated_at):
        # A form sends every field: on record is what is another one now.
        other = [name for name in sorted(changes) if getattr(schedule, name) != getattr(changed, name)]
        was, now_is = ({name: getattr(each, name) for name in other} for each in (schedule, changed))
        await audit.record(conn, "schedule_changed", ("schedule", schedule_id), before=was, after=now_is)
    return changed


async def trigger(conn: AsyncConnection[Any], schedule_id: int, *, now: datetime) -> tuple[Schedule, int]:
    """Fires a schedule now, besides its times, also one that is disabled; returns it with the number of new tasks.

    Stores are crawled as at any firing: those that are due. Raises NotFound, and Conflict where this instant is taken.
    """
    await _locked(conn, schedule_id)
    made = await schedules.fire(conn, schedule_id, fire_at=now, now=now, next_run_at=None)
    if made is None:
        raise Conflict(f"schedule {schedule_id} has been fired at this very moment")
    await audit.record(conn, "schedule_triggered", ("schedule", schedule_id), tasks=made)
    return await _locked(conn, schedule_id), made


async def generate_resync(
    conn: AsyncConnection[Any], *, batches_per_day: int, day: date, timezone: str | None, now: datetime
) -> int:
    """Spreads a day's crawls of all stores over batches; returns how many tasks were enqueued. Raises Unusable.

    `timezone` None means each store's own.
    """
    # Somewhere it is still yesterday.
    first, last = (now - timedelta(days=1)).date(), (now + PLAN_AHEAD).date()
    if not first <= day <= last:
        raise Unusable("date", f"crawls can be planned from {first} to {last}, not for {day}")
    try:
        made = await schedules.generate_resync(conn, batches_per_day, day, timezone)
    except psycopg.errors.InvalidParameterValue:
        raise Unusable("timezone", f"time zone {timezone!r} does not exist: name it as America/Phoenix") from None
    await audit.record(conn, "resync_planned", day=day, batches=batches_per_day, timezone=timezone, tasks=made)
    return made


async def generate_discovery(
    conn: AsyncConnection[Any],
    *,
    platforms: Sequence[str],
    platform: str | None,
    state_code: str | None,
    priority: int,
) -> tuple[int, bool]:
    """Enqueues the search for a platform's stores; returns the task's id and whether it is new. Raises Unusable."""
    if platform is not None and platform not in platforms:
        raise Unusable("platform", f"platform {platform!r} is not known: it is one of {', '.join(platforms)}")
    payload = None if state_code is None else {"state": known_state(state_code)}
    new = NewTask(role=Role.STORE_DISCOVERY, platform=platform or platforms[0], priority=priority, payload=payload)
    (enqueued,) = await tasks.enqueue(conn, [new])
    await audit.record(
        conn,
        "discovery_asked",
        ("task", enqueued.id),
        platform=new.platform,
        state=state_code,
        created=enqueued.created,
    )
    return enqueued.id, enqueued.created


def known_state(text: str) -> str:
    """A state by its two letters; raises Unusable."""
    try:
        return parse_state(text)
    except Refused as error:
        raise Unusable("state_code", str(error)) from None
