"""Shows what takes longer as running. A task that is done in a moment is never written in between: it goes from claimed to
completed."""

from __future__ import annotations

from typing import ClassVar

from menuwatch.core.clock import Clock
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.engine.slots import Slots
from menuwatch.tasks import store as tasks
from menuwatch.tasks.store import Held

LONGER = 0.5
"""Seconds after which a task is worth a write of its own."""


class Marker(Loop):
    """One UPDATE a second at most, and none where every task is short."""

    name: ClassVar[str] = "marker"

    def __init__(self, pool: Pool, slots: Slots, *, worker_id: str, clock: Clock, interval: float = 1.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._slots = slots
        self._worker_id = worker_id
        self._clock = clock

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        longer = [one for one in self._slots if one.handling and not one.shown and now - one.started >= LONGER]
        if not longer:
            return None
        held = [Held(task_id=one.task.id, attempt=one.task.attempt, ran=now - one.started) for one in longer]
        async with self._pool.connection() as conn:
            await tasks.mark_running(conn, self._worker_id, held)
        # What it did not apply to is being settled, was taken away, or a heartbeat showed it.
        for one in longer:
            one.shown = True
        return None
