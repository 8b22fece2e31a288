"""The protocol of workers written in any language. Its rules are SQL functions (13_workers_protocol.sql), which such workers may also
call directly; the API calls the same ones."""

from __future__ import annotations

import contextlib
import secrets
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, NotFound, Refused
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.queue.enqueue import TaskRequest, enqueue_follow_ups
from menuwatch.queue.model import Role
from menuwatch.queue.service import retry_on_deadlock
from menuwatch.queue.task_list import TaskRow, get_task
from menuwatch.workers import commands
from menuwatch.workers.commands import WorkerCommand
from menuwatch.workers.names import WORKER_NAMES, worker_name

_q = sql.load(__package__, "protocol.sql")
_Conn = AsyncConnection[Any]

_REFUSALS: Mapping[str | None, type[Refused]] = {"MW404": NotFound, "MW409": Conflict, "22023": Refused}
"""Errors by SQLSTATE."""


class ClaimedTasks(Struct, kw_only=True, frozen=True):
    """Result of a claim."""

    tasks: Annotated[
        list[TaskRow], doc("Claimed tasks, in the order in which to work on them; empty if there are none.")
    ]
    reason: Annotated[
        str | None, doc("Why tasks of some or all roles are withheld: the worker is paused, or all hosts are blocked.")
    ]
    commands: Annotated[
        list[WorkerCommand], doc("Pending commands; acknowledge them in `acknowledged_commands` of the next heartbeat.")
    ]


class AttemptOfWorker(Struct, frozen=True, kw_only=True):
    """An attempt that a worker claims to run, for `ran` seconds so far (None: unknown)."""

    worker_id: str
    task_id: int
    attempt: int
    ran: float | None = None

    def values(self, **more: Any) -> dict[str, Any]:
        """As parameters."""
        return {"worker": self.worker_id, "task": self.task_id, "attempt": self.attempt, "ran": self.ran, **more}


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        kind = _REFUSALS.get(error.diag.sqlstate)
        if kind is None:
            raise
        raise kind(error.diag.message_primary or "refused") from None


async def _rows(conn: _Conn, query: Any, values: Mapping[str, Any]) -> list[Row]:
    with _refused():
        return await retry_on_deadlock(conn, lambda: fetch_all(conn, query, values))


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
    """Registers a worker; returns its id (generated if None) and whether it is new. A known id restarts that worker: what its last
    process left behind returns to the queue, with one retry used up."""
    worker_id = worker_id or f"{host}-{secrets.token_hex(6)}"
    values = {
        "worker": worker_id,
        "name": friendly_name or worker_name(zlib.crc32(worker_id.encode()) % len(WORKER_NAMES)),
        "host": host,
        "pid": pid,
        "pod": pod,
        "roles": None if roles is None else sorted({str(role) for role in roles}),
        "version": version,
    }
    (row,) = await _rows(conn, _q.register, values)
    created: bool = row["created"]
    await audit.record(conn, "worker_registered", ("worker", worker_id), host=host, created=created)
    return worker_id, created


async def record_heartbeat(
    conn: _Conn,
    worker_id: str,
    *,
    status: str,
    body: bytes,
    task_ids: Sequence[int],
    attempts: Sequence[int] | None,
    acknowledged: list[int],
) -> tuple[list[int], list[WorkerCommand]]:
    """Records the heartbeat of a worker and its tasks; returns the tasks that it has lost, and its pending commands.

    `attempts` is parallel to `task_ids`; None: whichever attempts it holds. Raises NotFound, and Conflict if it has left.
    """
    values = {
        "worker": worker_id,
        "tasks": list(task_ids),
        "attempts": None if attempts is None else list(attempts),
        "status": status,
        "acknowledged": acknowledged,
        "heartbeat": body.decode(),
    }
    (row,) = await _rows(conn, _q.heartbeat, values)
    return list(row["lost"]), await commands.pending(conn, worker_id)


async def claim(
    conn: _Conn,
    worker_id: str,
    *,
    roles: Collection[Role] | None,
    n: int,
    hosts: Collection[str],
    holding: Collection[int] | None,
) -> ClaimedTasks:
    """Claims up to `n` tasks of these roles (None: all that it is registered for); none that makes requests while all `hosts` are
    blocked. `holding`: what it has; what else it owns returns to the queue. Raises NotFound, Conflict, Refused."""
    values = {
        "worker": worker_id,
        "roles": None if roles is None else sorted({str(role) for role in roles}),
        "n": n,
        "hosts": sorted(hosts),
        "holding": None if holding is None else list(holding),
    }
    (claimable,) = await _rows(conn, _q.claimable, values)
    with _refused():
        tasks = await fetch_structs(conn, TaskRow, _q.claim, values)
    return ClaimedTasks(tasks=tasks, reason=claimable["reason"], commands=await commands.pending(conn, worker_id))


async def start(conn: _Conn, attempt: AttemptOfWorker) -> TaskRow:
    """The attempt shows as running from now on. As all of these, raises NotFound, and Conflict for one that is not the worker's."""
    return await _task(conn, _q.start, attempt.values())


async def complete(
    conn: _Conn,
    attempt: AttemptOfWorker,
    *,
    result: Mapping[str, Any] | None,
    follow_ups: Sequence[TaskRequest],
    platforms: Sequence[str],
) -> TaskRow:
    """The attempt succeeded. Raises InvalidField for a follow-up task that is known to fail; then the caller must roll back."""
    (row,) = await _rows(conn, _q.complete, attempt.values(result=_json(result)))
    if row["ended"] and follow_ups:
        await enqueue_follow_ups(conn, follow_ups, platforms=platforms)
    return await get_task(conn, attempt.task_id)


async def retry(
    conn: _Conn, attempt: AttemptOfWorker, reason: str, *, wait: float | None, result: Mapping[str, Any] | None
) -> TaskRow:
    """The attempt failed and may succeed after `wait` seconds (None: after the back-off), as long as retries are left."""
    return await _task(conn, _q.retry, attempt.values(reason=reason, wait=wait, result=_json(result)))


async def postpone(
    conn: _Conn,
    attempt: AttemptOfWorker,
    reason: str,
    *,
    due: datetime | None,
    wait: float | None,
    code: PostponeCode,
    host: str | None,
    counted: bool,
) -> TaskRow:
    """The task cannot be worked on until `due`, or for `wait` seconds. Uses up no retry."""
    values = attempt.values(reason=reason, due=due, wait=wait, code=str(code), host=host, counted=counted)
    return await _task(conn, _q.postpone, values)


async def fail(conn: _Conn, attempt: AttemptOfWorker, reason: str, *, result: Mapping[str, Any] | None) -> TaskRow:
    """The task will never succeed."""
    return await _task(conn, _q.fail, attempt.values(reason=reason, result=_json(result)))


async def leave(conn: _Conn, worker_id: str) -> int:
    """Deregisters a worker; returns how many tasks it still held, which return to the queue as they were. Raises NotFound."""
    (row,) = await _rows(conn, _q.leave, {"worker": worker_id})
    returned: int = row["returned"]
    await audit.record(conn, "worker_deregistered", ("worker", worker_id), returned=returned)
    return returned


async def _task(conn: _Conn, query: Any, values: Mapping[str, Any]) -> TaskRow:
    (row,) = await _rows(conn, query, values)
    return await get_task(conn, row["id"])


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
