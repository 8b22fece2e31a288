"""Leases and request slots: who may use a host, and when. The database grants both, so they hold across all workers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.core.errors import NotNow
from menuwatch.core.postpone import PostponeCode
from menuwatch.db import sql
from menuwatch.db.pool import Pool

_q = sql.load(__package__)

PREFETCH_SECONDS = 0.1
"""Seconds for which slots are reserved in advance if many are needed."""
STALE = 0.1
"""Seconds after which an unused slot expires: unused slots that are used all at once would exceed the burst limit."""
MAX_SLOTS = 64
"""Most slots reserved at once."""


class Lease(Struct, frozen=True):
    """A proxy leased for a host until it is released or expires. `turn` is the time of the first slot, on the monotonic clock.
    `probing`: the host's circuit is open, and this identity tests whether the host still refuses."""

    id: int
    host: str
    proxy_id: int
    first_slot: float
    probing: bool


class Denied(NotNow):
    """No lease or turn on `host` now; `code` is the reason."""

    host: str

    def __init__(self, host: str, code: str, reason: str | None, wait: float | None) -> None:
        known = PostponeCode(code)
        super().__init__(f"requests to {host} are blocked ({known.label}): {reason}", wait, code=known, host=host)

    @property
    def is_brief(self) -> bool:
        """Whether the reason passes within moments."""
        return self.code in (PostponeCode.BUSY, PostponeCode.NO_FREE_PROXY)


async def lease(
    conn: AsyncConnection[Any],
    host: str,
    ranked: Sequence[int],
    *,
    task_id: int | None,
    lease_seconds: float,
    max_wait: float,
    release_lease_id: int | None = None,
) -> Lease:
    """Lease the first of these proxies that is free at the host; raises Denied. `lasting` and `patience` (the longest wait for the
    first slot) are in seconds."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(
            _q.lease,
            {
                "host": host,
                "ranked": list(ranked),
                "task": task_id,
                "lease_seconds": lease_seconds,
                "max_wait": max_wait,
                "release_lease_id": release_lease_id,
            },
        )
        row = await cur.fetchone()
    assert row is not None, "the function answers with one row"
    if row["code"] is not None:
        raise Denied(host, row["code"], row["reason"], row["wait"])
    return Lease(
        id=row["lease"],
        host=host,
        proxy_id=row["proxy_id"],
        first_slot=time.monotonic() + row["slots"][0],
        probing=row["probing"],
    )


async def renew(conn: AsyncConnection[Any], lease_id: int, *, lease_seconds: float) -> bool:
    """Extend a lease to this many seconds from now; False if it expired and may belong to another session."""
    return (
        await (await conn.execute(_q.renew, {"lease": lease_id, "lease_seconds": lease_seconds})).fetchone() is not None
    )


async def end(conn: AsyncConnection[Any], lease_ids: Sequence[int]) -> None:
    """Release leases."""
    if lease_ids:
        await conn.execute(_q.end_leases, {"ids": list(lease_ids)})


async def closed(conn: AsyncConnection[Any], host: str) -> Denied | None:
    """Why the host takes no requests now; None if it does."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.host_block_reason, {"host": host})
        row = await cur.fetchone()
    return None if row is None else Denied(host, row["code"], row["reason"], row["wait"])


class SlotQueue:
    """Request slots of this process at one host. A slow host grants one at a time; under load some are reserved in advance, about as
    many as were used in the same time before."""

    def __init__(self, pool: Pool, host: str) -> None:
        self._pool = pool
        self._host = host
        self._moments: deque[float] = deque()
        self._taking = asyncio.Lock()
        self._waiting = 0
        self._used = 0
        self._took_at = float("-inf")

    def clear(self) -> None:
        """Drop reserved slots, because the host asked for a pause."""
        self._moments.clear()

    async def next(self) -> float:
        """Time of the next slot on the monotonic clock. Raises Denied if the host takes no requests."""
        self._waiting += 1
        try:
            while True:
                if (moment := self._ready()) is not None:
                    self._used += 1
                    return moment
                async with self._taking:
                    if not self._moments:
                        await self._take()
        finally:
            self._waiting -= 1

    def _ready(self) -> float | None:
        oldest = time.monotonic() - STALE
        while self._moments:
            moment = self._moments.popleft()
            if moment >= oldest:
                return moment
        return None

    async def _take(self) -> None:
        now = time.monotonic()
        lately = self._used if now - self._took_at < 2 * PREFETCH_SECONDS else 0
        want = min(max(self._waiting, lately, 1), MAX_SLOTS)
        self._used, self._took_at = 0, now
        async with self._pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(
                _q.acquire_slots, {"host": self._host, "count": want, "max_wait": 86_400.0, "window": PREFETCH_SECONDS}
            )
            row = await cur.fetchone()
        assert row is not None, "the function answers with one row"
        if row["code"] is not None:
            raise Denied(self._host, row["code"], row["reason"], row["wait"])
        now = time.monotonic()
        self._moments.extend(now + seconds for seconds in row["slots"])
