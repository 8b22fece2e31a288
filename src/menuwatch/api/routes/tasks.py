"""The task queue: list, count, get, explain, retry, change, clone, recover, cancel."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import AfterValidator, Field, Strict, WithJsonSchema, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import (
    AnyRole,
    BigId,
    Input,
    Instant,
    JsonObject,
    PageQuery,
    Priority,
    Search,
    StartTime,
    StoreId,
    StorePath,
    TaskPath,
    Text,
)
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import InvalidRequest, InvalidValue
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.api.routes.job_queue import ALREADY_PENDING, NewTask, enqueue_task, enqueued
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.db.pool import Connection
from menuwatch.queue import enqueue, service
from menuwatch.queue.counts import TaskCounts, count_by_status
from menuwatch.queue.enqueue import EnqueuedTask
from menuwatch.queue.explain.service import (
    ExplanationWithTrace,
    TaskWithReason,
    explain_with_trace,
    get_task_with_reason,
)
from menuwatch.queue.model import PRIORITY_CHAINED, Status, parse_state, split_states
from menuwatch.queue.search import InvalidQuery, apply_query
from menuwatch.queue.service import RECOVERY_MAX_MINUTES, BulkResult, RecoveryResult, RetryResult
from menuwatch.queue.task_list import (
    ActiveTask,
    LastCompletion,
    TaskFilter,
    TaskRow,
    check_filter,
    find_workers,
    get_active_task,
    get_last_completion,
    get_task,
    list_recent,
    list_tasks,
)
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn

IDS_MAX = 10_000
"""Most tasks that one request names by id."""


_State = Literal[
    "pending", "claimed", "running", "completed", "failed", "stale", "cancelled", "ready", "blocked", "scheduled"
]


class _Filters(Input):
    role: list[AnyRole] | None = Field(None, description="Only these roles (repeatable).")
    status: list[_State] | None = Field(
        None, description="Only these statuses (repeatable); `ready`, `blocked` and `scheduled` select pending tasks."
    )
    dispensary_id: StoreId | None = Field(None, description="Only tasks for this store.")
    platform: Text | None = Field(None, description="Only tasks for this platform.")
    created_after: Instant | None = Field(
        None, description="Only tasks enqueued at or after this time (ISO 8601 with offset)."
    )
    created_before: Instant | None = Field(
        None, description="Only tasks enqueued before this time (ISO 8601 with offset)."
    )
    worker_id: Text | None = Field(
        None, description="Only tasks claimed by this worker (id, name or pod/name), now or when they ended."
    )
    error: Search | None = Field(
        None, description="Only tasks whose reason (`error_message`) contains this text, case-insensitive."
    )
    q: Annotated[Text, Field(max_length=2000)] | None = Field(
        None,
        description="Search expression as in the dashboard: `role:payload_fetch state:failed,cancelled "
        "store:green-leaf worker:NAME platform:dutchie id:12,13 priority:>=10 created:>2026-11-01 "
        'created:>=-24h ended:>=-24h args.payload_id:5 cause:3f2a91c04d7e error:"HTTP 403" timeout`. It '
        "is combined with the other parameters; a filter may be given only once.",
    )


class TaskCountQuery(_Filters):
    """Which tasks are counted."""


class TaskQuery(_Filters, PageQuery):
    """Which tasks."""


class RecentQuery(PageQuery):
    """Which finished tasks."""

    status: list[Literal[Status.COMPLETED, Status.FAILED, Status.CANCELLED]] | None = Field(
        None, description="Only these outcomes (repeatable); `completed` if omitted."
    )


class CloneTask(Input):
    """Fields that differ from the cloned task; omitted fields are copied."""

    dispensary_id: StoreId | None = Field(None, description="Id of the store.")
    priority: Priority = Field(
        PRIORITY_CHAINED, description="The cloned task's priority if omitted, at least 10 (on demand)."
    )
    scheduled_for: StartTime | None = Field(
        None, description="Earliest start (ISO 8601 with offset); immediately if omitted."
    )
    payload: JsonObject | None = Field(None, description="Arguments of the task, instead of all of the cloned task.")


class ChangeTask(Input):
    """New values of a pending task."""

    priority: Priority = Field(description="Higher runs first: 0 scheduled, 10 on demand, 20 and more urgent.")


class RetryTask(Input):
    """Options of a retry."""

    priority: Priority = Field(PRIORITY_CHAINED, description="Minimum priority of the task; a higher priority is kept.")


class _Bulk(_Filters):
    ids: list[BigId] | None = Field(
        None, min_length=1, max_length=IDS_MAX, description="Ids of the tasks, instead of a filter."
    )
    all: bool = Field(
        False, strict=True, description="Select all tasks; required if neither filters nor ids are given."
    )
    dry_run: bool = Field(False, strict=True, description="Only count the tasks that would change.")

    @model_validator(mode="after")
    def _selects(self) -> _Bulk:
        filters = [name for name in _Filters.model_fields if getattr(self, name) is not None]
        if self.ids is not None and (filters or self.all):
            raise ValueError(f"`ids` cannot be combined with {', '.join(filters) or 'all'}")
        if self.all and filters:
            raise ValueError(f"`all` selects all tasks: omit it, or omit {', '.join(filters)}")
        if self.ids is None and not filters and not self.all:
            raise ValueError(
                f"this selects all tasks: give `ids` or a filter ({', '.join(_Filters.model_fields)}), or `all: true`"
            )
        return self


class BulkRetry(_Bulk):
    """Tasks to retry. Without `status` and `ids`: failed tasks and tasks that wait for a retry."""

    priority: Priority = Field(
        PRIORITY_CHAINED, description="Minimum priority of the tasks; a higher priority is kept."
    )


class BulkCancel(_Bulk):
    """Tasks to cancel."""

    reason: Search | None = Field(None, description="Reason, stored in `error_message`.")


def _exceeds_heartbeats(minutes: float) -> float:
    if minutes < 1:
        raise ValueError("must be at least 1: workers send a heartbeat every 30 seconds")
    if minutes > RECOVERY_MAX_MINUTES:
        raise ValueError(f"must be at most {RECOVERY_MAX_MINUTES} (one day)")
    return minutes


class RecoverStale(Input):
    """Threshold for stale tasks."""

    threshold_minutes: (
        Annotated[
            float,
            Strict(),
            Field(allow_inf_nan=False),
            AfterValidator(_exceeds_heartbeats),
            WithJsonSchema({"type": "number", "minimum": 1, "maximum": RECOVERY_MAX_MINUTES}),
        ]
        | None
    ) = Field(
        None, description="Minutes without a heartbeat of the worker; STALE_AFTER_MINUTES of the server if omitted."
    )


router = APIRouter(prefix="/api/tasks", tags=["tasks"], dependencies=[require_by_method(Permission.TASKS)])

RolePath = Annotated[AnyRole, Path(description="Role of the tasks, by its current or former name.")]


async def _filter(
    system: AppContext, conn: Connection, query: TaskCountQuery | TaskQuery | BulkRetry | BulkCancel
) -> TaskFilter:
    """The filter of a request; raises InvalidRequest for a store or platform that does not exist."""
    statuses, waits = split_states([parse_state(state) for state in query.status or ()])
    where = TaskFilter(
        roles=query.role,
        statuses=statuses or None,
        waits=waits,
        dispensary_id=query.dispensary_id,
        platform=query.platform,
        created_after=query.created_after,
        created_before=query.created_before,
        error=query.error,
    )
    try:
        if query.worker_id is not None:
            where = replace(where, worker_ids=await _workers(conn, query.worker_id))
        where = await apply_query(conn, where, query.q) if query.q else where
        await check_filter(conn, where, platforms=tuple(system.platforms))
    except InvalidField as error:
        field = error.field if getattr(query, error.field) is not None else "q"
        in_body = isinstance(query, (BulkRetry, BulkCancel))
        location = {"pointer": f"#/{field}"} if in_body else {"parameter": field, "in_": "query"}
        faults = error.faults if isinstance(error, InvalidQuery) else [error]
        values = [InvalidValue(**location, detail=str(fault)) for fault in faults]
        raise InvalidRequest(f"{field}: {error}", values) from None
    return where


async def _workers(conn: Connection, text: str) -> list[str]:
    try:
        return await find_workers(conn, text)
    except Refused as error:
        raise InvalidField("worker_id", str(error)) from None


async def _page(request: Request, conn: Connection, where: TaskFilter, query: PageQuery) -> Response:
    # Times ago are other times at each page, and the list is the same.
    parameters = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
    keys = Keyset(query, int, "tasks", where.roles, parameters)
    tasks = await list_tasks(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, tasks, lambda task: task.id)


@router.get("", **returns_page(TaskRow), summary="List tasks, newest first")
async def get_tasks(request: Request, system: AppDep, conn: ReadConn, query: Annotated[TaskQuery, Query()]) -> Response:
    """Lists all tasks within the retention period."""
    return await _page(request, conn, await _filter(system, conn, query), query)


@router.post("", **returns(EnqueuedTask, 201, ALREADY_PENDING), summary="Enqueue a task")
async def create_task(request: Request, system: AppDep, conn: WriteConn, new: NewTask) -> Response:
    """Only one task per store and task type is pending at a time: a second request returns that task and may raise its
    priority."""
    return await enqueue_task(request, system, conn, new)


@router.get("/counts", **returns(TaskCounts), summary="Count tasks")
async def count_tasks(
    request: Request, system: AppDep, conn: ReadConn, query: Annotated[TaskCountQuery, Query()]
) -> Response:
    """Counts the selected tasks by status."""
    return answer(request, await count_by_status(conn, await _filter(system, conn, query)))


@router.post("/recover-stale", **returns(RecoveryResult), summary="Recover stale tasks")
async def recover_stale_tasks(
    request: Request, system: AppDep, conn: WriteConn, options: Annotated[RecoverStale | None, Body()] = None
) -> Response:
    """Returns tasks to the queue whose worker has sent no heartbeat for that long, or fails them if no retry is left. Workers do
    this continuously; this endpoint does it now."""
    minutes = options.threshold_minutes if options is not None else None
    return answer(
        request,
        await service.recover_stale(conn, system.settings.stale_after_minutes if minutes is None else minutes),
    )


@router.get("/role/{role}/last-completion", **returns(LastCompletion), summary="Get the last success of a role")
async def get_role_last_completion(request: Request, conn: ReadConn, role: RolePath) -> Response:
    """Returns the newest completed task of that role."""
    return answer(request, await get_last_completion(conn, role))


@router.get("/role/{role}/recent", **returns_page(TaskRow), summary="List a role's recent completions")
async def list_recent_tasks(
    request: Request, conn: ReadConn, role: RolePath, query: Annotated[RecentQuery, Query()]
) -> Response:
    """Lists tasks of one role that completed, or that ended with the given statuses, latest end first."""
    statuses = query.status or [Status.COMPLETED]
    keys = Keyset(query, tuple[datetime, int], "recent", role, statuses)
    tasks = await list_recent(conn, role, statuses, after=keys.after, limit=keys.limit)
    return keys.page(request, tasks, _end_of)


def _end_of(task: TaskRow) -> tuple[datetime, int]:
    assert task.completed_at is not None, "only finished tasks are listed"
    return task.completed_at, task.id


@router.get("/store/{dispensary_id}/active", **returns(ActiveTask), summary="Get the store's active task")
async def get_store_active_task(request: Request, conn: ReadConn, dispensary_id: StorePath) -> Response:
    """Returns the task that a worker holds for this store; there is at most one."""
    return answer(request, await get_active_task(conn, dispensary_id))


@router.post("/bulk/retry", **returns(BulkResult), summary="Bulk retry tasks")
async def bulk_retry_tasks(request: Request, system: AppDep, conn: WriteConn, selection: BulkRetry) -> Response:
    """Retries all selected tasks in one transaction, each as if retried alone. Without `status` and `ids`: failed tasks and tasks
    that wait for a retry. At most 100,000 at once."""
    where = await _filter(system, conn, selection)
    result = await service.bulk_retry(
        conn, where, ids=selection.ids, dry_run=selection.dry_run, priority=selection.priority
    )
    return answer(request, result)


@router.post("/bulk/cancel", **returns(BulkResult), summary="Bulk cancel tasks")
async def bulk_cancel_tasks(request: Request, system: AppDep, conn: WriteConn, selection: BulkCancel) -> Response:
    """Cancels all selected tasks that have not ended, in one transaction. Workers stop running ones."""
    where = await _filter(system, conn, selection)
    result = await service.bulk_cancel(
        conn, where, ids=selection.ids, dry_run=selection.dry_run, reason=selection.reason
    )
    return answer(request, result)


@router.get("/{task_id}", **returns(TaskWithReason), summary="Get a task")
async def get_one_task(request: Request, system: AppDep, conn: ReadConn, task_id: TaskPath) -> Response:
    """Returns one task and why it is in its current state."""
    return answer(request, await get_task_with_reason(conn, task_id))


@router.patch("/{task_id}", **returns(TaskRow), summary="Change a task's priority")
async def change_task(request: Request, conn: WriteConn, task_id: TaskPath, change: ChangeTask) -> Response:
    """Changes the priority of a pending task, up or down."""
    await service.set_priority(conn, task_id, change.priority)
    return answer(request, await get_task(conn, task_id))


@router.get("/{task_id}/explain", **returns(ExplanationWithTrace), summary="Explain a task")
async def explain_task(request: Request, system: AppDep, conn: ReadConn, task_id: TaskPath) -> Response:
    """For a pending task: what keeps it from running (time, queue position, store, host or workers). For a running one its
    worker, for a finished one its outcome. With its trace: what enqueued it, its requests, follow-up tasks."""
    return answer(request, await explain_with_trace(conn, task_id))


@router.post("/{task_id}/cancel", **returns(TaskRow), summary="Cancel a task")
async def cancel_task(request: Request, conn: WriteConn, task_id: TaskPath) -> Response:
    """Cancels the task. A worker that runs it stops."""
    return answer(request, await service.cancel(conn, task_id))


@router.post(
    "/{task_id}/retry",
    **returns(RetryResult, 201, {200: "No new task was needed: this one or an equal one is pending."}),
    summary="Retry a task",
)
async def retry_task(
    request: Request, conn: WriteConn, task_id: TaskPath, options: Annotated[RetryTask | None, Body()] = None
) -> Response:
    """A finished task is enqueued again and stays in the history; if an equal task is already pending, that one is returned. A
    scheduled task, or one that waits for a retry, becomes due immediately; a due task can only get a higher priority
    (`outcome` says what changed). If a worker is running the task, the response is a conflict."""
    priority = PRIORITY_CHAINED if options is None else options.priority
    result = await service.retry(conn, task_id, priority=priority)
    headers = {"Location": f"/api/tasks/{result.task.id}"}
    return answer(request, result, status=201 if result.created else 200, headers=headers)


@router.post("/{task_id}/clone", **returns(EnqueuedTask, 201, ALREADY_PENDING), summary="Clone a task")
async def clone_task(
    request: Request,
    system: AppDep,
    conn: WriteConn,
    task_id: TaskPath,
    changes: Annotated[CloneTask | None, Body()] = None,
) -> Response:
    """Enqueues a task like that one, with the given differences. If an equal task is already pending, that one is returned."""
    overrides = {} if changes is None else changes.model_dump(exclude_unset=True)
    return enqueued(request, await enqueue.clone(conn, task_id, overrides, platforms=tuple(system.platforms)))
