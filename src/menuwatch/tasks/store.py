"""The queue from Python. The rules themselves are in migration 0002, so that SQL of other people obeys them as well.

Every function takes a connection and joins whatever transaction is open on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from menuwatch.db import sql
from menuwatch.tasks import columns
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import NewTask, Role, Status, Task

CHANNEL = "menuwatch_tasks"
"""Where work is announced: an empty payload means new work, `lost <id>` that a running task was cancelled."""

_SQL = sql.load(__package__)
_Conn = AsyncConnection[Any]


class Enqueued(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one NewTask: its row, or the one that was waiting already."""

    id: int
    created: bool


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that a worker runs; `ran` in seconds."""

    task_id: int
    attempt: int
    ran: float = 0.0


def _task(row: dict[str, Any]) -> Task:
    row["role"] = Role(row["role"])
    row["status"] = Status(row["status"])
    return Task(**row)


async def enqueue(conn: _Conn, tasks: Sequence[NewTask], *, wake: bool = True) -> list[Enqueued]:
    """Adds a batch in one round trip; the answer runs parallel to `tasks`.

    With `wake` idle workers hear of it at commit. A NOTIFY serializes commits, so busy paths pass False and call `wake` later.
    """
    if not tasks:
        return []
    values = {**columns.of_new(tasks), "wake": wake}
    # Two batches that wait for each other's keys in opposite order are a deadlock, which the database ends by refusing one. Outside
    # a transaction nothing of that one remains, so it is simply asked again.
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
    """Tells idle workers that there may be work."""
    await conn.execute(_SQL.wake)


async def claim(conn: _Conn, worker_id: str, roles: Collection[Role] | None, n: int) -> list[Task]:
    """Up to `n` due tasks of these roles (None: any), highest priority first, then oldest; never two of one store."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            _SQL.claim, {"roles": None if roles is None else [str(role) for role in roles], "worker": worker_id, "n": n}
        )
        return [_task(row) for row in await cursor.fetchall()]


async def mark_running(conn: _Conn, worker_id: str, held: Sequence[Held]) -> list[int]:
    """Shows tasks as running; returns the ids it applied to."""
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
    """Beats for all of them in one statement; returns (id, attempt) of those that the worker still owns."""
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
    """The fence: locks the task until the transaction ends, if this attempt is still this worker's; else says False."""
    cursor = await conn.execute(_SQL.hold, {"worker": worker_id, "id": task.id, "attempt": task.attempt})
    return await cursor.fetchone() is not None


async def held_by(conn: _Conn, worker_id: str) -> list[Held]:
    """The attempts that the database says this worker owns."""
    cursor = await conn.execute(_SQL.held_by, {"worker": worker_id})
    return [Held(task_id=row[0], attempt=row[1]) for row in await cursor.fetchall()]


async def ended_by(conn: _Conn, worker_id: str, task: Task) -> Status | None:
    """How this very attempt ended at this worker's hands, if it is in the history."""
    cursor = await conn.execute(_SQL.ended_by, {"worker": worker_id, "id": task.id, "attempt": task.attempt})
    row = await cursor.fetchone()
    return None if row is None else Status(row[0])


async def finish(conn: _Conn, worker_id: str, endings: Iterable[Ending]) -> dict[int, Status]:
    """Ends attempts; returns the new status of those that the worker still owned. Others are left alone."""
    ends = list(endings)
    if not ends:
        return {}
    cursor = await conn.execute(_SQL.finish, {"worker": worker_id, **columns.of_endings(ends)})
    return {row[0]: Status(row[1]) for row in await cursor.fetchall()}


async def age(conn: _Conn) -> int:
    """Raises what has waited long; returns how many tasks rose."""
    return await _number(conn, _SQL.age, {})


async def cancel(conn: _Conn, ids: Sequence[int], reason: str = "cancelled") -> list[int]:
    """Cancels what waits or runs; returns the ids that were live. A worker that runs one has lost it from this moment."""
    cursor = await conn.execute(_SQL.cancel, {"ids": list(ids), "reason": reason})
    return [row[0] for row in await cursor.fetchall()]


async def recover_stale(conn: _Conn, minutes: float | Decimal) -> int:
    """Takes tasks back from workers that have been silent for longer than this; returns how many."""
    return await _number(conn, _SQL.recover_stale, {"minutes": minutes})


async def unpark_stranded(conn: _Conn) -> int:
    """Mends parked tasks that nobody would promote. There should be none; returns how many there were."""
    return await _number(conn, _SQL.unpark_stranded, {})


async def ensure_partitions(conn: _Conn, days: int = 3) -> int:
    """Makes the history's partitions for today and `days` more; returns how many were missing."""
    return await _number(conn, _SQL.ensure_partitions, {"days": days})


async def count_days(conn: _Conn) -> int:
    """Counts the tasks of each day of the history that is over, once; returns how many days were counted now."""
    return await _number(conn, _SQL.count_days, {})


async def get(conn: _Conn, task_id: int) -> Task | None:
    """The task, live or finished."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_SQL.get_task, {"id": task_id})
        row = await cursor.fetchone()
        return None if row is None else _task(row)


async def list_tasks(
    conn: _Conn,
    *,
    role: Role | None = None,
    status: Status | None = None,
    dispensary_id: int | None = None,
    worker_id: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[Task]:
    """Tasks, newest first; `before` is the last id of the page before."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            _SQL.list_tasks,
            {
                "role": role,
                "status": status,
                "store": dispensary_id,
                "worker": worker_id,
                "before": before,
                "limit": limit,
            },
        )
        return [_task(row) for row in await cursor.fetchall()]


async def counts(conn: _Conn) -> dict[Role, dict[Status, int]]:
    """How many tasks stand where, by role; what there is none of is absent."""
    cursor = await conn.execute(_SQL.counts)
    found: dict[Role, dict[Status, int]] = {}
    for role, status, number in await cursor.fetchall():
        found.setdefault(Role(role), {})[Status(status)] = number
    return found


async def unfinished(conn: _Conn, roles: Collection[Role] | None = None) -> int:
    """How many tasks are live, not counting first attempts that are not due yet."""
    return await _number(conn, _SQL.unfinished, {"roles": None if roles is None else [str(role) for role in roles]})


async def next_due(conn: _Conn) -> float | None:
    """Seconds until the next scheduled task comes due (negative: it is), None when nothing is scheduled."""
    cursor = await conn.execute(_SQL.next_due)
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def _number(conn: _Conn, statement: Any, values: Mapping[str, Any]) -> int:
    cursor = await conn.execute(statement, values)
    row = await cursor.fetchone()
    assert row is not None, "an aggregate or a function answers with one row"
    return int(row[0])
