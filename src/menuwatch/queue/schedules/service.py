"""The service for schedules: list, create, change, delete, trigger; day plans and store discoveries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import psycopg
from msgspec import Struct, structs
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused, unknown_value
from menuwatch.core.shapes import doc
from menuwatch.geo.states import parse_state
from menuwatch.queue import store as tasks
from menuwatch.queue.model import UNHANDLED_ROLES, NewTask, Role
from menuwatch.queue.schedules import due, store
from menuwatch.queue.schedules.model import INTERVALS, ROLES, STORE_LOCAL, NewSchedule, Schedule, default_schedules
from menuwatch.queue.task_list import TaskRow, get_task

PLAN_AHEAD = timedelta(days=366)
NAME_MAX = 80
"""Longest name of a schedule."""
_ROLES = tuple(role for role in ROLES if role not in UNHANDLED_ROLES)
"""Roles that a schedule may be changed to: those with a handler in this version."""


_EDITABLE = ("role", "platform", "enabled", "interval_hours", "cron", "timezone", "priority", "state_code")


class ScheduleChanged(Conflict):
    """It was changed since it was read. `current` is what it is now."""

    def __init__(self, current: Schedule) -> None:
        super().__init__(f"schedule {current.name} was changed by another user in the meantime")
        self.current = current


def version(schedule: Schedule) -> str:
    """A version of the editable fields; runs do not change it."""
    values = [str(getattr(schedule, name)) for name in _EDITABLE if name != "interval_hours"]
    values.append(f"{schedule.interval_hours.normalize():f}")
    return hashlib.blake2b("\n".join(values).encode(), digest_size=8).hexdigest()


list_schedules = store.list_schedules


async def find_schedule(conn: AsyncConnection[Any], text: str) -> Schedule:
    """The schedule of that name or id; raises NotFound with the existing names."""
    schedule = await store.find(conn, text)
    if schedule is None:
        names = ", ".join(known.name for known in await store.list_schedules(conn))
        raise NotFound(f"schedule {text!r} does not exist; existing schedules: {names or 'none'}")
    return schedule


async def get_schedule(conn: AsyncConnection[Any], schedule_id: int) -> Schedule:
    """The schedule of that id; raises NotFound."""
    schedule = next((known for known in await store.list_schedules(conn) if known.id == schedule_id), None)
    if schedule is None:
        raise NotFound(f"schedule {schedule_id} does not exist")
    return schedule


async def lock(conn: AsyncConnection[Any], schedule_id: int) -> Schedule:
    """The schedule, locked until the transaction ends; raises NotFound."""
    schedule = await store.lock(conn, schedule_id)
    if schedule is None:
        raise NotFound(f"schedule {schedule_id} does not exist")
    return schedule


def _checked(values: Mapping[str, Any], platforms: Sequence[str]) -> dict[str, Any]:
    """The fields of a schedule as they are stored; raises InvalidField."""
    if "role" in values and values["role"] not in _ROLES:
        raise InvalidField("role", f"role {values['role']!s} cannot be scheduled; use one of: {', '.join(_ROLES)}")
    if "platform" in values and values["platform"] not in platforms:
        raise InvalidField("platform", unknown_value("platform", values["platform"], platforms))
    checked = dict(values)
    if (state := values.get("state_code")) is not None:
        checked["state_code"] = known_state(state)
    try:
        if (cron := values.get("cron")) is not None:
            checked["cron"] = due.cron_line(cron)
    except ValueError as error:
        raise InvalidField("cron", str(error)) from None
    zone = values.get("timezone")
    if zone is not None and zone != STORE_LOCAL and (zone == "" or str(due.zone_named(zone)) != zone):
        raise InvalidField(
            "timezone",
            f"unknown time zone {zone[:40]!r}: use an IANA name such as America/Phoenix, UTC, or `{STORE_LOCAL}` for store-local time",
        )
    return checked


async def _timed(conn: AsyncConnection[Any], new: NewSchedule, now: datetime) -> tuple[NewSchedule, datetime]:
    """The schedule with what follows from its cron line, and its first run. Raises InvalidField."""
    if new.cron is None:
        if new.timezone is not None:
            raise InvalidField("timezone", "only a schedule with a cron line has a time zone")
        return new, now
    zone = new.timezone or (STORE_LOCAL if new.role == Role.PAYLOAD_FETCH else "UTC")
    if zone == STORE_LOCAL and new.role != Role.PAYLOAD_FETCH:
        raise InvalidField(
            "timezone", f"only payload_fetch runs at store-local times, not {new.role}: give a time zone"
        )
    timing = await store.timing(conn, replace(new, timezone=zone))
    hours = min(max(timing.interval(now), INTERVALS[0]), INTERVALS[1])
    return replace(new, timezone=zone, interval_hours=hours), timing.next_due(now)


async def preview(
    conn: AsyncConnection[Any], fields: Mapping[str, Any], *, platforms: Sequence[str], now: datetime, count: int = 5
) -> list[datetime]:
    """The next runs of a schedule with these fields, as for `create`. Raises InvalidField."""
    new, first = await _timed(conn, _new(fields, platforms), now)
    if new.cron is not None:
        return (await store.timing(conn, new)).upcoming(now, count)
    return [first + n * due.interval(new.interval_hours) for n in range(count)]


def _new(fields: Mapping[str, Any], platforms: Sequence[str]) -> NewSchedule:
    """The fields as a schedule. With a cron line the interval follows from it."""
    if fields.get("cron") is None and fields.get("interval_hours") is None:
        raise InvalidField("interval_hours", "give an interval or a cron line")
    if fields.get("cron") is not None and fields.get("interval_hours") is not None:
        raise InvalidField("interval_hours", "give either an interval or a cron line")
    defaults = {"name": "", "platform": platforms[0], "interval_hours": INTERVALS[0]}
    given = {name: value for name, value in fields.items() if value is not None}
    return NewSchedule(**_checked({**defaults, **given}, platforms))


async def create(
    conn: AsyncConnection[Any], fields: Mapping[str, Any], *, platforms: Sequence[str], now: datetime
) -> Schedule:
    """Create a schedule: with an interval due at once, with a cron line at its next time. `fields`: `name`, `role`,
    `interval_hours` or `cron` (and `timezone`), and where they differ from the defaults of NewSchedule
    `priority`, `platform`, `state_code` and `enabled`.

    Raises InvalidField, and Conflict for a name that exists; the range of numbers is the caller's to check.
    """
    new, first = await _timed(conn, _new(fields, platforms), now)
    if not 1 <= len(new.name) <= NAME_MAX or not new.name.isprintable() or new.name != new.name.strip():
        raise InvalidField(
            "name",
            f"name must have 1 to {NAME_MAX} printable characters, without leading or trailing spaces; got {new.name[:99]!r}",
        )
    if new.name.isdecimal():
        raise InvalidField("name", f"{new.name!r} could be mistaken for the id of a schedule: add a letter")
    _check_state(new.role, new.state_code)
    schedule = await store.create(conn, new, first)
    if schedule is None:
        raise Conflict(f"schedule {new.name!r} exists already: use another name, or change that one")
    await audit.record(
        conn,
        "schedule_created",
        ("schedule", schedule.id),
        **{name: getattr(new, name) for name in ("name", *_EDITABLE)},
    )
    return schedule


def _check_state(role: str, state_code: str | None) -> None:
    if state_code is not None and role == Role.ANALYTICS_REFRESH:
        raise InvalidField("state_code", "analytics_refresh covers all states: omit state_code")


def is_removable(schedule: Schedule, platforms: Sequence[str]) -> bool:
    """Whether it is none of the default schedules, which servers create if they are missing."""
    return schedule.name not in {default.name for default in default_schedules(platforms)}


async def remove(conn: AsyncConnection[Any], schedule_id: int, *, platforms: Sequence[str]) -> Schedule:
    """Delete a schedule with its runs; returns it. Tasks that it enqueued stay. Raises NotFound, and Conflict for a default schedule,
    which a server would create again."""
    schedule = await lock(conn, schedule_id)
    if not is_removable(schedule, platforms):
        raise Conflict(
            f"{schedule.name} is a default schedule, which every server creates if it is missing: disable it"
        )
    await store.remove(conn, schedule_id)
    await audit.record(conn, "schedule_removed", ("schedule", schedule_id), name=schedule.name)
    return schedule


async def change(
    conn: AsyncConnection[Any],
    schedule_id: int,
    changes: Mapping[str, Any],
    *,
    platforms: Sequence[str],
    now: datetime,
    expected_version: str | None = None,
) -> Schedule:
    """Change the fields in `changes` (role, platform, enabled, interval_hours, cron, timezone, priority, state_code); returns
    the schedule.

    A new interval counts from the firing before. One that is enabled again after its time fires once, at the next poll; one that
    is disabled stays so when all are resumed.
    Raises NotFound, and InvalidField; the range of numbers is the caller's to check. With `expected_version`, the
    `version` that the changes were based on, raises ScheduleChanged if it is different now.
    """
    schedule = await lock(conn, schedule_id)
    if expected_version is not None and expected_version != version(schedule):
        raise ScheduleChanged(schedule)
    values = _checked(changes, platforms)
    if values.keys() & {"role", "state_code"}:
        _check_state(values.get("role", schedule.role), values.get("state_code", schedule.state_code))
    values |= await _retimed(conn, schedule, values, now)
    if values.get("enabled") is False:
        values["paused_at"] = None
    changed = await store.change(conn, schedule, values)
    if changed != structs.replace(schedule, updated_at=changed.updated_at):
        # A form sends every field, so only the changed ones are recorded.
        other = [name for name in sorted({*changes, "paused_at"}) if getattr(schedule, name) != getattr(changed, name)]
        was, now_is = ({name: getattr(each, name) for name in other} for each in (schedule, changed))
        await audit.record(conn, "schedule_changed", ("schedule", schedule_id), before=was, after=now_is)
    return changed


async def _retimed(
    conn: AsyncConnection[Any], schedule: Schedule, values: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The fields that follow from a change of what decides when it runs. Raises InvalidField."""
    cron = values.get("cron", schedule.cron)
    if cron is None:
        if values.get("timezone") is not None:
            raise InvalidField("timezone", "only a schedule with a cron line has a time zone")
        hours = values.get("interval_hours") or schedule.interval_hours
        if schedule.cron is not None:
            return {"timezone": None, "next_run_at": now + due.interval(hours)}
        return (
            {
                "next_run_at": due.rescheduled(
                    schedule.next_run_at, due.interval(schedule.interval_hours), due.interval(hours), now
                )
            }
            if "interval_hours" in values
            else {}
        )
    if values.get("interval_hours") not in (None, schedule.interval_hours):
        raise InvalidField("interval_hours", "it runs by a cron line: remove that, or leave the interval out")
    wanted = {name: values.get(name, getattr(schedule, name)) for name in _EDITABLE}
    if wanted["role"] != Role.PAYLOAD_FETCH and "timezone" not in values and schedule.timezone == STORE_LOCAL:
        wanted["timezone"] = None
    new, first = await _timed(conn, NewSchedule(name=schedule.name, **{**wanted, "cron": cron}), now)
    decides = ("cron", "timezone", *(("platform", "state_code") if new.timezone == STORE_LOCAL else ()))
    same = all(getattr(new, name) == getattr(schedule, name) for name in decides)
    return {
        "cron": cron,
        "timezone": new.timezone,
        "interval_hours": new.interval_hours,
        "next_run_at": schedule.next_run_at if same else first,
    }


async def pause_all(conn: AsyncConnection[Any]) -> list[str]:
    """Disable every schedule until `resume_all`; returns the names of those that were enabled."""
    names = await store.pause_all(conn)
    await audit.record(conn, "schedules_paused", names=names)
    return names


async def resume_all(conn: AsyncConnection[Any]) -> list[str]:
    """Enable those that `pause_all` disabled, except those enabled since; returns their names. Runs that were missed are made up for
    once."""
    names = await store.resume_all(conn)
    await audit.record(conn, "schedules_resumed", names=names)
    return names


async def trigger(conn: AsyncConnection[Any], schedule_id: int, *, now: datetime) -> tuple[Schedule, int]:
    """Fire a schedule now, in addition to its regular times, even if it is disabled; returns it with the number of new tasks.

    As at any firing, only due stores are crawled. Raises NotFound, and Conflict if there was a firing at this instant already.
    """
    await lock(conn, schedule_id)
    created = await store.fire(conn, schedule_id, fire_at=now, now=now, next_run_at=None)
    if created is None:
        raise Conflict(f"schedule {schedule_id} was fired at this moment: try again")
    await audit.record(conn, "schedule_triggered", ("schedule", schedule_id), tasks=created)
    return await lock(conn, schedule_id), created


async def generate_resync(
    conn: AsyncConnection[Any], *, batches_per_day: int, day: date, timezone: str | None, now: datetime
) -> int:
    """Spreads a day's crawls of all stores over batches; returns how many tasks were enqueued. Raises InvalidField.

    `timezone` None means each store's own.
    """
    # Somewhere it is still yesterday.
    first, last = (now - timedelta(days=1)).date(), (now + PLAN_AHEAD).date()
    if not first <= day <= last:
        raise InvalidField("date", f"crawls can be planned from {first} to {last}, not for {day}")
    try:
        created = await store.generate_resync(conn, batches_per_day, day, timezone)
    except psycopg.errors.InvalidParameterValue:
        raise InvalidField(
            "timezone", f"unknown time zone {timezone!r}: use an IANA name such as America/Phoenix"
        ) from None
    await audit.record(conn, "resync_planned", day=day, batches=batches_per_day, timezone=timezone, tasks=created)
    return created


class GeneratedDiscovery(Struct, kw_only=True, frozen=True):
    """Result of a store discovery request."""

    tasks_created: Annotated[int, doc("1, or 0 if an equal task was already pending.")]
    task: TaskRow


async def generate_discovery(
    conn: AsyncConnection[Any],
    *,
    platforms: Sequence[str],
    platform: str | None,
    state_code: str | None,
    priority: int,
) -> GeneratedDiscovery:
    """Enqueues the search for a platform's stores. Raises InvalidField."""
    if platform is not None and platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", platform, platforms))
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
    return GeneratedDiscovery(tasks_created=int(enqueued.created), task=await get_task(conn, enqueued.id))


def known_state(text: str) -> str:
    """Normalize a two-letter state code; raises InvalidField."""
    try:
        return parse_state(text)
    except Refused as error:
        raise InvalidField("state_code", str(error)) from None
