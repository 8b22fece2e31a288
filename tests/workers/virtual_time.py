"""An event loop whose clock jumps to the next timer: code that sleeps is tested in no time, and in the same order each time."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._real_select = self._selector.select
        self._selector.select = self._select

    def time(self) -> float:
        return self._now

    def _select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._now += timeout
            timeout = 0
        return self._real_select(timeout)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test without I/O on a loop with virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


class Sleeper:
    """Stands in for `asyncio.sleep`: every sleep lasts until `release`."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    def __call__(self, seconds: float) -> Awaitable[Any]:
        return self._released.wait()

    def release(self) -> None:
        self._released.set()
