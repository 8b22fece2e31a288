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
    """Who a worker is: fixed from its start to its end. `roles` None means any; `version` is that of the
    software."""

    worker_id: str
    friendly_name: str
    host: str
    pid: int | None
    pod: str | None = None
    roles: tuple[str, ...] | None = None
    version: str | None = None

    def row(self) -> dict[str, Any]:
        """As parameters of this package's statements."""
        return {
            "worker": self.worker_id,
            "name": self.friendly_name,
            "pod": self.pod,
            "host": self.host,
            "pid": self.pid,
            "roles": None if self.roles is None else list(self.roles),
            "version": self.version,
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

    @property
    def called(self) -> str:
        """Its name with that of its pod."""
        return self.friendly_name if self.pod is None else f"{self.pod}/{self.friendly_name}"


async def register(conn: _Conn, who: Identity) -> bool:
    """Enters a worker at its start; says whether its id is new."""
    cursor = await conn.execute(_SQL.register, who.row())
    row = await cursor.fetchone()
    assert row is not None, "it was inserted or updated"
    return bool(row[0])


async def get(conn: _Conn, worker_id: str, *, lock: bool = False) -> Registered | None:
    """The worker of that id; with `lock` it stays as it is until the transaction ends."""
    async with conn.cursor(row_factory=class_row(Registered)) as cursor:
        await cursor.execute(_SQL.lock_worker if lock else _SQL.get_worker, {"worker": worker_id})
        return await cursor.fetchone()


async def heard(conn: _Conn, worker_id: str, status: str, heartbeat: bytes) -> bool:
    """Records what a worker says of itself, as JSON; False when it is not registered, or has left."""
    values = {"worker": worker_id, "status": status, "heartbeat": heartbeat.decode()}
    return (await conn.execute(_SQL.heard, values)).rowcount == 1


async def beat(conn: _Conn, who: Identity, body: Heartbeat) -> None:
    """Records that the worker lives and what it says of itself."""
    await conn.execute(_SQL.beat, {**who.row(), "status": body.status, "heartbeat": msgspec.json.encode(body).decode()})


async def deregister(conn: _Conn, worker_id: str) -> None:
    """Records that the worker stopped on purpose."""
    await conn.execute(_SQL.deregister, {"worker": worker_id})


async def gone(conn: _Conn, *, host: str, pid: int, pod: str | None, since: datetime) -> list[str]:
    """Records that this process, which was started at `since`, has ended; returns the ids of its workers that had not said so."""
    cursor = await conn.execute(_SQL.gone, {"host": host, "pid": pid, "pod": pod, "since": since})
    return [row[0] for row in await cursor.fetchall()]


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
