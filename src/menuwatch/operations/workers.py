"""Workers as people look at them and steer them, and the registry for workers that somebody else wrote."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import Conflict, NotFound
from menuwatch.tasks import store as tasks
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import Role
from menuwatch.workers import commands, registry
from menuwatch.workers.commands import Command, Given
from menuwatch.workers.names import WORKER_NAMES, worker_name
from menuwatch.workers.registry import Identity

log = get_logger(__name__)

_q = sql.load(__package__, "workers.sql")
_Conn = AsyncConnection[Any]

STATUSES = ("active", "paused", "backing_off", "stopping", "stopped")
"""What the registry may say of a worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFilter:
    """Which workers; None takes all. `role` takes those that may claim it."""

    statuses: Sequence[str] | None = None
    alive: bool | None = None
    role: Role | None = None
    pod: str | None = None

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        return {
            "statuses": None if self.statuses is None else list(self.statuses),
            "alive": self.alive,
            "role": None if self.role is None else str(self.role),
            "pod": self.pod,
        }


async def page(
    conn: _Conn, where: WorkerFilter, *, after: tuple[datetime, str] | None = None, limit: int = 50
) -> list[Row]:
    """Workers, newest start first, behind the one with that start and id."""
    after_at, after_id = after or (None, None)
    return await rows(
        conn, _q.list_workers, {**where.values(), "after_at": after_at, "after_id": after_id, "limit": limit}
    )


async def one(conn: _Conn, worker_id: str) -> Row:
    """One worker with what it was told lately; raises NotFound."""
    found = await row(conn, _q.get_worker, {"id": worker_id})
    if found is None:
        raise NotFound(f"worker {worker_id!r} is not in the registry")
    return {**found, "commands": await rows(conn, _q.commands_of_worker, {"id": worker_id})}


async def by_role(conn: _Conn) -> list[Row]:
    """How many workers there are for each role."""
    return await rows(conn, _q.workers_by_role, {})


async def find(conn: _Conn, text: str) -> str:
    """The id of the worker that is called so: its id, its name, or `pod/name`. Raises NotFound and Conflict, with the candidates."""
    found = [str(one["worker_id"]) for one in await rows(conn, _q.workers_called, {"text": text})]
    if found and found[0] == text:
        return text
    if len(found) == 1:
        return found[0]
    if not found:
        there = [f"{one.called} ({one.worker_id})" for one in await registry.list_workers(conn)]
        raise NotFound(f"worker {text!r} is not in the registry: there is {', '.join(there) or 'none'}")
    candidates = [await registry.get(conn, worker_id) for worker_id in found]
    named = ", ".join(f"{one.called} ({one.worker_id})" for one in candidates if one is not None)
    raise Conflict(f"{len(found)} workers are called {text!r}: name one by its id, of {named}")


async def tell(conn: _Conn, worker_id: str, command: Command, by: str | None = None) -> Given:
    """Tells a worker to pause, go on or leave. Raises NotFound, and Conflict where the worker is leaving or has left."""
    worker = await registry.get(conn, worker_id, lock=True)
    if worker is None:
        raise NotFound(f"worker {worker_id!r} is not in the registry")
    if worker.status == "stopped":
        raise Conflict(
            f"worker {worker_id!r} stopped at {worker.last_heartbeat_at:%Y-%m-%d %H:%M:%S} UTC: nobody would hear it"
        )
    if worker.status == "stopping" and command is not Command.DECOMMISSION:
        raise Conflict(f"worker {worker_id!r} is stopping already: it cannot be told to {command} any more")
    given = await commands.give(conn, worker_id, command, by)
    await audit.record(conn, "worker_told", ("worker", worker_id), command=str(command), command_id=given.id)
    return given


async def register(
    conn: _Conn,
    *,
    worker_id: str | None,
    friendly_name: str | None,
    host: str,
    pid: int | None,
    pod: str | None,
    roles: Collection[Role] | None,
    version: str | None = None,
) -> tuple[str, bool]:
    """Enters a worker that somebody else wrote; returns its id, made up where none is given, and whether that is new.

    An id that is known belongs to a worker that starts anew.
    """
    worker_id = worker_id or f"{host}-{secrets.token_hex(6)}"
    who = Identity(
        worker_id=worker_id,
        friendly_name=friendly_name or worker_name(zlib.crc32(worker_id.encode()) % len(WORKER_NAMES)),
        host=host,
        pid=pid,
        pod=pod,
        roles=None if roles is None else tuple(sorted({str(role) for role in roles})),
        version=version,
    )
    created = await registry.register(conn, who)
    await audit.record(conn, "worker_registered", ("worker", worker_id), host=host, created=created)
    return worker_id, created


async def beat(
    conn: _Conn, worker_id: str, *, status: str, body: bytes, task_ids: Collection[int], acknowledged: list[int]
) -> tuple[list[int], list[Given]]:
    """Takes the heartbeat of a worker that somebody else wrote; returns the tasks that it has lost, and what it was told.

    It beats for the tasks as well: those of `task_ids` that are not its own (any more) it must not go on with.
    """
    if not await registry.heard(conn, worker_id, status, body):
        known = await registry.get(conn, worker_id)
        if known is None:
            raise NotFound(f"worker {worker_id!r} is not in the registry: register it first")
        raise Conflict(f"worker {worker_id!r} has left the registry: register it again")
    held = [one for one in await tasks.held_by(conn, worker_id) if one.task_id in task_ids]
    kept = {task_id for task_id, _ in await tasks.heartbeat(conn, worker_id, held)}
    await commands.acknowledge(conn, worker_id, acknowledged)
    return [task_id for task_id in task_ids if task_id not in kept], await commands.untaken(conn, worker_id)


async def died(conn: _Conn, *, host: str, pid: int, pod: str | None, since: datetime) -> int:
    """This process, started at `since`, was seen to end. If it did not leave by itself, its tasks need not wait until it counts as
    silent: each goes to another worker, with one retry used up. Returns how many tasks those were."""
    taken = 0
    for worker_id in await registry.gone(conn, host=host, pid=pid, pod=pod, since=since):
        endings = [
            Ending(
                task_id=held.task_id, attempt=held.attempt, verb="retry", reason=f"worker {worker_id} died", wait=0.0
            )
            for held in await tasks.held_by(conn, worker_id)
        ]
        taken += len(await tasks.finish(conn, worker_id, endings))
        log.warning("a worker died", action="worker_died", worker_id=worker_id, tasks=len(endings))
    if taken:
        await tasks.wake(conn)
    return taken


async def leave(conn: _Conn, worker_id: str) -> None:
    """Takes a worker that somebody else wrote out of the registry; raises NotFound."""
    if await registry.get(conn, worker_id) is None:
        raise NotFound(f"worker {worker_id!r} is not in the registry")
    await registry.deregister(conn, worker_id)
    await audit.record(conn, "worker_deregistered", ("worker", worker_id))
