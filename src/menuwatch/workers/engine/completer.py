"""Writes an outcome: fence, the handler's own writes, the task's new state and the follow-ups, in one transaction or not at all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import psycopg
from msgspec import Struct

from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Connection, Pool, gone
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import Ending, ending, release
from menuwatch.queue.model import NewTask, Status, Task
from menuwatch.queue.outcome import Done, Outcome, Settle, outcome_of
from menuwatch.workers.engine.slots import Attempt

log = get_logger(__name__)

_RETRY_BACKOFF = Backoff(base=0.1, cap=5.0)
_NO_WAIT = timedelta(0)
_CONFLICTS = 5
"""Attempts to write an outcome that fails because of conflicts such as deadlocks, before it counts as failed."""


class _ClaimLost(Exception):
    """The task is no longer this worker's."""


class _CommitUnknown(Exception):
    """The connection broke during COMMIT: it may or may not have happened."""


class _Progress(Struct):
    committing: bool = False


class JobCompleter:
    """Settles attempts for one worker.

    While the database is unreachable it waits, up to `db_timeout` seconds; after that the task is left to stale recovery, with
    nothing partially written.
    """

    def __init__(
        self,
        pool: Pool,
        worker_id: str,
        *,
        backoff: Backoff,
        clock: Clock,
        rng: Random,
        db_timeout: float = 300.0,
        on_follow_ups: Callable[[Sequence[NewTask]], None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._worker_id = worker_id
        self._backoff = backoff
        self._clock = clock
        self._rng = rng
        self.db_timeout = db_timeout
        self._on_follow_ups = on_follow_ups

    async def complete(
        self, task: Task, outcome: Outcome, *, ran: float = 0.0, in_doubt: bool = False
    ) -> Status | None:
        """Writes `outcome`; returns the task's new status, None if it was lost or the database stayed unreachable.

        An error of the handler's writes rolls everything back and counts as the handler's own error. With `in_doubt`
        an earlier write may have been committed.
        """
        began = self._clock.monotonic()
        conflicts = failures = 0
        while True:
            try:
                status = await self._transaction(task, outcome, ran)
            except _ClaimLost:
                committed = await self._completed(task, outcome) if in_doubt else None
                if in_doubt and committed is None:
                    log.warning("task state unknown", action="task_fate_unknown", **self._ids(task))
                    return None
                await self._run_callback(outcome.settle, committed is not None, task)
                if committed is None:
                    log.warning("task lost before completion", action="task_lost", **self._ids(task))
                return committed
            except _CommitUnknown:
                in_doubt = True
            except psycopg.OperationalError as error:
                if not gone(error):
                    conflicts += 1
                    if conflicts >= _CONFLICTS:
                        return await self._failed(task, outcome, error, ran, in_doubt=in_doubt)
            except Exception as error:
                return await self._failed(task, outcome, error, ran, in_doubt=in_doubt)
            else:
                await self._run_callback(outcome.settle, True, task)
                return status
            if self._clock.monotonic() - began >= self.db_timeout:
                log.error("database unavailable, task left to recovery", action="task_abandoned", **self._ids(task))
                if not in_doubt:
                    await self._run_callback(outcome.settle, False, task)
                return None
            await asyncio.sleep(_RETRY_BACKOFF.delay(failures, self._rng))
            failures += 1

    async def release(self, task: Task) -> bool:
        """Return the task unchanged, without using up a retry; False if it was lost or the database is unreachable."""
        try:
            async with self._pool.connection(timeout=5) as conn:
                released = await tasks.finish(conn, self._worker_id, [release(task)])
        except psycopg.Error as error:
            log.warning("releasing a task failed", action="task_release_failed", error=str(error), **self._ids(task))
            return False
        return task.id in released

    async def _transaction(self, task: Task, outcome: Outcome, ran: float) -> Status:
        progress = _Progress()
        async with self._pool.connection(timeout=10) as conn:
            try:
                async with conn.transaction():
                    status, follow_ups = await self._write(conn, task, outcome, ran)
                    progress.committing = True
            except psycopg.OperationalError as error:
                if progress.committing and conn.broken:
                    raise _CommitUnknown from error
                raise
        if follow_ups:
            self._on_follow_ups(follow_ups)
        return status

    async def _write(self, conn: Connection, task: Task, outcome: Outcome, ran: float) -> tuple[Status, list[NewTask]]:
        # Without writes of the handler nothing needs protection before `finish`, which has its own fence.
        if outcome.writes is not None and not await tasks.hold(conn, self._worker_id, task):
            raise _ClaimLost
        result: Mapping[str, Any] | None = None
        then: list[NewTask] = list(outcome.then) if isinstance(outcome, Done) else []
        if outcome.writes is not None and (wrote := await outcome.writes(conn)) is not None:
            result = wrote.result
            then.extend(wrote.then)
        end = self.ending(task, outcome, ran)
        if result is not None:
            end = msgspec.structs.replace(end, result={**(end.result or {}), **result})
        status = (await tasks.finish(conn, self._worker_id, [end])).get(task.id)
        if status is None:
            raise _ClaimLost
        await tasks.enqueue(conn, then, wake=False)
        return status, then

    def ending(self, task: Task, outcome: Outcome, ran: float) -> Ending:
        """What `outcome` means for the task, after `ran` seconds."""
        if type(outcome) is Done:
            return ending(task, outcome, backoff=_NO_WAIT, ran=ran)
        return ending(
            task, outcome, backoff=timedelta(seconds=self._backoff.delay(task.retry_count, self._rng)), ran=ran
        )

    async def _failed(
        self, task: Task, outcome: Outcome, error: Exception, ran: float, *, in_doubt: bool
    ) -> Status | None:
        """The outcome could not be written: its transaction is rolled back, and the error is the outcome instead.

        With `in_doubt` an earlier COMMIT of it may have gone through: then nothing is tidied up.
        """
        log.error("writing an outcome failed", action="task_writes_failed", exc_info=error, **self._ids(task))
        if not in_doubt:
            await self._run_callback(outcome.settle, False, task)
        return await self._record_failure(task, error, ran)

    async def _record_failure(self, task: Task, error: Exception, ran: float) -> Status | None:
        began = self._clock.monotonic()
        plain = outcome_of(error)
        failures = 0
        while True:
            try:
                return await self._transaction(task, plain, ran)
            except _ClaimLost:
                return None
            except (_CommitUnknown, psycopg.Error):
                if self._clock.monotonic() - began >= self.db_timeout:
                    return None
            await asyncio.sleep(_RETRY_BACKOFF.delay(failures, self._rng))
            failures += 1

    async def _completed(self, task: Task, outcome: Outcome) -> Status | None:
        """After a COMMIT of unknown fate, and with the fence down: COMPLETED if it was our COMMIT that moved the task.

        Only a completion proves it: that a task failed or is pending again may be the work of recovery.
        """
        if not isinstance(outcome, Done):
            return None
        try:
            async with self._pool.connection(timeout=10) as conn:
                ended = await tasks.ended_by(conn, self._worker_id, task)
                return ended if ended is Status.COMPLETED else None
        except psycopg.OperationalError:
            return None

    async def _run_callback(self, settle: Settle | None, committed: bool, task: Task) -> None:
        if settle is None:
            return
        try:
            # It moves files, or sends requests to an object store.
            await asyncio.to_thread(settle, committed)
        except Exception as error:
            log.error("post-task cleanup failed", action="task_settle_failed", exc_info=error, **self._ids(task))

    def _ids(self, task: Task) -> dict[str, Any]:
        return {
            "task_id": task.id,
            "role": str(task.role),
            "dispensary_id": task.dispensary_id,
            "attempt": task.attempt,
            "worker_id": self._worker_id,
        }


@dataclass(slots=True, eq=False)
class Completion:
    """A successful attempt without writes of its own. It keeps its slot until the database has it."""

    attempt: Attempt
    outcome: Done
    ending: Ending
    in_doubt: bool = False
    """A transaction that wrote it may have been committed: the response was lost."""
    waiting_since: float | None = None
    """Time of the first failed write, on the clock of `Attempt.started`."""


class PendingCompletions:
    """In the order in which they ended. `empty` is set while there are none, and none is being written."""

    def __init__(self) -> None:
        self._waiting: deque[Completion] = deque()
        self._taken = 0
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, ended: Completion) -> None:
        """Add a completion."""
        self._waiting.append(ended)
        self.empty.clear()

    def take(self, most: int) -> list[Completion]:
        """Take the oldest ones to write them; call `settled` or `put_back` afterwards."""
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._taken += len(taken)
        return taken

    def put_back(self, taken: Sequence[Completion]) -> None:
        """Return completions that could not be written."""
        self._waiting.extendleft(reversed(taken))
        self.settled(len(taken))

    def settled(self, n: int) -> None:
        """So many of those taken are written."""
        self._taken -= n
        if not self._taken and not self._waiting:
            self.empty.set()
