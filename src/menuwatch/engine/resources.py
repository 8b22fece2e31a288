"""What this process uses, for its heartbeat."""

from __future__ import annotations

import psutil

from menuwatch.workers.heartbeat import Resources

_MIB = 1024 * 1024


class ProcessResources:
    """Reads the process's own figures; `cpu_percent` is since the reading before, 100 being one whole processor."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()

    def read(self) -> Resources:
        """The figures now."""
        with self._process.oneshot():
            rss = self._process.memory_info().rss
            times = self._process.cpu_times()
            cpu = self._process.cpu_percent()
        memory = psutil.virtual_memory()
        return Resources(
            memory_mb=round((memory.total - memory.available) / _MIB, 1),
            memory_total_mb=round(memory.total / _MIB, 1),
            memory_rss_mb=round(rss / _MIB, 1),
            memory_percent=memory.percent,
            cpu_user_ms=round(times.user * 1000),
            cpu_system_ms=round(times.system * 1000),
            cpu_percent=cpu,
        )
