"""Hears of new work through LISTEN, on a connection of its own (a pooler in transaction mode would swallow it)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import ClassVar

from psycopg import sql

from menuwatch.db.pool import Connection, connect
from menuwatch.engine.loop import Loop
from menuwatch.tasks.store import CHANNEL
from menuwatch.workers.commands import NOTICE


class Listener(Loop):
    """Calls `on_work` for new work, `on_lost` when a running task was cancelled, `on_command` when this worker was told something;
    a lost connection is opened again."""

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
                # What was announced while nobody listened is found by looking.
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
