"""Python interface of `worker_registry`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.core.postpone import PostponeCode
from menuwatch.db import sql


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker's container, or the machine, uses; and its process: `memory_rss_mb` and `process_cpu_percent` (since the last
    heartbeat; omitted from the first). Memory in MiB; percentages from 0 to 100, of the limit it runs under."""

    memory_mb: float
    memory_total_mb: float
    memory_rss_mb: float
    memory_percent: float
    cpu_user_ms: int
    cpu_system_ms: int
    cpu_percent: float
    process_cpu_percent: float | msgspec.UnsetType = msgspec.UNSET
    is_backing_off: bool = False
    backoff_reason: str | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The body of one heartbeat; `current_task_id` has been running longest. `paused_roles` are those that it does not
    claim for now, with reason and code; all three are there only when there is such a role."""

    worker_id: str
    current_task_id: int | None
    current_task_ids: list[int]
    active_task_count: int
    max_concurrent_tasks: int
    status: str
    resources: Resources
    paused_roles: list[str] | msgspec.UnsetType = msgspec.UNSET
    paused_roles_reason: str | msgspec.UnsetType = msgspec.UNSET
    paused_roles_code: PostponeCode | msgspec.UnsetType = msgspec.UNSET


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


class RegistryEntry(Struct, frozen=True, kw_only=True):
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
    def display_name(self) -> str:
        """Its name with that of its pod."""
        return self.friendly_name if self.pod is None else f"{self.pod}/{self.friendly_name}"


async def register(conn: _Conn, who: Identity) -> bool:
    """Register a worker at its start; returns whether its id is new."""
    cursor = await conn.execute(_SQL.register, who.row())
    row = await cursor.fetchone()
    assert row is not None, "it was inserted or updated"
    return bool(row[0])


async def enter(conn: _Conn, who: Identity, *, gone: int | None) -> datetime | None:
    """Register a worker unless another living one has its id; returns its start. One with the process id `gone` on this machine does
    not live, whatever its last heartbeat."""
    row = await (await conn.execute(_SQL.enter, {**who.row(), "gone": gone})).fetchone()
    return None if row is None else row[0]


async def get(conn: _Conn, worker_id: str, *, lock: bool = False) -> RegistryEntry | None:
    """The worker of that id; with `lock` it is locked until the transaction ends."""
    async with conn.cursor(row_factory=class_row(RegistryEntry)) as cursor:
        await cursor.execute(_SQL.lock_worker if lock else _SQL.get_worker, {"worker": worker_id})
        return await cursor.fetchone()


async def beat(conn: _Conn, who: Identity, body: Heartbeat, *, entered: datetime | None = None) -> bool:
    """Records that the worker lives and what it says of itself; False if another worker has its id by now. `entered` is the start that
    the registry has of it, if it could be registered."""
    values = {**who.row(), "status": body.status, "heartbeat": msgspec.json.encode(body).decode(), "entered": entered}
    return (await conn.execute(_SQL.beat, values)).rowcount == 1


async def void_commands(conn: _Conn, worker_id: str) -> None:
    """Withdraw the commands that the worker has not acknowledged."""
    await conn.execute(_SQL.void_commands, {"worker": worker_id})


async def deregister(conn: _Conn, worker_id: str) -> None:
    """Records that the worker stopped on purpose."""
    await conn.execute(_SQL.deregister, {"worker": worker_id})


async def mark_dead(conn: _Conn, *, host: str, pid: int, pod: str | None, since: datetime) -> list[str]:
    """Records that this process, which was started at `since`, has ended; returns the ids of its workers that had not said so."""
    cursor = await conn.execute(_SQL.mark_dead, {"host": host, "pid": pid, "pod": pod, "since": since})
    return [row[0] for row in await cursor.fetchall()]


async def prune(conn: _Conn, older_than: timedelta) -> int:
    """Delete workers without a heartbeat for that long, and their commands; returns how many workers.

    A worker that still holds a task is kept.
    """
    cursor = await conn.execute(_SQL.prune, {"seconds": older_than.total_seconds()})
    return cursor.rowcount


async def list_workers(conn: _Conn, *, stopped: bool = False) -> list[RegistryEntry]:
    """Workers by start time; with `stopped` including stopped ones."""
    async with conn.cursor(row_factory=class_row(RegistryEntry)) as cursor:
        await cursor.execute(_SQL.list_workers, {"all": stopped})
        return await cursor.fetchall()
