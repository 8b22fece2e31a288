"""The attempts at a task: who made each, when, how it ended, and how many requests it sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one
from menuwatch.queue.model import Status
from menuwatch.queue.task_list import TaskRow, worker_names

_q = sql.load(__package__, "trace.sql")


class _Ended(msgspec.Struct, kw_only=True, frozen=True):
    """An earlier attempt as its task's row keeps it (`task_attempts_with`)."""

    attempt: int
    worker_id: str
    claimed_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    outcome: Literal["running", "completed", "failed", "cancelled", "retried", "postponed", "released", "lost"]
    error: str | None


class TaskAttempt(msgspec.Struct, kw_only=True, frozen=True):
    """One attempt at a task: from its claim by a worker to its end."""

    attempt: Annotated[int, doc("Number of the attempt, from 1.")]
    outcome: Annotated[
        Literal["running", "completed", "failed", "cancelled", "retried", "postponed", "released", "lost"],
        doc(
            "How it ended. `running`: it has not; `retried`: it failed, and the task is tried again; `postponed`: it could not be "
            "done yet; `released`: its worker stopped; `lost`: its worker sent no heartbeat."
        ),
    ]
    error: Annotated[str | None, doc("Why it ended like that; null if it completed, was released or runs.")]
    worker_id: Annotated[str, doc("Id of the worker.")]
    worker: Annotated[str | None, doc("Name of the worker; null if it is no longer registered.")]
    claimed_at: Instant
    started_at: Annotated[Instant | None, doc("When it started; null if it has not, or ended before.")]
    ended_at: Annotated[Instant | None, doc("When it ended; null while it runs.")]
    duration_ms: Annotated[
        float | None, doc("Time from start to end, in ms; null while it runs or if it did not start.")
    ]
    requests: Annotated[int, doc("Number of requests that it sent.")]
    errors: Annotated[int, doc("Number of those that did not succeed.")]


async def list_task_attempts(conn: AsyncConnection[Any], task: TaskRow) -> list[TaskAttempt]:
    """The attempts at a task, oldest first; the newest 50 before the present or last one. Empty for a task that was never claimed."""
    row = await fetch_one(conn, _q.earlier_attempts, {"id": task.id})
    kept = None if row is None else row["earlier_attempts"]
    ended = msgspec.json.decode(kept, type=list[_Ended]) if kept else []
    if task.worker_id is not None and task.claimed_at is not None:
        ended.append(_latest(task))
    if not ended:
        return []
    names = await worker_names(conn, [attempt.worker_id for attempt in ended])
    sent = {row["attempt"]: row for row in await fetch_all(conn, _q.requests_by_attempt, {"id": task.id})}
    return [
        TaskAttempt(
            **msgspec.structs.asdict(attempt),
            worker=names.get(attempt.worker_id),
            duration_ms=_duration_ms(attempt),
            requests=sent[attempt.attempt]["requests"] if attempt.attempt in sent else 0,
            errors=sent[attempt.attempt]["errors"] if attempt.attempt in sent else 0,
        )
        for attempt in ended
    ]


def _latest(task: TaskRow) -> _Ended:
    """The attempt that the task's own columns describe."""
    assert task.worker_id is not None, "the caller checked it"
    assert task.claimed_at is not None, "the caller checked it"
    over = task.completed_at is not None
    return _Ended(
        attempt=task.attempt,
        worker_id=task.worker_id,
        claimed_at=task.claimed_at,
        started_at=task.started_at,
        ended_at=task.completed_at,
        outcome=str(task.status) if over else "running",  # type: ignore[arg-type]  # the final statuses
        error=task.error_message if over and task.status != Status.COMPLETED else None,
    )


def _duration_ms(attempt: _Ended) -> float | None:
    if attempt.started_at is None or attempt.ended_at is None:
        return None
    return round((attempt.ended_at - attempt.started_at).total_seconds() * 1000, 1)
