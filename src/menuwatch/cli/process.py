"""What every command begins with."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

from menuwatch.core import telemetry
from menuwatch.core.settings import Settings
from menuwatch.db import address


def settings(*, quiet: bool = True, **overrides: Any) -> Settings:
    """The settings of this process, with logging set up. One-shot commands are `quiet`: only warnings are logged."""
    found = Settings.from_env(**overrides)
    if found.database_url:
        address.check(found.database_url)
    level = "warning" if quiet and found.log_level == "info" else found.log_level
    telemetry.configure(found.log_format, level)
    return found


@contextlib.contextmanager
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
