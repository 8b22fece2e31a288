"""Clocks are passed in as values, so that tests control the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Also counts the time during which the machine is suspended, if the system has such a clock."""


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean something."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_UPTIME)


class ManualClock:
    """A clock that stands still until it is advanced."""

    __slots__ = ("_now", "_ticks")

    def __init__(self, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock needs an aware datetime, got a naive one")
        self._now = start
        self._ticks = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._ticks

    def advance(self, by: timedelta) -> None:
        """Moves time forward by `by`, which may not be negative."""
        if by < timedelta(0):
            raise ValueError(f"time only goes forward, got {by}")
        self._now += by
        self._ticks += by.total_seconds()
