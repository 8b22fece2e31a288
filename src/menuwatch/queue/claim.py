"""The round trip that claims tasks, and the share of it that goes to the role whose next task has waited longest.

Of each role the task with the highest effective priority comes first (its priority, plus one for each quarter of an hour that it
has waited, up to just below urgent), then the oldest; of all roles together the same. One in four tasks is of the role whose next
task has waited longest (`FAIR_SHARE`), so that no role starves another. Stores take turns: each has at most one running task. The
database decides the order: `task_claim` and `age_tasks` in 08_task_claim.sql.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.clock import Clock
from menuwatch.db import arrays, sql
from menuwatch.queue import batch_arrays as columns
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role, Status, Task

_SQL = sql.load(__package__)
_ROLES = {str(role): role for role in Role}

Place = tuple[int, datetime | None, int]
"""A position in the claim order of a role: (-effective priority, created_at, id)."""

BEGINNING: Place = (-(2**31), None, 0)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Requests up to `n` tasks of these roles, `fair` of them of the role whose next task has waited longest.

    `start` is the position at which each role's order is entered (parallel to `roles`): that of the last task claimed, or None.
    """

    roles: Sequence[Role]
    n: int
    fair: int = 0
    start: Sequence[Place] | None = None


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its position in the order of its role."""

    task: Task
    place: Place


FAIR_SHARE = 4
"""One in this many claimed tasks is of the role whose next task has waited longest, whatever its priority."""
FULL_CLAIM = 0.25
"""Longest time in seconds for which claims begin where the one before ended. They step over what was claimed meanwhile, however long
an old snapshot keeps it in the index; tasks that were added before that position are claimed at most this much later."""


class ClaimCursor:
    """Where the next claim begins, and how much of it is the fair share. All lanes of a producer share one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._starts: dict[Role, Place] = {}
        """Position behind the last claimed task of a role, since the last claim of the whole queue."""
        self._whole_at = float("-inf")
        self._claimed = 0

    def next(self, roles: Sequence[Role], n: int) -> Claim:
        """A claim of up to `n` tasks of these roles."""
        fair = (self._claimed + n) // FAIR_SHARE - self._claimed // FAIR_SHARE if len(roles) > 1 else 0
        now = self._clock.monotonic()
        if now - self._whole_at >= FULL_CLAIM:
            self._whole_at = now
            self._starts.clear()
            return Claim(roles=roles, n=n, fair=fair)
        return Claim(roles=roles, n=n, fair=fair, start=[self._starts.get(role, BEGINNING) for role in roles])

    def advance(self, claimed: Sequence[Claimed]) -> None:
        """Continue behind these claimed tasks, which are in the claim order."""
        self._claimed += len(claimed)
        last = {item.task.role: item.place for item in claimed}
        for role, place in last.items():
            if role not in self._starts or place > self._starts[role]:
                self._starts[role] = place

    def reset(self) -> None:
        """Begin the next claim at the front: there may be tasks before the current position."""
        self._whole_at = float("-inf")


class Cycled(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a cycle: the claimed tasks, and the ids that this worker no longer owned.

    If it claimed fewer than requested, `next_due` is the number of seconds until the next scheduled task is due.
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
    """End attempts, enqueue their follow-ups and claim more tasks, in one round trip and one commit.

    `then` pairs each follow-up with the id of its origin; those of a lost task are not added.
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
