"""The worker registry: who works, telling them, and the door for workers that somebody else wrote."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Body, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.schemas.workers import (
    HeartbeatAnswer,
    HeartbeatBody,
    Leave,
    Registered,
    Registration,
    RoleList,
    Teller,
    Told,
    WorkerDetails,
    WorkerPage,
    WorkerPath,
    WorkerQuery,
)
from menuwatch.db.pool import Connection
from menuwatch.operations import workers
from menuwatch.operations.workers import WorkerFilter
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Writing
from menuwatch.workers.commands import Command, Given

router = APIRouter(
    prefix="/api/worker-registry", tags=["workers"], dependencies=[allowed_by_method(Permission.WORKERS)]
)

TellerBody = Annotated[Teller | None, Body()]


@router.get("", response_model=WorkerPage, summary="List workers, newest first")
async def list_workers(request: Request, conn: Reading, query: Annotated[WorkerQuery, Query()]) -> Response:
    """Who works, what on, and who has stopped or fallen silent."""
    where = WorkerFilter(statuses=query.status, alive=query.alive, role=query.role, pod=query.pod)
    mark = paging.mark("workers", where)
    after = paging.decode(query.cursor, mark, tuple[datetime, str]) if query.cursor is not None else None
    found = await workers.page(conn, where, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    more = len(found) > query.limit
    return page(request, shown, paging.encode(mark, shown[-1]["started_at"], shown[-1]["worker_id"]) if more else None)


@router.get("/roles", response_model=RoleList, summary="Workers by role")
async def list_worker_roles(request: Request, conn: Reading) -> Response:
    """How many workers there are for each role: a role without any is not worked on."""
    return answer(request, {"items": await workers.by_role(conn)})


@router.post(
    "/register",
    response_model=Registered,
    status_code=201,
    responses={200: {"model": Registered, "description": "The id was known: that worker starts anew."}},
    summary="Register a worker",
)
async def register_worker(request: Request, conn: Writing, who: Registration) -> Response:
    """For workers that somebody else wrote; Menuwatch's own register themselves."""
    worker_id, created = await workers.register(
        conn,
        worker_id=who.worker_id,
        friendly_name=who.friendly_name,
        host=who.host,
        pid=who.pid,
        pod=who.pod,
        roles=who.roles,
        version=who.version,
    )
    body = {"worker": await workers.one(conn, worker_id), "created": created}
    return answer(request, body, status=201 if created else 200)


@router.post("/heartbeat", response_model=HeartbeatAnswer, summary="Take a worker's heartbeat")
async def beat_worker(request: Request, conn: Writing, beat: HeartbeatBody) -> Response:
    """Keeps the worker and the tasks it runs alive, and tells it what it has lost and what it was told."""
    lost, told = await workers.beat(
        conn,
        beat.worker_id,
        status=beat.status,
        body=msgspec.json.encode(beat.said()),
        task_ids=beat.task_ids(),
        acknowledged=beat.acknowledged_commands,
    )
    return answer(
        request, {"worker_id": beat.worker_id, "lost_task_ids": lost, "commands": [_command(one) for one in told]}
    )


@router.post("/deregister", response_model=WorkerDetails, summary="Take a worker out of the registry")
async def deregister_worker(request: Request, conn: Writing, who: Leave) -> Response:
    """For workers that somebody else wrote, at their end. Its row stays for a while, as stopped."""
    await workers.leave(conn, who.worker_id)
    return answer(request, await workers.one(conn, who.worker_id))


@router.get("/{worker_id}", response_model=WorkerDetails, summary="One worker")
async def get_worker(request: Request, conn: Reading, worker_id: WorkerPath) -> Response:
    """One worker with what it was told."""
    return answer(request, await workers.one(conn, worker_id))


@router.post("/{worker_id}/decommission", response_model=Told, summary="Have a worker leave")
async def decommission_worker(
    request: Request, conn: Writing, worker_id: WorkerPath, who: TellerBody = None
) -> Response:
    """It claims nothing more, finishes what runs, leaves the registry and ends."""
    return await _tell(request, conn, worker_id, Command.DECOMMISSION, who)


@router.post("/{worker_id}/pause", response_model=Told, summary="Have a worker claim nothing")
async def pause_worker(request: Request, conn: Writing, worker_id: WorkerPath, who: TellerBody = None) -> Response:
    """It finishes what runs and claims nothing until it is resumed."""
    return await _tell(request, conn, worker_id, Command.PAUSE, who)


@router.post("/{worker_id}/resume", response_model=Told, summary="Have a worker claim again")
async def resume_worker(request: Request, conn: Writing, worker_id: WorkerPath, who: TellerBody = None) -> Response:
    """Takes back a pause."""
    return await _tell(request, conn, worker_id, Command.RESUME, who)


async def _tell(request: Request, conn: Connection, worker_id: str, command: Command, who: Teller | None) -> Response:
    given = await workers.tell(conn, worker_id, command, who.by if who is not None else None)
    return answer(request, {"command": _command(given), "worker": await workers.one(conn, worker_id)})


def _command(given: Given) -> dict[str, object]:
    return {
        "id": given.id,
        "command": given.command,
        "created_at": given.created_at,
        "created_by": given.created_by,
        "acknowledged_at": given.acknowledged_at,
    }
