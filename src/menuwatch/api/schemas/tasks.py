"""The queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, Strict, WithJsonSchema, model_validator

from menuwatch.api.schemas.common import (
    BigId,
    Input,
    Instant,
    JsonObject,
    Page,
    PageQuery,
    Search,
    StoreId,
    Text,
    between,
)
from menuwatch.core.errors import Refused
from menuwatch.operations.explanation import Code
from menuwatch.tasks.model import PRIORITY_CHAINED, ROLE_ALIASES, Role, Status, parse_role

PRIORITY_MIN, PRIORITY_MAX = -1000, 1000
IDS_MAX = 10_000
"""Most tasks that one request names by number."""


def _role(value: Any) -> Role:
    if value is None or value == "":
        raise ValueError(f"needs a role: one of {', '.join([*Role, *ROLE_ALIASES])}")
    try:
        return parse_role(str(value))
    except Refused as error:
        raise ValueError(str(error)) from None


Priority = Annotated[
    int,
    Strict(),
    AfterValidator(between(PRIORITY_MIN, PRIORITY_MAX)),
    WithJsonSchema({"type": "integer", "minimum": PRIORITY_MIN, "maximum": PRIORITY_MAX}),
]
"""How soon: higher is sooner."""

_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def sensible(moment: datetime) -> datetime:
    """A time that work can be planned for."""
    if not _EARLIEST <= moment < _LATEST:
        raise ValueError("must lie between the years 2000 and 2100")
    return moment


Query = Annotated[Text, Field(max_length=2000)]
"""A search as people type it."""

_ROLE_SCHEMA = {"type": "string", "enum": [*Role, *ROLE_ALIASES]}

AnyRole = Annotated[Role, BeforeValidator(_role), WithJsonSchema(_ROLE_SCHEMA, mode="validation")]
"""A role by its name, or by its former one."""


class _Filters(Input):
    role: list[AnyRole] | None = Field(None, description="Only these roles (repeat for several).")
    status: list[Status] | None = Field(None, description="Only these states (repeat for several).")
    dispensary_id: StoreId | None = Field(None, description="Only tasks for this store.")
    platform: Text | None = Field(None, description="Only tasks of this platform.")
    created_after: Instant | None = Field(
        None, description="Only tasks enqueued at this time or later (ISO 8601 with offset)."
    )
    created_before: Instant | None = Field(
        None, description="Only tasks enqueued before this time (ISO 8601 with offset)."
    )

    worker_id: Text | None = Field(None, description="Only tasks that this worker has, or had when they ended.")
    error: Search | None = Field(
        None, description="Only tasks whose reason (`error_message`) holds this text, in upper or lower case."
    )
    q: Query | None = Field(
        None,
        description="A search as in the dashboard: `role:payload_fetch state:failed,cancelled store:green-leaf worker:NAME "
        "platform:dutchie id:12,13 priority:>=10 created:>2026-11-01 created:>=-24h ended:>=-24h args.payload_id:5 cause:3f2a91c04d7e "
        'error:"HTTP 403" timeout`. What it names beside other parameters narrows further; the same thing is not named twice.',
    )


class TaskCountQuery(_Filters):
    """Which tasks are counted."""


class TaskQuery(_Filters, PageQuery):
    """Which tasks."""


class Task(BaseModel):
    """One piece of work."""

    id: int = Field(description="Number of the task.")
    role: str = Field(description="Its kind of work.")
    dispensary_id: int | None = Field(description="The store it is for; null for work that is for no single one.")
    platform: str = Field(description="The platform.")
    status: Status = Field(description="Where it stands. `stale`: its worker has gone silent.")
    priority: int = Field(description="Higher is sooner: 0 scheduled, 10 chained and on demand, 20 and more urgent.")
    scheduled_for: datetime | None = Field(description="Not before this time.")
    worker_id: str | None = Field(description="Who works or worked on it.")
    claimed_at: datetime | None = Field(description="When it was claimed.")
    started_at: datetime | None = Field(description="When work began.")
    completed_at: datetime | None = Field(description="When it was over.")
    last_heartbeat_at: datetime | None = Field(description="The last sign of its worker.")
    result: dict[str, Any] | None = Field(description="What came of it.")
    error_message: str | None = Field(description="Why it failed, waits for another try or was cancelled.")
    retry_count: int = Field(description="Retries that were used up.")
    max_retries: int = Field(description="Retries that it has.")
    payload: dict[str, Any] = Field(description="What it was asked with.")
    attempt: int = Field(description="How often it was claimed.")
    created_at: datetime = Field(description="When it was enqueued.")
    updated_at: datetime = Field(description="When anything about it last changed.")


class NewTask(Input):
    """A task to enqueue."""

    role: AnyRole = Field(description="Its kind of work; `product_resync` is the former name of `payload_fetch`.")
    dispensary_id: StoreId | None = Field(
        None, description="The store it is for: needed by roles that work on one store, only by them."
    )
    platform: Text | None = Field(None, description="The platform; the store's when left out.")
    priority: Priority = Field(
        PRIORITY_CHAINED,
        description="Higher is sooner: 0 scheduled work, 10 on demand, 20 and more urgent.",
    )
    scheduled_for: Annotated[Instant, AfterValidator(sensible)] | None = Field(
        None, description="Not before this time (ISO 8601 with offset); at once when left out."
    )
    payload: JsonObject | None = Field(
        None,
        description='What the work needs to know: `{"payload_id": 1}` for product_refresh; for store_discovery where to look, '
        '`{"state_code": "AZ", "city": "Phoenix"}`, both optional.',
    )


class EnqueuedTask(BaseModel):
    """What became of a request for a task."""

    task: Task = Field(description="The task.")
    created: bool = Field(
        description="False when such a task was waiting already: it is that one, and no second was made."
    )


class Obstacle(BaseModel):
    """A task that stands in the way."""

    id: int = Field(description="Number of the task.")
    role: str = Field(description="Its kind of work.")
    worker_id: str | None = Field(description="Who works on it; null while it waits itself.")
    claimed_at: datetime | None = Field(description="Since when.")


class Crew(BaseModel):
    """The workers that a task could have. A worker lives while its last heartbeat is at most three intervals old."""

    live: int = Field(description="Workers that live.")
    take: int = Field(description="Of these, those that take tasks of this role.")
    claiming: int = Field(description="Of these, those that claim now.")
    paused: int = Field(description="Those that an operator paused, or that do not claim this role for now.")
    backing_off: int = Field(description="Those that back off because their machine is overloaded.")
    slots: int = Field(description="Tasks that those who claim can run at once.")
    busy: int = Field(description="Tasks that they run.")
    silent: int = Field(description="Workers that have not stopped and give no sign.")


class Explanation(BaseModel):
    """Why a task is where it is. What plays no part is null."""

    task_id: int = Field(description="Number of the task.")
    status: Status = Field(description="Where it stands.")
    code: Code = Field(description="The reason.")
    reason: str = Field(description="The reason as a sentence.")
    until: datetime | None = Field(description="Until when it waits.")
    seconds: float | None = Field(
        description="Seconds until then; of a task at work, since the last sign of its worker."
    )
    blocked_by: Obstacle | None = Field(description="The task that stands in its way.")
    ahead: int | None = Field(
        description="Tasks that go before it: of its role and store (`behind`), or of all that its workers take (up to 10,000)."
    )
    worker_id: str | None = Field(description="The worker that has it, had it, or has the task in its way.")
    since: datetime | None = Field(description="Since when; of a task that is over, when it ended.")
    workers: Crew | None = Field(description="The workers that it could have.")
    details: dict[str, Any] = Field(description="What else is known: retries, the last error, the live workers.")


class TaskWithReason(Task):
    """One piece of work, and why it is where it is."""

    explanation: Explanation = Field(description="Why it is where it is.")


class Retried(BaseModel):
    """What became of the wish to have a task done again."""

    task: Task = Field(
        description="The task that stands for it now: a new one, the one with the same work that waits already, or itself."
    )
    created: bool = Field(description="Whether it is a new one.")
    retried: int = Field(description="Number of the task that was to be done again.")
    outcome: Literal["created", "joined", "pulled", "raised", "waiting"] = Field(
        description="What changed. `created`: it is enqueued anew; `joined`: the same work waits already, and that one stands for it; "
        "`pulled`: it waited for its time, and is due now; `raised`: it was due, and has a higher priority now; `waiting`: it is due, "
        "and its priority is no lower than this already."
    )


class RetryTask(Input):
    """How to do it again."""

    priority: Priority = Field(
        PRIORITY_CHAINED, description="Lowest priority that it then has: one that is higher already stays."
    )


class _Bulk(_Filters):
    ids: list[BigId] | None = Field(
        None, min_length=1, max_length=IDS_MAX, description="These tasks, by number; instead of a filter."
    )
    all: bool = Field(
        False, strict=True, description="Every task there is: has to be said where no filter and no ids are given."
    )
    dry_run: bool = Field(False, strict=True, description="Only say how many it would be.")

    @model_validator(mode="after")
    def _selects(self) -> _Bulk:
        filters = [name for name in _Filters.model_fields if getattr(self, name) is not None]
        if self.ids is not None and (filters or self.all):
            raise ValueError(f"`ids` stands alone: leave out {', '.join(filters) or 'all'}")
        if self.all and filters:
            raise ValueError(f"`all` means every task there is: leave it out, or leave out {', '.join(filters)}")
        if self.ids is None and not filters and not self.all:
            raise ValueError(
                f"it selects every task there is: name `ids` or a filter ({', '.join(_Filters.model_fields)}), "
                "or say `all: true`"
            )
        return self


class BulkRetry(_Bulk):
    """Which tasks to do again. Without `status` and `ids`: those that failed, and those that wait for another try."""

    priority: Priority = Field(PRIORITY_CHAINED, description="Lowest priority that they then have.")


class BulkCancel(_Bulk):
    """Which tasks to cancel."""

    reason: Search | None = Field(None, description="Why; it stands in `error_message`.")


class BulkDone(BaseModel):
    """What became of many tasks at once."""

    matched: int = Field(description="Tasks that were selected.")
    done: int = Field(description="Of these, how many were retried or cancelled: 0 in a dry run.")
    would: int = Field(description="In a dry run, how many would be; else 0.")
    skipped: dict[str, int] = Field(
        description="How many were passed over, by reason: `finished` (over already), `active` (a worker is at it), `waiting` (the "
        "same work waits already, for its turn alone), `scheduled` (planned for later), `completed`, `cancelled` (name the status to "
        "have them done again), `unhandled` (nobody does this role), `busy` (a worker is writing their end at this moment), "
        "`missing` (no such task)."
    )
    dry_run: bool = Field(description="Whether nothing was done.")


class TaskCounts(BaseModel):
    """How many tasks there are, of those that the filters select."""

    total: int = Field(description="All of them.")
    exact: bool = Field(
        description="Whether `completed` is exact: where only reading most of a long history could count it, it is an estimate. "
        "What waits, runs or went wrong is always exact."
    )
    pending: int = Field(description="Waiting.")
    claimed: int = Field(description="Claimed by a worker, not begun.")
    running: int = Field(description="Being worked on.")
    completed: int = Field(description="Done.")
    failed: int = Field(description="Failed for good.")
    stale: int = Field(description="Held by a worker that has gone silent.")
    cancelled: int = Field(description="Cancelled.")
    by_role: dict[str, dict[str, int]] = Field(
        description="Role to status to number; combinations without a task are left out."
    )


class LastCompletion(BaseModel):
    """The last success of a role."""

    role: str = Field(description="The role.")
    completed_at: datetime | None = Field(
        description="When it was; null when there was none, or none is kept any more."
    )
    task: Task | None = Field(description="The task.")


class ActiveTask(BaseModel):
    """What is being done for a store."""

    dispensary_id: int = Field(description="The store.")
    active: bool = Field(description="Whether a worker is at it.")
    task: Task | None = Field(description="The task.")


def _outlasts_beats(minutes: float) -> float:
    if minutes < 1:
        raise ValueError("must be at least 1: a worker gives a sign every half minute")
    if minutes > _DAY:
        raise ValueError(f"must be at most {_DAY}: a day")
    return minutes


_DAY = 1440

Silence = Annotated[
    float,
    Strict(),
    Field(allow_inf_nan=False),
    AfterValidator(_outlasts_beats),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": _DAY}),
]
"""Minutes without a sign after which a worker counts as lost: longer than any that is well is silent."""


class RecoverStale(Input):
    """Which silence counts."""

    threshold_minutes: Silence | None = Field(
        None,
        description="Minutes without a sign of the worker; the server's STALE_AFTER_MINUTES when left out.",
    )


class Recovered(BaseModel):
    """Tasks that were taken back."""

    recovered: int = Field(description="How many.")
    threshold_minutes: float = Field(description="The silence that counted, in minutes.")


class TaskPage(Page[Task]):
    """One page of tasks."""
