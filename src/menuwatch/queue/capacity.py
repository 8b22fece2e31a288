"""Backlog and throughput: `v_worker_capacity` and figures derived from it."""

from __future__ import annotations

import math
from typing import Annotated, Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all
from menuwatch.queue.model import Role

_SQL = sql.load(__package__)

HOURS = (1, 4, 8)
"""Times in hours for which the needed workers are computed."""


class WorkersNeeded(Struct, kw_only=True, frozen=True):
    """Number of workers that would finish the pending tasks in time, but for blocked ones; null if none completed in the last hour."""

    for_1_hour: int | None
    for_4_hours: int | None
    for_8_hours: int | None


class Capacity(Struct, kw_only=True, frozen=True):
    """Backlog and throughput of a role (`v_worker_capacity`)."""

    role: str
    pending_tasks: Annotated[int, doc("Pending tasks, including those not yet due.")]
    ready_tasks: Annotated[int, doc("Pending tasks that are due and not blocked.")]
    blocked_tasks: Annotated[int, doc("Pending tasks whose host gets no requests now. The estimates leave them out.")]
    blocked_by: Annotated[list[str], doc("Hosts that block them.")]
    claimed_tasks: Annotated[int, doc("Tasks claimed by a worker and not started.")]
    running_tasks: int
    completed_last_hour: int
    failed_last_hour: int
    active_workers: Annotated[int, doc("Live workers that accept the role.")]
    avg_duration_sec: Annotated[
        float | None,
        doc("Mean duration of the tasks completed in the last hour, in seconds; null if there were none."),
    ]
    tasks_per_worker_hour: Annotated[
        float | None, doc("Tasks per hour that one worker completes with all its slots; null if unknown.")
    ]
    estimated_hours_to_drain: Annotated[
        float | None,
        doc("Hours until the pending tasks that are not blocked are done; null without workers or a known duration."),
    ]
    workers_needed: WorkersNeeded


def workers_needed(pending: int, tasks_per_worker_hour: float | None, hours: int) -> int | None:
    """Workers that finish `pending` tasks in that many hours; None if the throughput is unknown."""
    if pending == 0:
        return 0
    if not tasks_per_worker_hour:
        return None
    # Rounded first: a binary fraction slightly above a whole number must not add a worker.
    return math.ceil(round(pending / (tasks_per_worker_hour * hours), 9)) or 1


async def capacity(conn: AsyncConnection[Any], role: Role | None = None) -> list[Capacity]:
    """Capacity of every role, or of this one."""
    rows = await fetch_all(conn, _SQL.capacity, {"role": role})
    return [Capacity(**row, workers_needed=_workers_needed(row)) for row in rows]


def _workers_needed(row: Row) -> WorkersNeeded:
    pending = row["pending_tasks"] - row["blocked_tasks"]
    one, four, eight = (workers_needed(pending, row["tasks_per_worker_hour"], hours) for hours in HOURS)
    return WorkersNeeded(for_1_hour=one, for_4_hours=four, for_8_hours=eight)
