"""Runs many short attempts without an asyncio task for each.

A runner is an asyncio task that takes one attempt after the other. While its handler waits for something, the next runner goes on; a
handler that waits for nothing costs no switch at all. There are never more runners than attempts at once, and they are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from menuwatch.engine.slots import Attempt

_TURN = 0.01
"""Seconds after which a runner lets the others of the event loop have a turn."""


class Runners:
    """`work` runs one attempt and raises nothing but what ends the process."""

    def __init__(self, work: Callable[[Attempt], Awaitable[None]]) -> None:
        self._work = work
        self._waiting: deque[Attempt] = deque()
        self._all: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[None]] = []
        self._calling = False
        """One that was idle has been called, and has not come yet."""
        self._busy = 0
        self._still = asyncio.Event()
        self._still.set()

    def begin(self, attempt: Attempt) -> None:
        """Runs it as soon as the event loop comes to it."""
        self._waiting.append(attempt)
        self._still.clear()
        if not self._calling:
            self._call()

    async def still(self, seconds: float) -> bool:
        """Waits until nothing runs; False when something still does after that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._still.wait()
        return self._still.is_set()

    def close(self) -> None:
        """Ends all of them, also one whose handler is deaf to being cancelled, as far as that goes."""
        for runner in self._all:
            runner.cancel()

    def _call(self) -> None:
        self._calling = True
        while self._idle:
            place = self._idle.pop()
            if not place.done():
                place.set_result(None)
                return
        runner = asyncio.create_task(self._run(), name=f"runner-{len(self._all)}")
        self._all.add(runner)
        runner.add_done_callback(self._all.discard)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        while True:
            self._calling = False
            turn = loop.time()
            while self._waiting:
                attempt = self._waiting.popleft()
                if self._waiting and not self._calling:
                    self._call()
                attempt.work = me
                self._busy += 1
                try:
                    await self._work(attempt)
                finally:
                    attempt.work = None
                    self._busy -= 1
                    if not self._busy and not self._waiting:
                        self._still.set()
                if loop.time() - turn > _TURN:
                    await asyncio.sleep(0)
                    turn = loop.time()
            place = loop.create_future()
            self._idle.append(place)
            await place
