"""What a worker under load does all day: it hands in what ended, what follows from that, and asks for more, in one go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import arrays, sql
from menuwatch.tasks import columns
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import NewTask, Role, Status, Task

_SQL = sql.load(__package__)
_ROLES = {str(role): role for role in Role}

Place = tuple[int, datetime | None, int]
"""A place in the order in which tasks of a role are claimed: (-effective priority, created_at, id)."""

BEGINNING: Place = (-(2**31), None, 0)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle asks for: up to `n` tasks of these roles, `fair` of them of the role whose next task has waited longest.

    `start` is where each role's order is entered (parallel to `roles`): the place of the last task claimed, or None for the beginning.
    """

    roles: Sequence[Role]
    n: int
    fair: int = 0
    start: Sequence[Place] | None = None


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


async def cycle(
    conn: AsyncConnection[Any],
    worker_id: str,
    ends: Sequence[Ending] = (),
    then: Sequence[tuple[int, NewTask]] = (),
    claim: Claim | None = None,
) -> Cycled:
    """One round trip and one commit: ends attempts, adds what follows from them, claims more.

    `then` pairs each follow-up with the id of the task that it follows from; those of a task that was lost are not added.
    """
    new = columns.of_new([task for _, task in then]) if then else dict.fromkeys(columns.OF_NEW)
    start = claim.start if claim is not None else None
    cursor = await conn.execute(
        _SQL.cycle,
        {
            "worker": worker_id,
            **(columns.of_endings(ends) if ends else dict.fromkeys(columns.OF_ENDINGS)),
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


def _time(at: datetime | None) -> str:
    return "-infinity" if at is None else at.isoformat()


def _place(claimed: Claimed) -> Place:
    return claimed.place
