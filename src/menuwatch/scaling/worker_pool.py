"""The supervisor: runs a number of worker processes on this machine and replaces those that crash.

    slot ──► starts ──registers──► runs ──┬── decommissioned, or surplus ──► finishes its tasks, exits; its slot is removed
              ▲                           └── crash ──► backoff ──┐
              └───────────────────────────────────────────────────┘
    stop: SIGTERM to all ──► they have the grace time ──► SIGKILL

A pod has a fixed number of workers, like that of its containers. One that exits with 0 was decommissioned, and the pod ends with its
last worker; one that exits with 2 refused to start, and the pod ends with the same code.

With a `SupervisorLease` the number is in the database and one supervisor holds the lease. Another one stands by and takes over; one
that lost the lease decommissions its workers, so that for a moment there are too many rather than too few. Every exit that was not
requested is a crash. Every step depends on the current state only, not on what happened before.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Protocol

import psycopg
from msgspec import Struct
from psycopg_pool import PoolTimeout

from menuwatch.core.backoff import Backoff
from menuwatch.core.logging import get_logger
from menuwatch.core.machine import processors
from menuwatch.db.pool import Connection
from menuwatch.scaling.desired_count import Member, SupervisorLease, WorkerCount
from menuwatch.scaling.worker_process import REFUSED, exit_cause, launch, send, terminate
from menuwatch.workers import commands
from menuwatch.workers.commands import Command
from menuwatch.workers.names import worker_name

log = get_logger(__name__)

_SLOW = 30.0
"""Seconds after which a process that has not registered no longer delays the start of others."""
_MUTE = 60.0
"""Seconds after which a surplus process that has not registered is stopped by a signal."""


class OnEnd(Protocol):
    """Called for each process that ended."""

    async def __call__(self, *, pid: int, since: datetime) -> None: ...


class Timing(Struct, frozen=True, kw_only=True):
    """Times in seconds. A process that ran for `proven` before it crashed is restarted as after a first crash; `interval` is the
    time between steps."""

    grace: float = 60.0
    restart: Backoff = Backoff(base=1.0, cap=60.0)
    proven: float = 60.0
    interval: float = 0.5


@dataclass(slots=True, eq=False)
class WorkerSlot:
    """A slot for one worker. `leaving`: it is not refilled; `decommissioned`: its worker has the command."""

    ordinal: int
    process: Process | None = None
    ended: asyncio.Task[int] | None = None
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = 0.0
    worker_id: str | None = None
    tasks: int = 0
    leaving: bool = False
    decommissioned: bool = False
    crashes: int = 0
    restart_at: float = 0.0
    exit_cause: str | None = None

    @property
    def name(self) -> str:
        """Name of its worker."""
        return worker_name(self.ordinal)

    def scale_down_order(self) -> tuple[bool, bool, int, float, int]:
        """Sort key: first those without a process, then those that have not started, then fewest tasks, then the youngest."""
        return self.process is not None, self.worker_id is not None, self.tasks, -self.started, -self.ordinal


class WorkerPool:
    """Runs `count` worker processes, or with `lease` the desired number while it holds the lease. An instance runs once."""

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        *,
        count: int | None = None,
        lease: SupervisorLease | None = None,
        env: Mapping[str, str] | None = None,
        may_start: Callable[[], Awaitable[str | None]] | None = None,
        on_end: OnEnd | None = None,
        timing: Timing | None = None,
        rng: Random | None = None,
    ) -> None:
        """`command` gives the program and its arguments for the n-th worker (from 0); `env` None passes ours on.

        `may_start` returns the reason why none can start now.
        """
        if (count is None) == (lease is None) or count == 0:
            raise ValueError("a pool needs a count of at least one worker, or a lease that says how many")
        self._command = command
        self._lease = lease
        self._env = env
        self._may_start = may_start
        self._on_end = on_end
        self._timing = timing or Timing()
        self._rng = rng or Random()  # noqa: S311 - jitter, no secret
        self._at_once = max(2, processors()) if count is None else count
        self._woken = asyncio.Event()
        self._stopping = False
        self._left = 0
        """Workers that an operator decommissioned since the last step: the desired count is lower by this number."""
        self._start_blocked_by: str | None = None
        self._exit_code = 0
        self.slots = [WorkerSlot(ordinal) for ordinal in range(count or 0)]
        self.started = asyncio.Event()
        """Set after the first workers were started."""

    def stop(self) -> None:
        """Request a graceful stop; `run` returns when it is done. May be called from a signal handler of the event loop."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> int:
        """Run until stopped; a fixed pool also ends when all its workers were decommissioned or one refused to start. Returns the exit
        code of the process. A failed step (such as a lost database) is retried; running processes continue meanwhile."""
        log.info("supervisor started", action="pool_started", workers=len(self.slots))
        try:
            while not self._stopping:
                self._woken.clear()
                try:
                    await self.step()
                except Exception as error:
                    away = isinstance(error, (psycopg.Error, PoolTimeout))
                    log.warning(
                        "supervisor step failed", action="pool_step_failed", error=str(error), exc_info=not away
                    )
                self.started.set()
                if self._lease is None and not self.slots:
                    break
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._timing.interval):
                        await self._woken.wait()
            await self._wind_down()
        finally:
            for process in self.processes:
                send(process, signal.SIGKILL)
            gone = [asyncio.create_task(process.wait()) for process in self.processes]
            if gone:
                await asyncio.wait(gone, timeout=5)
        return self._exit_code

    async def step(self) -> None:
        """Read the state and act on it."""
        if self._lease is None:
            await self._collect_exited({})
            if not self._stopping:
                await self._start_missing()
            return
        async with self._lease.connection() as conn:
            wanted = await self._lease.read(conn)
            members = await self._lease.list_members(
                conn, [(slot.process.pid, slot.since) for slot in self.slots if slot.process]
            )
            await self._collect_exited(members)
            self._sync_registry(members)
            if wanted is not None and self._left:
                wanted = await self._lease.publish(conn, self._count(), left=self._left)
            self._left = 0
            self._reconcile(self._lease.set_target(wanted))
            await self._send_decommission(conn)
            await self._start_missing()
            if wanted is not None:
                await self._lease.publish(conn, self._count())

    async def _collect_exited(self, members: Mapping[int, Member]) -> None:
        """Handle exited processes."""
        for slot in list(self.slots):
            if slot.process is None or slot.ended is None or not slot.ended.done():
                continue
            pid, code = slot.process.pid, slot.ended.result()
            decommissioned = members[pid].decommissioned if pid in members else self._lease is None and code == 0
            if self._on_end is not None:
                await self._on_end(pid=pid, since=slot.since)
            slot.process = slot.ended = slot.worker_id = None
            if slot.leaving or decommissioned:
                self._left += not slot.leaving
                self.slots.remove(slot)
                log.info("worker exited", action="pool_worker_left", name=slot.name, pid=pid)
            elif self._lease is None and code == REFUSED:
                self._exit_code = code
                self.stop()
            else:
                self._crashed(slot, code)

    def _crashed(self, slot: WorkerSlot, code: int) -> None:
        if time.monotonic() - slot.started >= self._timing.proven:
            slot.crashes = 0
        pause = self._timing.restart.delay(slot.crashes, self._rng)
        slot.crashes += 1
        slot.restart_at = time.monotonic() + pause
        slot.exit_cause = "refused to start, its log says why" if code == REFUSED else f"ended: {exit_cause(code)}"
        log.warning(
            "worker crashed, restarting",
            action="pool_worker_crashed",
            name=slot.name,
            exit_cause=exit_cause(code),
            crashes=slot.crashes,
            again_in_seconds=round(pause, 2),
        )

    def _sync_registry(self, members: Mapping[int, Member]) -> None:
        """Read from the registry which processes have started, and which were decommissioned."""
        for slot in self.slots:
            if slot.process is None or (member := members.get(slot.process.pid)) is None:
                continue
            slot.worker_id, slot.tasks, slot.exit_cause = member.worker_id, member.tasks, None
            if member.decommissioned:
                self._left += not slot.leaving
                slot.leaving = slot.decommissioned = True

    def _reconcile(self, target: int) -> None:
        """Keep this many slots besides those that leave."""
        staying = [slot for slot in self.slots if not slot.leaving]
        taken = {slot.ordinal for slot in self.slots}
        free = (ordinal for ordinal in range(len(taken) + target) if ordinal not in taken)
        self.slots += [WorkerSlot(next(free)) for _ in range(target - len(staying))]
        for slot in sorted(staying, key=WorkerSlot.scale_down_order)[: max(len(staying) - target, 0)]:
            slot.leaving = True
            if slot.process is None:
                self.slots.remove(slot)

    async def _send_decommission(self, conn: Connection) -> None:
        """Send the decommission command to the workers that should leave."""
        for slot in self.slots:
            if not slot.leaving or slot.decommissioned or slot.process is None:
                continue
            if slot.worker_id is not None:
                await commands.send(conn, slot.worker_id, Command.DECOMMISSION, "supervisor")
                slot.decommissioned = True
            elif time.monotonic() - slot.started > _MUTE:
                send(slot.process, signal.SIGTERM)

    async def _start_missing(self) -> None:
        """Start missing processes, a few at a time: each needs a processor while it loads."""
        now = time.monotonic()
        due = [slot for slot in self.slots if slot.process is None and slot.restart_at <= now]
        was_blocked = self._start_blocked_by is not None
        self._start_blocked_by = await self._may_start() if due and self._may_start is not None else None
        if self._start_blocked_by is not None:
            if not was_blocked:
                log.warning("workers cannot start yet", action="pool_blocked", reason=self._start_blocked_by)
            return
        loading = 0
        if self._lease is not None:
            loading = sum(
                slot.process is not None and slot.worker_id is None and now - slot.started < _SLOW
                for slot in self.slots
            )
        for slot in due[: max(self._at_once - loading, 0)]:
            slot.since, slot.started = datetime.now(UTC), now
            try:
                slot.process = await launch(self._command(slot.ordinal), self._env)
            except OSError as error:
                # Out of memory or processes: treated like a crash and retried.
                log.warning("starting a worker failed", action="pool_worker_unstarted", error=str(error))
                self._crashed(slot, 1)
                continue
            slot.ended = asyncio.create_task(slot.process.wait(), name=f"worker-{slot.process.pid}")
            slot.ended.add_done_callback(lambda _: self._woken.set())
            log.info("worker process started", action="pool_worker_started", name=slot.name, pid=slot.process.pid)

    def _count(self) -> WorkerCount:
        working = [slot for slot in self.slots if slot.process is not None]
        staying = [slot for slot in working if not slot.leaving]
        running = sum(slot.worker_id is not None for slot in staying)
        return WorkerCount(
            running=running,
            starting=len(staying) - running,
            draining=len(working) - len(staying),
            error=self._error(),
        )

    def _error(self) -> str | None:
        if self._start_blocked_by is not None:
            return f"none can start now: {self._start_blocked_by}"
        crashed = [slot for slot in self.slots if slot.process is None and slot.exit_cause is not None]
        if not crashed:
            return None
        others = f", and {len(crashed) - 1:,} more," if len(crashed) > 1 else ""
        return f"{crashed[0].name}{others} {crashed[0].exit_cause}; started again in a moment"

    @property
    def processes(self) -> list[Process]:
        """The running processes."""
        return [slot.process for slot in self.slots if slot.process is not None and slot.process.returncode is None]

    async def _wind_down(self) -> None:
        """Release the lease for a standby supervisor, and stop all workers."""
        if self._lease is not None:
            try:
                async with self._lease.connection() as conn:
                    await self._lease.release(conn)
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("releasing the supervisor lease failed", action="pool_step_failed", error=str(error))
        working = [(slot, slot.process, slot.ended) for slot in self.slots if slot.process and slot.ended]
        await asyncio.gather(
            *(terminate(process, ended, grace=self._timing.grace) for _, process, ended in working if not ended.done())
        )
        for slot, process, ended in working:
            await ended
            if self._on_end is not None:
                await self._on_end(pid=process.pid, since=slot.since)
        log.info("supervisor stopped", action="pool_stopped", workers=len(working), exit_code=self._exit_code)
