"""Memory, CPU and event loop lag of a worker: read, judged, reported in the heartbeat and to the claim gate.

Limits of the container (control groups) come first; without them, usage is measured against the whole machine. `verdict` is pure.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import msgspec
import psutil
from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.workers.engine.claim_gate import ClaimGate, GateChange
from menuwatch.workers.registry import Resources


class Memory(Struct, frozen=True):
    """Bytes in use that could not simply be given back, and the most there may be."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """How much of the limit is used, 1 being all of it."""
        return self.used / self.limit


class Processor(Struct, frozen=True):
    """Seconds of processor time used so far, and how many processors' worth may be used at once."""

    used: float
    limit: float


class ControlGroups:
    """The limits of Linux control groups, version 2 and version 1, that this process runs under.

    A limit may be set on the process's own group or on any above it, and each is read together with the usage that it bounds. In a
    container the tree usually begins at the container's own group, and the path that the process sees (of the host's tree) leads
    nowhere: then the top of the tree is the group. Each call reads again: limits change while processes run.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        """`root` is where `proc` and `sys` are found."""
        self._tree = root / "sys/fs/cgroup"
        self._paths = dict(_paths(root / "proc/self/cgroup"))

    def memory(self) -> Memory | None:
        """The limit that is nearest to being reached; None where there is none."""
        limits = []
        for group in self._groups(""):
            with contextlib.suppress(OSError, ValueError):
                limit = int((group / "memory.max").read_text())  # "max", which is no number, is none
                reclaimable = _field(group / "memory.stat", "inactive_file")
                limits.append(Memory(max(0, _number(group / "memory.current") - reclaimable), limit))
        for group in self._groups("memory"):
            with contextlib.suppress(OSError, ValueError):
                limit = _number(group / "memory.limit_in_bytes")
                reclaimable = _field(group / "memory.stat", "total_inactive_file")
                limits.append(Memory(max(0, _number(group / "memory.usage_in_bytes") - reclaimable), limit))
        return max((limit for limit in limits if limit.limit > 0), key=lambda limit: limit.share, default=None)

    def processor(self) -> Processor | None:
        """The tightest limit; None where there is none."""
        limits = []
        for group in self._groups(""):
            with contextlib.suppress(OSError, ValueError):
                quota, period = (group / "cpu.max").read_text().split()
                limits.append(Processor(_field(group / "cpu.stat", "usage_usec") / 1e6, int(quota) / int(period)))
        for group, accounts in zip(self._groups("cpu"), self._groups("cpuacct"), strict=False):
            with contextlib.suppress(OSError, ValueError):
                limit = _number(group / "cpu.cfs_quota_us") / _number(group / "cpu.cfs_period_us")
                limits.append(Processor(_number(accounts / "cpuacct.usage") / 1e9, limit))
        return min((limit for limit in limits if limit.limit > 0), key=lambda limit: limit.limit, default=None)

    def _groups(self, controller: str) -> Iterator[Path]:
        """Folders of the process's group of that controller (version 2: of all) and of those above it."""
        own = self._paths.get(controller, PurePosixPath("/"))
        for path in (own, *own.parents):
            folder = self._tree / controller / path.relative_to("/")
            if folder.is_dir():
                yield folder


def _paths(listing: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Of each controller the group that the process is in; version 2 has one group for all of them, under the name ''."""
    with contextlib.suppress(OSError):
        for line in listing.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, PurePosixPath("/") / path


def _number(file: Path) -> int:
    return int(file.read_text())


def _field(file: Path, name: str) -> int:
    """A value of a file that has a name and a number in each line; 0 where it does not name it."""
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


_MIB = 1024 * 1024

WINDOW = 5.0
"""Seconds over which processor time and the event loop's lag are averaged: a burst is not an overload."""
SHORTEST = 1.0
"""Seconds of a measurement of processor time that means something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Above these a worker claims nothing: shares of the limit (1: never), and seconds that the event loop lags."""

    memory: float = 0.85
    cpu: float = 0.90
    lag: float = 0.5

    @classmethod
    def from_settings(cls, settings: Settings) -> Thresholds:
        """As the environment has them."""
        return cls(
            memory=settings.memory_backoff_threshold,
            cpu=settings.cpu_backoff_threshold,
            lag=settings.event_loop_lag_backoff_ms / 1000,
        )


class Snapshot(Struct, frozen=True, kw_only=True):
    """The machine at one moment. `cpu` is a share of the limit, None before it was measured long enough; `processors` is that limit;
    `lag` in seconds.

    `memory_limited` and `cpu_limited`: the limit is the container's, else it is what the machine has.
    """

    memory: Memory
    memory_limited: bool = False
    cpu: float | None = None
    cpu_limited: bool = False
    processors: float = 1.0
    lag: float = 0.0


def verdict(machine: Snapshot, thresholds: Thresholds) -> str | None:
    """What is too much, in words with its threshold; None when a worker may claim."""
    reasons = []
    if min(machine.memory.share, 1.0) > thresholds.memory:
        what = "memory" if machine.memory_limited else "memory of the machine"
        reasons.append(_too_much(what, machine.memory.share, thresholds.memory, machine.memory_limited))
    if machine.cpu is not None and min(machine.cpu, 1.0) > thresholds.cpu:
        what = "processor time" if machine.cpu_limited else "processors of the machine"
        reasons.append(_too_much(what, machine.cpu, thresholds.cpu, machine.cpu_limited))
    if machine.lag > thresholds.lag:
        reasons.append(f"the event loop lags by {machine.lag * 1000:.0f} ms (threshold {thresholds.lag * 1000:.0f} ms)")
    return ", ".join(reasons) or None


def _too_much(what: str, share: float, threshold: float, limited: bool) -> str:
    of = " of its limit" if limited else ""
    return f"{what} at {share * 100:.3g} %{of} (threshold {threshold * 100:.3g} %)"


class Machine:
    """Reads memory and processor time, of the container's limit or of the machine."""

    def __init__(self, root: Path = Path("/"), *, clock: Clock | None = None) -> None:
        """`root` is where `proc` and `sys` are found."""
        self._groups = ControlGroups(root)
        self._clock = clock or SystemClock()
        self._processors = os.cpu_count() or 1
        self._readings: deque[tuple[float, Processor, bool]] = deque()
        self._note_processor()

    def look(self, *, lag: float = 0.0) -> Snapshot:
        """The figures now; processor time is that of the last `WINDOW` seconds of looks."""
        memory, limited = self._memory()
        self._note_processor()
        cpu, cpu_limited = self._cpu()
        processors = self._readings[-1][1].limit
        return Snapshot(
            memory=memory, memory_limited=limited, cpu=cpu, cpu_limited=cpu_limited, processors=processors, lag=lag
        )

    def monotonic(self) -> float:
        """The clock of its measurements."""
        return self._clock.monotonic()

    def _memory(self) -> tuple[Memory, bool]:
        machine = psutil.virtual_memory()
        group = self._groups.memory()
        # Without a limit the groups of version 1 have one that no machine ever reaches.
        if group is not None and group.limit < machine.total:
            return group, True
        return Memory(machine.total - machine.available, machine.total), False

    def _note_processor(self) -> None:
        group = self._groups.processor()
        limited = group is not None and group.limit < self._processors
        reading = group if group is not None and limited else self._machine()
        if self._readings and self._readings[-1][2] is not limited:
            self._readings.clear()  # a limit was set or lifted: the two do not compare
        now = self._clock.monotonic()
        self._readings.append((now, reading, limited))
        while len(self._readings) > 2 and self._readings[1][0] <= now - WINDOW:
            self._readings.popleft()

    def _machine(self) -> Processor:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # A guest's time is part of its user time already.
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return Processor(sum(times) - idle - guest, float(self._processors))

    def _cpu(self) -> tuple[float | None, bool]:
        (began, first, _), (ended, last, limited) = self._readings[0], self._readings[-1]
        if ended - began < SHORTEST:
            return None, limited
        return max(0.0, last.used - first.used) / (ended - began) / last.limit, limited


class ProcessResources:
    """The heartbeat's figures: memory and processor of what `Machine` measures, and this process's own share in them."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self._process = psutil.Process()
        self._before: tuple[float, float] | None = None
        """Processor time of the process at the last reading, and the time of that."""

    def read(self, *, is_backing_off: bool = False, backoff_reason: str | None = None) -> Resources:
        """The figures now."""
        with self._process.oneshot():
            rss = self._process.memory_info().rss
            times = self._process.cpu_times()
        seen = self._machine.look()
        used, now = times.user + times.system, self._machine.monotonic()
        before, self._before = self._before, (used, now)
        own = None if before is None or now - before[1] < SHORTEST else (used - before[0]) / (now - before[1])
        return Resources(
            memory_mb=round(seen.memory.used / _MIB, 1),
            memory_total_mb=round(seen.memory.limit / _MIB, 1),
            memory_rss_mb=round(rss / _MIB, 1),
            memory_percent=_percent(seen.memory.share),
            cpu_user_ms=round(times.user * 1000),
            cpu_system_ms=round(times.system * 1000),
            cpu_percent=_percent(seen.cpu or 0.0),
            process_cpu_percent=msgspec.UNSET if own is None else _percent(own / seen.processors),
            is_backing_off=is_backing_off,
            backoff_reason=backoff_reason,
        )


def _percent(share: float) -> float:
    return round(min(share, 1.0) * 100, 1)


log = get_logger(__name__)

TICK = 0.2
"""Seconds between two measurements of the event loop's lag."""
CHECK = 1.0
"""Seconds between two checks of the machine."""


class ResourceMonitor(Loop):
    """Measures the lag of the event loop, checks the machine once a second, and reports pressure to the claim gate."""

    name: ClassVar[str] = "resource-monitor"

    def __init__(
        self,
        gate: ClaimGate,
        machine: Machine,
        thresholds: Thresholds,
        *,
        worker_id: str,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_change` is called when the gate was closed or opened."""
        super().__init__(interval=TICK)
        self._gate = gate
        self._machine = machine
        self._thresholds = thresholds
        self._worker_id = worker_id
        self._clock = clock
        self._on_change = on_change
        self._late: deque[tuple[float, float]] = deque()
        self._expected: float | None = None
        self._looked = clock.monotonic()

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        if self._expected is not None:
            self._late.append((now, max(0.0, now - self._expected)))
        if now - self._looked >= CHECK:
            self._looked = now
            self._weigh(now)
        self._expected = self._clock.monotonic() + TICK
        return None

    def lag(self, now: float) -> float:
        """How late the event loop runs what is due, on average over the window, in seconds."""
        while self._late and self._late[0][0] < now - WINDOW:
            self._late.popleft()
        return sum(late for _, late in self._late) / len(self._late) if self._late else 0.0

    def _weigh(self, now: float) -> None:
        turn = self._gate.report_pressure(verdict(self._machine.look(lag=self.lag(now)), self._thresholds))
        if turn is GateChange.CLOSED:
            log.warning(
                "backing off, claiming paused",
                action="backoff_started",
                reason=self._gate.backoff_reason,
                worker_id=self._worker_id,
            )
        elif turn is GateChange.OPENED:
            log.info("backoff ended", action="backoff_ended", worker_id=self._worker_id)
        if turn is not None:
            self._on_change()
