"""LISTEN and NOTIFY: hears of new work and commands, and tells other workers of follow-up tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import ClassVar

from psycopg import sql

from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool, connect
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask
from menuwatch.queue.store import CHANNEL
from menuwatch.workers.commands import NOTICE


class Listener(Loop):
    """Calls `on_work` for new work, `on_lost` when a running task was cancelled, `on_command` for a command to this worker.

    It has a connection of its own, because a pooler in transaction mode does not pass notifications on. A lost connection is
    opened again.
    """

    name: ClassVar[str] = "listener"

    def __init__(
        self,
        url: str,
        *,
        on_work: Callable[[], None],
        on_lost: Callable[[], None],
        on_command: Callable[[], None] = lambda: None,
        worker_id: str = "",
        interval: float = 30.0,
    ) -> None:
        """`interval`: seconds after which a silent connection is probed."""
        super().__init__(interval=interval)
        self._url = url
        self._on_work = on_work
        self._on_lost = on_lost
        self._on_command = on_command
        self._command = f"{NOTICE}{worker_id}"
        self._conn: Connection | None = None

    async def step(self) -> float | None:
        try:
            if self._conn is None:
                self._conn = await connect(self._url, name="menuwatch-listen")
                await self._conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
                # Notifications sent while no connection listened are made up for by polling.
                self._on_work()
                self._on_lost()
                self._on_command()
            heard = False
            async for notice in self._conn.notifies(timeout=self.interval, stop_after=1):
                heard = True
                if notice.payload.startswith("lost"):
                    self._on_lost()
                elif notice.payload.startswith(NOTICE):
                    if notice.payload == self._command:
                        self._on_command()
                else:
                    self._on_work()
            if not heard:
                await self._conn.execute("SELECT 1")
        except BaseException:
            await self.close()
            raise
        return 0.0

    async def close(self) -> None:
        """Closes the connection."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):
                await conn.close()


GAP = 0.05
"""Shortest time between two notifications, in seconds."""


class Notifier(Loop):
    """Notifies other workers of follow-up tasks after they are committed, at most once per `GAP`.

    A NOTIFY inside the completing transactions would serialize their commits. If this process dies before it notifies, the others
    find the tasks when they poll. Tasks that this worker has free slots for are not announced.
    """

    name: ClassVar[str] = "notifier"

    def __init__(self, pool: Pool, *, own: Callable[[Sequence[NewTask]], bool], interval: float = 3600.0) -> None:
        """`own` returns whether this worker will claim all of these."""
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
