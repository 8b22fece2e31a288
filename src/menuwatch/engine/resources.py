"""What the machine has left for us: read, judged, and said in the heartbeat.

The limits of the container come first (`cgroup`), what they leave open is measured against the whole machine. Reading and judging are
apart: `verdict` is pure.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import psutil

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.engine.cgroup import ControlGroups, Memory, Processor
from menuwatch.workers.heartbeat import Resources

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The machine at one moment. `cpu` is a share of the limit, None before it was measured long enough; `lag` in seconds.

    `memory_limited` and `cpu_limited`: the limit is the container's, else it is what the machine has.
    """

    memory: Memory
    memory_limited: bool = False
    cpu: float | None = None
    cpu_limited: bool = False
    lag: float = 0.0


def verdict(seen: Snapshot, thresholds: Thresholds) -> str | None:
    """What is too much, in words with its threshold; None when a worker may claim."""
    found = []
    if min(seen.memory.share, 1.0) > thresholds.memory:
        what = "memory" if seen.memory_limited else "memory of the machine"
        found.append(_too_much(what, seen.memory.share, thresholds.memory, seen.memory_limited))
    if seen.cpu is not None and min(seen.cpu, 1.0) > thresholds.cpu:
        what = "processor time" if seen.cpu_limited else "processors of the machine"
        found.append(_too_much(what, seen.cpu, thresholds.cpu, seen.cpu_limited))
    if seen.lag > thresholds.lag:
        found.append(f"the event loop lags by {seen.lag * 1000:.0f} ms (threshold {thresholds.lag * 1000:.0f} ms)")
    return ", ".join(found) or None


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
        return Snapshot(memory=memory, memory_limited=limited, cpu=cpu, cpu_limited=cpu_limited, lag=lag)

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

    def read(self, *, is_backing_off: bool = False, backoff_reason: str | None = None) -> Resources:
        """The figures now."""
        with self._process.oneshot():
            rss = self._process.memory_info().rss
            times = self._process.cpu_times()
        seen = self._machine.look()
        return Resources(
            memory_mb=round(seen.memory.used / _MIB, 1),
            memory_total_mb=round(seen.memory.limit / _MIB, 1),
            memory_rss_mb=round(rss / _MIB, 1),
            memory_percent=_percent(seen.memory.share),
            cpu_user_ms=round(times.user * 1000),
            cpu_system_ms=round(times.system * 1000),
            cpu_percent=_percent(seen.cpu or 0.0),
            is_backing_off=is_backing_off,
            backoff_reason=backoff_reason,
        )


def _percent(share: float) -> float:
    return round(min(share, 1.0) * 100, 1)
