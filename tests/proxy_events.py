"""What befalls a proxy, one event at a time."""

from __future__ import annotations

from menuwatch.db.pool import Connection
from menuwatch.proxies import store
from menuwatch.proxies.health import Event, Happened, Health


async def befalls(
    conn: Connection, proxy_id: int, event: Event, *, elapsed_ms: float | None = None, error: str | None = None
) -> Health | None:
    """Counts the event; returns the counters after it, None when the proxy is gone."""
    async with conn.transaction():
        told = Happened(proxy_id=proxy_id, event=event, elapsed_ms=elapsed_ms, error=error)
        return (await store.record_all(conn, [told])).get(proxy_id)
