"""Schedules: list with the next 24 hours, add, run, enable, disable, edit, remove; run history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.timelines import ScheduleLane, day_strip
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.queue.schedules import service as schedules
from menuwatch.queue.schedules import timetable
from menuwatch.queue.schedules.model import INTERVALS, PRIORITIES, ROLES, Schedule
from menuwatch.queue.schedules.service import ScheduleChanged
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(dependencies=[require(Permission.READ)])

RUNS = 30
"""Firings of one page of the history."""
_writes: Any = [require(Permission.SCHEDULES)]
_FIELDS = {
    "interval_hours": "Interval (hours)",
    "cron": "Cron line",
    "timezone": "Time zone",
    "priority": "Priority",
    "role": "Role",
    "platform": "Platform",
    "state_code": "State",
    "enabled": "Enabled",
}
"""Editable fields with their labels."""


@router.get("/schedules")
async def listing(request: Request, conn: ReadConn) -> Response:
    """All of them, and the next 24 hours."""
    now = datetime.now(UTC)
    found = await schedules.list_schedules(conn)
    planned = await timetable.planned_batches(conn, now)
    lanes = [
        ScheduleLane(
            name=one.name,
            moments=[(at, None) for at in await timetable.next_runs(conn, one, now)],
            off=not one.enabled,
        )
        for one in found
    ]
    if planned:
        lanes.append(ScheduleLane(name="planned crawls", moments=[(one.start, one.count) for one in planned]))
    context = {
        "schedules": [(one, one.late_seconds) for one in found],
        "paused": sum(one.paused_at is not None for one in found),
        "enabled": sum(one.enabled for one in found),
        "strip": day_strip(lanes, now) if lanes else None,
        "planned": sum(one.count for one in planned),
        "may": screen.may(request, Permission.SCHEDULES),
    }
    return screen.render(request, "schedules/list.html", context, live="schedules")


@router.get("/schedules/{schedule_id:int}")
async def one(
    request: Request, system: AppDep, conn: ReadConn, schedule_id: int, cursor: str | None = None
) -> Response:
    """One of them: its form and how it fired before."""
    schedule = await schedules.find_schedule(conn, str(schedule_id))
    return await _page(request, conn, schedule, FormInput(_values(schedule)), tuple(system.platforms), cursor=cursor)


def _values(schedule: Schedule) -> dict[str, str]:
    """Form values of a schedule."""
    return {
        "interval_hours": "" if schedule.cron else f"{schedule.interval_hours.normalize():f}",
        "cron": schedule.cron or "",
        "timezone": schedule.timezone or "",
        "priority": str(schedule.priority),
        "role": schedule.role,
        "platform": schedule.platform,
        "state_code": schedule.state_code or "",
        "enabled": "1" if schedule.enabled else "",
    }


async def _page(
    request: Request,
    conn: Connection,
    schedule: Schedule,
    form: FormInput,
    platforms: tuple[str, ...],
    *,
    cursor: str | None = None,
    theirs: Mapping[str, str] | None = None,
    preview: Sequence[datetime] = (),
    status: int = 200,
) -> Response:
    after = screen.parse_cursor(request, cursor, tuple[datetime])
    runs = await timetable.recent_runs(conn, schedule.id, before=after[0] if after else None, limit=RUNS + 1)
    shown, links = screen.paginate(request, runs, RUNS, "fire_at")
    differing = [] if theirs is None else [name for name in _FIELDS if form.value(name) != theirs[name]]
    context = {
        "schedule": schedule,
        "late": schedule.late_seconds,
        "upcoming": await timetable.upcoming(conn, schedule, datetime.now(UTC)),
        "counts": await timetable.run_counts(conn, schedule.id),
        "preview": preview,
        "form": form,
        "edition": schedules.version(schedule),
        "theirs": theirs,
        "differing": [(_FIELDS[name], form.value(name), theirs[name]) for name in differing] if theirs else [],
        "roles": [(role, role) for role in ROLES],
        "platforms": screen.platform_choices(request, platforms),
        "removable": schedules.is_removable(schedule, platforms),
        "runs": shown,
        **links,
        "may": screen.may(request, Permission.SCHEDULES),
    }
    # No live updates for editors: they must not disturb input, nor replace the version that it is based on.
    live = "" if context["may"] else "schedules"
    return screen.render(request, "schedules/schedule.html", context, status=status, live=live)


def _parse(form: FormInput, platforms: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a schedule; errors are added to the form."""
    values = {
        "interval_hours": form.parse_decimal(
            "interval_hours",
            f"a number of hours from {INTERVALS[0]} (36 seconds) to {INTERVALS[1]:,} (a year), such as 4 or 0.5",
            *INTERVALS,
        ),
        "priority": form.parse_int("priority", low=PRIORITIES[0], high=PRIORITIES[1]),
        "role": form.parse_choice("role", ROLES),
        "platform": form.parse_choice("platform", platforms),
        "cron": form.text("cron"),
        "timezone": form.text("timezone"),
        "state_code": form.text("state_code"),
        "enabled": bool(form.value("enabled")),
    }
    for name in ("priority", "role", "platform"):
        if values[name] is None:
            form.add_error(name, "required")
    if values["interval_hours"] is None and values["cron"] is None:
        form.add_error("interval_hours", "required: an interval or a cron line")
    return values


async def _preview(
    conn: Connection, form: FormInput, values: Mapping[str, Any], platforms: tuple[str, ...]
) -> list[datetime]:
    """The next runs with these values; errors are added to the form."""
    if form.ok:
        try:
            return await schedules.preview(conn, values, platforms=platforms, now=await database_now(conn))
        except InvalidField as error:
            form.add_error(error.field if error.field in _FIELDS else "", str(error))
    return []


@router.get("/schedules/add", dependencies=_writes)
async def new(request: Request, system: AppDep) -> Response:
    """The form for a new schedule."""
    form = FormInput({"interval_hours": "4", "priority": "0", "role": ROLES[0], "enabled": "1"})
    return _new(request, form, tuple(system.platforms))


def _new(request: Request, form: FormInput, platforms: tuple[str, ...], preview: Sequence[datetime] = ()) -> Response:
    context = {
        "form": form,
        "preview": preview,
        "roles": [(role, role) for role in ROLES],
        "platforms": screen.platform_choices(request, platforms),
    }
    return screen.render(request, "schedules/add.html", context, status=200 if form.ok else 422)


@router.post("/schedules/add", dependencies=_writes)
async def create(
    request: Request,
    form: Annotated[FormInput, fields("name", "preview", *_FIELDS, longest=200)],
    system: AppDep,
    conn: WriteConn,
) -> Response:
    """Creates a schedule."""
    platforms = tuple(system.platforms)
    values = {**_parse(form, platforms), "name": form.value("name")}
    if form.value("preview"):
        return _new(request, form, platforms, await _preview(conn, form, values, platforms))
    if form.ok:
        try:
            created = await schedules.create(conn, values, platforms=platforms, now=await database_now(conn))
        except InvalidField as error:
            form.add_error(error.field, str(error))
        except Conflict as error:
            form.add_error("name", str(error))
        else:
            return screen.flash_to(request, "/schedules", f"{created.name} created: {created.timing}.")
    return _new(request, form, platforms)


@router.post("/schedules/{schedule_id:int}/remove", dependencies=_writes)
async def remove(request: Request, system: AppDep, conn: WriteConn, schedule_id: int) -> Response:
    """Deletes it with its runs."""
    removed = await schedules.remove(conn, schedule_id, platforms=tuple(system.platforms))
    return screen.flash_to(request, "/schedules", f"{removed.name} removed.")


@router.post("/schedules/{schedule_id:int}", dependencies=_writes)
async def change(
    request: Request,
    form: Annotated[FormInput, fields("version", "preview", *_FIELDS, longest=200)],
    system: AppDep,
    conn: WriteConn,
    schedule_id: int,
) -> Response:
    """Changes a schedule. On a concurrent change, both versions are shown and nothing is saved."""
    platforms = tuple(system.platforms)
    changes = _parse(form, platforms)
    if form.value("preview"):
        schedule = await schedules.find_schedule(conn, str(schedule_id))
        runs = await _preview(conn, form, changes, platforms)
        return await _page(request, conn, schedule, form, platforms, preview=runs, status=200 if form.ok else 422)
    now = await database_now(conn)
    if form.ok:
        if changes["interval_hours"] is None:
            del changes["interval_hours"]
        # What is disabled because all are paused stays paused, unless the box is ticked.
        if changes["enabled"] == (await schedules.get_schedule(conn, schedule_id)).enabled:
            del changes["enabled"]
        try:
            changed = await schedules.change(
                conn, schedule_id, changes, platforms=platforms, now=now, expected_version=form.value("version")
            )
        except ScheduleChanged as error:
            theirs = _values(error.current)
            return await _page(request, conn, error.current, form, platforms, theirs=theirs, status=412)
        except InvalidField as error:
            form.add_error(error.field if error.field in _FIELDS else "", str(error))
        else:
            return screen.flash_to(request, "/schedules", f"{changed.name} saved: {changed.timing}.")
    schedule = await schedules.find_schedule(conn, str(schedule_id))
    return await _page(request, conn, schedule, form, platforms, status=422)


@router.post("/schedules/pause", dependencies=_writes)
async def pause_all(request: Request, conn: WriteConn) -> Response:
    """Disables all of them until they are resumed."""
    return screen.flash_to(
        request, "/schedules", f"{pluralize(len(await schedules.pause_all(conn)), 'schedule')} paused."
    )


@router.post("/schedules/resume", dependencies=_writes)
async def resume_all(request: Request, conn: WriteConn) -> Response:
    """Enables those that were paused together."""
    return screen.flash_to(
        request, "/schedules", f"{pluralize(len(await schedules.resume_all(conn)), 'schedule')} resumed."
    )


@router.post("/schedules/{schedule_id:int}/switch", dependencies=_writes)
async def switch(
    request: Request, system: AppDep, conn: WriteConn, schedule_id: int, on: Annotated[bool, Field()]
) -> Response:
    """Enables or disables it."""
    changed = await schedules.change(
        conn, schedule_id, {"enabled": on}, platforms=tuple(system.platforms), now=await database_now(conn)
    )
    said = f"{changed.name} is {'enabled' if on else 'disabled: it enqueues nothing while disabled'}."
    undo = screen.Undo(f"/schedules/{schedule_id}/switch", [("on", "0" if on else "1")])
    return screen.flash_back(request, said, undo=undo)


@router.post("/schedules/{schedule_id:int}/run", dependencies=_writes)
async def run(request: Request, conn: WriteConn, schedule_id: int) -> Response:
    """Fires it now, besides its times."""
    schedule, created = await schedules.trigger(conn, schedule_id, now=await database_now(conn))
    if created:
        return screen.flash_back(request, f"{schedule.name} enqueued {pluralize(created, 'task')}.")
    why = "stores that are not due or already have this task queued are skipped"
    return screen.flash_back(request, f"{schedule.name} enqueued no tasks: {why}.", "warn")
