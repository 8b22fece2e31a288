"""Leases and turns: who may talk to a host, and at which moments. Both are the database's to give, so they hold across all workers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.core.errors import NotNow
from menuwatch.db import sql
from menuwatch.db.pool import Pool

_q = sql.load(__package__)

AHEAD = 0.1
"""Seconds for which turns are taken in advance where many are needed."""
STALE = 0.1
"""Seconds after its moment at which a turn is given up: turns that were saved up and used at once would be a burst that
nobody allowed."""
MOST = 64
"""Turns that are taken at once."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A proxy on a host, ours until it is given back or not renewed in time. `turn` is the first moment to ask at, of the
    monotonic clock. `probing`: the host's circuit is open, and this is the one identity that finds out whether it still is."""

    id: int
    host: str
    proxy_id: int
    turn: float
    probing: bool


class Denied(NotNow):
    """Not now. `code` is one of `unknown`, `paused`, `circuit`, `cooling`, `busy`, `no_free_proxy`, `pace`."""

    def __init__(self, host: str, code: str, reason: str | None, wait: float | None) -> None:
        super().__init__(f"{host} is not asked now ({WORDS.get(code, code)}): {reason}", wait)
        self.host = host
        self.code = code

    @property
    def is_brief(self) -> bool:
        """Whether it passes by itself within moments."""
        return self.code in ("busy", "no_free_proxy")


WORDS = {
    "paused": "an operator closed it",
    "circuit": "its circuit is open",
    "cooling": "it cools down",
    "busy": "busy",
    "no_free_proxy": "no proxy is free for it",
    "pace": "its budget",
}


async def lease(
    conn: AsyncConnection[Any],
    host: str,
    ranked: Sequence[int],
    *,
    task_id: int | None,
    lasting: float,
    patience: float,
    give_back: int | None = None,
) -> Lease:
    """The first of these proxies that nobody uses on the host; raises Denied. `lasting` and `patience` (how late its first
    turn may be) are in seconds."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(
            _q.lease,
            {
                "host": host,
                "ranked": list(ranked),
                "task": task_id,
                "lasting": lasting,
                "patience": patience,
                "give_back": give_back,
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
        turn=time.monotonic() + row["slots"][0],
        probing=row["probing"],
    )


async def renew(conn: AsyncConnection[Any], lease_id: int, *, lasting: float) -> bool:
    """Keeps a lease for so many seconds from now; False when it lapsed and may be somebody else's."""
    return await (await conn.execute(_q.renew, {"lease": lease_id, "lasting": lasting})).fetchone() is not None


async def end(conn: AsyncConnection[Any], lease_ids: Sequence[int]) -> None:
    """Gives leases back."""
    if lease_ids:
        await conn.execute(_q.end_leases, {"ids": list(lease_ids)})


async def closed(conn: AsyncConnection[Any], host: str) -> Denied | None:
    """Why the host may not be asked at all now; None where it may."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.host_closed, {"host": host})
        row = await cur.fetchone()
    return None if row is None else Denied(host, row["code"], row["reason"], row["wait"])


class Turns:
    """The moments at which this process may ask one host. A slow host gives them one at a time; where many are used, some are taken
    in advance, about as many as were used in the same time before."""

    def __init__(self, pool: Pool, host: str) -> None:
        self._pool = pool
        self._host = host
        self._moments: deque[float] = deque()
        self._taking = asyncio.Lock()
        self._waiting = 0
        self._used = 0
        self._took_at = float("-inf")

    def clear(self) -> None:
        """Gives up what was taken in advance: the host wants to be left alone."""
        self._moments.clear()

    async def next(self) -> float:
        """The moment of the next turn, on the monotonic clock. Raises Denied where the host may not be asked at all."""
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
        lately = self._used if now - self._took_at < 2 * AHEAD else 0
        want = min(max(self._waiting, lately, 1), MOST)
        self._used, self._took_at = 0, now
        async with self._pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(_q.take_slots, {"host": self._host, "want": want, "patience": 86_400.0, "ahead": AHEAD})
            row = await cur.fetchone()
        assert row is not None, "the function answers with one row"
        if row["code"] is not None:
            raise Denied(self._host, row["code"], row["reason"], row["wait"])
        now = time.monotonic()
        self._moments.extend(now + seconds for seconds in row["slots"])
