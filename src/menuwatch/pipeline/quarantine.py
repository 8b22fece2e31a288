"""Quarantines suspicious menus, and records it on the payload, on its store and in the log.

A block, a race in the shop's own software or a changed schema shows as a menu that is far too short, or as one in which many products
are gone, sold out, without stock or without a price at once. Such a menu is kept but not applied: its missing products get no misses
until a person releases it.

| rule | a menu is suspect when |
|------|------------------------|
| size | it has less than SUSPECT_SHARE of the products that the store usually has |
| rows | more than 5 % of its rows are missing by its own pages or totals, and it is smaller than usual by half of these or more |
| gone | more than a quarter of the store's products are not on it, and more than 8; of 12 and fewer: more than half and 2 |
| lost | as many are no longer in stock; or a quarter, and more than 2, no longer have any stock data or price |
| owner | its items name another store, which this one never had the menu of |

Four more reasons are found before these rules: no item at all and too many unreadable items (`catalog/apply.py`), a document that is
not a menu and a date in the future (`pipeline/product_refresh.py`).

What a menu removes is known only after applying it, so that is checked then, in the same transaction, which is rolled back if
suspicious. The rules (`size_anomaly`, `removal_anomaly`, `data_loss_anomaly`) are pure.

A store that has really changed stays in quarantine until a person releases it, so each reason says how many menus wait already, and
since when: a single one is probably a platform error, twenty similar ones show the shop as it is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from statistics import median
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.store import Payload
from menuwatch.catalog.apply import Applied, MenuToApply, SuspectMenu
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store

log = get_logger(__name__)
_q = sql.load(__package__, "quarantine.sql")

LOST_SHARE = 0.25
"""Maximum share of a store's products that one menu may remove."""
ALWAYS_LOST = 8
"""Number of products that may always be removed, unless the store is tiny."""
SHORT_SHARE = 0.05
"""Maximum share of rows that a menu may lack by its own pages and totals, which are slightly inaccurate."""
SILENCE = timedelta(days=7)
"""After this time without a menu a store may have changed completely: removals are not checked."""


def size_anomaly(products: int, usual: Sequence[int], share: float, *, short: int = 0) -> str | None:
    """Why a menu of that many products is suspect, None if it is not.

    `usual` are the sizes of the store's last applied menus; `share` is the part of their median below which a menu is
    quarantined (`SUSPECT_SHARE`); `short` is the number of rows missing by the menu's own pages and totals.
    """
    if not usual:
        return None
    expected = median(usual)
    if products < share * expected:
        return f"shrunk: {products} products, usually {expected:g}"
    if short > SHORT_SHARE * (products + short) and expected - products >= short / 2:
        return (
            f"cut short: about {short} rows are missing according to the menu's own pages and totals; {products} products, "
            f"usually {expected:g}"
        )
    return None


def max_lost(products: int) -> float:
    """Maximum number of products that one menu may remove, for a store with `products`."""
    return max(LOST_SHARE * products, min(ALWAYS_LOST, products / 2 + 2))


def removal_anomaly(missing: int, known: int) -> str | None:
    """Why a menu that lacks `missing` of the store's `known` products is suspect, None if it is not."""
    if missing <= max_lost(known):
        return None
    return f"gone at once: {missing} of {known} products are not on this menu"


def max_blank(products: int) -> float:
    """Maximum number of products that may lose their stock data or price at once: shops do not remove these."""
    return max(LOST_SHARE * products, 2)


def data_loss_anomaly(products: int, *, stock: int, unknown: int, price: int) -> str | None:
    """Why a menu of this many products is suspect, None if it is not. `stock` of them went out of stock, `unknown` lost their stock
    data, `price` lost their price.
    """
    if price > max_blank(products):
        return f"schema changed: {price} of {products} products have lost their price at once"
    if unknown > max_blank(products):
        return f"schema changed: {unknown} of {products} products have no stock information any more"
    if stock > max_lost(products):
        return f"sold out at once: {stock} of {products} products are no longer in stock"
    return None


async def check_changes(conn: AsyncConnection[Any], menu: MenuToApply, applied: Applied) -> None:
    """Raises SuspectMenu if the menu just applied in this transaction is implausible."""
    if menu.trusted or menu.previous is None:
        return
    which = {"dispensary_id": menu.dispensary_id, "provider": menu.provider, "crawled_at": menu.crawled_at}
    known = applied.products + applied.missing
    if removal_anomaly(applied.missing, known):
        cursor = await conn.execute(_q.missing, {**which, "silence": SILENCE})
        row = await cursor.fetchone()
        assert row is not None, "an aggregate gives a row"
        if reason := removal_anomaly(row[0], known):
            raise SuspectMenu(reason)
    if max(applied.stock_changes, applied.price_changes) > max_blank(applied.products):
        row = await (await conn.execute(_q.data_lost, which)).fetchone()
        assert row is not None, "an aggregate gives a row"
        stock, unknown, price = row
        if reason := data_loss_anomaly(applied.products, stock=stock, unknown=unknown, price=price):
            raise SuspectMenu(reason)


async def check_store(
    conn: AsyncConnection[Any],
    store: Store,
    platform: Platform,
    pages: Sequence[Sequence[msgspec.Raw]],
    unknown: Sequence[msgspec.Raw],
) -> None:
    """Raises SuspectMenu if these pages are not this store's menu; the catalog does not have the `unknown` items of them. A store may
    permanently have another store's menu (shops of one owner): then it had it from its first crawl on, or a person released one.
    """
    own = all(platform.is_store(store.platform_dispensary_id, owner) for owner in platform.stores_of(unknown))
    if not own and (reason := await _foreign_store_reason(conn, store, platform, pages)):
        raise SuspectMenu(reason)


async def _foreign_store_reason(
    conn: AsyncConnection[Any], store: Store, platform: Platform, pages: Sequence[Sequence[msgspec.Raw]]
) -> str | None:
    owners = [platform.stores_of(items) for items in pages]
    named = {owner for page in owners for owner in page}
    foreign = {owner for owner in named if not platform.is_store(store.platform_dispensary_id, owner)}
    if not foreign:
        return None
    if store.first_crawled_at is None and len(named) == 1:
        return None
    values = {"dispensary_id": store.id, "provider": platform.name, "owners": sorted(named)}
    rows = await (await conn.execute(_q.usual_owners, values)).fetchall()
    strangers = foreign - {owner for (owner,) in rows}
    if not strangers:
        return None
    number, page = next((number, page) for number, page in enumerate(owners, 1) if strangers & page.keys())
    stranger = min(strangers & page.keys())
    which = f"page {number} of {len(pages)}"
    if page.keys() - strangers:
        which = f"{page[stranger]} of {len(pages[number - 1])} items of {which} are"
    elif all(strangers & other.keys() for other in owners):
        which = "the menu is"
    else:
        which = f"{which} is"
    return f"another store's: {which} of store {stranger}, and not of {store.platform_dispensary_id}"


async def add_waiting(conn: AsyncConnection[Any], store: Store, why: str, *, but: int | None = None) -> str:
    """The reason, with the number of the store's quarantined menus since its last crawl, except `but`."""
    number, since = await payloads.waiting(conn, store.id, since=store.last_crawled_at, but=but)
    if since is None:
        return why
    those = "1 menu before it waits" if number == 1 else f"{number} menus before it wait"
    return f"{why}; {those} as well, since {since:%Y-%m-%d %H:%M} UTC"


async def quarantine_payload(conn: AsyncConnection[Any], payload: Payload, why: str) -> str:
    """Quarantines a payload instead of applying it, in the caller's transaction; returns the reason as stored."""
    store = await stores.lock(conn, payload.dispensary_id)
    if store is not None:
        why = await add_waiting(conn, store, why, but=payload.id)
        await stores.attempted(
            conn, store.id, max(store.last_attempt_at or payload.fetched_at, payload.fetched_at), why
        )
    await payloads.quarantine(conn, payload.id, why)
    log_quarantine(payload.dispensary_id, payload.id, why)
    return why


def log_quarantine(dispensary_id: int, payload_id: int, why: str) -> None:
    log.warning(
        "menu quarantined; review it and run `menuwatch payloads release`",
        action="payload_quarantined",
        dispensary_id=dispensary_id,
        payload_id=payload_id,
        reason=why,
    )
