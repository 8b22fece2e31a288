"""A worker: the loops together, from registration to a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

import psycopg

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import capture, get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask
from menuwatch.workers import registry
from menuwatch.workers import service as workers
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.claimable_roles import MayClaim
from menuwatch.workers.engine.command_loop import CommandLoop
from menuwatch.workers.engine.completer import JobCompleter, PendingCompletions
from menuwatch.workers.engine.config import WorkerConfig, identify
from menuwatch.workers.engine.executor import Executor
from menuwatch.workers.engine.handler import Handlers
from menuwatch.workers.engine.heartbeat import HeartbeatLoop, RunningMarker
from menuwatch.workers.engine.log_writer import LogWriter
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.engine.notifications import Listener, Notifier
from menuwatch.workers.engine.producer import Producer
from menuwatch.workers.engine.reaper import Reaper
from menuwatch.workers.engine.resources import Machine, ResourceMonitor
from menuwatch.workers.engine.slots import Slots

log = get_logger(__name__)

_STOP_DB_TIMEOUT = 10.0
"""Seconds that a stopping worker waits for an unreachable database."""

_FLUSH_SECONDS = 5.0
"""Seconds that a stopping worker waits for its last log lines to be stored."""


class Worker:
    """Runs tasks until stopped. An instance runs once."""

    def __init__(
        self,
        pool: Pool,
        url: str,
        handlers: Handlers,
        options: WorkerConfig | None = None,
        *,
        may_claim: MayClaim | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
        measures: WorkerMetrics | None = None,
        extra_loops: Sequence[Loop] = (),
    ) -> None:
        """`url` is for the connection that listens; it must reach the same database as `pool`. `measures` are those that others beside
        this worker count in as well; `extra_loops` begin and end with its own."""
        options = options or WorkerConfig()
        clock = clock or SystemClock()
        rng = rng or Random()  # noqa: S311 - jitter, no secret
        self.identity = identify(options, options.roles)
        self.roles = frozenset(handlers) if options.roles is None else options.roles & frozenset(handlers)
        self._pool = pool
        self._options = options
        self._clock = clock
        self._stop = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None
        self._replaced = False
        """Another worker has taken over its id: it only finishes its tasks."""
        self.slots = Slots(options.slots, on_free=self._on_free)
        self.completions = PendingCompletions()
        self.measures = measures or WorkerMetrics()
        self.measures.introduce(
            worker_id=self.worker_id,
            name=self.identity.friendly_name,
            pod=self.identity.pod,
            slots=options.slots,
            running=lambda: len(self.slots),
            backing_off=lambda: self.gate.is_backing_off,
        )
        self.gate = ClaimGate(backoff=options.backing_off, clock=clock)
        self.notifier = Notifier(pool, own=self._will_claim_locally)
        self.completer = JobCompleter(
            pool,
            self.worker_id,
            backoff=options.backoff,
            clock=clock,
            rng=rng,
            db_timeout=options.db_timeout,
            on_follow_ups=self._on_follow_ups,
        )
        self.executor = Executor(
            handlers,
            self.completer,
            self.slots,
            self.completions,
            worker_id=self.worker_id,
            clock=clock,
            measures=self.measures,
            on_free=self._on_free,
            on_not_now=lambda: self.producer.recheck_roles(),
            log_rate=options.log_rate,
        )
        self.producer = Producer(
            pool,
            self.executor,
            self.slots,
            self.completions,
            worker_id=self.worker_id,
            roles=self.roles,
            interval=options.poll_interval,
            gate=self.gate,
            measures=self.measures,
            clock=clock,
            db_timeout=options.db_timeout,
            may_claim=may_claim,
            on_follow_ups=self._on_follow_ups,
        )
        machine = Machine(clock=clock)
        self.heartbeat = HeartbeatLoop(
            pool,
            self.slots,
            self.identity,
            status=self._status,
            clock=clock,
            interval=options.heartbeat_interval,
            gate=self.gate,
            machine=machine,
            on_beat=self.measures.beat,
            on_replaced=self._on_replaced,
        )
        self.commands = CommandLoop(
            pool,
            self.gate,
            worker_id=self.worker_id,
            on_change=self._on_gate,
            on_decommission=self.drain,
            interval=options.heartbeat_interval,
        )
        self._extra_loops: list[Loop] = [*extra_loops]
        if options.thresholds is not None:
            self._extra_loops.append(
                ResourceMonitor(
                    self.gate,
                    machine,
                    options.thresholds,
                    worker_id=self.worker_id,
                    clock=clock,
                    on_change=self._on_gate,
                )
            )
        self.log_writer = LogWriter(pool, worker_id=self.worker_id, clock=clock, measures=self.measures)
        self.running_marker = RunningMarker(pool, self.slots, worker_id=self.worker_id, clock=clock)
        self.reaper = Reaper(
            pool,
            stale_after=options.stale_after,
            interval=options.reap_interval,
            on_recovered=self.measures.recovered,
        )
        self.listener = Listener(
            url,
            on_work=self.producer.on_notify,
            on_lost=self.heartbeat.wake,
            on_command=self.commands.wake,
            worker_id=self.worker_id,
        )

    @property
    def worker_id(self) -> str:
        """Its id in the database."""
        return self.identity.worker_id

    def stop(self) -> None:
        """Asks for a graceful stop; `run` returns when it is done. May be called from a signal handler of the event loop."""
        self._stop.set()

    def drain(self) -> None:
        """Stop after the running attempts have ended, however long that takes; `stop` may interrupt it."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="drain")

    async def _drain(self) -> None:
        await self.producer.close(seconds=10)
        await self.slots.idle.wait()
        self.stop()

    async def run(self) -> None:
        """Run until `stop`. Raises the error of a loop that must not end."""
        async with self._working() as loops:
            stopped = asyncio.create_task(self._stop.wait(), name="stop")
            try:
                await asyncio.wait({stopped, *loops}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
            _raise_first(loops)

    async def run_until_idle(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the message says what is left
        """Works until nothing is left to do for its roles, then stops.

        Left to do is every task of its roles that is ready, parked or active (on any worker), that is due, or that waits for another
        attempt (retries and postponements are waited for); a first attempt that is scheduled for later is not. Returns early
        after `stop`. Raises TimeoutError after `timeout` seconds.
        """
        async with self._working() as loops:
            try:
                async with asyncio.timeout(timeout):
                    while not self._stop.is_set() and await self._left() > 0:
                        _raise_first(loops)
                        await self._pause()
            except TimeoutError as error:
                raise TimeoutError(
                    f"after {timeout:g} seconds there are still tasks to do for {self.worker_id}"
                ) from error
            _raise_first(loops)

    async def _left(self) -> int:
        try:
            async with self._pool.connection() as conn:
                return await tasks.unfinished(conn, self.roles)
        except psycopg.OperationalError:
            return 1  # a database that is unreachable for a moment does not mean that the work is done

    async def _pause(self) -> None:
        """Until the slots are empty, or a moment when they are."""
        if self.slots.idle.is_set():
            await asyncio.sleep(0.02)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.slots.idle.wait()

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[list[asyncio.Task[None]]]:
        with capture(self.log_writer.buffer.add):
            await self._register()
            await self._recover_on_start()
            parts: list[Loop] = [self.listener, self.producer, self.heartbeat, self.reaper, self.notifier]
            parts += [self.commands, self.running_marker, self.log_writer, *self._extra_loops]
            loops = [asyncio.create_task(part.run(), name=part.name) for part in parts]
            grace = self._options.grace
            try:
                yield loops
            except BaseException:
                grace = 0.0
                raise
            finally:
                await self._wind_down(parts, loops, grace)
                await self.log_writer.flush(_FLUSH_SECONDS)

    async def _wind_down(self, parts: list[Loop], loops: list[asyncio.Task[None]], grace: float) -> None:
        self._stop.set()
        if self._draining is not None:
            self._draining.cancel()
        log.info("stopping", action="worker_stopping", running=len(self.slots), worker_id=self.worker_id)
        # A claim that is under way comes to its end, so that what it claims is known and given back.
        await self.producer.close(seconds=10)
        self.completer.db_timeout = self.producer.db_timeout = min(self.completer.db_timeout, _STOP_DB_TIMEOUT)
        await self.executor.drain(grace)
        await self.producer.wait_flushed(self.producer.db_timeout)
        self.producer.stop()
        producing = loops[parts.index(self.producer)]
        await asyncio.wait({producing}, timeout=10)
        producing.cancel()
        await asyncio.wait({producing}, timeout=1)
        await self.executor.written(max(5.0, self.completer.db_timeout))
        await self._release_claims()
        for part in parts:
            part.stop()
        loops[parts.index(self.listener)].cancel()
        await asyncio.wait(loops, timeout=5)
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self.listener.close()
        await self._deregister()

    async def _release_claims(self) -> None:
        """Release what this worker still owns in the database, so that it need not wait for recovery."""
        if self._replaced:
            return
        try:
            async with self._pool.connection(timeout=5) as conn:
                await self.producer.release_claims(conn, running=True)
                # Idle workers take over at once what this worker released.
                await tasks.wake(conn)
        except psycopg.Error as error:
            log.warning(
                "releasing tasks failed",
                action="task_release_failed",
                worker_id=self.worker_id,
                error=str(error),
            )

    async def _recover_on_start(self) -> None:
        try:
            await self.reaper.step()
        except psycopg.OperationalError as error:
            log.warning("initial recovery failed", action="loop_failed", loop=self.reaper.name, error=str(error))

    async def _register(self) -> None:
        try:
            async with self._pool.connection() as conn, conn.transaction():
                self.heartbeat.entered = await workers.enter(conn, self.identity)
        except psycopg.Error as error:
            log.warning(
                "registration failed, continuing",
                action="registry_failed",
                worker_id=self.worker_id,
                error=str(error),
            )
        log.info(
            "worker started",
            action="worker_started",
            worker_id=self.worker_id,
            name=self.identity.friendly_name,
            roles=sorted(str(role) for role in self.roles),
            slots=self.slots.limit,
        )

    def _on_replaced(self) -> None:
        if not self._replaced:
            self._replaced = True
            log.error("another worker has this id, stopping", action="worker_replaced", worker_id=self.worker_id)
            self.drain()

    async def _deregister(self) -> None:
        if self._replaced:
            return
        try:
            async with self._pool.connection(timeout=5) as conn:
                await registry.deregister(conn, self.worker_id)
        except psycopg.Error as error:
            log.warning("deregistering failed", action="registry_failed", worker_id=self.worker_id, error=str(error))
        log.info("worker stopped", action="worker_stopped", worker_id=self.worker_id)

    def _status(self) -> str:
        return "stopping" if self._stop.is_set() or self._draining is not None else self.gate.status

    def _on_gate(self) -> None:
        self.producer.wake()
        self.heartbeat.wake()

    def _on_free(self) -> None:
        self.producer.wake()

    def _on_follow_ups(self, made: Sequence[NewTask]) -> None:
        self.producer.wake()
        self.notifier.announce(made)

    def _will_claim_locally(self, made: Sequence[NewTask]) -> bool:
        """Whether this worker will claim all of these at once. The slot of the task that created them is about to be free."""
        return (
            not self._stop.is_set()
            and not self.producer.closing
            and self.gate.delay_before_claim() is None
            and len(made) <= self.slots.free + 1
            and all(task.role in self.producer.open_roles for task in made)
        )


def _raise_first(loops: list[asyncio.Task[None]]) -> None:
    for loop in loops:
        if loop.done() and not loop.cancelled() and (error := loop.exception()) is not None:
            raise error
