"""Schedules: list, create, change, delete, trigger; generated tasks."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response
from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import INTEGER_MAX, AnyRole, Input, NoQuery, Priority, Text, between
from menuwatch.api.responses import IfMatch, answer, check_if_match, returns, tag_of
from menuwatch.core.shapes import Instant, doc
from menuwatch.db.clock import database_now
from menuwatch.queue.model import PRIORITY_DISCOVERY, Role
from menuwatch.queue.schedules import service as schedules
from menuwatch.queue.schedules import timetable
from menuwatch.queue.schedules.model import INTERVALS, PRIORITIES, Schedule
from menuwatch.queue.schedules.service import NAME_MAX, GeneratedDiscovery
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

_SHORTEST, _LONGEST = INTERVALS
_, _HIGHEST = PRIORITIES

Interval = Annotated[
    Decimal,
    Field(allow_inf_nan=False),
    AfterValidator(between(_SHORTEST, _LONGEST)),
    WithJsonSchema({"type": "number", "minimum": float(_SHORTEST), "maximum": float(_LONGEST)}),
]
"""Hours between two firings."""


def _there(value: Any) -> Any:
    if value is None:
        raise ValueError("must not be null: omit it to keep its value")
    return value


def _never_null(schema: dict[str, Any]) -> None:
    (kind,) = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
    schema.pop("default", None)
    schema.update(kind)


CronLine = Annotated[Text, Field(min_length=1, max_length=200)]

Given = BeforeValidator(_there)
"""Of a value that is left out or given, and never null."""


class ScheduleChange(Input):
    """Changes to a schedule; omitted fields keep their value."""

    enabled: Annotated[bool | None, Given] = Field(
        None, strict=True, description="Whether the schedule is enabled.", json_schema_extra=_never_null
    )
    interval_hours: Annotated[Interval | None, Given] = Field(
        None,
        description="Interval in hours, measured from the scheduled time of the last run.",
        json_schema_extra=_never_null,
    )
    cron: CronLine | None = Field(None, description="Cron line or time of day (`02:30`); null: by the interval again.")
    timezone: Annotated[Text | None, Given] = Field(
        None, description="Time zone of `cron`, or `store` for store-local time.", json_schema_extra=_never_null
    )
    priority: Annotated[Priority | None, Given] = Field(
        None, description="Priority of its tasks.", json_schema_extra=_never_null
    )
    state_code: Text | None = Field(None, description="Only this state or province (two letters); null for all.")
    role: Annotated[AnyRole | None, Given] = Field(
        None,
        description="`payload_fetch` or `store_discovery`: roles with a handler that need only a store.",
        json_schema_extra=_never_null,
    )
    platform: Annotated[Text | None, Given] = Field(
        None, description="Platform of its tasks.", json_schema_extra=_never_null
    )

    @model_validator(mode="after")
    def _changes_something(self) -> ScheduleChange:
        if not self.model_fields_set:
            raise ValueError(f"nothing to change: give at least one of {', '.join(ScheduleChange.model_fields)}")
        return self

    def changes(self) -> dict[str, Any]:
        """The fields that were given. Null is a value of its own for the state only."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class CreateSchedule(Input):
    """A new schedule."""

    name: Text = Field(min_length=1, max_length=NAME_MAX, description="Unique name.", examples=["payload_fetch_az"])
    role: AnyRole = Field(
        description="`payload_fetch` (one task per due store), `store_discovery` or `analytics_refresh`."
    )
    interval_hours: Interval | None = Field(
        None, description="Interval in hours; the first run is due at once. Give this or `cron`."
    )
    cron: CronLine | None = Field(
        None,
        description="Minute, hour, day of month, month, day of week; or a time of day.",
        examples=["0 2 * * 1-5", "02:30"],
    )
    timezone: Text | None = Field(
        None,
        description="Time zone of `cron`: an IANA name, or `store` for each store's own. Default: `store` for "
        "`payload_fetch`, else UTC.",
    )
    priority: Priority = Field(0, description="Priority of its tasks.")
    platform: Text | None = Field(None, description="Platform of its tasks; the first one if omitted.")
    state_code: Text | None = Field(None, description="Only this state or province (two letters); all if omitted.")
    enabled: bool = Field(True, strict=True, description="Whether the schedule is enabled.")


class PreviewSchedule(Input):
    """When a schedule would run."""

    role: AnyRole = Field(Role.PAYLOAD_FETCH, description="Role of its tasks.")
    interval_hours: Interval | None = Field(None, description="Interval in hours. Give this or `cron`.")
    cron: CronLine | None = Field(None, description="Cron line or time of day.")
    timezone: Text | None = Field(None, description="Time zone of `cron`, as for a new schedule.")
    platform: Text | None = Field(None, description="Platform of its tasks; the first one if omitted.")
    state_code: Text | None = Field(None, description="Only this state or province (two letters).")
    count: int = Field(5, strict=True, ge=1, le=100, description="Number of runs.")


class GenerateResync(Input):
    """A day plan: one crawl of every store."""

    batches_per_day: int = Field(
        6, strict=True, ge=1, le=1440, description="Number of batches per day: 6 run at 00:00, 04:00 … 20:00."
    )
    date: dt.date | None = Field(None, description="Day (YYYY-MM-DD); today (UTC) if omitted.")
    timezone: Text | None = Field(
        None, description="IANA time zone of the batches, for example America/Phoenix; each store's own if omitted."
    )


class GenerateDiscovery(Input):
    """A store discovery request."""

    platform: Text | None = Field(None, description="Platform to search; the only one available if omitted.")
    state_code: Text | None = Field(None, description="Only this state or province (two letters).")
    priority: Annotated[
        int,
        Strict(),
        AfterValidator(between(0, _HIGHEST)),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _HIGHEST}),
    ] = Field(PRIORITY_DISCOVERY, description="Higher runs first.")


class ScheduleList(Struct, frozen=True):
    """All schedules, by id."""

    items: list[Schedule]


class UpcomingRuns(Struct, frozen=True):
    """The next runs of a schedule."""

    runs: list[Instant]


class TriggerResult(Struct, kw_only=True, frozen=True):
    """Result of triggering a schedule."""

    tasks_created: Annotated[int, doc("New tasks; stores that are not due or have a pending one get none.")]
    schedule: Annotated[Schedule, doc("The schedule after the run.")]


class GeneratedResync(Struct, kw_only=True, frozen=True):
    """Result of planning a day."""

    tasks_created: Annotated[
        int, doc("New tasks; stores already planned for the day or with a pending crawl get none.")
    ]
    batches_per_day: int
    date: dt.date
    timezone: Annotated[str | None, doc("Time zone of the batches; null for each store's own.")]


router = APIRouter(prefix="/api/schedules", tags=["schedules"], dependencies=[require_by_method(Permission.SCHEDULES)])
generating = APIRouter(
    prefix="/api/tasks/generate", tags=["schedules"], dependencies=[require_by_method(Permission.SCHEDULES)]
)

SchedulePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the schedule.")]


@router.get("", **returns(ScheduleList), summary="List schedules")
async def list_schedules(request: Request, conn: ReadConn, query: Annotated[NoQuery, Query()]) -> Response:
    """Lists all schedules with the result of their last run."""
    return answer(request, ScheduleList(items=await schedules.list_schedules(conn)))


@router.post("", **returns(Schedule, 201), summary="Create a schedule")
async def create_schedule(request: Request, system: AppDep, conn: WriteConn, new: CreateSchedule) -> Response:
    """Creates a schedule, for example one per state. 409 if one with that name exists."""
    fields = new.model_dump(exclude_none=True)
    created = await schedules.create(conn, fields, platforms=tuple(system.platforms), now=await database_now(conn))
    return answer(request, created, status=201)


@router.post("/preview", **returns(UpcomingRuns), summary="Preview the runs of a schedule")
async def preview_schedule(request: Request, system: AppDep, conn: WriteConn, body: PreviewSchedule) -> Response:
    """Returns when a schedule with these fields would run next. Nothing is saved."""
    fields = body.model_dump(exclude={"count"})
    platforms, now = tuple(system.platforms), await database_now(conn)
    runs = await schedules.preview(conn, fields, platforms=platforms, now=now, count=body.count)
    return answer(request, UpcomingRuns(runs=runs))


@router.post("/pause", **returns(ScheduleList), summary="Pause all schedules")
async def pause_schedules(request: Request, conn: WriteConn) -> Response:
    """Disables every schedule until they are resumed; returns all. Tasks that exist are not affected."""
    await schedules.pause_all(conn)
    return answer(request, ScheduleList(items=await schedules.list_schedules(conn)))


@router.post("/resume", **returns(ScheduleList), summary="Resume all schedules")
async def resume_schedules(request: Request, conn: WriteConn) -> Response:
    """Enables the schedules that were paused together; returns all. Missed runs are combined into one."""
    await schedules.resume_all(conn)
    return answer(request, ScheduleList(items=await schedules.list_schedules(conn)))


@router.get("/{schedule_id}/runs/upcoming", **returns(UpcomingRuns), summary="List upcoming runs")
async def list_upcoming_runs(
    request: Request, conn: ReadConn, schedule_id: SchedulePath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Returns the next five runs, also of a disabled schedule."""
    schedule = await schedules.get_schedule(conn, schedule_id)
    return answer(request, UpcomingRuns(runs=await timetable.upcoming(conn, schedule, await database_now(conn))))


@router.get("/{schedule_id}", **returns(Schedule), summary="Get a schedule")
async def get_schedule(request: Request, conn: ReadConn, schedule_id: SchedulePath) -> Response:
    """Returns one schedule. Send its ETag as `If-Match` when changing it."""
    return answer(request, await schedules.get_schedule(conn, schedule_id))


@router.put("/{schedule_id}", **returns(Schedule), summary="Change a schedule")
async def change_schedule(
    request: Request,
    system: AppDep,
    conn: WriteConn,
    schedule_id: SchedulePath,
    change: ScheduleChange,
    if_match: IfMatch = None,
) -> Response:
    """Changes the given fields. A schedule that is enabled after its next run was due runs once."""
    check_if_match(if_match, await schedules.lock(conn, schedule_id), f"schedule {schedule_id}")
    changed = await schedules.change(
        conn, schedule_id, change.changes(), platforms=tuple(system.platforms), now=await database_now(conn)
    )
    return answer(request, changed, headers={"ETag": tag_of(changed)})


@router.delete("/{schedule_id}", **returns(Schedule), summary="Delete a schedule")
async def delete_schedule(request: Request, system: AppDep, conn: WriteConn, schedule_id: SchedulePath) -> Response:
    """Deletes the schedule with its runs and returns it; its tasks stay. 409 for a default schedule, which servers would create
    again: disable it instead."""
    return answer(request, await schedules.remove(conn, schedule_id, platforms=tuple(system.platforms)))


@router.post("/{schedule_id}/trigger", **returns(TriggerResult), summary="Trigger a schedule")
async def trigger_schedule(request: Request, conn: WriteConn, schedule_id: SchedulePath) -> Response:
    """Enqueues its tasks now, in addition to its planned runs. Stores that are not due are skipped."""
    schedule, created = await schedules.trigger(conn, schedule_id, now=await database_now(conn))
    return answer(request, TriggerResult(tasks_created=created, schedule=schedule))


@generating.post("/resync", **returns(GeneratedResync), summary="Distribute a day's crawls of all stores")
async def generate_resync(
    request: Request, conn: WriteConn, options: Annotated[GenerateResync | None, Body()] = None
) -> Response:
    """Spreads one crawl of every store evenly over the batches of the day. Planning a day again adds only new stores; past
    batches are due immediately."""
    body = options or GenerateResync.model_validate({})
    now = await database_now(conn)
    day = body.date or now.date()
    created = await schedules.generate_resync(
        conn, batches_per_day=body.batches_per_day, day=day, timezone=body.timezone, now=now
    )
    plan = GeneratedResync(
        tasks_created=created, batches_per_day=body.batches_per_day, date=day, timezone=body.timezone
    )
    return answer(request, plan)


@generating.post("/discovery", **returns(GeneratedDiscovery), summary="Search a platform for stores")
async def generate_discovery(
    request: Request, system: AppDep, conn: WriteConn, options: Annotated[GenerateDiscovery | None, Body()] = None
) -> Response:
    """Enqueues a store discovery for a platform or one state."""
    body = options or GenerateDiscovery.model_validate({})
    generated = await schedules.generate_discovery(
        conn,
        platforms=tuple(system.platforms),
        platform=body.platform,
        state_code=body.state_code,
        priority=body.priority,
    )
    return answer(request, generated)
