"""The rows of `proxies`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.proxies.health import Event, Health, after
from menuwatch.proxies.model import NewProxy, NoProxy, Proxy

log = get_logger(__name__)
_q = sql.load(__package__)


async def add(conn: AsyncConnection[Any], proxy: NewProxy) -> tuple[int, bool]:
    """Adds a proxy, or gives a known one its new password and place; returns its id and whether it is new."""
    row = await (await conn.execute(_q.put_proxy, dataclasses.asdict(proxy))).fetchone()
    assert row is not None, "INSERT … RETURNING gives a row"
    return int(row[0]), bool(row[1])


async def get(conn: AsyncConnection[Any], proxy_id: int) -> Proxy | None:
    """The proxy of that id."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.get_proxy, {"id": proxy_id})
        return await cur.fetchone()


async def all_of(conn: AsyncConnection[Any], *, active: bool | None = None) -> list[Proxy]:
    """Proxies by id: all, or only the active or the inactive."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.list_proxies, {"active": active})
        return await cur.fetchall()


async def active_count(conn: AsyncConnection[Any]) -> int:
    """How many may be picked."""
    row = await (await conn.execute(_q.active_count)).fetchone()
    assert row is not None, "count(*) gives a row"
    return int(row[0])


async def pick(conn: AsyncConnection[Any], *, avoid: Collection[int] = (), busy: Collection[int] = ()) -> Proxy:
    """Takes the active proxy that rested longest, and marks it used.

    `avoid` are left out unless there is no other; `busy` (in use by other sessions of this process) come last. Picks of all
    workers follow each other, so not to be called within a long transaction. Raises NoProxy when none is active.
    """
    while True:
        async with conn.transaction():
            await conn.execute(_q.one_picks)
            for left_out in (list(avoid), []) if avoid else ([],):
                for query in (_q.pick, _q.pick_waiting):
                    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
                        await cur.execute(query, {"avoid": left_out, "busy": list(busy)})
                        if (proxy := await cur.fetchone()) is not None:
                            return proxy
        # The one that was waited for may have been deactivated meanwhile while others are still active.
        if await active_count(conn) == 0:
            raise NoProxy


async def record(
    conn: AsyncConnection[Any],
    proxy_id: int,
    event: Event,
    *,
    elapsed_ms: float | None = None,
    error: str | None = None,
) -> Health | None:
    """Counts one event, in a transaction of its own; returns the counters after it, None when the proxy is gone.

    `error` is kept as `last_error`; it may not hold a password.
    """
    async with conn.transaction():
        async with conn.cursor(row_factory=class_row(Health)) as cur:
            await cur.execute(_q.lock_health, {"id": proxy_id})
            before = await cur.fetchone()
        if before is None:
            return None
        now = after(before, event, elapsed_ms=elapsed_ms)
        await conn.execute(_q.save_health, {"id": proxy_id, "error": error, **dataclasses.asdict(now)})
    if before.is_active and not now.is_active:
        log.warning("proxy deactivated", action="proxy_deactivated", proxy_id=proxy_id, event_kind=event, reason=error)
    return now
