"""What people do to tasks that are there: cancel them, have them done again, one or all that a filter selects."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.operations.tasks import TaskFilter, one
from menuwatch.tasks import store as tasks
from menuwatch.tasks.ending import clean_reason
from menuwatch.tasks.model import PRIORITY_CHAINED, UNHANDLED_ROLES, Status

_q = sql.load(__package__)
log = get_logger(__name__)

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""States that a task does not leave."""

RETRIED_AT_ONCE = 100_000
"""Most tasks that one call has done again."""

_UNHANDLED = sorted(str(role) for role in UNHANDLED_ROLES)


async def recover_stale(conn: AsyncConnection[Any], threshold_minutes: float) -> int:
    """Takes tasks back from workers that were silent for that long; returns how many."""
    found = await tasks.recover_stale(conn, threshold_minutes)
    await audit.record(conn, "tasks_recovered", count=found, threshold_minutes=threshold_minutes)
    return found


async def cancel(conn: AsyncConnection[Any], task_id: int, *, reason: str | None = None) -> None:
    """Cancels a task that waits or runs; its worker loses it. Raises NotFound, and Conflict when it is over already."""
    task = await one(conn, task_id)
    if task["status"] in FINAL or not await tasks.cancel(conn, [task_id], clean_reason(reason or "cancelled")):
        now = await one(conn, task_id)
        raise Conflict(f"task {task_id} is {now['status']} and cannot be cancelled any more")
    await audit.record(
        conn, "task_cancelled", ("task", task_id), was=task["status"], worker_id=task["worker_id"], reason=reason
    )


async def retry(conn: AsyncConnection[Any], task_id: int, *, priority: int = PRIORITY_CHAINED) -> tuple[int, str]:
    """Has a task done again, at this priority or its own if that is higher; returns the task that stands for it now, and what
    changed: it is a new one (`created`), one with the same work that waits already (`joined`), or itself, which is due at once
    (`pulled`), more urgent than before (`raised`), or as it was (`waiting`).

    One that is over is enqueued anew and stays in the history as it is. Raises NotFound, and Conflict while a worker is at it.
    """
    (found,) = await _giving_way(conn, lambda: _retry(conn, [task_id], priority))
    match found["outcome"]:
        case "missing":
            raise NotFound(f"task {task_id} does not exist")
        case "unhandled":
            raise Conflict(f"no worker of this version does the work of task {task_id}: it would wait for ever")
        case "active":
            now = await one(conn, task_id)
            raise Conflict(
                f"task {task_id} is {now['status']}: a worker is at it; cancel it first, or wait until it is over"
            )
    await audit.record(conn, "task_retried", ("task", task_id), retried_as=found["task_id"], outcome=found["outcome"])
    return found["task_id"], found["outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What became of many tasks at once: of the `matched`, `done` were retried or cancelled, the others were passed over for what
    `skipped` says. In a dry run nothing is done, and `would` is what would be."""

    matched: int
    done: int
    would: int
    dry_run: bool
    skipped: Mapping[str, int] = field(default_factory=dict)


async def bulk_retry(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    priority: int = PRIORITY_CHAINED,
) -> Bulk:
    """Has every task that the filter selects done again, as `retry` does.

    Without a state and without ids that is what failed or waits for another try; completed, cancelled and planned work is
    passed over unless it is named. Raises Unusable for more than RETRIED_AT_ONCE tasks.
    """
    named = ids is not None or where.ids is not None or where.statuses is not None
    values = {**_selection(where, ids), "named": named, "unhandled": _UNHANDLED}
    found = await rows(conn, _q.tasks_to_retry, values, prepare=False)
    chosen: list[int] = next((one["ids"] for one in found if one["outcome"] == "retry"), [])
    skipped = Counter({one["outcome"]: one["n"] for one in found if one["outcome"] != "retry"})
    matched = len(chosen) + skipped.total()
    if ids is not None and (missing := len(set(ids)) - matched):
        skipped["missing"] += missing
    if len(chosen) > RETRIED_AT_ONCE:
        raise Unusable(
            "created_before",
            f"the filter selects {len(chosen):,} tasks to retry, and at most {RETRIED_AT_ONCE:,} are retried at once: narrow it, "
            "for instance with created_after and created_before",
        )
    done = len(chosen)
    if chosen and not dry_run:
        became = Counter(one["outcome"] for one in await _giving_way(conn, lambda: _retry(conn, chosen, priority)))
        done = became.pop("created", 0) + became.pop("pulled", 0)
        # One that is over while the same work waits already is not enqueued twice.
        became["waiting"] += became.pop("joined", 0) + became.pop("raised", 0)
        skipped += became
    result = _result(matched, done, skipped, dry_run=dry_run)
    await _note_bulk(conn, "tasks_retried", where, ids, result)
    return result


async def bulk_cancel(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> Bulk:
    """Cancels every task that the filter selects and that is not over; workers lose those that they are at."""
    (found,) = await rows(conn, _q.tasks_to_cancel, _selection(where, ids), prepare=False)
    skipped = Counter({"finished": found["finished"]})
    if ids is not None:
        skipped["missing"] = len(set(ids)) - found["matched"]
    done = len(found["ids"])
    if done and not dry_run:
        chosen = {"ids": found["ids"], "reason": clean_reason(reason or "cancelled")}
        (became,) = await _giving_way(conn, lambda: rows(conn, _q.cancel_tasks_in_bulk, chosen))
        # Some ended by themselves meanwhile.
        skipped["finished"] += done - became["cancelled"] - became["busy"]
        skipped["busy"] = became["busy"]
        done = became["cancelled"]
    result = _result(found["matched"], done, skipped, dry_run=dry_run)
    await _note_bulk(conn, "tasks_cancelled", where, ids, result)
    return result


def _result(matched: int, done: int, skipped: Counter[str], *, dry_run: bool) -> Bulk:
    passed = dict(sorted((+skipped).items()))
    return Bulk(
        matched=matched, done=0 if dry_run else done, would=done if dry_run else 0, dry_run=dry_run, skipped=passed
    )


def _selection(where: TaskFilter, ids: Sequence[int] | None) -> dict[str, Any]:
    values = where.values()
    return values if ids is None else {**values, "ids": list(ids)}


async def _retry(conn: AsyncConnection[Any], ids: Sequence[int], priority: int) -> list[Row]:
    values = {"ids": list(ids), "priority": priority, "unhandled": _UNHANDLED}
    return await rows(conn, _q.retry_tasks, values)


async def _note_bulk(
    conn: AsyncConnection[Any], action: str, where: TaskFilter, ids: Sequence[int] | None, result: Bulk
) -> None:
    if result.dry_run:
        return
    selected = {key: value for key, value in _selection(where, ids).items() if value is not None and key != "lowered"}
    if ids is not None and len(ids) > 100:
        selected["ids"] = f"{len(ids)} of them"
    await audit.record(conn, action, matched=result.matched, done=result.done, skipped=result.skipped, where=selected)


_TRIES = 12
_PAUSE = 0.05
"""Seconds, at most, between two of them."""


async def _giving_way(conn: AsyncConnection[Any], do: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    """What `do` answers. Where it and others wait for each other it gives way: it is undone as a whole, and done again."""
    for turn in range(1, _TRIES + 1):
        try:
            async with conn.transaction():
                return await do()
        except (DeadlockDetected, LockNotAvailable):
            if turn == _TRIES:
                raise
            log.info("others had a task in hand, trying again", action="bulk_gave_way", turn=turn)
            await asyncio.sleep(random.uniform(0, _PAUSE))  # noqa: S311 - no secret
    raise AssertionError("the loop returns or raises")
