"""Runs attempts: handler, reaction to what it returned or raised, settling.

What worked and has nothing of its own to write goes into the outbox, and to the database together with others; everything else is
settled in a transaction of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, NotNow
from menuwatch.core.telemetry import get_logger
from menuwatch.engine.handler import Handlers, TaskContext
from menuwatch.engine.measures import Measures
from menuwatch.engine.measures import Outcome as Ending
from menuwatch.engine.outbox import Ended, Outbox
from menuwatch.engine.reaction import outcome_of
from menuwatch.engine.runners import Runners
from menuwatch.engine.settler import Settler
from menuwatch.engine.slots import Attempt, Slots
from menuwatch.tasks.model import Status, Task
from menuwatch.tasks.outcome import Done, Fail, Outcome, Postpone, Retry

log = get_logger(__name__)

LINES = 10
"""Tasks that are written together have a line in the log each up to this number; more have one that sums them up."""


class Executor:
    """Fills the slots with running attempts; `on_free` is called when one is over."""

    def __init__(
        self,
        handlers: Handlers,
        settler: Settler,
        slots: Slots,
        outbox: Outbox,
        *,
        worker_id: str,
        clock: Clock,
        measures: Measures,
        on_free: Callable[[], None] = lambda: None,
        on_not_now: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_not_now` is told when a task found that it cannot begin yet: others like it cannot either."""
        self._handlers = handlers
        self._settler = settler
        self._slots = slots
        self._outbox = outbox
        self._measures = measures
        self._worker_id = worker_id
        self._clock = clock
        self._on_free = on_free
        self._on_not_now = on_not_now
        self._runners = Runners(self._attempt)
        self._alone: set[asyncio.Task[None]] = set()
        self.ended = False
        """Whether everything was told to end: nothing begins any more."""

    def start(self, task: Task) -> None:
        """Begins an attempt in a slot of its own."""
        attempt = Attempt(
            task=task, ctx=TaskContext(self._worker_id, self._slots.rest), started=self._clock.monotonic()
        )
        self._slots.add(attempt)
        self._runners.begin(attempt)

    async def drain(self, grace: float) -> None:
        """Waits up to `grace` seconds for what runs, then cancels the rest and gives it back to the queue.

        A handler that does not listen to cancellation is left running; it ends with the process.
        """
        await self._runners.still(grace)
        self.ended = True
        for attempt in self._slots:
            attempt.stopped = True
            attempt.cancel()
        await self._runners.still(max(5.0, self._settler.patience))
        self._runners.close()

    async def written(self, patience: float) -> None:
        """Returns once what is written one by one is, or after `patience` seconds; then the rest is left to recovery."""
        if self._alone:
            _, late = await asyncio.wait(self._alone, timeout=patience)
            for writing in late:
                writing.cancel()

    def completed(self, ends: Sequence[Ended]) -> None:
        """These were written, and their slots are free."""
        ran: dict[str, list[float]] = {}
        for end in ends:
            self._slots.remove(end.attempt)
            ran.setdefault(end.attempt.task.role, []).append(end.ending.ran)
        for role, durations in ran.items():
            self._measures.ended_many(role, "completed", durations)
        if len(ends) <= LINES:
            for end in ends:
                self._report(end.attempt.task, end.outcome, Status.COMPLETED, end.ending.ran)
            return
        ids = [end.attempt.task.id for end in ends]
        slowest = max(ends, key=lambda end: end.ending.ran)
        log.info(
            "tasks done",
            action="tasks_completed",
            tasks=len(ends),
            by_role={role: len(durations) for role, durations in ran.items()},
            first_id=min(ids),
            last_id=max(ids),
            slowest_id=slowest.attempt.task.id,
            slowest_ms=round(slowest.ending.ran * 1000, 1),
            worker_id=self._worker_id,
        )

    def lost(self, ends: Sequence[Ended]) -> None:
        """These were no longer ours to end. After a doubtful try before, that may be because it went through."""
        for end in ends:
            if end.in_doubt:
                self.settle_alone(end)
                continue
            self._slots.remove(end.attempt)
            self._measures.lost()
            log.warning("a task was lost before it was settled", action="task_lost", **self._ids(end.attempt.task))

    def abandoned(self, end: Ended) -> None:
        """The database stayed away for longer than patience lasts: recovery will find the task."""
        self._slots.remove(end.attempt)
        log.error(
            "the database stayed away; the task is left to recovery",
            action="task_abandoned",
            **self._ids(end.attempt.task),
        )

    def settle_alone(self, end: Ended) -> None:
        """Writes the end in a transaction of its own."""
        running = asyncio.create_task(self._end_alone(end), name=f"end-{end.attempt.task.id}")
        self._alone.add(running)
        running.add_done_callback(self._alone.discard)

    async def _end_alone(self, end: Ended) -> None:
        try:
            await self._settle(end.attempt, end.outcome, end.ending.ran, in_doubt=end.in_doubt)
        except Exception as error:
            self._broken(end.attempt, error)
        finally:
            self._free(end.attempt)

    async def _attempt(self, attempt: Attempt) -> None:
        handed_in = False
        try:
            outcome = await self._outcome(attempt)
            attempt.settling = True
            if attempt.is_cut_off():
                _uncancel()
            ran = self._clock.monotonic() - attempt.started
            if type(outcome) is Postpone and not outcome.counted:
                self._on_not_now()
            if outcome is None:
                await self._without(attempt, ran)
            elif type(outcome) is Done and outcome.writes is None and outcome.settle is None:
                end = self._settler.ending(attempt.task, outcome, ran)
                self._outbox.put(Ended(attempt, outcome, end))
                handed_in = True
                self._on_free()
            else:
                await self._settle(attempt, outcome, ran)
        except Exception as error:
            self._broken(attempt, error)
        finally:
            if not handed_in:
                self._free(attempt)

    async def _settle(self, attempt: Attempt, outcome: Outcome, ran: float, *, in_doubt: bool = False) -> None:
        task = attempt.task
        status = await self._settler.settle(task, outcome, ran=ran, in_doubt=in_doubt)
        if status is None:
            self._measures.lost()
            return
        self._measures.ended(task.role, _ended(outcome, status), ran)
        self._report(task, outcome, status, ran)

    async def _without(self, attempt: Attempt, ran: float) -> None:
        """There is no outcome: the handler was cancelled."""
        task = attempt.task
        if attempt.stopped:
            given = await self._settler.release(task)
            self._measures.ended(task.role, "released", ran)
            log.info("a task was given back", action="task_released", released=given, **self._ids(task))
        else:
            self._measures.lost()
            log.warning("a task was lost while it ran", action="task_lost", **self._ids(task))

    def _broken(self, attempt: Attempt, error: Exception) -> None:
        log.error(
            "an attempt broke the engine's own code",
            action="attempt_failed",
            exc_info=error,
            **self._ids(attempt.task),
        )

    def _free(self, attempt: Attempt) -> None:
        self._slots.remove(attempt)
        self._on_free()

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        """What the handler said or its error means; None when it was cancelled."""
        task = attempt.task
        handler = self._handlers.get(task.role)
        if handler is None:
            return Fail(reason=f"this worker has no handler for role {task.role}")
        if attempt.is_cut_off():
            return None
        attempt.handling = True
        try:
            return _checked(await handler(task, attempt.ctx))
        except asyncio.CancelledError:
            if attempt.is_cut_off():
                return None
            if self.ended:
                raise
            _uncancel()
            return Retry(reason="the handler cancelled itself")
        except MenuwatchError as error:
            # That now is not the time is no failure, and may be said any number of times.
            say = log.debug if isinstance(error, NotNow) else log.warning
            say("a task failed", action="task_error", error=f"{type(error).__name__}: {error}", **self._ids(task))
            return outcome_of(error)
        except Exception as error:
            log.error("a handler broke", action="task_error", exc_info=error, **self._ids(task))
            return outcome_of(error)
        finally:
            attempt.handling = False

    def _report(self, task: Task, outcome: Outcome, status: object, ran: float) -> None:
        if status is None:
            return
        facts: dict[str, Any] = {"status": str(status), "ran_ms": round(ran * 1000, 1), **self._ids(task)}
        match outcome:
            case Done():
                log.info("task done", action="task_completed", **facts)
            case Postpone():
                say = log.info if outcome.counted else log.debug
                say("task postponed", action="task_postponed", reason=outcome.reason, **_due(outcome), **facts)
            case Retry() | Fail():
                action = "task_retried" if status == "pending" else "task_failed"
                log.warning("task did not work", action=action, reason=outcome.reason, **facts)

    def _ids(self, task: Task) -> dict[str, Any]:
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


def _uncancel() -> None:
    """The handler was to end, not the settling of what it said before it did."""
    current = asyncio.current_task()
    while current is not None and current.cancelling():
        current.uncancel()


def _ended(outcome: Outcome, status: Status) -> Ending:
    match outcome:
        case Done():
            return "completed"
        case Postpone():
            return "postponed" if status is Status.PENDING else "failed"
        case _:
            return "retried" if status is Status.PENDING else "failed"


def _checked(outcome: object) -> Outcome:
    if isinstance(outcome, Done | Retry | Postpone | Fail):
        return outcome
    return Retry(reason=f"the handler returned {type(outcome).__name__}, which is no outcome")
