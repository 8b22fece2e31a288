"""Base class of background loops."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, TypeVar

from menuwatch.core.logging import get_logger
from menuwatch.db.items import described, place, run_item

log = get_logger(__name__)

LONGEST_BACKOFF = 10.0
"""Longest pause after a step that failed, in seconds."""


class Loop(ABC):
    """Runs `step` again and again until stopped. A step that fails is logged and tried again after a growing pause."""

    name: ClassVar[str]
    private: ClassVar[bool] = False
    """Whether texts of unexpected errors may hold secrets: then only their types are logged and stored."""

    def __init__(self, *, interval: float) -> None:
        """`interval`: seconds between two steps unless `wake` is called."""
        if interval <= 0:
            raise ValueError(f"interval must be positive, got {interval}")
        self.interval = interval
        self.stopping = False
        self._woken = asyncio.Event()

    @abstractmethod
    async def step(self) -> float | None:
        """One turn. Returns how many seconds to pause before the next one, None for the usual interval."""

    def wake(self) -> None:
        """Ends the current pause, or skips the next one."""
        self._woken.set()

    def stop(self) -> None:
        """Finishes the current step and starts no other."""
        self.stopping = True
        self.wake()

    async def attend(
        self, kind: str, key: object, work: Awaitable[object], charge: Callable[[str], Awaitable[object]]
    ) -> bool:
        """Processes one item; if that raises, charges the item and returns False. The step goes on with the others."""
        return await run_item(self.name, kind, key, work, charge, private=self.private)

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
                    "loop step failed",
                    action="loop_failed",
                    loop=self.name,
                    failures=failures,
                    again_in_seconds=pause,
                    error=described(error, private=self.private),
                    item=", ".join(getattr(error, "__notes__", ())) or None,
                    at=place(error),
                    exc_info=failures == 1 and not self.private,
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.interval if pause is None else pause):
                    await self._woken.wait()


L = TypeVar("L", bound=Loop)


@asynccontextmanager
async def running(loop: L) -> AsyncIterator[L]:
    """The loop at work in this process. At the end its present step may end, within reason."""
    task = asyncio.create_task(loop.run(), name=loop.name)
    try:
        yield loop
    finally:
        loop.stop()
        await asyncio.wait({task}, timeout=10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
