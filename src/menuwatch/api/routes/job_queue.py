"""Bulk enqueueing: one task, a batch, or one task per store."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from msgspec import Struct
from pydantic import BeforeValidator, FailFast, Field, ValidationInfo, field_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import AnyRole, Input, JsonObject, Priority, StartTime, StoreId, Text
from menuwatch.api.responses import answer, returns
from menuwatch.core.shapes import doc
from menuwatch.queue import enqueue
from menuwatch.queue.enqueue import EnqueuedTask, StoreSelection, StoresEnqueued, TaskRequest
from menuwatch.queue.model import PRIORITY_CHAINED, Role
from menuwatch.queue.store import Enqueued
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, WriteConn

BATCH_MAX = 10_000
"""Most tasks in one call."""


def _check_size(value: Any) -> Any:
    # Before any of them is parsed: a batch that is far too long costs no more than its parsing.
    if isinstance(value, list) and len(value) > BATCH_MAX:
        raise ValueError(f"{len(value):,} tasks are too many: at most {BATCH_MAX:,} per request; send several requests")
    return value


class NewTask(Input):
    """A task to enqueue."""

    role: AnyRole = Field(description="Role of the task; `product_resync` is the former name of `payload_fetch`.")
    dispensary_id: StoreId | None = Field(
        None, description="Id of the store: required by roles that work on one store, not allowed for others."
    )
    platform: Text | None = Field(None, description="Platform; the store's platform if omitted.")
    priority: Priority = Field(
        PRIORITY_CHAINED, description="Higher runs first: 0 scheduled, 10 on demand, 20 and more urgent."
    )
    scheduled_for: StartTime | None = Field(
        None, description="Earliest start (ISO 8601 with offset); immediately if omitted."
    )
    payload: JsonObject | None = Field(
        None,
        description='Arguments of the task: `{"payload_id": 1}` for product_refresh; for store_discovery '
        '`{"state_code": "AZ", "city": "Phoenix"}`, both optional.',
    )


class Batch(Input):
    """Tasks to enqueue: all of them, or none if one is invalid."""

    tasks: Annotated[list[NewTask], FailFast(), BeforeValidator(_check_size)] = Field(
        min_length=1, max_length=BATCH_MAX, description="Tasks to enqueue."
    )


class EnqueueState(Input):
    """Tasks for every store of a state, or for every store that is due."""

    only_due: bool = Field(
        False, strict=True, description="Only stores whose crawl interval is over or that were never crawled."
    )
    state_code: Text | None = Field(
        None,
        validate_default=True,
        description="State or province (two letters); required unless `only_due` is true.",
    )
    role: AnyRole = Field(Role.PAYLOAD_FETCH, description="`payload_fetch` or `product_discovery`.")
    platform: Text | None = Field(None, description="Only stores on this platform.")
    priority: Priority = Field(PRIORITY_CHAINED, description="Higher runs first: 10 on demand, 20 and more urgent.")
    scheduled_for: StartTime | None = Field(
        None, description="Earliest start (ISO 8601 with offset); immediately if omitted."
    )

    @field_validator("state_code")
    @classmethod
    def _names_stores(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and not info.data.get("only_due"):
            raise ValueError("required unless `only_due` is true")
        return value


class BatchResult(Struct, kw_only=True, frozen=True):
    """Result of a batch."""

    requested: Annotated[int, doc("Number of tasks in the request.")]
    created: Annotated[int, doc("Number of new tasks.")]
    items: Annotated[list[Enqueued], doc("One result per task, in request order.")]


router = APIRouter(prefix="/api/job-queue", tags=["job queue"], dependencies=[require_by_method(Permission.TASKS)])


ALREADY_PENDING = {200: "An equal task was already pending; it is returned."}


def enqueued(request: Request, result: EnqueuedTask) -> Response:
    """The answer to a request that enqueues one task."""
    headers = {"Location": f"/api/tasks/{result.task.id}"}
    return answer(request, result, status=201 if result.created else 200, headers=headers)


@router.post("/enqueue", **returns(EnqueuedTask, 201, ALREADY_PENDING), summary="Enqueue one task")
async def enqueue_task(request: Request, system: AppDep, conn: WriteConn, new: NewTask) -> Response:
    """The same as `POST /api/tasks`."""
    requested = TaskRequest(**dict(new))
    return enqueued(request, await enqueue.enqueue(conn, requested, platforms=tuple(system.platforms)))


@router.post("/enqueue-batch", **returns(BatchResult), summary="Enqueue up to 10,000 tasks")
async def enqueue_batch(request: Request, system: AppDep, conn: WriteConn, batch: Batch) -> Response:
    """All of them are enqueued, or none if one is invalid. Only one task per store and task type is pending at a time."""
    requests = [TaskRequest(**dict(new)) for new in batch.tasks]
    items = await enqueue.enqueue_batch(conn, requests, platforms=tuple(system.platforms))
    created = sum(item.created for item in items)
    return answer(request, BatchResult(requested=len(items), created=created, items=items))


@router.post("/enqueue-state", **returns(StoresEnqueued), summary="Enqueue work for every store of a state")
async def enqueue_state(request: Request, system: AppDep, conn: WriteConn, which: EnqueueState) -> Response:
    """Creates one task for each enabled and resolved store of the state, or with `only_due` for those that are due."""
    result = await enqueue.enqueue_stores(
        conn,
        StoreSelection(role=which.role, state=which.state_code, platform=which.platform, only_due=which.only_due),
        platforms=tuple(system.platforms),
        priority=which.priority,
        scheduled_for=which.scheduled_for,
    )
    return answer(request, result)
