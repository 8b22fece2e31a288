"""Asking for work, in quantity."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.routes.tasks import asked, enqueued
from menuwatch.api.schemas.job_queue import Batch, BatchDone, EnqueueState, StateDone
from menuwatch.api.schemas.tasks import EnqueuedTask, NewTask
from menuwatch.operations import wishes
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Sys, Writing

router = APIRouter(prefix="/api/job-queue", tags=["job queue"], dependencies=[allowed_by_method(Permission.TASKS)])


@router.post(
    "/enqueue",
    response_model=EnqueuedTask,
    status_code=201,
    responses={200: {"model": EnqueuedTask, "description": "Such a task was waiting already: it is that one."}},
    summary="Enqueue one task",
)
async def enqueue_task(request: Request, system: Sys, conn: Writing, new: NewTask) -> Response:
    """The same as `POST /api/tasks`."""
    return await enqueued(request, system, conn, new)


@router.post("/enqueue-batch", response_model=BatchDone, summary="Enqueue up to 10,000 tasks")
async def enqueue_batch(request: Request, system: Sys, conn: Writing, batch: Batch) -> Response:
    """All of them are enqueued, or none where one cannot be used. Of the same work for the same store only one task waits."""
    found = await wishes.enqueue_batch(conn, [asked(new) for new in batch.tasks], platforms=tuple(system.platforms))
    body = {
        "requested": len(found),
        "created": sum(one.created for one in found),
        "items": [{"id": one.id, "created": one.created} for one in found],
    }
    return answer(request, body)


@router.post("/enqueue-state", response_model=StateDone, summary="Enqueue work for every store of a state")
async def enqueue_state(request: Request, system: Sys, conn: Writing, which: EnqueueState) -> Response:
    """One task for each store of the state that is switched on and known to its platform."""
    stores, found = await wishes.enqueue_state(
        conn,
        state_code=which.state_code,
        role=which.role,
        platforms=tuple(system.platforms),
        platform=which.platform,
        priority=which.priority,
        scheduled_for=which.scheduled_for,
    )
    body = {
        "state_code": which.state_code.strip().upper(),
        "role": which.role,
        "stores": stores,
        "requested": len(found),
        "created": sum(one.created for one in found),
    }
    return answer(request, body)
