"""Schedules, generated work and capacity."""

from __future__ import annotations

from datetime import date as day
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, Strict, WithJsonSchema, model_validator

from menuwatch.api.schemas.common import Amount, Input, Text, between
from menuwatch.api.schemas.tasks import AnyRole, Priority, Task
from menuwatch.schedules.model import INTERVALS, PRIORITIES
from menuwatch.tasks.model import PRIORITY_DISCOVERY

_SHORTEST, _LONGEST = INTERVALS
_, _HIGHEST = PRIORITIES

Interval = Annotated[
    Decimal,
    Field(allow_inf_nan=False),
    AfterValidator(between(_SHORTEST, _LONGEST)),
    WithJsonSchema({"type": "number", "minimum": float(_SHORTEST), "maximum": float(_LONGEST)}),
]
"""Hours between two firings."""


class Schedule(BaseModel):
    """Work that is enqueued by itself."""

    id: int = Field(description="Number of the schedule.")
    name: str = Field(description="Its name.")
    role: str = Field(description="The kind of work: `payload_fetch` is a task for each store that is due.")
    platform: str = Field(description="The platform.")
    enabled: bool = Field(description="Whether it fires.")
    interval_hours: Amount = Field(description="Hours between two firings.")
    priority: int = Field(description="Priority of its tasks.")
    state_code: str | None = Field(description="Only this state or province; null for all.")
    catch_up: str = Field(description="What becomes of firings that were missed. `once`: they collapse into one.")
    last_run_at: datetime | None = Field(description="When it last enqueued.")
    next_run_at: datetime = Field(description="When it fires next; in the past while it is due and not yet done.")
    late_seconds: int = Field(
        description="How long it has been due, in seconds, if that is over two minutes: no server fires it. Else 0."
    )
    last_task_count: int | None = Field(description="How many tasks the last run added.")
    last_error: str | None = Field(description="Why the last firing failed; it is tried again every minute.")
    created_at: datetime = Field(description="When it was created.")
    updated_at: datetime = Field(description="When anything about it last changed.")


class ScheduleList(BaseModel):
    """All schedules."""

    items: list[Schedule] = Field(description="The schedules, by number.")


def _there(value: Any) -> Any:
    if value is None:
        raise ValueError("cannot be null: leave it out to keep what it is")
    return value


def _never_null(schema: dict[str, Any]) -> None:
    (kind,) = [one for one in schema.pop("anyOf") if one != {"type": "null"}]
    schema.pop("default", None)
    schema.update(kind)


Given = BeforeValidator(_there)
"""Of a value that is left out or given, and never null."""


class ScheduleChange(Input):
    """What to change about a schedule; what is left out stays."""

    enabled: Annotated[bool | None, Given] = Field(
        None, strict=True, description="Whether it fires.", json_schema_extra=_never_null
    )
    interval_hours: Annotated[Interval | None, Given] = Field(
        None,
        description="Hours between two firings. They count from the planned time, not from when it was done.",
        json_schema_extra=_never_null,
    )
    priority: Annotated[Priority | None, Given] = Field(
        None, description="Priority of its tasks.", json_schema_extra=_never_null
    )
    state_code: Text | None = Field(
        None, description="Only this state or province (two letters); null for all of them."
    )
    role: Annotated[AnyRole | None, Given] = Field(
        None,
        description="`payload_fetch` or `store_discovery`: what needs no more than a store, and has a handler.",
        json_schema_extra=_never_null,
    )
    platform: Annotated[Text | None, Given] = Field(None, description="The platform.", json_schema_extra=_never_null)

    @model_validator(mode="after")
    def _changes_something(self) -> ScheduleChange:
        if not self.model_fields_set:
            raise ValueError(f"names nothing to change: it takes {', '.join(ScheduleChange.model_fields)}")
        return self

    def changes(self) -> dict[str, Any]:
        """What was named. Only for the state null is a value of its own."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Triggered(BaseModel):
    """What triggering a schedule did."""

    tasks_created: int = Field(description="Tasks that are new; stores that had one waiting, or are not due, get none.")
    schedule: Schedule = Field(description="The schedule.")


class GenerateResync(Input):
    """A day's crawls of all stores."""

    batches_per_day: int = Field(
        6, strict=True, ge=1, le=1440, description="Into how many parts the day is cut: 6 are 00:00, 04:00 … 20:00."
    )
    date: day | None = Field(None, description="The day (YYYY-MM-DD); today in UTC when left out.")
    timezone: Text | None = Field(
        None, description="IANA time zone of the hours, as America/Phoenix; each store's own when left out."
    )


class GeneratedResync(BaseModel):
    """What planning a day's crawls did."""

    tasks_created: int = Field(
        description="Tasks that are new: stores that were planned for the day already, or have a crawl waiting, get none."
    )
    batches_per_day: int = Field(description="Parts of the day.")
    date: day = Field(description="The day.")
    timezone: str | None = Field(description="Time zone of the hours; null for each store's own.")


class GenerateDiscovery(Input):
    """A search for stores."""

    platform: Text | None = Field(None, description="The platform; the only one there is when left out.")
    state_code: Text | None = Field(None, description="Only this state or province (two letters).")
    priority: Annotated[
        int,
        Strict(),
        AfterValidator(between(0, _HIGHEST)),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _HIGHEST}),
    ] = Field(PRIORITY_DISCOVERY, description="Higher is sooner.")


class GeneratedDiscovery(BaseModel):
    """What asking for a search did."""

    tasks_created: int = Field(description="1, or 0 where such a search was waiting already.")
    task: Task = Field(description="The task.")


class WorkersNeeded(BaseModel):
    """Workers that get the pending tasks done in time; null while nothing was completed in the last hour."""

    for_1_hour: int | None = Field(description="Within an hour.")
    for_4_hours: int | None = Field(description="Within four hours.")
    for_8_hours: int | None = Field(description="Within eight hours.")


class Capacity(BaseModel):
    """How much of a role there is to do, and how fast it gets done."""

    role: str = Field(description="The kind of work.")
    pending_tasks: int = Field(description="Tasks that wait, also those that are not due yet.")
    ready_tasks: int = Field(description="Of these, the ones that are due.")
    claimed_tasks: int = Field(description="Claimed by a worker, not begun.")
    running_tasks: int = Field(description="Being worked on.")
    completed_last_hour: int = Field(description="Completed in the last hour.")
    failed_last_hour: int = Field(description="Failed in the last hour.")
    active_workers: int = Field(description="Workers that live and may claim the role, or any role.")
    avg_duration_sec: float | None = Field(description="Average seconds of those completed in the last hour.")
    tasks_per_worker_hour: float | None = Field(description="What one worker does in an hour with all its slots.")
    estimated_hours_to_drain: float | None = Field(
        description="Hours until the pending tasks are done; null where nobody works or no duration is known."
    )
    workers_needed: WorkersNeeded = Field(description="Workers that it takes.")


class CapacityList(BaseModel):
    """The capacity of every role."""

    items: list[Capacity] = Field(description="One for each role.")
