"""How much there is to do and how fast it gets done: `v_worker_capacity`, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.db import sql
from menuwatch.tasks.model import Role

_SQL = sql.load(__package__)

HOURS = (1, 4, 8)
"""The times for which the workers needed are worked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """One row of `v_worker_capacity`: None where nothing was completed in the last hour, or nobody works."""

    role: str
    pending_tasks: int
    ready_tasks: int
    claimed_tasks: int
    running_tasks: int
    completed_last_hour: int
    failed_last_hour: int
    active_workers: int
    avg_duration_sec: float | None
    tasks_per_worker_hour: float | None
    estimated_hours_to_drain: float | None


def workers_needed(pending: int, tasks_per_worker_hour: float | None, hours: int) -> int | None:
    """Workers that get `pending` tasks done in that many hours; None where nobody knows how fast they are."""
    if pending == 0:
        return 0
    if not tasks_per_worker_hour:
        return None
    # Rounded first: a whole number that binary fractions make a little larger must not ask for one worker more.
    return math.ceil(round(pending / (tasks_per_worker_hour * hours), 9)) or 1


async def capacity(conn: AsyncConnection[Any], role: Role | None = None) -> list[Capacity]:
    """The capacity of every role, or of this one."""
    async with conn.cursor(row_factory=class_row(Capacity)) as cursor:
        await cursor.execute(_SQL.capacity, {"role": role})
        return await cursor.fetchall()
