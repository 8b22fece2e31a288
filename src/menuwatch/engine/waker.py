"""Tells other workers of follow-up tasks, after they are committed.

A NOTIFY inside the settling transactions would make them commit one after the other; one every `GAP` seconds says the same. If
this process dies before it, the others find the work when they poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import NewTask

GAP = 0.05
"""Shortest time between two notifications, in seconds."""


class Waker(Loop):
    """Sends at most one notification per `GAP`, and none for what this worker has room for itself."""

    name: ClassVar[str] = "waker"

    def __init__(self, pool: Pool, *, own: Callable[[Sequence[NewTask]], bool], interval: float = 3600.0) -> None:
        """`own` says whether this worker will take all of these by itself."""
        super().__init__(interval=interval)
        self._pool = pool
        self._own = own
        self._pending = False

    def announce(self, made: Sequence[NewTask]) -> None:
        """These tasks were committed."""
        if not self._own(made):
            self._pending = True
            self.wake()

    async def step(self) -> float | None:
        if not self._pending:
            return None
        self._pending = False
        async with self._pool.connection() as conn:
            await tasks.wake(conn)
        await asyncio.sleep(GAP)
        return None
