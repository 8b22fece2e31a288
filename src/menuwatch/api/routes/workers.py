"""The worker registry, commands to workers, and scaling. Endpoints for third-party workers: worker_protocol.py."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Request, Response
from msgspec import Struct
from pydantic import AfterValidator, Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import AnyRole, Input, PageQuery, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.core.shapes import doc
from menuwatch.db.pool import Connection
from menuwatch.scaling import service as scaling
from menuwatch.scaling.model import ReplicaCount
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.workers import service as workers
from menuwatch.workers.commands import Command, WorkerCommand
from menuwatch.workers.service import RoleWorkers, Status, Worker, WorkerDetails, WorkerFilter


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("must contain printable characters only, without leading or trailing spaces")
    return text


def _addressable(text: str) -> str:
    if "/" in text:
        raise ValueError("must not contain a slash: it is part of URLs")
    return text


Name = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_printable)]

NewId = Annotated[Name, AfterValidator(_addressable)]

WorkerPath = Annotated[Name, Path(description="Id of the worker.")]


class WorkerQuery(PageQuery):
    """Which workers."""

    status: list[Status] | None = Field(None, description="Only these statuses (repeatable).")
    alive: bool | None = Field(
        None, description="Only workers with (`true`) or without (`false`) a heartbeat in the last two minutes."
    )
    role: AnyRole | None = Field(None, description="Only workers that accept this role.")
    pod: Text | None = Field(None, description="Only workers of this pod.")


class CommandActor(Input):
    """The sender of a command."""

    by: Name | None = Field(None, description="Name of the sender, shown in the worker's log and the registry.")


class Scale(Input):
    """The desired number of workers."""

    replicas: int = Field(description="Desired number of workers, from `low` to `high`.", examples=[8])


class RoleList(Struct, frozen=True):
    """All roles."""

    items: list[RoleWorkers]


class CommandResult(Struct, kw_only=True, frozen=True):
    """Result of sending a command."""

    command: WorkerCommand
    worker: Annotated[WorkerDetails, doc("The worker after the command was created.")]


router = APIRouter(
    prefix="/api/worker-registry", tags=["workers"], dependencies=[require_by_method(Permission.WORKERS)]
)

scaling_router = APIRouter(
    prefix="/api/workers/k8s", tags=["workers"], dependencies=[require_by_method(Permission.WORKERS)]
)

ActorBody = Annotated[CommandActor | None, Body()]


@router.get("", **returns_page(Worker), summary="List workers, newest first")
async def list_workers(request: Request, conn: ReadConn, query: Annotated[WorkerQuery, Query()]) -> Response:
    """Lists workers with their current tasks, including stopped and silent ones."""
    where = WorkerFilter(statuses=query.status, alive=query.alive, role=query.role, pod=query.pod)
    keys = Keyset(query, tuple[datetime, str], "workers", where)
    rows = await workers.list_workers(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda worker: (worker.started_at, worker.worker_id))


@router.get("/roles", **returns(RoleList), summary="List roles and their workers")
async def list_worker_roles(request: Request, conn: ReadConn) -> Response:
    """Each role with its description and number of workers; tasks of a role without workers wait."""
    return answer(request, RoleList(items=await workers.count_by_role(conn)))


@router.get("/{worker_id}", **returns(WorkerDetails), summary="Get a worker")
async def get_worker(request: Request, conn: ReadConn, worker_id: WorkerPath) -> Response:
    """Returns one worker with its commands."""
    return answer(request, await workers.get_worker(conn, worker_id))


@router.post("/{worker_id}/decommission", **returns(CommandResult), summary="Decommission a worker")
async def decommission_worker(
    request: Request, conn: WriteConn, worker_id: WorkerPath, sender: ActorBody = None
) -> Response:
    """The worker claims no more tasks, finishes the running ones, deregisters and exits."""
    return await _send(request, conn, worker_id, Command.DECOMMISSION, sender)


@router.post("/{worker_id}/pause", **returns(CommandResult), summary="Pause a worker")
async def pause_worker(request: Request, conn: WriteConn, worker_id: WorkerPath, sender: ActorBody = None) -> Response:
    """The worker finishes running tasks and claims no more until it is resumed."""
    return await _send(request, conn, worker_id, Command.PAUSE, sender)


@router.post("/{worker_id}/resume", **returns(CommandResult), summary="Resume a worker")
async def resume_worker(request: Request, conn: WriteConn, worker_id: WorkerPath, sender: ActorBody = None) -> Response:
    """Ends a pause."""
    return await _send(request, conn, worker_id, Command.RESUME, sender)


async def _send(
    request: Request, conn: Connection, worker_id: str, command: Command, sender: CommandActor | None
) -> Response:
    command_sent = await workers.send_command(conn, worker_id, command, sender.by if sender is not None else None)
    return answer(request, CommandResult(command=command_sent, worker=await workers.get_worker(conn, worker_id)))


@scaling_router.get("/replicas", **returns(ReplicaCount), summary="Get replica counts")
async def get_replicas(request: Request, system: AppDep, conn: ReadConn) -> Response:
    """Independent of what runs the workers; the path is that of the legacy system."""
    return answer(request, await scaling.replicas(conn, system.scaler, system.settings))


@scaling_router.post("/scale", **returns(ReplicaCount), summary="Scale workers")
async def scale_workers(request: Request, system: AppDep, conn: WriteConn, target: Scale) -> Response:
    """Sets the desired number; workers start and stop afterwards. 400 outside the limits; 409 if nothing that can scale workers
    is connected."""
    return answer(request, await scaling.scale(conn, system.scaler, system.settings, target.replicas))
