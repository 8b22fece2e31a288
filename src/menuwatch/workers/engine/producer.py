"""Keeps the slots full and writes completions: both in one round trip, one commit.

              ┌── PendingCompletions ◄── attempts that worked ──┐
              ▼                                                 │
    one cycle: finish + follow-ups + claim ──► Executor ── handlers

Under load the cycles batch by themselves: what ends while one is under way goes with the next. A worker with many slots has two of
them under way (lanes), each for half of the slots, so that the database and the handlers work at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import ClassVar

import psycopg

from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool, gone
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import Claim, ClaimCursor, Cycled, cycle
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role, Task
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.claimable_roles import ClaimableRoles, MayClaim
from menuwatch.workers.engine.completer import Completion, PendingCompletions
from menuwatch.workers.engine.executor import Executor
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.engine.slots import Slots

log = get_logger(__name__)

SOON = 0.05
"""Seconds after which a claim that got too few tasks tries again: another claimer may have held locks on them."""
SHORTEST = 0.02
PIPELINE_MIN_SLOTS = 32
"""From this many slots on, cycles overlap."""


class Producer(Loop):
    """Woken by notifications, by attempts that end and by slots that come free; polls as a net."""

    name: ClassVar[str] = "producer"

    def __init__(
        self,
        pool: Pool,
        executor: Executor,
        slots: Slots,
        completions: PendingCompletions,
        *,
        worker_id: str,
        roles: frozenset[Role],
        interval: float,
        gate: ClaimGate,
        measures: WorkerMetrics,
        clock: Clock,
        db_timeout: float = 300.0,
        may_claim: MayClaim | None = None,
        on_follow_ups: Callable[[Sequence[NewTask]], None] = lambda _: None,
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._executor = executor
        self._slots = slots
        self._completions = completions
        self._worker_id = worker_id
        self._gate = gate
        self._measures = measures
        self._clock = clock
        self.db_timeout = db_timeout
        self._claimable = ClaimableRoles(roles, may_claim, gate=gate, clock=clock, worker_id=worker_id)
        self._cursor = ClaimCursor(clock)
        self._on_follow_ups = on_follow_ups
        self._lanes = 2 if slots.limit >= PIPELINE_MIN_SLOTS else 1
        self._batch_limit = -(-slots.limit // self._lanes)
        self.closing = False
        self._in_doubt = False
        self._last_full = False
        """Whether the last claim found all that it asked for."""
        self._claims = 0
        """Claims under way."""
        self._extra_claimed = 0
        """Tasks that they ask for beyond the ends they hand in. A claim whose ends could not be written fills none of their slots, so
        no other claim counts on these."""
        self._claim_again = False
        """Whether a claim that came short is to be followed by another one soon."""
        self._announced = 0
        """How often new work was announced."""
        self._recovery_lock = asyncio.Lock()
        """Held by the lane that finds out what a lost answer would have said."""
        self._no_claims = asyncio.Event()
        """Set while no claim is under way."""
        self._no_claims.set()

    async def run(self) -> None:
        lanes = [asyncio.create_task(super(Producer, self).run(), name=f"{self.name}-{n}") for n in range(self._lanes)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()

    @property
    def open_roles(self) -> frozenset[Role]:
        """The roles that it claims at present, as far as it knows."""
        return self._claimable.open

    def on_notify(self) -> None:
        """Something was announced: it may come before the place where claims go on."""
        self._cursor.reset()
        self._announced += 1
        self.wake()

    def recheck_roles(self) -> None:
        """What may be claimed may have changed."""
        self._claimable.recheck()

    async def close(self, seconds: float) -> None:
        """Claims nothing from now on; returns once claims in progress have returned, or after that many `seconds`."""
        self.closing = True
        self.wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._no_claims.wait()

    async def wait_flushed(self, seconds: float) -> None:
        """Returns once every end is in the database, or after that many `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._completions.empty.wait()

    async def step(self) -> float | None:
        pause = await self._step()
        again = self._claimable.again
        return pause if again is None else min(pause if pause is not None else self.interval, again)

    async def _step(self) -> float | None:
        ends = self._latest_attempts(self._completions.take(self._batch_limit))
        shut = self._gate.delay_before_claim()
        n = self._free_for_claim(len(ends)) if shut is None else 0
        if not ends and n == 0 and not self._in_doubt:
            return shut
        announced = self._announced
        self._count_claims(1 if n else 0, max(0, n - len(ends)))
        try:
            claim, done = await self._cycle(ends, n)
        except BaseException:
            self._put_back(ends)
            raise
        finally:
            self._count_claims(-1 if n else 0, -max(0, n - len(ends)))
        if done is None:
            return SHORTEST if self._in_doubt else None
        if ends:
            self._settled(ends, done)
        if claim is None:
            if any(end.attempt.task.dispensary_id is not None for end in ends):
                # The next tasks of these stores are ready now, which a claim that is under way may not have seen.
                self.on_notify()
            return shut
        pause = self._started(claim, done)
        # What was announced meanwhile woke the other lane, which left it to this one.
        return 0.0 if announced != self._announced and self._free_for_claim(0) else pause

    def _latest_attempts(self, ends: list[Completion]) -> list[Completion]:
        """Without those whose task was lost, claimed again and ended by this worker meanwhile: only its last attempt counts."""
        last = {end.attempt.task.id: end for end in ends}
        if len(last) == len(ends):
            return ends
        kept = [end for end in ends if last[end.attempt.task.id] is end]
        self._executor.lost([end for end in ends if last[end.attempt.task.id] is not end])
        self._completions.settled(len(ends) - len(kept))
        return kept

    def _free_for_claim(self, ending: int) -> int:
        """How many tasks to claim beside handing in so many ends, whose slots come free by that."""
        if self.closing or (self._claims and not self._last_full):
            return 0  # the other lane asks already, and will hardly find more than it can take
        return max(0, min(self._batch_limit, self._slots.free_signed + ending - self._extra_claimed))

    def _count_claims(self, claims: int, beyond: int) -> None:
        self._claims += claims
        self._extra_claimed += beyond
        if self._claims:
            self._no_claims.clear()
        else:
            self._no_claims.set()
        if self._lanes > 1 and claims > 0 and (len(self._completions) or self._free_for_claim(0)):
            self.wake()  # there is something left for the other lane

    async def _cycle(self, ends: list[Completion], n: int) -> tuple[Claim | None, Cycled | None]:
        """The claim that was requested, and its result; (…, None) when nothing was requested, or claiming is not allowed now."""
        roles = sorted(await self._claimable.refresh()) if n else []
        if not roles and not ends and not self._in_doubt:
            return None, None
        async with self._pool.connection() as conn:
            if self._in_doubt:
                async with self._recovery_lock:
                    if self._in_doubt and self._claims > (1 if n else 0):
                        # What the other lane is claiming looks like an unknown claim.
                        self._completions.put_back(ends)
                        return None, None
                    if self._in_doubt:
                        await self.release_claims(conn)
            claim = self._cursor.next(roles, n) if roles and not self.closing else None
            if claim is None and not ends:
                return None, None
            then = [(end.attempt.task.id, new) for end in ends for new in end.outcome.then]
            began = self._clock.monotonic()
            try:
                done = await cycle(conn, self._worker_id, [end.ending for end in ends], then, claim)
            except BaseException as error:
                # Refused by the database, or never sent: a result that is no JSON, say.
                refused = isinstance(error, Exception) and not conn.broken and not _is_gone(error)
                if not refused:
                    self._in_doubt = self._in_doubt or claim is not None
                    for end in ends:
                        end.in_doubt = True
                elif ends:
                    # Nothing of it is written. One of the ends may be what cannot be.
                    log.warning(
                        "batch rejected, completing individually",
                        action="cycle_refused",
                        ends=len(ends),
                        error=f"{type(error).__name__}: {error}",
                        worker_id=self._worker_id,
                    )
                    self._complete_individually(ends)
                    self.wake()
                    return None, None
                raise
            took = self._clock.monotonic() - began
            if ends:
                self._measures.settled(took)
            if claim is not None:
                self._measures.claimed(len(done.claimed), took, [_waited(claimed.task) for claimed in done.claimed])
        return claim, done

    def _started(self, claim: Claim, done: Cycled) -> float | None:
        if self._executor.ended:
            return None  # the answer comes after everything was ended: what the database says is ours is given back
        for claimed in done.claimed:
            self._executor.start(claimed.task)
        self._cursor.advance(done.claimed)
        self._last_full = len(done.claimed) >= claim.n
        if self._last_full:
            return 0.0 if self._free_for_claim(0) else None
        if claim.start is not None:
            # There may be more before the place where this claim began.
            self._cursor.reset()
            return 0.0
        # Another claimer, the other lane or another worker, may have locked tasks that it did not take in the end: try again.
        self._claim_again = bool(done.claimed) or not self._claim_again
        pause = SOON if self._claim_again else self.interval
        return pause if done.next_due is None else min(pause, max(done.next_due, SHORTEST))

    def _settled(self, ends: list[Completion], done: Cycled) -> None:
        kept = ends
        if done.lost:
            kept = [end for end in ends if end.attempt.task.id not in done.lost]
            self._executor.lost([end for end in ends if end.attempt.task.id in done.lost])
        self._executor.completed(kept)
        self._completions.settled(len(ends))
        then = [new for end in kept for new in end.outcome.then]
        if then:
            self._on_follow_ups(then)

    def _complete_individually(self, ends: list[Completion]) -> None:
        for end in ends:
            self._executor.complete_individually(end)
        self._completions.settled(len(ends))

    def _put_back(self, ends: list[Completion]) -> None:
        """They could not be written: to be tried again, until `db_timeout` is over."""
        now = self._clock.monotonic()
        kept = []
        for end in ends:
            end.waiting_since = now if end.waiting_since is None else end.waiting_since
            if now - end.waiting_since >= self.db_timeout:
                self._executor.abandoned(end)
                self._completions.settled(1)
            else:
                kept.append(end)
        self._completions.put_back(kept)

    async def release_claims(self, conn: Connection, *, running: bool = False) -> None:
        """A claim whose answer never came may have happened: what the database says is ours and is not running goes back.

        With `running` also what is: the process ends.
        """
        unknown = [
            Ending(task_id=held.task_id, attempt=held.attempt, verb="release")
            for held in await tasks.held_by(conn, self._worker_id)
            if running or not self._slots.is_running(held.task_id, held.attempt)
        ]
        await tasks.finish(conn, self._worker_id, unknown)
        self._in_doubt = False


def _waited(task: Task) -> float:
    """Seconds from its being due to its claim."""
    assert task.claimed_at is not None
    due = task.created_at if task.scheduled_for is None else max(task.created_at, task.scheduled_for)
    return max(0.0, (task.claimed_at - due).total_seconds())


def _is_gone(error: BaseException) -> bool:
    return isinstance(error, psycopg.OperationalError) and gone(error)
