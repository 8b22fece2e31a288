"""Python interface of the queue. The rules are in the schema, so that they apply to direct SQL as well.

Every function takes a connection and joins its open transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.queue import batch_arrays as columns
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role, Status, Task

CHANNEL = "menuwatch_tasks"
"""Notification channel: an empty payload means new work, `lost <id>` that a running task was cancelled."""

_SQL = sql.load(__package__)
_Conn = AsyncConnection[Any]


class Enqueued(msgspec.Struct, frozen=True, kw_only=True):
    """Result of enqueueing one task of a batch."""

    id: Annotated[int, doc("Id of the task.")]
    created: Annotated[bool, doc("False if an equal task was already pending or occurred earlier in the batch.")]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a worker runs; `ran` in seconds."""

    task_id: int
    attempt: int
    ran: float = 0.0


def _task(row: dict[str, Any]) -> Task:
    row["role"] = Role(row["role"])
    row["status"] = Status(row["status"])
    return Task(**row)


async def enqueue(conn: _Conn, tasks: Sequence[NewTask], *, wake: bool = True) -> list[Enqueued]:
    """Enqueue a batch in one round trip; the result is parallel to `tasks`.

    With `wake`, idle workers are notified at commit. A NOTIFY serializes commits, so busy paths pass False and call `wake` later.
    """
    if not tasks:
        return []
    values = {**columns.of_new(tasks), "wake": wake}
    # Two batches that insert the same keys in opposite order can deadlock; the database aborts one. Outside a transaction nothing
    # of that one remains, so it is retried.
    again = 3 if conn.info.transaction_status == TransactionStatus.IDLE else 0
    while True:
        try:
            cursor = await conn.execute(_SQL.enqueue, values)
            break
        except DeadlockDetected:
            if again == 0:
                raise
            again -= 1
    row = await cursor.fetchone()
    assert row is not None, "an aggregate answers with one row"
    return [Enqueued(id=number, created=made) for number, made in zip(*row, strict=True)]


async def wake(conn: _Conn) -> None:
    """Notify idle workers that there may be work."""
    await conn.execute(_SQL.wake)


async def claim(conn: _Conn, worker_id: str, roles: Collection[Role] | None, n: int) -> list[Task]:
    """Claim up to `n` due tasks of these roles (None: any), highest priority first, then oldest; never two of one store."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            _SQL.claim, {"roles": None if roles is None else [str(role) for role in roles], "worker": worker_id, "n": n}
        )
        return [_task(row) for row in await cursor.fetchall()]


async def mark_running(conn: _Conn, worker_id: str, held: Sequence[Held]) -> list[int]:
    """Mark tasks as running; returns the ids it applied to."""
    cursor = await conn.execute(
        _SQL.mark_running,
        {
            "worker": worker_id,
            "ids": [item.task_id for item in held],
            "attempts": [item.attempt for item in held],
            "ran": [item.ran for item in held],
        },
    )
    return [row[0] for row in await cursor.fetchall()]


async def heartbeat(conn: _Conn, worker_id: str, held: Sequence[Held]) -> set[tuple[int, int]]:
    """Record a heartbeat for all of them in one statement; returns (id, attempt) of those that the worker still owns."""
    if not held:
        return set()
    cursor = await conn.execute(
        _SQL.heartbeat,
        {
            "worker": worker_id,
            "ids": [item.task_id for item in held],
            "attempts": [item.attempt for item in held],
            "ran": [item.ran for item in held],
        },
    )
    return {(row[0], row[1]) for row in await cursor.fetchall()}


async def hold(conn: _Conn, worker_id: str, task: Task) -> bool:
    """The fence: lock the task until the transaction ends if the worker still owns this attempt; else return False."""
    cursor = await conn.execute(_SQL.hold, {"worker": worker_id, "id": task.id, "attempt": task.attempt})
    return await cursor.fetchone() is not None


async def held_by(conn: _Conn, worker_id: str) -> list[Held]:
    """The attempts that this worker owns according to the database."""
    cursor = await conn.execute(_SQL.held_by, {"worker": worker_id})
    return [Held(task_id=row[0], attempt=row[1]) for row in await cursor.fetchall()]


async def ended_by(conn: _Conn, worker_id: str, task: Task) -> Status | None:
    """How this worker ended this attempt, if the history has it."""
    cursor = await conn.execute(_SQL.ended_by, {"worker": worker_id, "id": task.id, "attempt": task.attempt})
    row = await cursor.fetchone()
    return None if row is None else Status(row[0])


async def finish(conn: _Conn, worker_id: str, endings: Iterable[Ending]) -> dict[int, Status]:
    """End attempts; returns the new status of those that the worker still owned. The others are unchanged."""
    ends = list(endings)
    if not ends:
        return {}
    cursor = await conn.execute(_SQL.finish, {"worker": worker_id, **columns.of_endings(ends)})
    return {row[0]: Status(row[1]) for row in await cursor.fetchall()}


async def age(conn: _Conn) -> int:
    """Raise the priority of tasks that have waited long; returns how many."""
    return await _number(conn, _SQL.age, {})


async def cancel(conn: _Conn, ids: Sequence[int], reason: str = "cancelled") -> list[int]:
    """Cancel pending and active tasks; returns the ids of those that were unfinished. Their workers lose them at once."""
    cursor = await conn.execute(_SQL.cancel, {"ids": list(ids), "reason": reason})
    return [row[0] for row in await cursor.fetchall()]


async def set_stale_after(conn: _Conn, minutes: float) -> None:
    """Set the time without a heartbeat after which a task counts as stale for every reader."""
    await conn.execute(_SQL.set_stale_after, {"minutes": minutes})


async def set_retry_base(conn: _Conn, seconds: float) -> None:
    """Set the first wait before a retry for workers that use the protocol and name no wait."""
    await conn.execute(_SQL.set_retry_base, {"seconds": seconds})


async def set_platform_hosts(conn: _Conn, hosts: Mapping[str, Collection[str]]) -> None:
    """Set which hosts the tasks of each platform request: while all of them are blocked, so are the tasks."""
    text = msgspec.json.encode({name: sorted(some) for name, some in sorted(hosts.items()) if some}).decode()
    await conn.execute(_SQL.set_platform_hosts, {"hosts": text})


async def recover_stale(conn: _Conn, minutes: float | Decimal | None = None) -> int:
    """Take tasks back from workers that have been silent for longer than this; returns how many."""
    return await _number(conn, _SQL.recover_stale, {"minutes": minutes})


async def unpark_stranded(conn: _Conn) -> int:
    """Release parked tasks that no finished task would release. Returns how many there were, normally none."""
    return await _number(conn, _SQL.unpark_stranded, {})


async def ensure_partitions(conn: _Conn, days: int = 3) -> int:
    """Create missing partitions of the history for today and `days` more; returns how many."""
    return await _number(conn, _SQL.ensure_partitions, {"days": days})


async def count_days(conn: _Conn) -> int:
    """Count the tasks of each past day of the history once; returns how many days were counted now."""
    return await _number(conn, _SQL.count_days, {})


async def get(conn: _Conn, task_id: int) -> Task | None:
    """The task, unfinished or finished."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_SQL.get_task, {"id": task_id})
        row = await cursor.fetchone()
        return None if row is None else _task(row)


async def unfinished(conn: _Conn, roles: Collection[Role] | None = None) -> int:
    """Number of unfinished tasks, without first attempts that are not due yet."""
    return await _number(conn, _SQL.unfinished, {"roles": None if roles is None else [str(role) for role in roles]})


async def _number(conn: _Conn, statement: Any, values: Mapping[str, Any]) -> int:
    cursor = await conn.execute(statement, values)
    row = await cursor.fetchone()
    assert row is not None, "an aggregate or a function answers with one row"
    return int(row[0])
