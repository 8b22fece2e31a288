"""Count tasks quickly in installations with millions of them.

Counts by role, state and platform are always exact: past days are counted once (`task_days`). So are counts of filters that an
index supports. If completed tasks could only be counted by reading most of them, their number is the database's estimate, and
marked as such; pending, active and failed tasks are exact even then.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any

import msgspec
from psycopg.errors import QueryCanceled

from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.queue.model import NETWORK_ROLES, Role, Status, WaitState
from menuwatch.queue.task_list import TaskFilter, count_tasks, id_bound, worker_days

_q = sql.load(__package__, "counts.sql")
_list = sql.load(__package__, "task_list.sql")

_SUMMED = frozenset({"roles", "statuses", "platform"})
"""The filters that the counts per day support."""

_COST = 8_000.0
"""Planner cost up to which completed tasks are counted; about 30 ms."""


class TaskCounts(msgspec.Struct, kw_only=True, frozen=True):
    """Number of tasks by status among the selected tasks."""

    total: int
    exact: Annotated[
        bool,
        doc(
            "Whether `completed` is exact: it is an estimate if an exact count would read most of a long history. The other "
            "numbers are always exact."
        ),
    ]
    pending: Annotated[int, doc("All that wait: the sum of `ready`, `blocked` and `scheduled`.")]
    ready: Annotated[int, doc("Pending tasks that a worker may claim, now or after others of their store.")]
    blocked: Annotated[
        int, doc("Pending tasks whose host gets no requests now: it is paused, cooling down, or its circuit is open.")
    ]
    scheduled: Annotated[int, doc("Pending tasks that are not due yet.")]
    claimed: Annotated[int, doc("Claimed by a worker and not started.")]
    running: int
    completed: int
    failed: Annotated[int, doc("Failed permanently.")]
    stale: Annotated[int, doc("Held by a worker without a heartbeat.")]
    cancelled: int
    by_role: Annotated[
        dict[str, dict[str, int]], doc("Role to status to number; combinations without tasks are omitted.")
    ]


async def count_by_status(conn: Connection, where: TaskFilter) -> TaskCounts:
    """Count the tasks that the filter selects, by status."""
    by_role, exact = await _counts(conn, where)
    by_status = {str(status): sum(counts.get(status, 0) for counts in by_role.values()) for status in Status}
    rows = await fetch_all(conn, _q.count_waits, where.to_params(), prepare=False)
    waits = dict.fromkeys(map(str, WaitState), 0) | {row["wait_state"]: row["n"] for row in rows}
    # They are exact, and so is the sum: counted in one statement, it agrees with its parts.
    by_status["pending"] = sum(waits.values())
    return TaskCounts(total=sum(by_status.values()), exact=exact, **by_status, **waits, by_role=by_role)


async def _counts(conn: Connection, where: TaskFilter) -> tuple[dict[str, dict[str, int]], bool]:
    """Counts by role and status, and whether completed tasks are counted and not estimated."""
    names = {field.name for field in fields(where) if getattr(where, field.name) is not None}
    if names <= _SUMMED:
        sums: dict[str, dict[str, int]] = {}
        for row in await fetch_all(conn, _q.all_tasks, where.to_params(), prepare=False):
            sums.setdefault(row["role"], {})[row["status"]] = row["n"]
        return sums, True
    if where.cause is not None or (where.statuses is not None and Status.COMPLETED not in where.statuses):
        return await count_tasks(conn, where), True
    bounds: dict[str, Any] = {"below": await id_bound(conn, where), **await worker_days(conn, where)}
    cost, _ = await _planned(conn, where, bounds)
    if cost <= _COST:
        return await count_tasks(conn, where), True
    others = [status for status in where.statuses or Status if status != Status.COMPLETED]
    by_role = await count_tasks(conn, replace(where, statuses=others)) if others else {}
    for role in where.roles or Role:
        _, expected = await _planned(conn, replace(where, roles=[role]), bounds)
        if expected > 1:  # the planner never estimates zero
            by_role.setdefault(str(role), {})[str(Status.COMPLETED)] = expected
    return by_role, False


async def _planned(conn: Connection, where: TaskFilter, bounds: Mapping[str, Any]) -> tuple[float, int]:
    """Planner's cost of counting the completed tasks that the filter selects, and its estimate of their number."""
    params = {**replace(where, statuses=[Status.COMPLETED]).to_params(), **bounds}
    (row,) = await fetch_all(conn, "EXPLAIN (FORMAT JSON) " + _list.count_tasks, params, prepare=False)
    node: dict[str, Any] = msgspec.json.decode(row["QUERY PLAN"])[0]["Plan"]
    cost = float(node["Total Cost"])
    while "Aggregate" in node["Node Type"] or node["Node Type"] in ("Sort", "Gather", "Gather Merge"):
        workers = node.get("Workers Planned", 0)
        node = next(
            child for child in node["Plans"] if child["Parent Relationship"] == "Outer"
        )  # the other reads stale_before()
        if workers:  # per process, including the leader
            node = {**node, "Plan Rows": node["Plan Rows"] * (workers + 1)}
    return cost, int(node["Plan Rows"])


TAB_MAX = 10_000
"""Tabs count up to this number; one more stands for all above it."""

SMALL_TABLE = 16_000_000
"""Bytes of a table that is always read as a whole: some ten thousand tasks."""

TAB_SECONDS = 0.04
"""Time limit in seconds for counting larger tables for one page. A search without an index would read all rows."""

_ACTIVE = (Status.CLAIMED, Status.RUNNING, Status.STALE)
_STARTED = tuple(status for status in Status if status is not Status.PENDING)
_FINISHED = (Status.FAILED, Status.CANCELLED, Status.COMPLETED)


async def count_tabs(conn: Connection, where: TaskFilter) -> dict[Status | WaitState, int | None]:
    """Counts by status and of blocked tasks, which are pending as well; TAB_MAX + 1 if there are more, None if counting would take too
    long. Ignores the states of the filter. Active tasks are few and always counted, and so are small tables."""
    params = {**replace(where, statuses=None, waits=None).to_params(), "most": TAB_MAX + 1}
    (size,) = await fetch_all(conn, _q.sizes, {})
    counts: dict[Status | WaitState, int | None] = dict.fromkeys(_ACTIVE, 0)
    for row in await fetch_all(conn, _q.count_active, params, prepare=False):
        counts[Status(row["status"])] = row["n"]
    until = time.monotonic() + TAB_SECONDS
    for state, waits in ((Status.PENDING, None), (WaitState.BLOCKED, [WaitState.BLOCKED])):
        counts[state] = await _count_until(
            conn, _q.count_waiting, {**params, "waits": waits}, None if size["live"] <= SMALL_TABLE else until
        )
    for status in _FINISHED:
        counts[status] = await _count_until(
            conn,
            _q.count_finished,
            {**params, "status": str(status)},
            None if size["history"] <= SMALL_TABLE else until,
        )
    return {state: counts[state] for state in (Status.PENDING, WaitState.BLOCKED, *_STARTED)}


async def _count_until(conn: Connection, query: Any, params: Mapping[str, Any], until: float | None) -> int | None:
    """The count, or None if it is not finished by `until` (None: no limit)."""
    rows = await _rows_until(conn, query, params, until)
    return None if rows is None else int(rows[0]["n"])


async def _rows_until(conn: Connection, query: Any, params: Mapping[str, Any], until: float | None) -> list[Row] | None:
    """The rows, or None if they are not read by `until` (None: no limit)."""
    if until is None:
        return await fetch_all(conn, query, params, prepare=False)
    left = round((until - time.monotonic()) * 1000)
    if left < 1:
        return None
    try:
        async with conn.transaction():
            await conn.execute(_q.limit_time, {"ms": left})
            return await fetch_all(conn, query, params, prepare=False)
    except QueryCanceled:
        return None


FACET_TASKS = 5_000
"""Newest tasks among which facets are counted."""

FACET_SECONDS = 0.025


async def count_facets(conn: Connection, where: TaskFilter) -> list[Row] | None:
    """By what the search can be narrowed: rows of `facet`, `value`, `label` and `n`, counted among its newest FACET_TASKS tasks. None
    if that would take too long."""
    (size,) = await fetch_all(conn, _q.sizes, {})
    small = size["live"] + size["history"] <= SMALL_TABLE
    params = {
        **where.to_params(),
        **await worker_days(conn, where),
        "limit": FACET_TASKS,
        "network": sorted(map(str, NETWORK_ROLES)),
    }
    return await _rows_until(conn, _list.facets, params, None if small else time.monotonic() + FACET_SECONDS)
