"""The service for workers: list, find, send commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Struct, structs
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, NotFound, Refused
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import Instant, JsonObject, doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.query import Row, fetch_all, fetch_struct, fetch_structs
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import ROLE_INFO, Role
from menuwatch.workers import commands, registry
from menuwatch.workers.commands import Command, WorkerCommand
from menuwatch.workers.registry import Identity

log = get_logger(__name__)

_q = sql.load(__package__, "service.sql")
_Conn = AsyncConnection[Any]

Status = Literal["active", "paused", "backing_off", "stopping", "stopped"]


class WorkerHour(Struct, kw_only=True, frozen=True):
    """Tasks that a worker finished in the last hour."""

    completed: int = 0
    failed: Annotated[int, doc("Failed permanently; attempts that are retried do not count.")] = 0
    finished: Annotated[list[int], doc("Completed and failed tasks by five minutes, oldest first.")] = []
    tasks_per_minute: Annotated[float, doc("Over the last hour, or since the start of the worker.")] = 0.0
    failure_rate: Annotated[float | None, doc("Share of failed tasks, 0 to 1; null without any.")] = None


class Worker(Struct, kw_only=True, frozen=True):
    """One worker, from its start until some time after it stopped."""

    worker_id: Annotated[str, doc("WORKER_ID of the worker; if unset, generated at each start.")]
    friendly_name: Annotated[str, doc("Readable name, unique in its pod.")]
    pod: str | None
    host: Annotated[str, doc("Machine of the worker.")]
    pid: Annotated[int | None, doc("Process id; null if unknown.")]
    roles: Annotated[list[str] | None, doc("Roles it accepts; null for all roles.")]
    status: Annotated[
        Status,
        doc(
            "`active`: claims tasks; `paused`: paused by an operator; `backing_off`: the machine is overloaded; `stopping`: "
            "finishes running tasks; `stopped`: has deregistered."
        ),
    ]
    alive: Annotated[bool, doc("Whether it has not stopped and sent a heartbeat in the last two minutes.")]
    silent_seconds: Annotated[float, doc("Seconds since the last heartbeat.")]
    started_at: Instant
    last_heartbeat_at: Instant
    heartbeat: Annotated[JsonObject, doc("Contents of the last heartbeat; empty before the first one.")]
    version: Annotated[str | None, doc("Software version; null if not reported.")]
    pending_commands: Annotated[list[str], doc("Commands that the worker has not acknowledged yet.")]
    last_hour: WorkerHour = WorkerHour()

    @property
    def display_name(self) -> str:
        """Its name with that of its pod."""
        return self.friendly_name if self.pod is None else f"{self.pod}/{self.friendly_name}"


class WorkerDetails(Worker, kw_only=True, frozen=True):
    """A worker with its commands."""

    commands: Annotated[list[WorkerCommand], doc("The last 20 commands, newest first.")]


class RoleWorkers(Struct, kw_only=True, frozen=True):
    """Workers of a role."""

    role: str
    name: Annotated[str, doc("Readable name.")]
    description: Annotated[str, doc("What its tasks do.")]
    handler: Annotated[str, doc("Class that runs its tasks.")]
    live_workers: Annotated[int, doc("Live workers that accept the role.")]
    claiming_workers: Annotated[int, doc("Those of them that currently claim it: not paused, backing off or stopping.")]
    slots: Annotated[int, doc("Tasks that the live workers run at once.")]


class WorkerFilter(Struct, frozen=True, kw_only=True):
    """Which workers; None takes all. `role` takes those that may claim it."""

    statuses: Sequence[str] | None = None
    alive: bool | None = None
    role: Role | None = None
    pod: str | None = None


async def list_workers(
    conn: _Conn, where: WorkerFilter, *, after: tuple[datetime, str] | None = None, limit: int | None = 50
) -> list[Worker]:
    """Workers, newest start first, after the one with that start and id. `limit` None: all."""
    after_at, after_id = after or (None, None)
    values = {
        "statuses": None if where.statuses is None else list(where.statuses),
        "alive": where.alive,
        "role": None if where.role is None else str(where.role),
        "pod": where.pod,
    }
    found = await fetch_structs(
        conn, Worker, _q.list_workers, {**values, "after_at": after_at, "after_id": after_id, "limit": limit}
    )
    hours = await last_hour(conn, {worker.worker_id: worker.started_at for worker in found})
    return [structs.replace(worker, last_hour=hours[worker.worker_id]) for worker in found]


async def last_hour(conn: _Conn, workers: Mapping[str, datetime]) -> dict[str, WorkerHour]:
    """What workers, given with their start, finished in the last hour."""
    now = await database_now(conn)
    rows = await fetch_all(conn, _q.last_hour, {"ids": list(workers)})
    by_worker: dict[str, list[Row]] = {}
    for row in rows:
        by_worker.setdefault(row["worker_id"], []).append(row)
    hours = {}
    for worker_id, started_at in workers.items():
        own = by_worker.get(worker_id, [])
        completed, failed = sum(row["completed"] for row in own), sum(row["failed"] for row in own)
        finished = [0] * 12
        for row in own:
            finished[max(row["slot"], 0)] += row["completed"] + row["failed"]
        minutes = min(max((now - started_at).total_seconds() / 60, 1.0), 60.0)
        hours[worker_id] = WorkerHour(
            completed=completed,
            failed=failed,
            finished=finished,
            tasks_per_minute=round((completed + failed) / minutes, 2),
            failure_rate=failed / (completed + failed) if completed + failed else None,
        )
    return hours


async def get_worker(conn: _Conn, worker_id: str) -> WorkerDetails:
    """One worker with its last commands; raises NotFound."""
    worker = await fetch_struct(conn, Worker, _q.get_worker, {"id": worker_id})
    if worker is None:
        raise NotFound(f"unknown worker {worker_id!r}")
    sent = await fetch_structs(conn, WorkerCommand, _q.commands_of_worker, {"id": worker_id})
    hours = await last_hour(conn, {worker_id: worker.started_at})
    known = {**{name: getattr(worker, name) for name in Worker.__struct_fields__}, "last_hour": hours[worker_id]}
    return WorkerDetails(**known, commands=sent)


async def count_by_role(conn: _Conn) -> list[RoleWorkers]:
    """How many workers there are for each role."""
    rows = await fetch_all(conn, _q.workers_by_role, {})
    return [RoleWorkers(**row, **ROLE_INFO[Role(row["role"])]._asdict()) for row in rows]


async def find_worker(conn: _Conn, text: str) -> str:
    """The id of a worker by its id, name or `pod/name`. Raises NotFound and Conflict, with the candidates."""
    rows = await fetch_all(conn, _q.workers_called, {"text": text})
    if len(rows) == 1 or (rows and rows[0]["worker_id"] == text):
        return str(rows[0]["worker_id"])
    if not rows:
        known = [f"{worker.display_name} ({worker.worker_id})" for worker in await registry.list_workers(conn)]
        raise NotFound(f"unknown worker {text!r}; registered: {', '.join(known) or 'none'}")
    named = ", ".join(row["label"] for row in rows)
    raise Conflict(f"{len(rows)} workers are named {text!r}: use an id: {named}")


async def send_command(conn: _Conn, worker_id: str, command: Command, by: str | None = None) -> WorkerCommand:
    """Pauses, resumes or decommissions a worker. Raises NotFound, and Conflict if it is stopping or has stopped."""
    worker = await registry.get(conn, worker_id, lock=True)
    if worker is None:
        raise NotFound(f"unknown worker {worker_id!r}")
    if worker.status == "stopped":
        raise Conflict(
            f"worker {worker_id!r} stopped at {worker.last_heartbeat_at:%Y-%m-%d %H:%M:%S} UTC: it cannot receive commands"
        )
    if worker.status == "stopping" and command is not Command.DECOMMISSION:
        raise Conflict(f"worker {worker_id!r} is stopping and can no longer {command}")
    sent = await commands.send(conn, worker_id, command, by)
    await audit.record(conn, "worker_told", ("worker", worker_id), command=str(command), command_id=sent.id)
    return sent


async def enter(conn: _Conn, who: Identity) -> datetime:
    """Registers one of Menuwatch's own workers; returns its start. Raises Refused while another living worker has its id.

    If a dead one had it, its commands are void and its tasks go back to the queue, with one retry used up.
    """
    known = await registry.get(conn, who.worker_id, lock=True)
    gone = known.pid if known is not None and known.host == who.host and _has_ended(known.pid) else None
    started_at = await registry.enter(conn, who, gone=gone)
    if started_at is None:
        at = "" if known is None else f" (machine {known.host}, process {known.pid})"
        raise Refused(
            f"another running worker has the id {who.worker_id!r}{at}: set another WORKER_ID, or stop that worker first. A worker "
            "that was killed on another machine counts as running for two minutes"
        )
    if known is not None:
        await registry.void_commands(conn, who.worker_id)
        if await _retry_tasks(conn, who.worker_id):
            await tasks.wake(conn)
    return started_at


def _has_ended(pid: int | None) -> bool:
    """Whether that process of this machine has ended. Our own number was that of an earlier process."""
    if pid is None or pid == os.getpid():
        return pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


async def _retry_tasks(conn: _Conn, worker_id: str) -> int:
    """Returns the tasks of a dead worker to the queue, with one retry used up; returns how many."""
    endings = [
        Ending(task_id=held.task_id, attempt=held.attempt, verb="retry", reason=f"worker {worker_id} died", wait=0.0)
        for held in await tasks.held_by(conn, worker_id)
    ]
    if endings:
        log.warning(
            "retrying tasks of a dead worker", action="worker_tasks_retried", worker_id=worker_id, tasks=len(endings)
        )
    return len(await tasks.finish(conn, worker_id, endings))


async def mark_dead(conn: _Conn, *, host: str, pid: int, pod: str | None, since: datetime) -> int:
    """Marks the workers of this process, started at `since`, as stopped if they did not deregister.

    Their tasks need not wait until they count as silent: each goes to another worker, with one retry used up. Returns how many
    tasks those were.
    """
    retried = 0
    for worker_id in await registry.mark_dead(conn, host=host, pid=pid, pod=pod, since=since):
        log.warning("worker died", action="worker_died", worker_id=worker_id)
        retried += await _retry_tasks(conn, worker_id)
    if retried:
        await tasks.wake(conn)
    return retried
