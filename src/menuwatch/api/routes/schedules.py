"""Schedules: list, change, trigger; the work that is generated on demand."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import versions
from menuwatch.api.answers import answer, tag_of
from menuwatch.api.schemas.common import INTEGER_MAX, NoQuery
from menuwatch.api.schemas.schedules import (
    GeneratedDiscovery,
    GenerateDiscovery,
    GeneratedResync,
    GenerateResync,
    Schedule,
    ScheduleChange,
    ScheduleList,
    Triggered,
)
from menuwatch.api.versions import IfMatch
from menuwatch.operations import schedules, tasks
from menuwatch.schedules import model
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/schedules", tags=["schedules"], dependencies=[allowed_by_method(Permission.SCHEDULES)])
generating = APIRouter(
    prefix="/api/tasks/generate", tags=["schedules"], dependencies=[allowed_by_method(Permission.SCHEDULES)]
)

SchedulePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the schedule.")]


def _shown(one: model.Schedule) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "late_seconds": int(one.late(datetime.now(UTC)).total_seconds())}


@router.get("", response_model=ScheduleList, summary="List schedules")
async def list_schedules(request: Request, conn: Reading, query: Annotated[NoQuery, Query()]) -> Response:
    """What is enqueued by itself, when, and how that last went."""
    return answer(request, {"items": [_shown(one) for one in await schedules.listed(conn)]})


@router.get("/{schedule_id}", response_model=Schedule, summary="One schedule")
async def get_schedule(request: Request, conn: Reading, schedule_id: SchedulePath) -> Response:
    """One schedule. Its ETag is what `If-Match` takes."""
    return answer(request, _shown(await schedules.one(conn, schedule_id)))


@router.put("/{schedule_id}", response_model=Schedule, summary="Change a schedule")
async def change_schedule(
    request: Request,
    system: Sys,
    conn: Writing,
    schedule_id: SchedulePath,
    change: ScheduleChange,
    if_match: IfMatch = None,
) -> Response:
    """What the body names is changed, what it leaves out stays. A schedule that is enabled again after its time fires once."""
    versions.check(if_match, _shown(await schedules.lock(conn, schedule_id)), f"schedule {schedule_id}")
    changed = await schedules.change(
        conn, schedule_id, change.changes(), platforms=tuple(system.platforms), now=datetime.now(UTC)
    )
    shown = _shown(changed)
    return answer(request, shown, headers={"ETag": tag_of(shown)})


@router.post("/{schedule_id}/trigger", response_model=Triggered, summary="Fire a schedule now")
async def trigger_schedule(request: Request, conn: Writing, schedule_id: SchedulePath) -> Response:
    """Enqueues its tasks now, besides its times; these stay as they are. Stores that are not due are passed over."""
    schedule, made = await schedules.trigger(conn, schedule_id, now=datetime.now(UTC))
    return answer(request, {"tasks_created": made, "schedule": _shown(schedule)})


@generating.post("/resync", response_model=GeneratedResync, summary="Plan a day's crawls of all stores")
async def generate_resync(
    request: Request, conn: Writing, which: Annotated[GenerateResync | None, Body()] = None
) -> Response:
    """Spreads one crawl of every store over the day, evenly over the batches. Planning a day again adds only what is new; what is
    past already is due at once."""
    asked = which or GenerateResync.model_validate({})
    now = datetime.now(UTC)
    day = asked.date or now.date()
    made = await schedules.generate_resync(
        conn, batches_per_day=asked.batches_per_day, day=day, timezone=asked.timezone, now=now
    )
    body = {"tasks_created": made, "batches_per_day": asked.batches_per_day, "date": day, "timezone": asked.timezone}
    return answer(request, body)


@generating.post("/discovery", response_model=GeneratedDiscovery, summary="Search a platform for stores")
async def generate_discovery(
    request: Request, system: Sys, conn: Writing, which: Annotated[GenerateDiscovery | None, Body()] = None
) -> Response:
    """Enqueues a search for the stores of a platform, or of one state."""
    asked = which or GenerateDiscovery.model_validate({})
    task_id, created = await schedules.generate_discovery(
        conn,
        platforms=tuple(system.platforms),
        platform=asked.platform,
        state_code=asked.state_code,
        priority=asked.priority,
    )
    return answer(request, {"tasks_created": int(created), "task": await tasks.one(conn, task_id)})
