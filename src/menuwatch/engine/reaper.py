"""Keeps the queue sound: takes back what silent workers left, mends what should not happen, makes room for history, lets old work
rise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from menuwatch.catalog import store as catalog
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.fetch import attempts
from menuwatch.tasks import store as tasks

log = get_logger(__name__)


class Reaper(Loop):
    """Any number of them may run; they pass over what another one has in hand."""

    name: ClassVar[str] = "reaper"

    def __init__(
        self,
        pool: Pool,
        *,
        stale_after: timedelta,
        interval: float = 60.0,
        on_recovered: Callable[[int], None] = lambda _: None,
    ) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._stale_after = stale_after
        self._on_recovered = on_recovered

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            recovered = await tasks.recover_stale(conn, self._stale_after / timedelta(minutes=1))
            if recovered:
                self._on_recovered(recovered)
                log.warning("tasks of silent workers were taken back", action="tasks_recovered", count=recovered)
            stranded = await tasks.unpark_stranded(conn)
            if stranded:
                log.error("parked tasks had no head before them", action="tasks_unparked", count=stranded)
            await tasks.ensure_partitions(conn)
            await attempts.ensure_partitions(conn)
            await catalog.ensure_partitions(conn)
            raised = await tasks.age(conn)
            if raised:
                log.info("tasks that waited long rose", action="tasks_aged", count=raised)
        return None
