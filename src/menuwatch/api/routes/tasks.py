"""The queue: list, count, look at, enqueue, recover, cancel."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.schemas.common import PageQuery, StorePath, TaskPath
from menuwatch.api.schemas.stories import ExplanationWithStory
from menuwatch.api.schemas.tasks import (
    ActiveTask,
    AnyRole,
    BulkCancel,
    BulkDone,
    BulkRetry,
    EnqueuedTask,
    LastCompletion,
    NewTask,
    Recovered,
    RecoverStale,
    Retried,
    RetryTask,
    Task,
    TaskCountQuery,
    TaskCounts,
    TaskPage,
    TaskQuery,
    TaskWithReason,
)
from menuwatch.db.pool import Connection
from menuwatch.operations import explain, story, task_control, task_counts, task_search, tasks, wishes
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.task_search import Unreadable
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.wishes import Wish
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(prefix="/api/tasks", tags=["tasks"], dependencies=[allowed_by_method(Permission.TASKS)])

RolePath = Annotated[AnyRole, Path(description="The kind of work, by its present or former name.")]


async def _filter(
    system: System, conn: Connection, query: TaskCountQuery | TaskQuery | BulkRetry | BulkCancel
) -> TaskFilter:
    """What was asked for; raises InvalidRequest for a store or platform that does not exist."""
    where = TaskFilter(
        roles=query.role,
        statuses=query.status,
        dispensary_id=query.dispensary_id,
        platform=query.platform,
        created_after=query.created_after,
        created_before=query.created_before,
        worker_id=query.worker_id,
        error=query.error,
    )
    try:
        where = await task_search.narrowed(conn, where, query.q) if query.q else where
        await tasks.check(conn, where, platforms=tuple(system.platforms))
    except Unusable as error:
        field = error.field if getattr(query, error.field) is not None else "q"
        inside = isinstance(query, (BulkRetry, BulkCancel))
        place = {"pointer": f"#/{field}"} if inside else {"parameter": field, "in": "query"}
        each = error.faults if isinstance(error, Unreadable) else [error]
        raise InvalidRequest(f"{field}: {error}", [{**place, "detail": str(one)} for one in each]) from None
    return where


async def _page(request: Request, conn: Connection, where: TaskFilter, query: PageQuery) -> Response:
    # Times ago are other times at each page, and the list is the same.
    asked = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
    mark = paging.mark("tasks", where.roles, asked)
    after = paging.decode(query.cursor, mark, tuple[int])[0] if query.cursor is not None else None
    found = await tasks.page(conn, where, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)


@router.get("", response_model=TaskPage, summary="List tasks, newest first")
async def list_tasks(request: Request, system: Sys, conn: Reading, query: Annotated[TaskQuery, Query()]) -> Response:
    """Tasks that wait, run or are over, as long as they are kept."""
    return await _page(request, conn, await _filter(system, conn, query), query)


@router.post(
    "",
    response_model=EnqueuedTask,
    status_code=201,
    responses={200: {"model": EnqueuedTask, "description": "Such a task was waiting already: it is that one."}},
    summary="Enqueue a task",
)
async def create_task(request: Request, system: Sys, conn: Writing, new: NewTask) -> Response:
    """Has work done. Of the same work for the same store only one task waits: asking again gives that one, and may raise its
    priority."""
    return await enqueued(request, system, conn, new)


def asked(new: NewTask) -> Wish:
    """The task as it was asked for."""
    return Wish(
        role=new.role,
        dispensary_id=new.dispensary_id,
        platform=new.platform,
        priority=new.priority,
        scheduled_for=new.scheduled_for,
        payload=new.payload,
    )


async def enqueued(request: Request, system: System, conn: Connection, new: NewTask) -> Response:
    """The answer to who asks for a task."""
    task_id, created = await wishes.enqueue(conn, asked(new), platforms=tuple(system.platforms))
    body = {"task": await tasks.one(conn, task_id), "created": created}
    return answer(request, body, status=201 if created else 200, headers={"Location": f"/api/tasks/{task_id}"})


@router.get("/counts", response_model=TaskCounts, summary="Count tasks")
async def count_tasks(
    request: Request, system: Sys, conn: Reading, query: Annotated[TaskCountQuery, Query()]
) -> Response:
    """How many tasks there are by status, of those that the filters select."""
    found = await task_counts.counts(conn, await _filter(system, conn, query))
    by_status = {str(status): n for status, n in found.by_status.items()}
    return answer(request, {"total": found.total, "exact": found.exact, **by_status, "by_role": found.by_role})


@router.post("/recover-stale", response_model=Recovered, summary="Take tasks back from silent workers")
async def recover_stale_tasks(
    request: Request, system: Sys, conn: Writing, which: Annotated[RecoverStale | None, Body()] = None
) -> Response:
    """Tasks whose worker has been silent for that long wait again, or fail where no retry is left. Workers do so by themselves all the
    time; this is for who cannot wait."""
    threshold = which.threshold_minutes if which is not None and which.threshold_minutes is not None else None
    minutes = threshold if threshold is not None else system.settings.stale_after_minutes
    return answer(request, {"recovered": await task_control.recover_stale(conn, minutes), "threshold_minutes": minutes})


@router.get("/role/{role}/last-completion", response_model=LastCompletion, summary="When a role last succeeded")
async def get_last_completion(request: Request, conn: Reading, role: RolePath) -> Response:
    """The newest task of that role that was completed."""
    task = await tasks.last_completion(conn, role)
    return answer(request, {"role": role, "completed_at": task["completed_at"] if task else None, "task": task})


@router.get("/role/{role}/recent", response_model=TaskPage, summary="A role's newest tasks")
async def list_recent_tasks(
    request: Request, conn: Reading, role: RolePath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Tasks of one role in any state, newest first."""
    return await _page(request, conn, TaskFilter(roles=[role]), query)


@router.get("/store/{dispensary_id}/active", response_model=ActiveTask, summary="What is being done for a store")
async def get_active_task(request: Request, conn: Reading, dispensary_id: StorePath) -> Response:
    """The task that a worker holds for this store: there is at most one."""
    task = await tasks.active_of_store(conn, dispensary_id)
    return answer(request, {"dispensary_id": dispensary_id, "active": task is not None, "task": task})


@router.post("/bulk/retry", response_model=BulkDone, summary="Have many tasks done again")
async def bulk_retry_tasks(request: Request, system: Sys, conn: Writing, which: BulkRetry) -> Response:
    """What the filter selects is retried, each as by itself, and all of it or nothing. Without `status` and `ids` these are the tasks
    that failed and those that wait for another try. At most 100,000 at once."""
    where = await _filter(system, conn, which)
    found = await task_control.bulk_retry(conn, where, ids=which.ids, dry_run=which.dry_run, priority=which.priority)
    return answer(request, dataclasses.asdict(found))


@router.post("/bulk/cancel", response_model=BulkDone, summary="Cancel many tasks")
async def bulk_cancel_tasks(request: Request, system: Sys, conn: Writing, which: BulkCancel) -> Response:
    """What the filter selects and is not over is cancelled, all of it or nothing. Workers lose those that they are at, and stop."""
    where = await _filter(system, conn, which)
    found = await task_control.bulk_cancel(conn, where, ids=which.ids, dry_run=which.dry_run, reason=which.reason)
    return answer(request, dataclasses.asdict(found))


async def _explained(system: System, conn: Connection, task_id: int) -> dict[str, Any]:
    found = await explain.explain(
        conn,
        task_id,
        heartbeat_seconds=system.settings.heartbeat_interval_ms / 1000,
        stale_minutes=system.settings.stale_after_minutes,
        asked={name: platform.hosts for name, platform in system.platforms.items()},
    )
    return dataclasses.asdict(found)


@router.get("/{task_id}", response_model=TaskWithReason, summary="One task")
async def get_task(request: Request, system: Sys, conn: Reading, task_id: TaskPath) -> Response:
    """Where one task stands, and why."""
    task = await tasks.one(conn, task_id)
    return answer(request, {**task, "explanation": await _explained(system, conn, task_id)})


@router.get("/{task_id}/explain", response_model=ExplanationWithStory, summary="Why a task is where it is")
async def explain_task(request: Request, system: Sys, conn: Reading, task_id: TaskPath) -> Response:
    """What keeps a waiting task from running: its time, its turn, its store, the host that it asks, or the workers. Of a task at work,
    who has it; of one that is over, how it ended. Then its story: what enqueued it, its requests, what followed."""
    found = await _explained(system, conn, task_id)
    return answer(request, {**found, "story": await story.story(conn, task_id)})


@router.post("/{task_id}/cancel", response_model=Task, summary="Cancel a task")
async def cancel_task(request: Request, conn: Writing, task_id: TaskPath) -> Response:
    """It is not done any more. A worker that is at it loses it and stops."""
    await task_control.cancel(conn, task_id)
    return answer(request, await tasks.one(conn, task_id))


@router.post(
    "/{task_id}/retry",
    response_model=Retried,
    status_code=201,
    responses={200: {"model": Retried, "description": "No new task was needed: it waits, or the same work does."}},
    summary="Have a task done again",
)
async def retry_task(
    request: Request, conn: Writing, task_id: TaskPath, how: Annotated[RetryTask | None, Body()] = None
) -> Response:
    """A task that is over is enqueued anew and stays in the history as it was; where the same work waits already, that one is the
    answer. A task that waits for its time or for another try is due at once; one that is due already may only become more urgent
    (`outcome` says what changed). While a worker is at it, this is a conflict."""
    wanted = how or RetryTask.model_validate({})
    number, outcome = await task_control.retry(conn, task_id, priority=wanted.priority)
    created = outcome == "created"
    body = {"task": await tasks.one(conn, number), "created": created, "retried": task_id, "outcome": outcome}
    return answer(request, body, status=201 if created else 200, headers={"Location": f"/api/tasks/{number}"})
