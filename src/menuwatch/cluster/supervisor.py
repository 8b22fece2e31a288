"""A pod: worker processes under one supervisor, which replaces those that crash.

    started ──► runs ──┬── exit 0: it was told to leave; its place stays empty
                 ▲     ├── exit 2: it refused to start; the pod ends the same way
                 │     └── anything else is a crash ──► waits, longer each time ──┐
                 └────────────────────────────────────────────────────────────────┘
    stop: SIGTERM to all ──► they have the grace time ──► SIGKILL

Its number is fixed, as that of a Kubernetes pod's containers is; `crew` is for a number that changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from menuwatch.cluster.process import REFUSED, cause, end, launch, send
from menuwatch.core.backoff import Backoff
from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)


class Ended(Protocol):
    """Told of each process that ended."""

    async def __call__(self, *, pid: int, since: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Times in seconds. One that ran for `proven` before it crashed is restarted as after a first crash."""

    grace: float = 60.0
    restart: Backoff = Backoff(base=1.0, cap=60.0)
    proven: float = 60.0


@dataclass(slots=True, eq=False)
class Place:
    """One of the pod's workers, whichever process fills it. `restarts` counts all of its crashes."""

    ordinal: int
    process: Process | None = None
    restarts: int = 0
    crashes: int = 0
    started: float = 0.0
    empty: bool = False


class Supervisor:
    """Keeps `count` processes running until told to stop. One instance is one run."""

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        count: int,
        *,
        env: Mapping[str, str] | None = None,
        rules: Rules | None = None,
        on_end: Ended | None = None,
        rng: Random | None = None,
    ) -> None:
        """`command` gives the program and its arguments for the n-th worker (from 0); `env` None passes ours on."""
        if count < 1:
            raise ValueError(f"a pod needs at least one worker, got {count}")
        self._command = command
        self._env = env
        self._rules = rules or Rules()
        self._on_end = on_end
        self._rng = rng or Random()  # noqa: S311 - jitter, no secret
        self._stop = asyncio.Event()
        self._refusal: int | None = None
        self.places = [Place(ordinal) for ordinal in range(count)]

    def stop(self) -> None:
        """Asks for a graceful stop; `run` returns when it is done. May be called from a signal handler of the event loop."""
        self._stop.set()

    async def run(self) -> int:
        """Runs until stopped, or until every worker has left; returns the exit code for the pod: 0, or that of a refused start."""
        log.info("pod started", action="pod_started", workers=len(self.places))
        keepers = [asyncio.create_task(self._keep(place), name=f"place-{place.ordinal}") for place in self.places]
        try:
            await asyncio.gather(*keepers)
        finally:
            for keeper in keepers:
                if not keeper.cancelling():  # a second one would cut off the first one's killing
                    keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
        code = 0 if self._refusal is None else self._refusal
        log.info("pod stopped", action="pod_stopped", exit_code=code)
        return code

    async def _keep(self, place: Place) -> None:
        while not self._stop.is_set():
            try:
                code = await self._fill(place)
            except OSError as error:
                # No memory, no more processes: as good as a crash, and worth another try.
                log.warning("a worker could not be started", action="pod_worker_unstarted", error=str(error))
                code = 1
            if code == 0:
                place.empty = True
                break
            if self._stop.is_set():
                break
            if code == REFUSED:
                self._refusal = code
                self.stop()
                break
            await self._wait(place, code)

    async def _fill(self, place: Place) -> int:
        """Runs one process from its start to its end; returns its exit code (negative: the signal that ended it)."""
        since = datetime.now(UTC)
        place.started = time.monotonic()
        process = await launch(self._command(place.ordinal), self._env)
        place.process = process
        log.info("worker process started", action="pod_worker_started", ordinal=place.ordinal, pid=process.pid)
        ended = asyncio.create_task(process.wait(), name=f"worker-{process.pid}")
        stopped = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await end(process, ended, grace=self._rules.grace)
            code = await ended
        finally:
            stopped.cancel()
            # Only when this is cut off; `ended` may be cut off with it and says nothing then.
            if process.returncode is None:
                send(process, signal.SIGKILL)
                await asyncio.wait({asyncio.create_task(process.wait())}, timeout=5)
            place.process = None
        if self._on_end is not None:
            await self._on_end(pid=process.pid, since=since)
        return code

    async def _wait(self, place: Place, code: int) -> None:
        if time.monotonic() - place.started >= self._rules.proven:
            place.crashes = 0
        pause = self._rules.restart.delay(place.crashes, self._rng)
        place.crashes += 1
        place.restarts += 1
        log.warning(
            "a worker crashed and is started again",
            action="pod_worker_crashed",
            ordinal=place.ordinal,
            died_of=cause(code),
            crashes=place.crashes,
            again_in_seconds=round(pause, 2),
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stop.wait()
