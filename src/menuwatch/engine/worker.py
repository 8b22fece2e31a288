"""A worker: the loops together, from registration to a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

import psycopg

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.commands import Commands
from menuwatch.engine.executor import Executor
from menuwatch.engine.gate import Gate
from menuwatch.engine.handler import Handlers, MayClaim
from menuwatch.engine.heartbeat import Heartbeat
from menuwatch.engine.listener import Listener
from menuwatch.engine.loop import Loop
from menuwatch.engine.marker import Marker
from menuwatch.engine.measures import Measures
from menuwatch.engine.options import Options, identify
from menuwatch.engine.outbox import Outbox
from menuwatch.engine.producer import Producer
from menuwatch.engine.reaper import Reaper
from menuwatch.engine.resources import Machine
from menuwatch.engine.settler import Settler
from menuwatch.engine.slots import Slots
from menuwatch.engine.waker import Waker
from menuwatch.engine.watch import Watch
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import NewTask
from menuwatch.workers import registry

log = get_logger(__name__)

_HURRIED_PATIENCE = 10.0
"""Seconds that a stopping worker waits for a database that is away."""


class Worker:
    """Runs tasks until told to stop. One instance is one run: it is not started twice."""

    def __init__(
        self,
        pool: Pool,
        url: str,
        handlers: Handlers,
        options: Options | None = None,
        *,
        may_claim: MayClaim | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
        measures: Measures | None = None,
        beside: Sequence[Loop] = (),
    ) -> None:
        """`url` is for the connection that listens; it must reach the same database as `pool`. `measures` are those that others beside
        this worker count in as well; loops that run `beside` its own begin and end with them."""
        options = options or Options()
        clock = clock or SystemClock()
        rng = rng or Random()  # noqa: S311 - jitter, no secret
        self.identity = identify(options, options.roles)
        self.roles = frozenset(handlers) if options.roles is None else options.roles & frozenset(handlers)
        self._pool = pool
        self._options = options
        self._clock = clock
        self._stop = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None
        self.slots = Slots(options.slots, on_free=self._on_free)
        self.outbox = Outbox()
        self.measures = measures or Measures()
        self.measures.introduce(
            worker_id=self.worker_id,
            name=self.identity.friendly_name,
            pod=self.identity.pod,
            slots=options.slots,
            running=lambda: len(self.slots),
            backing_off=lambda: self.gate.is_backing_off,
        )
        self.gate = Gate(backoff=options.backing_off, clock=clock)
        self.waker = Waker(pool, own=self._takes)
        self.settler = Settler(
            pool,
            self.worker_id,
            backoff=options.backoff,
            clock=clock,
            rng=rng,
            patience=options.patience,
            on_follow_ups=self._on_follow_ups,
        )
        self.executor = Executor(
            handlers,
            self.settler,
            self.slots,
            self.outbox,
            worker_id=self.worker_id,
            clock=clock,
            measures=self.measures,
            on_free=self._on_free,
            on_not_now=lambda: self.producer.doubt(),
        )
        self.producer = Producer(
            pool,
            self.executor,
            self.slots,
            self.outbox,
            worker_id=self.worker_id,
            roles=self.roles,
            interval=options.poll_interval,
            gate=self.gate,
            measures=self.measures,
            clock=clock,
            patience=options.patience,
            may_claim=may_claim,
            on_follow_ups=self._on_follow_ups,
        )
        machine = Machine(clock=clock)
        self.heartbeat = Heartbeat(
            pool,
            self.slots,
            self.identity,
            status=self._status,
            clock=clock,
            interval=options.heartbeat_interval,
            gate=self.gate,
            machine=machine,
            on_beat=self.measures.beat,
        )
        self.commands = Commands(
            pool,
            self.gate,
            worker_id=self.worker_id,
            on_change=self._on_gate,
            on_decommission=self.leave,
            interval=options.heartbeat_interval,
        )
        self._watches: list[Loop] = [*beside]
        if options.thresholds is not None:
            self._watches.append(
                Watch(
                    self.gate,
                    machine,
                    options.thresholds,
                    worker_id=self.worker_id,
                    clock=clock,
                    on_change=self._on_gate,
                )
            )
        self.marker = Marker(pool, self.slots, worker_id=self.worker_id, clock=clock)
        self.reaper = Reaper(
            pool,
            stale_after=options.stale_after,
            interval=options.reap_interval,
            on_recovered=self.measures.recovered,
        )
        self.listener = Listener(
            url,
            on_work=self.producer.new_work,
            on_lost=self.heartbeat.wake,
            on_command=self.commands.wake,
            worker_id=self.worker_id,
        )

    @property
    def worker_id(self) -> str:
        """Its id in the database: unique per start."""
        return self.identity.worker_id

    def stop(self) -> None:
        """Asks for a graceful stop; `run` returns when it is done. May be called from a signal handler of the event loop."""
        self._stop.set()

    def leave(self) -> None:
        """Asks for a stop once what runs has ended, however long that takes; `stop` may still cut it short."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(), name="leave")

    async def _leave(self) -> None:
        await self.producer.close(patience=10)
        await self.slots.idle.wait()
        self.stop()

    async def run(self) -> None:
        """Works until `stop`. Raises what ended a loop that must not end."""
        async with self._working() as loops:
            stopped = asyncio.create_task(self._stop.wait(), name="stop")
            try:
                await asyncio.wait({stopped, *loops}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
            _raise_first(loops)

    async def run_until_idle(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the message says what is left
        """Works until nothing is left to do for its roles, then stops.

        Left to do is every task of its roles that is ready, parked or active (whoever runs it), that is due, or that waits for another
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
            return 1  # a database that is away for a moment does not mean that the work is done

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
        await self._register()
        await self._first_look()
        parts: list[Loop] = [self.listener, self.producer, self.heartbeat, self.reaper, self.waker, self.commands]
        parts += [self.marker, *self._watches]
        loops = [asyncio.create_task(part.run(), name=part.name) for part in parts]
        grace = self._options.grace
        try:
            yield loops
        except BaseException:
            grace = 0.0
            raise
        finally:
            await self._wind_down(parts, loops, grace)

    async def _wind_down(self, parts: list[Loop], loops: list[asyncio.Task[None]], grace: float) -> None:
        self._stop.set()
        if self._leaving is not None:
            self._leaving.cancel()
        log.info("stopping", action="worker_stopping", running=len(self.slots), worker_id=self.worker_id)
        # A claim that is under way comes to its end, so that what it claims is known and given back.
        await self.producer.close(patience=10)
        self.settler.patience = self.producer.patience = min(self.settler.patience, _HURRIED_PATIENCE)
        await self.executor.drain(grace)
        await self.producer.handed_in(self.producer.patience)
        self.producer.stop()
        producing = loops[parts.index(self.producer)]
        await asyncio.wait({producing}, timeout=10)
        producing.cancel()
        await asyncio.wait({producing}, timeout=1)
        await self.executor.written(max(5.0, self.settler.patience))
        await self._give_back()
        for part in parts:
            part.stop()
        loops[parts.index(self.listener)].cancel()
        await asyncio.wait(loops, timeout=5)
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self.listener.close()
        await self._deregister()

    async def _give_back(self) -> None:
        """Whatever the database still says is ours must not wait for recovery."""
        try:
            async with self._pool.connection(timeout=5) as conn:
                await self.producer.give_back(conn, running=True)
                # Whoever is idle takes over at once what this worker had to leave.
                await tasks.wake(conn)
        except psycopg.Error as error:
            log.warning(
                "tasks could not be given back",
                action="task_release_failed",
                worker_id=self.worker_id,
                error=str(error),
            )

    async def _first_look(self) -> None:
        try:
            await self.reaper.step()
        except psycopg.OperationalError as error:
            log.warning(
                "the first look at the queue failed", action="loop_failed", loop=self.reaper.name, error=str(error)
            )

    async def _register(self) -> None:
        try:
            async with self._pool.connection() as conn:
                await registry.register(conn, self.identity)
        except psycopg.Error as error:
            log.warning(
                "registering failed; working all the same",
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

    async def _deregister(self) -> None:
        try:
            async with self._pool.connection(timeout=5) as conn:
                await registry.deregister(conn, self.worker_id)
        except psycopg.Error as error:
            log.warning("deregistering failed", action="registry_failed", worker_id=self.worker_id, error=str(error))
        log.info("worker stopped", action="worker_stopped", worker_id=self.worker_id)

    def _status(self) -> str:
        return "stopping" if self._stop.is_set() or self._leaving is not None else self.gate.status

    def _on_gate(self) -> None:
        self.producer.wake()
        self.heartbeat.wake()

    def _on_free(self) -> None:
        self.producer.wake()

    def _on_follow_ups(self, made: Sequence[NewTask]) -> None:
        self.producer.wake()
        self.waker.announce(made)

    def _takes(self, made: Sequence[NewTask]) -> bool:
        """Whether this worker will claim all of these at once. The slot of the task that made them is about to come free."""
        return (
            not self._stop.is_set()
            and not self.producer.closing
            and self.gate.look() is None
            and len(made) <= self.slots.free + 1
            and all(task.role in self.producer.open_roles for task in made)
        )


def _raise_first(loops: list[asyncio.Task[None]]) -> None:
    for loop in loops:
        if loop.done() and not loop.cancelled() and (error := loop.exception()) is not None:
            raise error
