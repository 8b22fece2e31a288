"""The queue from Python. The rules themselves are in migration 0002, so that SQL of other people obeys them as well.

Every function takes a connection and joins whatever transaction is open on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from menuwatch.db import arrays, sql
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import NewTask, Role, Status, Task

CHANNEL = "menuwatch_tasks"
"""Where work is announced: an empty payload means new work, `lost <id>` that a running task was cancelled."""

_SQL = sql.load(__package__)
_ROLES = {str(role): role for role in Role}
_ENDS = ("ids", "attempts", "verbs", "reasons", "results", "waits", "due", "ran")
_NEW = ("roles", "stores", "priorities", "payloads", "due", "platforms", "retries", "alone")
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


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle asks for: up to `n` tasks of these roles, `fair` of them of the role whose next task has waited longest.

    `start` is where each role's order is entered (parallel to `roles`): the place of the last task claimed, or None for the beginning.
    """

    roles: Sequence[Role]
    n: int
    fair: int = 0
    start: Sequence[Place] | None = None


Place = tuple[int, datetime | None, int]
"""A place in the order in which tasks of a role are claimed: (-effective priority, created_at, id)."""

BEGINNING: Place = (-(2**31), None, 0)


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its place in the order of its role."""

    task: Task
    place: Place


class Cycled(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle did: the tasks it claimed, and the ids that were no longer this worker's to end.

    Where it claimed less than it asked for, `next_due` is in how many seconds the next scheduled task comes due.
    """

    claimed: list[Claimed]
    lost: frozenset[int]
    next_due: float | None = None


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _texts(values: list[str | None]) -> str | None:
    """As an array, or null where all are."""
    return arrays.texts(values) if values.count(None) < len(values) else None


def _times(values: list[datetime | None]) -> str | None:
    return arrays.times(values) if values.count(None) < len(values) else None


def _new(tasks: Sequence[NewTask]) -> dict[str, Any]:
    """New tasks as the parallel arrays that enqueue_tasks takes."""
    count = len(tasks)
    return {
        "roles": arrays.texts([task.role for task in tasks]),
        "stores": arrays.numbers([task.dispensary_id for task in tasks]),
        "priorities": arrays.numbers([task.priority for task in tasks]),
        "payloads": _texts([_json(task.payload) for task in tasks]) or _nulls(count),
        "due": _times([task.scheduled_for for task in tasks]) or _nulls(count),
        "platforms": arrays.texts([task.platform for task in tasks]),
        "retries": arrays.numbers([task.max_retries for task in tasks]),
        "alone": arrays.numbers([task.unique for task in tasks]),
    }


def _time(at: datetime | None) -> str:
    return "-infinity" if at is None else at.isoformat()


def _task_id(end: Ending) -> int:
    return end.task_id


def _place(claimed: Claimed) -> Place:
    return claimed.place


def _nulls(count: int) -> str:
    return "{" + ",".join(["NULL"] * count) + "}"


def _ends(ends: Sequence[Ending]) -> dict[str, Any]:
    """Endings as the parallel arrays that finish_tasks takes; an array of nulls is null.

    In the order of the ids, in which everybody locks tasks.
    """
    ends = sorted(ends, key=_task_id)
    done = all(end.verb == "done" for end in ends)
    return {
        "ids": arrays.numbers([end.task_id for end in ends]),
        "attempts": arrays.numbers([end.attempt for end in ends]),
        "verbs": None if done else arrays.texts([end.verb for end in ends]),
        "reasons": _texts([end.reason for end in ends]),
        "results": _texts([_json(end.result) for end in ends]),
        "waits": None if done else arrays.numbers([end.wait for end in ends]),
        "due": None if done else _times([end.due for end in ends]),
        "ran": arrays.numbers([end.ran for end in ends]),
    }


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
    values = {**_new(tasks), "wake": wake}
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
    cursor = await conn.execute(_SQL.finish, {"worker": worker_id, **_ends(ends)})
    return {row[0]: Status(row[1]) for row in await cursor.fetchall()}


async def cycle(
    conn: _Conn,
    worker_id: str,
    ends: Sequence[Ending] = (),
    then: Sequence[tuple[int, NewTask]] = (),
    claim: Claim | None = None,
) -> Cycled:
    """One round trip and one commit: ends attempts, adds what follows from them, claims more.

    `then` pairs each follow-up with the id of the task that it follows from; those of a task that was lost are not added.
    """
    new = _new([task for _, task in then]) if then else dict.fromkeys(_NEW)
    start = claim.start if claim is not None else None
    cursor = await conn.execute(
        _SQL.cycle,
        {
            "worker": worker_id,
            **(_ends(ends) if ends else dict.fromkeys(_ENDS)),
            "parents": arrays.numbers([parent for parent, _ in then]) if then else None,
            **{f"then_{name}": values for name, values in new.items()},
            "roles": None if claim is None else arrays.texts(claim.roles),
            "n": 0 if claim is None else claim.n,
            "fair": 0 if claim is None else claim.fair,
            "low": None if start is None else arrays.numbers([rank for rank, _, _ in start]),
            "since": None if start is None else arrays.texts([_time(at) for _, at, _ in start]),
            "past": None if start is None else arrays.numbers([last for _, _, last in start]),
        },
    )
    claimed: list[Claimed] = []
    lost: frozenset[int] = frozenset()
    next_due: float | None = None
    for (
        task_id, role, store, platform, priority, aged, scheduled_for, claimed_at, retry_count, max_retries, payload, created_at,
        attempt, postpone_count, result, error_message, gone, due_in,
    ) in await cursor.fetchall():  # fmt: skip
        if task_id is None:
            if gone is not None:
                lost = frozenset(gone)
            next_due = due_in
            continue
        task = Task(
            id=task_id,
            role=_ROLES[role],
            dispensary_id=store,
            platform=platform,
            status=Status.CLAIMED,
            priority=priority,
            scheduled_for=scheduled_for,
            worker_id=worker_id,
            claimed_at=claimed_at,
            started_at=None,
            completed_at=None,
            last_heartbeat_at=None,
            result=result,
            error_message=error_message,
            retry_count=retry_count,
            max_retries=max_retries,
            payload=payload or {},
            created_at=created_at,
            updated_at=claimed_at,
            attempt=attempt,
            postpone_count=postpone_count,
        )
        claimed.append(Claimed(task=task, place=(-(priority + aged), created_at, task_id)))
    claimed.sort(key=_place)
    return Cycled(claimed=claimed, lost=lost, next_due=next_due)


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
