"""`worker_registry` from Python: who works, where, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.db import sql
from menuwatch.workers.heartbeat import Heartbeat

_SQL = sql.load(__package__)
_Conn = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a worker is: fixed from its start to its end. `roles` None means any."""

    worker_id: str
    friendly_name: str
    host: str
    pid: int
    pod: str | None = None
    roles: tuple[str, ...] | None = None

    def row(self) -> dict[str, Any]:
        """As parameters of this package's statements."""
        return {
            "worker": self.worker_id,
            "name": self.friendly_name,
            "pod": self.pod,
            "host": self.host,
            "pid": self.pid,
            "roles": None if self.roles is None else list(self.roles),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """One row of `worker_registry`; `heartbeat` is the body of the last beat, empty before the first."""

    worker_id: str
    friendly_name: str
    pod: str | None
    host: str
    pid: int | None
    roles: list[str] | None
    status: str
    started_at: datetime
    last_heartbeat_at: datetime
    heartbeat: dict[str, Any]


async def register(conn: _Conn, who: Identity) -> None:
    """Enters a worker at its start."""
    await conn.execute(_SQL.register, who.row())


async def beat(conn: _Conn, who: Identity, body: Heartbeat) -> None:
    """Records that the worker lives and what it says of itself."""
    await conn.execute(_SQL.beat, {**who.row(), "status": body.status, "heartbeat": msgspec.json.encode(body).decode()})


async def deregister(conn: _Conn, worker_id: str) -> None:
    """Records that the worker stopped on purpose."""
    await conn.execute(_SQL.deregister, {"worker": worker_id})


async def gone(conn: _Conn, host: str, pid: int, since: datetime) -> None:
    """Records that this process, which was started at `since`, has ended without saying so itself."""
    await conn.execute(_SQL.gone, {"host": host, "pid": pid, "since": since})


async def prune(conn: _Conn, older_than: timedelta) -> int:
    """Removes workers without a sign of life for that long, and what they were told; returns how many workers.

    One that the queue still holds a task for is kept.
    """
    cursor = await conn.execute(_SQL.prune, {"seconds": older_than.total_seconds()})
    return cursor.rowcount


async def list_workers(conn: _Conn, *, stopped: bool = False) -> list[Registered]:
    """Workers in the order of their start; with `stopped` also those that are gone."""
    async with conn.cursor(row_factory=class_row(Registered)) as cursor:
        await cursor.execute(_SQL.list_workers, {"all": stopped})
        return await cursor.fetchall()
