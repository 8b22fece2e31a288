"""Signals that ask a process to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_signals(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks for a graceful stop; a second one has its usual effect."""
    handled = (signal.SIGTERM, signal.SIGINT)

    def once() -> None:
        for number in handled:
            loop.remove_signal_handler(number)
        act()

    for number in handled:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
