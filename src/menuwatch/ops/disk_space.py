"""Free disk space of the machines that run servers and workers, where they store files."""

from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path
from typing import ClassVar

from menuwatch.config.settings import Settings
from menuwatch.db import sql
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_all

_q = sql.load(__package__, "disk_space.sql")


def least_free(settings: Settings) -> tuple[Path, int]:
    """The disk of this machine with the least space among those of MENUWATCH_HOME and of the storage, and its free bytes."""
    folders = [settings.home, *([settings.storage] if settings.storage_driver == "local" else [])]
    places = [next(p for p in (one.resolve(), *one.resolve().parents) if p.exists()) for one in folders]
    return min(((place, shutil.disk_usage(place).free) for place in places), key=lambda found: found[1])


async def least_free_anywhere(conn: Connection, settings: Settings) -> tuple[str, Path, int]:
    """The same of this machine and of those that recorded theirs in the last two minutes, with the name of the machine."""
    place, free = await asyncio.to_thread(least_free, settings)
    here = socket.gethostname()
    # What this process recorded is older.
    others = await fetch_all(conn, _q.recent, {"machine": here, "place": str(place)})
    found = [(here, place, free), *((row["machine"], Path(row["place"]), row["free_bytes"]) for row in others)]
    return min(found, key=lambda one: one[2])


class DiskReadings(Loop):
    """Records the free space of this machine while an alert rule asks for it."""

    name: ClassVar[str] = "disk_readings"

    def __init__(self, pool: Pool, settings: Settings, *, interval: float = 30.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._settings = settings

    async def step(self) -> float | None:
        place, free = await asyncio.to_thread(least_free, self._settings)
        values = {"machine": socket.gethostname(), "place": str(place), "free": free}
        async with self._pool.connection() as conn:
            await conn.execute(_q.record, values)
            await conn.execute(_q.prune)
        return None
