"""How many tasks there are, soon, in an installation of millions.

By role, state and platform the counts are always exact: days that are over are counted once (migration 0021). So are those of every
other filter that an index helps. Where completed tasks could only be counted by reading most of them, their number is the
database's estimate, and said to be one; what waits, runs or went wrong is exact also then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import tasks
from menuwatch.operations.reading import rows
from menuwatch.operations.tasks import TaskFilter
from menuwatch.tasks.model import Role, Status

_q = sql.load(__package__, "task_counts.sql")
_of_tasks = sql.load(__package__)

_SUMMED = frozenset({"roles", "statuses", "platform"})
"""The filters that the counts of days answer."""

_COST = 8_000.0
"""Up to this cost, as the planner counts it, completed tasks are counted; it is some 30 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """By role and status; nothing where there are none. Not `exact`: the numbers of completed tasks are estimates."""

    by_role: Mapping[str, Mapping[str, int]]
    exact: bool = True

    @property
    def by_status(self) -> dict[Status, int]:
        """By status alone, all of them."""
        return {status: sum(one.get(status, 0) for one in self.by_role.values()) for status in Status}

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_status.values())


async def counts(conn: Connection, where: TaskFilter) -> Counts:
    """How many tasks the filter selects."""
    given = {one.name for one in fields(where) if getattr(where, one.name) is not None}
    if given <= _SUMMED:
        return Counts(by_role=_by_role(await rows(conn, _q.all_tasks, where.values(), prepare=False)))
    if where.cause is not None or (where.statuses is not None and Status.COMPLETED not in where.statuses):
        return Counts(by_role=await tasks.count(conn, where))
    below = await tasks.id_bound(conn, where)
    known: dict[str, Any] = {"below": below, **await tasks.worker_days(conn, where)}
    cost, _ = await _planned(conn, where, known)
    if cost <= _COST:
        return Counts(by_role=await tasks.count(conn, where))
    others = [one for one in where.statuses or Status if one != Status.COMPLETED]
    found = dict(await tasks.count(conn, replace(where, statuses=others))) if others else {}
    for role in where.roles or Role:
        _, expected = await _planned(conn, replace(where, roles=[role]), known)
        if expected > 1:  # the planner never expects none
            found.setdefault(str(role), {})[str(Status.COMPLETED)] = expected
    return Counts(by_role=found, exact=False)


async def _planned(conn: Connection, where: TaskFilter, known: Mapping[str, Any]) -> tuple[float, int]:
    """What it would cost to count the completed tasks that the filter selects, and how many the planner expects."""
    values = {**replace(where, statuses=[Status.COMPLETED]).values(), **known}
    (told,) = await rows(conn, "EXPLAIN (FORMAT JSON) " + _of_tasks.count_tasks, values, prepare=False)
    node: dict[str, Any] = msgspec.json.decode(told["QUERY PLAN"])[0]["Plan"]
    cost = float(node["Total Cost"])
    while "Aggregate" in node["Node Type"] or node["Node Type"] in ("Sort", "Gather", "Gather Merge"):
        workers = node.get("Workers Planned", 0)
        node = node["Plans"][0]
        if workers:  # of each of them, the leader among them
            node = {**node, "Plan Rows": node["Plan Rows"] * (workers + 1)}
    return cost, int(node["Plan Rows"])


def _by_role(found: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    by_role: dict[str, dict[str, int]] = {}
    for one in found:
        by_role.setdefault(one["role"], {})[one["status"]] = one["n"]
    return by_role
