"""The shape that every background duty has."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from typing import ClassVar

from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)

LONGEST_BACKOFF = 10.0
"""Longest pause after a step that failed, in seconds."""


class Loop(ABC):
    """Runs `step` again and again until stopped. A step that fails is logged and tried again after a growing pause."""

    name: ClassVar[str]

    def __init__(self, *, interval: float) -> None:
        """`interval`: seconds between two steps when nobody calls `wake`."""
        if interval <= 0:
            raise ValueError(f"interval must be positive, got {interval}")
        self.interval = interval
        self.stopping = False
        self._woken = asyncio.Event()

    @abstractmethod
    async def step(self) -> float | None:
        """One turn. Returns how many seconds to pause before the next one, None for the usual interval."""

    def wake(self) -> None:
        """Ends the present pause, or skips the next one."""
        self._woken.set()

    def stop(self) -> None:
        """Lets the present step end and starts no other."""
        self.stopping = True
        self.wake()

    async def run(self) -> None:
        """Steps until `stop`."""
        failures = 0
        while not self.stopping:
            self._woken.clear()
            try:
                pause = await self.step()
                failures = 0
            except Exception as error:
                failures += 1
                pause = min(LONGEST_BACKOFF, self.interval, 0.1 * 2 ** min(failures, 10))
                log.warning(
                    "a step failed",
                    action="loop_failed",
                    loop=self.name,
                    failures=failures,
                    again_in_seconds=pause,
                    error=f"{type(error).__name__}: {error}",
                    exc_info=failures == 1,
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.interval if pause is None else pause):
                    await self._woken.wait()
