"""Writes an outcome: fence, the handler's own writes, the task's new state and the follow-ups, in one transaction or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import psycopg

from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import Clock
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool, gone
from menuwatch.engine.reaction import outcome_of
from menuwatch.tasks import store as tasks
from menuwatch.tasks.ending import Ending, ending, release
from menuwatch.tasks.model import NewTask, Status, Task
from menuwatch.tasks.outcome import Done, Outcome, Settle

log = get_logger(__name__)

_AGAIN = Backoff(base=0.1, cap=5.0)
_NO_WAIT = timedelta(0)
_CONFLICTS = 5
"""How often an outcome is written again after a deadlock or the like, on a connection that lives, before it counts as failed."""


class _Lost(Exception):
    """The task is no longer this worker's."""


class _Unknown(Exception):
    """The connection broke during COMMIT: it may or may not have happened."""


@dataclass(slots=True)
class _Progress:
    committing: bool = False


class Settler:
    """Settles attempts for one worker.

    A database that is gone is waited for, up to `patience` seconds; after that the task is left to stale recovery, with
    nothing of it half-written.
    """

    def __init__(
        self,
        pool: Pool,
        worker_id: str,
        *,
        backoff: Backoff,
        clock: Clock,
        rng: Random,
        patience: float = 300.0,
        on_follow_ups: Callable[[Sequence[NewTask]], None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._worker_id = worker_id
        self._backoff = backoff
        self._clock = clock
        self._rng = rng
        self.patience = patience
        self._on_follow_ups = on_follow_ups

    async def settle(self, task: Task, outcome: Outcome, *, ran: float = 0.0, in_doubt: bool = False) -> Status | None:
        """Writes `outcome`; returns the task's new status, None when it was lost or the database stayed away.

        An error of the handler's writes rolls everything back and counts as the handler's own error. With `in_doubt`
        somebody tried to write it before, and does not know whether it was committed.
        """
        began = self._clock.monotonic()
        conflicts = failures = 0
        while True:
            try:
                status = await self._transaction(task, outcome, ran)
            except _Lost:
                committed = await self._completed(task, outcome) if in_doubt else None
                if in_doubt and committed is None:
                    log.warning("fate of a task is unknown", action="task_fate_unknown", **self._ids(task))
                    return None
                self._tell(outcome.settle, committed is not None, task)
                if committed is None:
                    log.warning("a task was lost before it was settled", action="task_lost", **self._ids(task))
                return committed
            except _Unknown:
                in_doubt = True
            except psycopg.OperationalError as error:
                if not gone(error):
                    conflicts += 1
                    if conflicts >= _CONFLICTS:
                        return await self._failed(task, outcome, error, ran, in_doubt=in_doubt)
            except Exception as error:
                return await self._failed(task, outcome, error, ran, in_doubt=in_doubt)
            else:
                self._tell(outcome.settle, True, task)
                return status
            if self._clock.monotonic() - began >= self.patience:
                log.error(
                    "the database stayed away; the task is left to recovery", action="task_abandoned", **self._ids(task)
                )
                if not in_doubt:
                    self._tell(outcome.settle, False, task)
                return None
            await asyncio.sleep(_AGAIN.delay(failures, self._rng))
            failures += 1

    async def release(self, task: Task) -> bool:
        """Gives the task back as it was, without using up a retry; False when it was lost or the database is away."""
        try:
            async with self._pool.connection(timeout=5) as conn:
                given = await tasks.finish(conn, self._worker_id, [release(task)])
        except psycopg.Error as error:
            log.warning(
                "a task could not be given back", action="task_release_failed", error=str(error), **self._ids(task)
            )
            return False
        return task.id in given

    async def _transaction(self, task: Task, outcome: Outcome, ran: float) -> Status:
        progress = _Progress()
        async with self._pool.connection(timeout=10) as conn:
            try:
                async with conn.transaction():
                    status, follow_ups = await self._write(conn, task, outcome, ran)
                    progress.committing = True
            except psycopg.OperationalError as error:
                if progress.committing and conn.broken:
                    raise _Unknown from error
                raise
        if follow_ups:
            self._on_follow_ups(follow_ups)
        return status

    async def _write(self, conn: Connection, task: Task, outcome: Outcome, ran: float) -> tuple[Status, list[NewTask]]:
        # Without writes of the handler there is nothing to protect before `finish`, which fences by itself.
        if outcome.writes is not None and not await tasks.hold(conn, self._worker_id, task):
            raise _Lost
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
            raise _Lost
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
        log.error("an outcome could not be written", action="task_writes_failed", exc_info=error, **self._ids(task))
        if not in_doubt:
            self._tell(outcome.settle, False, task)
        return await self._instead(task, error, ran)

    async def _instead(self, task: Task, error: Exception, ran: float) -> Status | None:
        began = self._clock.monotonic()
        plain = outcome_of(error)
        failures = 0
        while True:
            try:
                return await self._transaction(task, plain, ran)
            except _Lost:
                return None
            except (_Unknown, psycopg.Error):
                if self._clock.monotonic() - began >= self.patience:
                    return None
            await asyncio.sleep(_AGAIN.delay(failures, self._rng))
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

    def _tell(self, settle: Settle | None, committed: bool, task: Task) -> None:
        if settle is None:
            return
        try:
            settle(committed)
        except Exception as error:
            log.error("tidying up after a task failed", action="task_settle_failed", exc_info=error, **self._ids(task))

    def _ids(self, task: Task) -> dict[str, Any]:
        return {
            "task_id": task.id,
            "role": str(task.role),
            "dispensary_id": task.dispensary_id,
            "attempt": task.attempt,
            "worker_id": self._worker_id,
        }
