"""The schedules: what is enqueued by itself, when next, how that went last; run, switched and changed from here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.svg.day_strip import Lane, day_strip
from menuwatch.db.pool import Connection
from menuwatch.operations import schedule_day, schedules
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.schedules import Overtaken
from menuwatch.operations.wording import many, span
from menuwatch.schedules.model import INTERVALS, PRIORITIES, ROLES, Schedule
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(dependencies=[allowed(Permission.READ)])

RUNS = 30
"""Firings of one page of the history."""
_writes: Any = [allowed(Permission.SCHEDULES)]
_HOUR = 3600
_FIELDS = {
    "interval_hours": "Interval (hours)",
    "priority": "Priority",
    "role": "Role",
    "platform": "Platform",
    "state_code": "State",
    "enabled": "Enabled",
}
"""What can be changed, by the names that people see."""


def _every(schedule: Schedule) -> str:
    return span(float(schedule.interval_hours) * _HOUR)


@router.get("/schedules")
async def listing(request: Request, conn: Reading) -> Response:
    """All of them, and the next 24 hours."""
    now = datetime.now(UTC)
    found = await schedules.listed(conn)
    planned = await schedule_day.planned(conn, now)
    lanes = [
        Lane(name=one.name, moments=[(at, None) for at in schedule_day.firings(one, now)], off=not one.enabled)
        for one in found
    ]
    if planned:
        lanes.append(Lane(name="planned crawls", moments=[(one.start, one.count) for one in planned]))
    context = {
        "schedules": [(one, _every(one), one.late(now).total_seconds()) for one in found],
        "strip": day_strip(lanes, now) if lanes else None,
        "planned": sum(one.count for one in planned),
        "may": screen.principal(request).may(Permission.SCHEDULES),
    }
    return screen.show(request, "schedules/list.html", context, live="schedules")


@router.get("/schedules/{schedule_id:int}")
async def one(request: Request, system: Sys, conn: Reading, schedule_id: int, cursor: str | None = None) -> Response:
    """One of them: its form and how it fired before."""
    schedule = await schedules.find(conn, str(schedule_id))
    return await _page(request, conn, schedule, Form(_values(schedule)), tuple(system.platforms), cursor=cursor)


def _values(schedule: Schedule) -> dict[str, str]:
    """What the form holds of a schedule."""
    return {
        "interval_hours": f"{schedule.interval_hours.normalize():f}",
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
    form: Form,
    platforms: tuple[str, ...],
    *,
    cursor: str | None = None,
    theirs: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    after = screen.place(request, cursor, tuple[datetime])
    runs = await schedule_day.runs(conn, schedule.id, before=after[0] if after else None, limit=RUNS + 1)
    shown = runs[:RUNS]
    differing = [] if theirs is None else [name for name in _FIELDS if form.value(name) != theirs[name]]
    context = {
        "schedule": schedule,
        "every": _every(schedule),
        "late": schedule.late(datetime.now(UTC)).total_seconds(),
        "form": form,
        "edition": schedules.edition(schedule),
        "theirs": theirs,
        "differing": [(_FIELDS[name], form.value(name), theirs[name]) for name in differing] if theirs else [],
        "roles": [(role, role) for role in ROLES],
        "platforms": [(name, name) for name in platforms],
        "runs": shown,
        "next": screen.query(request, cursor=paging.encode(shown[-1].fire_at)) if len(runs) > RUNS else None,
        "first": screen.query(request) if after else None,
        "may": screen.principal(request).may(Permission.SCHEDULES),
    }
    # Not live for who may change it: news must not mix with what is being typed, nor renew the version that it was made from.
    live = "" if context["may"] else "schedules"
    return screen.show(request, "schedules/schedule.html", context, status=status, live=live)


@router.post("/schedules/{schedule_id:int}", dependencies=_writes)
async def change(
    request: Request,
    system: Sys,
    conn: Writing,
    schedule_id: int,
    version: Annotated[str, Field(max_length=40)] = "",
    interval_hours: Annotated[str, Field(max_length=40)] = "",
    priority: Annotated[str, Field(max_length=40)] = "",
    role: Annotated[str, Field(max_length=80)] = "",
    platform: Annotated[str, Field(max_length=80)] = "",
    state_code: Annotated[str, Field(max_length=80)] = "",
    enabled: Annotated[str, Field(max_length=8)] = "",
) -> Response:
    """Changes it. Where somebody was quicker, both versions are shown and nothing is changed."""
    typed = (interval_hours, priority, role, platform, state_code, "1" if enabled else "")
    form = Form(dict(zip(_FIELDS, typed, strict=True)))
    platforms = tuple(system.platforms)
    changes = {
        "interval_hours": _hours(form),
        "priority": form.whole("priority", low=PRIORITIES[0], high=PRIORITIES[1]),
        "role": form.one_of("role", ROLES),
        "platform": form.one_of("platform", platforms),
        "state_code": form.text("state_code"),
        "enabled": bool(enabled),
    }
    for name in ("interval_hours", "priority", "role", "platform"):
        if changes[name] is None:
            form.refuse(name, "this is needed")
    now = datetime.now(UTC)
    if form.ok:
        try:
            changed = await schedules.change(
                conn, schedule_id, changes, platforms=platforms, now=now, made_from=version
            )
        except Overtaken as error:
            theirs = _values(error.current)
            return await _page(request, conn, error.current, form, platforms, theirs=theirs, status=412)
        except Unusable as error:
            form.refuse(error.field if error.field in _FIELDS else "", str(error))
        else:
            return screen.back(request, "/schedules", f"{changed.name} is changed: every {_every(changed)}.")
    schedule = await schedules.find(conn, str(schedule_id))
    return await _page(request, conn, schedule, form, platforms, status=422)


def _hours(form: Form) -> Decimal | None:
    text = form.text("interval_hours")
    if text is None:
        return None
    low, high = INTERVALS
    try:
        found = Decimal(text)
    except InvalidOperation:
        form.refuse("interval_hours", f"{text!r} is no number of hours: write it as 4 or 0.5")
        return None
    if not found.is_finite() or not low <= found <= high:
        form.refuse("interval_hours", f"from {low} (36 seconds) to {high:,} (a year)")
        return None
    return found


@router.post("/schedules/{schedule_id:int}/switch", dependencies=_writes)
async def switch(
    request: Request, system: Sys, conn: Writing, schedule_id: int, on: Annotated[bool, Field()]
) -> Response:
    """Enables or disables it."""
    changed = await schedules.change(
        conn, schedule_id, {"enabled": on}, platforms=tuple(system.platforms), now=datetime.now(UTC)
    )
    said = f"{changed.name} is {'enabled' if on else 'disabled: it enqueues nothing until it is enabled again'}."
    return screen.back(request, screen.came_from(request), said)


@router.post("/schedules/{schedule_id:int}/run", dependencies=_writes)
async def run(request: Request, conn: Writing, schedule_id: int) -> Response:
    """Fires it now, besides its times."""
    schedule, made = await schedules.trigger(conn, schedule_id, now=datetime.now(UTC))
    if made:
        return screen.back(request, screen.came_from(request), f"{schedule.name} enqueued {many(made, 'task')}.")
    why = "stores that are not due, or have such a task waiting, get none"
    return screen.back(request, screen.came_from(request), f"{schedule.name} enqueued nothing: {why}.", "warn")
