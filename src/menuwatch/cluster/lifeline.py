"""The worker's end of the pipe that its supervisor holds."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class _Line(asyncio.Protocol):
    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def connection_lost(self, _: Exception | None) -> None:
        self._act()


@asynccontextmanager
async def lifeline(act: Callable[[], object]) -> AsyncIterator[None]:
    """Calls `act` when standard input ends within the context: whoever started this process has died."""
    held = True

    def cut() -> None:
        if held:
            act()

    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: _Line(cut), sys.stdin)
    try:
        yield
    finally:
        held = False
        with contextlib.suppress(Exception):
            transport.close()
