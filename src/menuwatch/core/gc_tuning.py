"""Garbage collector settings for long-running processes that create many short-lived objects."""

from __future__ import annotations

import gc


def calm() -> None:
    """Exempts the objects created at start-up from garbage collection, and collects 70 times less often than Python's default.

    Measured with 500 concurrent tasks: the collector took a third of a worker's time and found nothing. Affects the whole process,
    so only long-running commands call it, after start-up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
