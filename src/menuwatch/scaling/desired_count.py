"""The table `supervisor_lease`: the desired number of workers, and the supervisor that maintains it.

A supervisor holds the lease for some seconds and renews it before they are over. After a crash another one takes over when the
lease expires, or at once if it runs on the same machine and sees that the process is gone.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime

import psutil
from msgspec import Struct
from psycopg.rows import class_row

from menuwatch.core.logging import get_logger
from menuwatch.core.machine import machine_id
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.scaling.model import Limits

log = get_logger(__name__)

_q = sql.load(__package__, "desired_count.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """One run of a supervisor."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    place: str = field(default_factory=machine_id)


class Lease(Struct, frozen=True, kw_only=True):
    """The row. `held`: a supervisor holds it now; only then are the worker counts valid."""

    desired: int | None
    holder: str | None
    host: str | None
    pid: int | None
    place: str | None
    low: int | None
    high: int | None
    running: int
    starting: int
    draining: int
    error: str | None
    held: bool


class WorkerCount(Struct, frozen=True, kw_only=True):
    """Number of a supervisor's workers by state; those that leave still run, but are not among `running`."""

    running: int = 0
    starting: int = 0
    draining: int = 0
    error: str | None = None


class Member(Struct, frozen=True, kw_only=True):
    """Registry data of one process: whether it was decommissioned, and its number of tasks."""

    pid: int
    worker_id: str
    name: str
    decommissioned: bool
    tasks: int


async def get(conn: Connection, *, lock: bool = False) -> Lease:
    """The lease; with `lock` it is locked until the transaction ends."""
    async with conn.cursor(row_factory=class_row(Lease)) as cursor:
        await cursor.execute(_q.lock_lease if lock else _q.lease)
        lease = await cursor.fetchone()
    assert lease is not None, "the migration inserts the row"
    return lease


async def set_desired(conn: Connection, wanted: int) -> None:
    """Sets the desired number; the holder of the lease reads it at its next step."""
    await conn.execute(_q.set_desired, {"desired": wanted})


class SupervisorLease:
    """The lease as one supervisor sees it: acquired if it is free, kept by publishing the status, lost to another one."""

    def __init__(
        self,
        pool: Pool,
        limits: Limits,
        *,
        first: int = 1,
        requested: int | None = None,
        lease_seconds: float = 15.0,
        holder: LeaseHolder | None = None,
    ) -> None:
        """`requested` is set as the desired number if no other supervisor holds the lease; `first` is used if none was ever set."""
        self._pool = pool
        self._limits = limits
        self._first = first
        self._requested = requested
        self._seconds = lease_seconds
        self._holder = holder or LeaseHolder()
        self._first_read: float | None = None
        self._desired: int | None = None
        self._published: WorkerCount | None = None
        self._published_at = 0.0
        self.is_standby = False

    @property
    def is_held(self) -> bool:
        """Whether this supervisor holds it."""
        return self._desired is not None

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for one step."""
        return self._pool.connection(timeout=5)

    async def read(self, conn: Connection) -> int | None:
        """The desired number, after acquiring the lease if it is free; None if another supervisor holds it."""
        if self._desired is not None:
            lease = await get(conn)
            if lease.holder == self._holder.name:
                if not lease.held:  # it was away for longer than its lease, and no other supervisor took over
                    self._published = None
                return lease.desired
            log.warning("supervisor lease lost", action="pool_lost", host=lease.host, pid=lease.pid)
            self._desired = None
        wanted = await self._acquire(conn)
        if wanted is not None:
            log.info("supervisor lease acquired", action="pool_held", wanted=wanted)
            self._requested, self._published, self.is_standby = None, None, False
        elif not self.is_standby:
            lease = await get(conn)
            log.info(
                "another supervisor holds the lease, standing by",
                action="pool_standing_by",
                host=lease.host,
                pid=lease.pid,
            )
            self.is_standby = True
        return wanted

    async def _acquire(self, conn: Connection) -> int | None:
        now = time.monotonic()
        self._first_read = self._first_read or now
        # A supervisor that just died may still hold the lease; by the time it expires an old requested number is obsolete.
        is_fresh = now - self._first_read < 2 * self._seconds
        holder, last = self._holder, await get(conn)
        # Our own pid means that it was reused.
        lives = last.pid is not None and last.pid != holder.pid and psutil.pid_exists(last.pid)
        cursor = await conn.execute(
            _q.acquire_lease,
            {
                "holder": holder.name,
                "host": holder.host,
                "pid": holder.pid,
                "place": holder.place,
                "low": self._limits.low,
                "high": self._limits.high,
                "lease_seconds": self._seconds,
                "requested": self._requested if is_fresh else None,
                "first": self._first,
                "dead": last.holder if last.place == holder.place and not lives else None,
            },
        )
        row = await cursor.fetchone()
        return None if row is None else int(row[0])

    def set_target(self, wanted: int | None) -> int:
        """Take over the desired number; returns how many workers to run, none if another supervisor holds the lease."""
        if wanted is not None and wanted != self._desired and self._desired is not None:
            log.info("desired worker count changed", action="pool_wanted", was=self._desired, wanted=wanted)
        self._desired = wanted
        return min(wanted or 0, self._limits.high)

    async def publish(self, conn: Connection, count: WorkerCount, *, left: int = 0) -> int | None:
        """Renew the lease and publish the status, if it changed or the lease is about to expire; returns the desired number, None if
        another supervisor has the lease.

        `left` workers were decommissioned by others: the desired number falls by as many, unless it is no longer the one taken over.
        """
        now = time.monotonic()
        if count == self._published and not left and now - self._published_at < self._seconds / 4:
            return self._desired
        cursor = await conn.execute(
            _q.renew_lease,
            {
                "holder": self._holder.name,
                "lease_seconds": self._seconds,
                "obeyed": self._desired or 0,
                "left": left,
                "running": count.running,
                "starting": count.starting,
                "draining": count.draining,
                "error": count.error,
            },
        )
        row = await cursor.fetchone()
        self._published, self._published_at = count, now
        return None if row is None else int(row[0])

    async def release(self, conn: Connection) -> None:
        """Release the lease; the desired number stays."""
        await conn.execute(_q.release_lease, {"holder": self._holder.name})

    async def list_members(self, conn: Connection, processes: Sequence[tuple[int, datetime]]) -> dict[int, Member]:
        """Registry data of these processes (pid, start), by pid; unregistered ones are missing."""
        values = {
            "host": self._holder.host,
            "pids": [pid for pid, _ in processes],
            "since": [since for _, since in processes],
        }
        async with conn.cursor(row_factory=class_row(Member)) as cursor:
            await cursor.execute(_q.members, values)
            return {member.pid: member for member in await cursor.fetchall()}
