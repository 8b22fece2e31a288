"""Proxies as stored, and events of a proxy, one at a time."""

from __future__ import annotations

from menuwatch.db.pool import Connection, Pool
from menuwatch.proxies import service, store
from menuwatch.proxies.health import Health, ProxyEvent, ProxyOutcome
from menuwatch.proxies.model import Proxy
from menuwatch.proxies.service import ProxyFilter


async def befalls(
    conn: Connection, proxy_id: int, event: ProxyOutcome, *, elapsed_ms: float | None = None, error: str | None = None
) -> Health | None:
    """Counts the event; returns the counters after it, None when the proxy is gone."""
    async with conn.transaction():
        told = ProxyEvent(proxy_id=proxy_id, event=event, elapsed_ms=elapsed_ms, error=error)
        return (await store.record_all(conn, [told])).get(proxy_id)


async def stored_proxy(conn: Connection, proxy_id: int) -> Proxy | None:
    return (await store.some(conn, [proxy_id])).get(proxy_id)


async def listed_proxies(pool: Pool, *, active: bool | None = None) -> list[service.Proxy]:
    async with pool.connection() as conn:
        return await service.list_proxies(conn, ProxyFilter(active=active))
