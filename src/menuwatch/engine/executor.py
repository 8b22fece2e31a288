"""Runs attempts: handler, reaction to what it returned or raised, settling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError
from menuwatch.core.telemetry import get_logger
from menuwatch.engine.handler import Handlers, TaskContext
from menuwatch.engine.reaction import outcome_of
from menuwatch.engine.settler import Settler
from menuwatch.engine.slots import Attempt, Slots
from menuwatch.tasks.model import Task
from menuwatch.tasks.outcome import Done, Fail, Outcome, Postpone, Retry

log = get_logger(__name__)


class Executor:
    """Fills the slots with running attempts; `on_free` is called when a slot comes free."""

    def __init__(
        self,
        handlers: Handlers,
        settler: Settler,
        slots: Slots,
        *,
        worker_id: str,
        clock: Clock,
        on_free: Callable[[], None] = lambda: None,
    ) -> None:
        self._handlers = handlers
        self._settler = settler
        self._slots = slots
        self._worker_id = worker_id
        self._clock = clock
        self._on_free = on_free
        self._running: set[asyncio.Task[None]] = set()

    def start(self, task: Task) -> None:
        """Begins an attempt in a slot of its own."""
        attempt = Attempt(task=task, ctx=TaskContext(self._worker_id), started=self._clock.monotonic())
        self._slots.add(attempt)
        running = asyncio.create_task(self._attempt(attempt), name=f"task-{task.id}")
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def drain(self, grace: float) -> None:
        """Waits up to `grace` seconds for what runs, then cancels the rest and gives it back to the queue.

        A handler that does not listen to cancellation is left running; it ends with the process.
        """
        if self._running and grace > 0:
            await asyncio.wait(self._running, timeout=grace)
        for attempt in self._slots:
            attempt.stopped = True
            attempt.cancel()
        if self._running:
            _, deaf = await asyncio.wait(self._running, timeout=max(5.0, self._settler.patience))
            for running in deaf:
                running.cancel()

    async def _attempt(self, attempt: Attempt) -> None:
        task = attempt.task
        try:
            outcome = await self._outcome(attempt)
            attempt.settling = True
            ran = self._clock.monotonic() - attempt.started
            if outcome is not None:
                status = await self._settler.settle(task, outcome, ran=ran)
                self._report(task, outcome, status, ran)
            elif attempt.stopped:
                given = await self._settler.release(task)
                log.info("a task was given back", action="task_released", released=given, **self._ids(task))
            else:
                log.warning("a task was lost while it ran", action="task_lost", **self._ids(task))
        except Exception as error:
            log.error(
                "an attempt broke the engine's own code", action="attempt_failed", exc_info=error, **self._ids(task)
            )
        finally:
            self._slots.remove(attempt)
            self._on_free()

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        """What the handler said or its error means; None when it was cancelled."""
        task = attempt.task
        handler = self._handlers.get(task.role)
        if handler is None:
            return Fail(reason=f"this worker has no handler for role {task.role}")
        work: asyncio.Task[object] = asyncio.ensure_future(_call(handler, task, attempt.ctx))
        attempt.work = work
        if attempt.ctx.lost.is_set() or attempt.stopped:
            work.cancel()
        # The handler runs in a task of its own, so that cancelling it never cancels the settling of what it returned.
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            raise
        if work.cancelled():
            if not (attempt.ctx.lost.is_set() or attempt.stopped):
                return Retry(reason="the handler cancelled itself")
            return None
        error = work.exception()
        if error is None:
            return _checked(work.result())
        if not isinstance(error, Exception):
            raise error
        if isinstance(error, MenuwatchError):
            log.warning(
                "a task failed", action="task_error", error=f"{type(error).__name__}: {error}", **self._ids(task)
            )
        else:
            log.error("a handler broke", action="task_error", exc_info=error, **self._ids(task))
        return outcome_of(error, self._clock.now())

    def _report(self, task: Task, outcome: Outcome, status: object, ran: float) -> None:
        if status is None:
            return
        facts: dict[str, Any] = {"status": str(status), "ran_ms": round(ran * 1000, 1), **self._ids(task)}
        match outcome:
            case Done():
                log.info("task done", action="task_completed", **facts)
            case Postpone():
                log.info(
                    "task postponed", action="task_postponed", reason=outcome.reason, until=str(outcome.until), **facts
                )
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


async def _call(handler: Any, task: Task, ctx: TaskContext) -> object:
    return await handler(task, ctx)


def _checked(outcome: object) -> Outcome:
    if isinstance(outcome, Done | Retry | Postpone | Fail):
        return outcome
    return Retry(reason=f"the handler returned {type(outcome).__name__}, which is no outcome")
