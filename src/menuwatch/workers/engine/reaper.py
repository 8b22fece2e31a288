"""Queue maintenance: recover stale tasks, release stranded ones, create partitions, raise the priority of old tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ClassVar

import psycopg

from menuwatch.catalog import store as catalog
from menuwatch.core.logging import get_logger
from menuwatch.db.items import uncharged
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.fetch import attempts
from menuwatch.queue import store as tasks

log = get_logger(__name__)


class Reaper(Loop):
    """Any number may run; each skips what another one is processing."""

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
        self._is_published = False
        self._on_recovered = on_recovered

    async def step(self) -> float | None:
        duties: dict[str, Callable[[Connection], Awaitable[object]]] = {
            "recovery": self._recover,
            "unparking": self._unpark,
            "task_partitions": tasks.ensure_partitions,
            "attempt_partitions": attempts.ensure_partitions,
            "state_partitions": catalog.ensure_partitions,
            "aging": self._age,
        }
        async with self._pool.connection() as conn:
            trouble: Exception | None = None
            for name, duty in duties.items():
                try:
                    await self.attend("duty", name, duty(conn), uncharged)
                except psycopg.Error as error:
                    if conn.closed:
                        raise
                    trouble = trouble or error  # another transaction blocks it, which need not block the next one
            if trouble is not None:
                raise trouble
        return None

    async def _recover(self, conn: Connection) -> None:
        if not self._is_published:
            # Once: processes with different settings would otherwise overwrite each other. The last one started decides for all.
            await tasks.set_stale_after(conn, self._stale_after / timedelta(minutes=1))
            self._is_published = True
        recovered = await tasks.recover_stale(conn)
        if recovered:
            self._on_recovered(recovered)
            log.warning("stale tasks recovered", action="tasks_recovered", count=recovered)

    async def _unpark(self, conn: Connection) -> None:
        stranded = await tasks.unpark_stranded(conn)
        if stranded:
            log.error("parked tasks without a head unparked", action="tasks_unparked", count=stranded)

    async def _age(self, conn: Connection) -> None:
        raised = await tasks.age(conn)
        if raised:
            log.info("priority of waiting tasks raised", action="tasks_aged", count=raised)
