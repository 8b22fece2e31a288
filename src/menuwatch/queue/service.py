"""Operations on existing tasks: retry and cancel (single or in bulk), change priority, run postponed tasks now."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.core.format import duration, pluralize
from menuwatch.core.logging import get_logger
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.hosts import service as hosts
from menuwatch.hosts.service import Host
from menuwatch.queue import store
from menuwatch.queue.ending import clean_reason
from menuwatch.queue.model import PRIORITY_CHAINED, PRIORITY_MAX, PRIORITY_MIN, UNHANDLED_ROLES, Status
from menuwatch.queue.task_list import TaskFilter, TaskRow, get_task

_q = sql.load(__package__, "task_list.sql")
log = get_logger(__name__)

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""Final states of a task."""

MAX_BULK_RETRY = 100_000

_UNHANDLED = sorted(str(role) for role in UNHANDLED_ROLES)


class RetryResult(Struct, kw_only=True, frozen=True):
    """Result of retrying a task."""

    task: Annotated[
        TaskRow, doc("The task that does the work now: a new one, an equal pending one, or the task itself.")
    ]
    created: Annotated[bool, doc("Whether it is a new task.")]
    retried: Annotated[int, doc("Id of the task to retry.")]
    outcome: Annotated[
        Literal["created", "joined", "pulled", "raised", "waiting"],
        doc(
            "What changed. `created`: a new task was enqueued; `joined`: an equal task is already pending; `pulled`: the task was "
            "scheduled for later and is due now; `raised`: it was due and has a higher priority now; `waiting`: it was due with at "
            "least this priority, so nothing changed."
        ),
    ]


class BulkResult(Struct, kw_only=True, frozen=True):
    """Result of a bulk operation."""

    matched: Annotated[int, doc("Number of selected tasks.")]
    done: Annotated[int, doc("Number of tasks retried or cancelled; 0 in a dry run.")]
    would: Annotated[int, doc("Number of tasks a dry run would change; otherwise 0.")]
    skipped: Annotated[
        dict[str, int],
        doc(
            "Number of skipped tasks by reason: `finished` (already over), `active` (a worker runs it), `waiting` (an equal task is "
            "already pending, or retried with these), `scheduled` (planned for later), `completed`, `cancelled` (give this status "
            "to retry them), "
            "`unhandled` (no handler for the role), `busy` (a worker is completing them right now), `missing` (no such task)."
        ),
    ]
    dry_run: Annotated[bool, doc("Whether this was a dry run: nothing was changed.")]


class RecoveryResult(Struct, kw_only=True, frozen=True):
    """Result of recovering stale tasks."""

    recovered: Annotated[int, doc("Number of recovered tasks.")]
    threshold_minutes: Annotated[float, doc("Threshold that was applied, in minutes.")]

    def __str__(self) -> str:
        silent = f"no heartbeat for {duration(self.threshold_minutes * 60)}"
        return f"{pluralize(self.recovered, 'stale task')} recovered ({silent})"


RECOVERY_MAX_MINUTES = 1440
"""Longest silence to ask for when tasks are recovered by hand: a day. The shortest is one minute, above the interval of heartbeats."""


async def recover_stale(conn: AsyncConnection[Any], threshold_minutes: float) -> RecoveryResult:
    """Take tasks back from workers that have been silent for that long."""
    count = await store.recover_stale(conn, threshold_minutes)
    await audit.record(conn, "tasks_recovered", count=count, threshold_minutes=threshold_minutes)
    return RecoveryResult(recovered=count, threshold_minutes=threshold_minutes)


async def cancel(conn: AsyncConnection[Any], task_id: int, *, reason: str | None = None) -> TaskRow:
    """Cancel a pending or active task; its worker loses it. Raises NotFound, and Conflict if it is finished."""
    task = await get_task(conn, task_id)
    if task.status in FINAL or not await store.cancel(conn, [task_id], clean_reason(reason or "cancelled")):
        now = await get_task(conn, task_id)
        raise Conflict(f"task {task_id} is {now.status} and can no longer be cancelled")
    await audit.record(
        conn, "task_cancelled", ("task", task_id), was=task.status, worker_id=task.worker_id, reason=reason
    )
    return await get_task(conn, task_id)


async def retry(conn: AsyncConnection[Any], task_id: int, *, priority: int = PRIORITY_CHAINED) -> RetryResult:
    """Run a task again, at this priority or its own if that is higher.

    A finished task is enqueued again and stays in the history. Raises NotFound, and Conflict while a worker holds it.
    """
    (row,) = await retry_on_deadlock(conn, lambda: _retry(conn, [task_id], priority))
    outcome = row["outcome"]
    match outcome:
        case "missing":
            raise NotFound(f"task {task_id} does not exist")
        case "unhandled":
            raise Conflict(f"this version has no handler for task {task_id}: it would wait forever")
        case "active":
            now = await get_task(conn, task_id)
            raise Conflict(f"task {task_id} is {now.status}: cancel it first, or wait until it has finished")
    await audit.record(conn, "task_retried", ("task", task_id), retried_as=row["task_id"], outcome=outcome)
    task = await get_task(conn, row["task_id"])
    return RetryResult(task=task, created=outcome == "created", retried=task_id, outcome=outcome)


async def set_priority(conn: AsyncConnection[Any], task_id: int, priority: int) -> TaskRow:
    """Set the priority of a pending task; returns the task as it was before.

    Raises NotFound, InvalidField for a number out of range, and Conflict if it is not pending: then priority has no effect.
    """
    if not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise InvalidField("priority", f"priority must be between {PRIORITY_MIN:,} and {PRIORITY_MAX:,}")
    try:
        async with conn.transaction():
            await conn.execute(_q.limit_lock_wait)
            locked = await fetch_one(conn, _q.lock_waiting, {"id": task_id})
            task = await get_task(conn, task_id)
            if locked is None or locked["state"] == "a":
                raise Conflict(f"task {task_id} is {task.status}: only the priority of a pending task can be changed")
            await conn.execute(_q.set_priority, {"id": task_id, "priority": priority})
            if task.dispensary_id is not None:
                await conn.execute(_q.reorder, locked)
    except LockNotAvailable:
        raise Conflict(f"task {task_id} is being claimed right now: try again") from None
    await audit.record(conn, "task_priority_changed", ("task", task_id), priority=[task.priority, priority])
    return task


async def bulk_retry(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    priority: int = PRIORITY_CHAINED,
) -> BulkResult:
    """Retry every task that the filter selects, as `retry` does.

    Without a status and without ids these are failed tasks and pending retries; completed, cancelled and scheduled tasks are
    skipped unless selected explicitly. Raises InvalidField for more than MAX_BULK_RETRY tasks.
    """
    explicit = ids is not None or where.ids is not None or where.statuses is not None
    params = {**_selection(where, ids), "named": explicit, "unhandled": _UNHANDLED}
    rows = await fetch_all(conn, _q.tasks_to_retry, params, prepare=False)
    outcomes = Counter({row["outcome"]: row["n"] for row in rows})
    matched = outcomes.total()
    selected: list[int] = [task_id for row in rows for task_id in row["ids"] or ()]
    if len(selected) > MAX_BULK_RETRY:
        raise InvalidField(
            "created_before",
            f"the filter selects {len(selected):,} tasks, and at most {MAX_BULK_RETRY:,} can be retried at once: narrow it, "
            "for example with created_after and created_before",
        )
    if ids is not None:
        outcomes["missing"] = len(set(ids)) - matched
    if selected and not dry_run:
        del outcomes["retry"], outcomes["joined"]
        outcomes += Counter(
            row["outcome"] for row in await retry_on_deadlock(conn, lambda: _retry(conn, selected, priority))
        )
    done = sum(outcomes.pop(outcome, 0) for outcome in ("retry", "created", "pulled"))
    # A finished task is not enqueued again while an equal one is pending.
    outcomes["waiting"] += outcomes.pop("joined", 0) + outcomes.pop("raised", 0)
    skipped = outcomes
    result = _result(matched, done, skipped, dry_run=dry_run)
    await _audit_bulk(conn, "tasks_retried", where, ids, result)
    return result


async def bulk_cancel(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> BulkResult:
    """Cancel all unfinished tasks that the filter selects; workers lose those that they hold."""
    (selection,) = await fetch_all(conn, _q.tasks_to_cancel, _selection(where, ids), prepare=False)
    skipped = Counter({"finished": selection["finished"]})
    if ids is not None:
        skipped["missing"] = len(set(ids)) - selection["matched"]
    done = len(selection["ids"])
    if done and not dry_run:
        params = {"ids": selection["ids"], "reason": clean_reason(reason or "cancelled")}
        (row,) = await retry_on_deadlock(conn, lambda: fetch_all(conn, _q.cancel_tasks_in_bulk, params))
        # Some may have finished meanwhile.
        skipped["finished"] += done - row["cancelled"] - row["busy"]
        skipped["busy"] = row["busy"]
        done = row["cancelled"]
    result = _result(selection["matched"], done, skipped, dry_run=dry_run)
    await _audit_bulk(conn, "tasks_cancelled", where, ids, result)
    return result


class PostponedTasks(Struct, kw_only=True, frozen=True):
    """Tasks that a host postponed: `waiting` are not due yet, the last until `until`; `made_due` are due since this call."""

    waiting: int
    until: datetime | None
    made_due: int = 0


async def resume_host(conn: AsyncConnection[Any], text: str, *, every: bool = False) -> tuple[Host, PostponedTasks]:
    """Undo the pause of a host. Unless it is still blocked, the tasks that the pause postponed become due within a minute, or with
    `every` all that the host postponed, at once. Raises NotFound."""
    host = await hosts.resume(conn, text)
    if every or host.state.is_closed:
        return host, await _reopened(conn, host, every=every)
    due = await fetch_all(conn, _q.end_pause, {"host": host.host})
    if due:
        await store.wake(conn)
    left = await count_postponed(conn, host.host, by_pause=False)
    return host, PostponedTasks(waiting=left.waiting, until=left.until, made_due=len(due))


async def reset_host(conn: AsyncConnection[Any], text: str, *, every: bool = False) -> tuple[Host, PostponedTasks]:
    """Reset a host. With `every`, all tasks that it postponed become due, unless it is still blocked. Raises NotFound."""
    host = await hosts.reset(conn, text)
    return host, await _reopened(conn, host, every=every)


async def _reopened(conn: AsyncConnection[Any], host: Host, *, every: bool) -> PostponedTasks:
    if every and not host.state.is_closed:
        return await run_postponed_now(conn, host.host)
    return await count_postponed(conn, host.host)


async def count_postponed(conn: AsyncConnection[Any], host: str, *, by_pause: bool = True) -> PostponedTasks:
    """The tasks that this host postponed; without `by_pause` only those that `resume_host` leaves as they are."""
    rows = await fetch_all(conn, _q.postponed_by_host, {"host": host})
    rows = [row for row in rows if by_pause or row["postpone_code"] != PostponeCode.PAUSED]
    return PostponedTasks(waiting=len(rows), until=max((row["scheduled_for"] for row in rows), default=None))


async def run_postponed_now(conn: AsyncConnection[Any], host: str) -> PostponedTasks:
    """Make them due, each with its own priority, in the caller's transaction. The host's rate limit spreads them out."""
    done = 0
    while ids := [row["id"] for row in await fetch_all(conn, _q.postponed_by_host, {"host": host})]:
        result = await bulk_retry(conn, TaskFilter(), ids=ids[:MAX_BULK_RETRY], priority=PRIORITY_MIN)
        done += result.done
        if not result.done:
            break
    left = await count_postponed(conn, host)
    return PostponedTasks(waiting=left.waiting, until=left.until, made_due=done)


def _result(matched: int, done: int, skipped: Counter[str], *, dry_run: bool) -> BulkResult:
    return BulkResult(
        matched=matched,
        done=0 if dry_run else done,
        would=done if dry_run else 0,
        skipped=dict(sorted((+skipped).items())),
        dry_run=dry_run,
    )


def _selection(where: TaskFilter, ids: Sequence[int] | None) -> dict[str, Any]:
    params = where.to_params()
    return params if ids is None else {**params, "ids": list(ids)}


async def _retry(conn: AsyncConnection[Any], ids: Sequence[int], priority: int) -> list[Row]:
    return await fetch_all(conn, _q.retry_tasks, {"ids": list(ids), "priority": priority, "unhandled": _UNHANDLED})


async def _audit_bulk(
    conn: AsyncConnection[Any], action: str, where: TaskFilter, ids: Sequence[int] | None, result: BulkResult
) -> None:
    if result.dry_run:
        return
    selected = {
        key: value for key, value in _selection(where, ids).items() if value is not None and key != "ascii_patterns"
    }
    if ids is not None and len(ids) > 100:
        selected["ids"] = f"{len(ids)} of them"
    await audit.record(conn, action, matched=result.matched, done=result.done, skipped=result.skipped, where=selected)


_ATTEMPTS = 12
_MAX_PAUSE = 0.05
"""Longest delay in seconds between two attempts."""


async def retry_on_deadlock(conn: AsyncConnection[Any], action: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    """Run `action` and return its result; on a deadlock it is rolled back and repeated."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            async with conn.transaction():
                return await action()
        except (DeadlockDetected, LockNotAvailable):
            if attempt == _ATTEMPTS:
                raise
            log.info("lock conflict, retrying", action="bulk_gave_way", turn=attempt)
            await asyncio.sleep(random.uniform(0, _MAX_PAUSE))  # noqa: S311 - no secret
    raise AssertionError("the loop returns or raises")
