"""Run attempts: call the handler, map its result or error to an outcome, write the outcome.

What worked and has nothing of its own to write goes into the completions, and to the database together with others; everything else is
settled in a transaction of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from menuwatch.core.clock import Clock
from menuwatch.core.errors import MenuwatchError, NotNow
from menuwatch.core.logging import ATTEMPT, get_logger
from menuwatch.queue.model import Status, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry, outcome_of
from menuwatch.workers.engine.completer import Completion, JobCompleter, PendingCompletions
from menuwatch.workers.engine.handler import Handlers, TaskContext
from menuwatch.workers.engine.metrics import Outcome as Ending
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.engine.slots import Attempt, Slots
from menuwatch.workers.engine.task_log import TaskLog

log = get_logger(__name__)

_TURN = 0.01
"""Seconds after which a runner lets the others of the event loop have a turn."""


class Runners:
    """`work` runs one attempt and raises nothing but what ends the process."""

    def __init__(self, work: Callable[[Attempt], Awaitable[None]]) -> None:
        self._work = work
        self._waiting: deque[Attempt] = deque()
        self._all: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[None]] = []
        self._waking = False
        """An idle runner was woken, and has not started yet."""
        self._busy = 0
        self._all_idle = asyncio.Event()
        self._all_idle.set()

    def submit(self, attempt: Attempt) -> None:
        """Run the attempt as soon as the event loop is free."""
        self._waiting.append(attempt)
        self._all_idle.clear()
        if not self._waking:
            self._wake_one()

    async def wait_idle(self, seconds: float) -> bool:
        """Waits until nothing runs; False when something still does after that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_idle.wait()
        return self._all_idle.is_set()

    def close(self) -> None:
        """Cancel all runners, including those whose handler ignores cancellation, as far as possible."""
        for runner in self._all:
            runner.cancel()

    def _wake_one(self) -> None:
        self._waking = True
        while self._idle:
            place = self._idle.pop()
            if not place.done():
                place.set_result(None)
                return
        runner = asyncio.create_task(self._run(), name=f"runner-{len(self._all)}")
        self._all.add(runner)
        runner.add_done_callback(self._all.discard)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        while True:
            self._waking = False
            turn = loop.time()
            while self._waiting:
                attempt = self._waiting.popleft()
                if self._waiting and not self._waking:
                    self._wake_one()
                attempt.work = me
                self._busy += 1
                try:
                    await self._work(attempt)
                finally:
                    attempt.work = None
                    self._busy -= 1
                    if not self._busy and not self._waiting:
                        self._all_idle.set()
                if loop.time() - turn > _TURN:
                    await asyncio.sleep(0)
                    turn = loop.time()
            place = loop.create_future()
            self._idle.append(place)
            await place


class Executor:
    """Fills the slots with running attempts; `on_free` is called when one is over."""

    def __init__(
        self,
        handlers: Handlers,
        completer: JobCompleter,
        slots: Slots,
        completions: PendingCompletions,
        *,
        worker_id: str,
        clock: Clock,
        measures: WorkerMetrics,
        on_free: Callable[[], None] = lambda: None,
        on_not_now: Callable[[], None] = lambda: None,
        log_rate: float = 10.0,
    ) -> None:
        """`on_not_now` is called if a task found that it cannot start yet: similar tasks cannot either. `log_rate` is the most claimed
        tasks that are logged per second."""
        self._handlers = handlers
        self._completer = completer
        self._slots = slots
        self._completions = completions
        self._measures = measures
        self._worker_id = worker_id
        self._log = TaskLog(worker_id, rate=log_rate, clock=clock)
        self._clock = clock
        self._on_free = on_free
        self._on_not_now = on_not_now
        self._runners = Runners(self._attempt)
        self._individual: set[asyncio.Task[None]] = set()
        self.ended = False
        """Whether shutdown has begun: no further attempt starts."""

    def start(self, task: Task) -> None:
        """Start an attempt in a slot of its own."""
        attempt = Attempt(
            task=task, ctx=TaskContext(self._worker_id, self._slots.suspend), started=self._clock.monotonic()
        )
        self._slots.add(attempt)
        self._log.claimed(task)
        self._runners.submit(attempt)

    async def drain(self, grace: float) -> None:
        """Waits up to `grace` seconds for what runs, then cancels the rest and gives it back to the queue.

        A handler that does not listen to cancellation is left running; it ends with the process.
        """
        await self._runners.wait_idle(grace)
        self.ended = True
        for attempt in self._slots:
            attempt.stopped = True
            attempt.cancel()
        await self._runners.wait_idle(max(5.0, self._completer.db_timeout))
        self._runners.close()

    async def written(self, seconds: float) -> None:
        """Wait until the individually written outcomes are written, for at most `seconds`; the rest is left to recovery."""
        if self._individual:
            _, late = await asyncio.wait(self._individual, timeout=seconds)
            for writing in late:
                writing.cancel()

    def completed(self, ends: Sequence[Completion]) -> None:
        """These were written, so free their slots."""
        ran: dict[str, list[float]] = {}
        for end in ends:
            self._slots.remove(end.attempt)
            ran.setdefault(end.attempt.task.role, []).append(end.ending.ran)
        for role, durations in ran.items():
            self._measures.ended_many(role, "completed", durations)
        self._log.completed(ends)

    def lost(self, ends: Sequence[Completion]) -> None:
        """This worker no longer owned these. After an uncertain write, that may be because the write succeeded."""
        for end in ends:
            if end.in_doubt:
                self.complete_individually(end)
                continue
            self._slots.remove(end.attempt)
            self._measures.lost()
            log.warning("task lost before completion", action="task_lost", **self._log.ids(end.attempt.task))

    def abandoned(self, end: Completion) -> None:
        """The database was unreachable for longer than `db_timeout`: recovery will find the task."""
        self._slots.remove(end.attempt)
        log.error(
            "database unavailable, task left to recovery",
            action="task_abandoned",
            **self._log.ids(end.attempt.task),
        )

    def complete_individually(self, end: Completion) -> None:
        """Writes the end in a transaction of its own."""
        running = asyncio.create_task(self._run_individually(end), name=f"end-{end.attempt.task.id}")
        self._individual.add(running)
        running.add_done_callback(self._individual.discard)

    async def _run_individually(self, end: Completion) -> None:
        try:
            await self._complete(end.attempt, end.outcome, end.ending.ran, in_doubt=end.in_doubt)
        except Exception as error:
            self._on_internal_error(end.attempt, error)
        finally:
            self._free(end.attempt)

    async def _attempt(self, attempt: Attempt) -> None:
        handed_in = False
        token = ATTEMPT.set((attempt.task.id, attempt.task.attempt))
        try:
            outcome = await self._outcome(attempt)
            attempt.settling = True
            if attempt.is_cut_off():
                _uncancel()
            ran = self._clock.monotonic() - attempt.started
            if type(outcome) is Postpone and not outcome.counted:
                self._on_not_now()
            if outcome is None:
                await self._on_cancelled(attempt, ran)
            elif type(outcome) is Done and outcome.writes is None and outcome.settle is None:
                end = self._completer.ending(attempt.task, outcome, ran)
                self._completions.put(Completion(attempt, outcome, end))
                handed_in = True
                self._on_free()
            else:
                await self._complete(attempt, outcome, ran)
        except Exception as error:
            self._on_internal_error(attempt, error)
        finally:
            ATTEMPT.reset(token)
            if not handed_in:
                self._free(attempt)

    async def _complete(self, attempt: Attempt, outcome: Outcome, ran: float, *, in_doubt: bool = False) -> None:
        task = attempt.task
        status = await self._completer.complete(task, outcome, ran=ran, in_doubt=in_doubt)
        if status is None:
            self._measures.lost()
            return
        self._measures.ended(task.role, _ended(outcome, status), ran)
        self._log.ended(task, outcome, status, ran)

    async def _on_cancelled(self, attempt: Attempt, ran: float) -> None:
        """The handler was cancelled, so there is no outcome."""
        task = attempt.task
        if attempt.stopped:
            released = await self._completer.release(task)
            self._measures.ended(task.role, "released", ran)
            log.info("task released", action="task_released", released=released, **self._log.ids(task))
        else:
            self._measures.lost()
            log.warning("task lost while running", action="task_lost", **self._log.ids(task))

    def _on_internal_error(self, attempt: Attempt, error: Exception) -> None:
        log.error(
            "internal error during attempt",
            action="attempt_failed",
            exc_info=error,
            **self._log.ids(attempt.task),
        )

    def _free(self, attempt: Attempt) -> None:
        self._slots.remove(attempt)
        self._on_free()

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        """Outcome from the handler's result or error; None if it was cancelled."""
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
            # A postponement is not a failure, and may occur any number of times.
            say = log.debug if isinstance(error, NotNow) else log.warning
            say("a task failed", action="task_error", error=f"{type(error).__name__}: {error}", **self._log.ids(task))
            return outcome_of(error)
        except Exception as error:
            log.error("handler raised an exception", action="task_error", exc_info=error, **self._log.ids(task))
            return outcome_of(error)
        finally:
            attempt.handling = False


def _uncancel() -> None:
    """Cancellation applies to the handler, not to writing the outcome that it returned before."""
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
    return Retry(reason=f"the handler returned {type(outcome).__name__}, which is not an outcome")
