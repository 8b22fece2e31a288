"""The log lines of tasks: claimed, ended. At high rates they are sampled (claims) or summed (completions)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.queue.model import Status, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry
from menuwatch.workers.engine.completer import Completion

log = get_logger(__name__)

LINES = 10
"""Up to this many completions of a batch are logged one per line; larger batches have a summary line."""


class TaskLog:
    """Logs for one worker. `rate`: most claimed tasks that are logged per second; the next line counts the others. 0: none."""

    def __init__(self, worker_id: str, *, rate: float, clock: Clock) -> None:
        self._worker_id = worker_id
        self._rate = rate
        self._clock = clock
        self._allowed = max(rate, 1.0)
        """Lines that may be written now: a bucket that fills at `rate`, and holds one second."""
        self._filled_at = clock.monotonic()
        self._unlogged = 0

    def claimed(self, task: Task) -> None:
        """A task begins."""
        if not self._rate:
            return
        now = self._clock.monotonic()
        self._allowed = min(max(self._rate, 1.0), self._allowed + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._allowed < 1:
            self._unlogged += 1
            return
        self._allowed -= 1
        store = "" if task.dispensary_id is None else f" for dispensary {task.dispensary_id}"
        unlogged = {"unlogged": self._unlogged} if self._unlogged else {}
        log.info(f"Claimed task {task.id} ({task.role}){store}", action="task_claimed", **unlogged, **self.ids(task))
        self._unlogged = 0

    def completed(self, ends: Sequence[Completion]) -> None:
        """These completed, and were written together."""
        if len(ends) <= LINES:
            for end in ends:
                self.ended(end.attempt.task, end.outcome, Status.COMPLETED, end.ending.ran)
            return
        ids = [end.attempt.task.id for end in ends]
        slowest = max(ends, key=lambda end: end.ending.ran)
        log.info(
            "tasks done",
            action="tasks_completed",
            tasks=len(ends),
            by_role=dict(Counter(str(end.attempt.task.role) for end in ends)),
            first_id=min(ids),
            last_id=max(ids),
            slowest_id=slowest.attempt.task.id,
            slowest_ms=round(slowest.ending.ran * 1000, 1),
            worker_id=self._worker_id,
        )

    def ended(self, task: Task, outcome: Outcome, status: Status, ran: float) -> None:
        """An attempt ended with that outcome after `ran` seconds; `status` is the task's."""
        facts: dict[str, Any] = {"status": str(status), "ran_ms": round(ran * 1000, 1), **self.ids(task)}
        match outcome:
            case Done():
                log.info("task done", action="task_completed", **facts)
            case Postpone():
                say = log.info if outcome.counted else log.debug
                say("task postponed", action="task_postponed", reason=outcome.reason, **_due(outcome), **facts)
            case Retry() | Fail():
                action = "task_retried" if status == "pending" else "task_failed"
                log.warning("task failed", action=action, reason=outcome.reason, **facts)

    def ids(self, task: Task) -> dict[str, Any]:
        """What every line of a task names."""
        return {
            "task_id": task.id,
            "role": str(task.role),
            "dispensary_id": task.dispensary_id,
            "attempt": task.attempt,
            "worker_id": self._worker_id,
        }


def _due(outcome: Postpone) -> dict[str, Any]:
    if outcome.until is not None:
        return {"until": str(outcome.until)}
    return {"after_seconds": round(outcome.after.total_seconds(), 1)}
