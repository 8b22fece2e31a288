"""Keeping a menu from the catalogue, and saying so: on the payload, on its store, and in the log.

A store that has really changed stays in quarantine until a person looks, so each menu that waits says how many before it wait as well,
and since when: one is a slip of the platform's, twenty that are alike are the shop as it is now.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.telemetry import get_logger
from menuwatch.payloads import store as payloads
from menuwatch.payloads.store import Payload
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

log = get_logger(__name__)


async def reason(conn: AsyncConnection[Any], store: Store, why: str, *, but: int | None = None) -> str:
    """Why, and how many of the store's menus since its last crawl wait already, `but` this one."""
    number, since = await payloads.waiting(conn, store.id, since=store.last_crawled_at, but=but)
    if since is None:
        return why
    those = "1 menu before it waits" if number == 1 else f"{number} menus before it wait"
    return f"{why}; {those} as well, since {since:%Y-%m-%d %H:%M} UTC"


async def keep_out(conn: AsyncConnection[Any], payload: Payload, why: str) -> str:
    """Quarantines a payload that was to be applied, in the caller's transaction; returns the reason as it was written."""
    store = await stores.lock(conn, payload.dispensary_id)
    if store is not None:
        why = await reason(conn, store, why, but=payload.id)
        await stores.attempted(
            conn, store.id, max(store.last_attempt_at or payload.fetched_at, payload.fetched_at), why
        )
    await payloads.quarantine(conn, payload.id, why)
    tell(payload.dispensary_id, payload.id, why)
    return why


def tell(dispensary_id: int, payload_id: int, why: str) -> None:
    """In the log."""
    log.warning(
        "a menu is quarantined: it waits for `menuwatch payloads release`",
        action="payload_quarantined",
        dispensary_id=dispensary_id,
        payload_id=payload_id,
        reason=why,
    )
