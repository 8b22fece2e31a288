"""Keeps what shoppers look through like the catalogue: a store whose menu was applied is taken in a moment later, in a transaction of
its own that writes what changed and nothing else. A refresh pays nothing for it, and whatever is missed is found at the next look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncConnection

from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.geo import postcodes
from menuwatch.operations import shopping_keys as keys
from menuwatch.operations.reading import Row, row, rows

log = get_logger(__name__)
_q = sql.load(__package__, "shopping_shelf.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
_variants = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal)

STORES_AT_ONCE = 50
TOTALS_SECONDS = 600.0
"""How old the totals of the whole catalogue may get; a tenth of it where something changed."""

_ITEMS_AT_ONCE = 500
_FORGOTTEN_DAYS = 180
"""After which an item that nobody has any more loses its address."""

Watcher = Callable[[AsyncConnection[Any], "Taken"], Awaitable[None]]
"""Told of each store that was taken in, in the transaction that did it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A store that was taken in, and the items of which it has something else than before."""

    store_id: int
    items: Sequence[int]
    first: bool
    """Nothing of the store was on the shelf before."""


@dataclass(slots=True)
class Shelved:
    """What a look did."""

    stores: int = 0
    offers: int = 0
    removed: int = 0
    seconds: float = 0.0
    left: bool = field(default=False)
    """There may be more stores to take in."""


async def _nobody(conn: AsyncConnection[Any], taken: Taken) -> None:
    return None


async def shelve(pool: Pool, *, watcher: Watcher = _nobody, most: int = STORES_AT_ONCE) -> Shelved:
    """Takes in the stores that changed, at most `most` of them. Does nothing while somebody else does it."""
    done = Shelved()
    began = time.perf_counter()
    async with pool.connection() as conn:
        if not await _yes(conn, _q.take_lock):
            return done
        try:
            found = await rows(conn, _q.stores_to_shelve, {"rules": keys.RULES, "most": most})
            for one in found:
                try:
                    async with conn.transaction():
                        await _take_in(conn, one["id"], watcher, done)
                except psycopg.OperationalError:
                    raise
                except Exception:
                    # One store that cannot be taken in does not keep the others out; it is tried again each time.
                    log.exception(
                        "a menu does not get onto the shelf", action="shop_shelf_failed", dispensary_id=one["id"]
                    )
            await _sum_up(conn)
            done.left = len(found) == most and done.stores > 0
            if not done.left:
                await _totals(conn, changed=bool(found))
        finally:
            if not conn.closed:
                await conn.execute(_q.free_lock)
    done.seconds = time.perf_counter() - began
    if done.stores:
        log.info(
            "menus are on the shelf",
            action="shop_shelved",
            stores=done.stores,
            offers=done.offers,
            removed=done.removed,
            ms=round(done.seconds * 1000),
        )
    return done


async def shelve_all(pool: Pool, *, watcher: Watcher = _nobody) -> int:
    """Takes in every store that changed; returns how many."""
    stores = 0
    while True:
        done = await shelve(pool, watcher=watcher)
        stores += done.stores
        if not done.left:
            return stores


async def _yes(conn: AsyncConnection[Any], statement: Any) -> bool:
    found = await (await conn.execute(statement)).fetchone()
    return found is not None and bool(found[0])


async def _take_in(conn: AsyncConnection[Any], store_id: int, watcher: Watcher, done: Shelved) -> None:
    store = await row(conn, _q.store, {"id": store_id})
    cursor = await conn.execute(_q.take_down, {"id": store_id, "shown": store is not None})
    touched = {found[0] for found in await cursor.fetchall()}
    done.removed += cursor.rowcount
    done.stores += 1
    first = False
    if store is None:
        await conn.execute(_q.not_shown, {"id": store_id})
    else:
        changed = await rows(conn, _q.changed_products, {"id": store_id, "rules": keys.RULES})
        known = await row(conn, _q.known_store, {"id": store_id})
        first = known is None or not known["count"]
        if changed:
            touched |= await _put(conn, store_id, changed)
            done.offers += len(changed)
        latitude, longitude = await _position(store)
        shelved = {
            "id": store_id,
            "crawled_at": store["last_crawled_at"],
            "payload_id": store["last_payload_id"],
            "rules": keys.RULES,
            "latitude": latitude,
            "longitude": longitude,
        }
        await conn.execute(_q.shelved, shelved)
    items = sorted(touched)
    if items:
        await conn.execute(_q.touch, {"ids": items})
        await watcher(conn, Taken(store_id=store_id, items=items, first=first))


async def _sum_up(conn: AsyncConnection[Any]) -> None:
    """Items of all that was taken in, each once: what many stores carry would else be summed up for each of them. Whoever dies before
    leaves them to the next look."""
    while True:
        async with conn.transaction():
            found = await (await conn.execute(_q.sum_up, {"most": _ITEMS_AT_ONCE}, prepare=False)).fetchone()
        if found is None or found[0] < _ITEMS_AT_ONCE:
            return


async def _position(store: Row) -> tuple[float | None, float | None]:
    if store["latitude"] is not None and store["longitude"] is not None:
        return store["latitude"], store["longitude"]
    place = await asyncio.to_thread(postcodes.find, store["zipcode"]) if store["zipcode"] else None
    return (place.latitude, place.longitude) if place is not None else (None, None)


async def _put(conn: AsyncConnection[Any], store_id: int, changed: Sequence[Row]) -> set[int]:
    """Writes the offers; returns the items that they are of, and were of."""
    brands = await _brands(conn, changed)
    items: dict[str, dict[str, Any]] = {}
    offers: list[dict[str, Any]] = []
    for product in changed:
        brand = product["brand_name"]
        brand_id = brands.get(keys.slug(brand)) if brand else None
        category = product["category_canon"] or "other"
        key = str(keys.item_key(product["name"], brand, category, store_id))
        if key not in items:
            items[key] = _item(product, key, brand_id, category)
        offers.append(_offer(product, store_id, key, brand_id, category))
    ids = await _item_ids(conn, items)
    for offer in offers:
        offer["item_id"] = ids[offer.pop("key")]
    await conn.execute(_q.put_offers, {"rows": _encode(offers).decode()})
    return {offer["item_id"] for offer in offers} | {
        p["item_shelved"] for p in changed if p["item_shelved"] is not None
    }


async def _brands(conn: AsyncConnection[Any], changed: Sequence[Row]) -> dict[str, int]:
    names = {slug: p["brand_name"] for p in changed if p["brand_name"] and (slug := keys.slug(p["brand_name"]))}
    if not names:
        return {}
    slugs = sorted(names)
    found = dict(await (await conn.execute(_q.brand_ids, {"slugs": slugs})).fetchall())
    new = [slug for slug in slugs if slug not in found]
    if new:
        await conn.execute(_q.put_brands, {"slugs": new, "names": [names[slug] for slug in new]})
        found |= dict(await (await conn.execute(_q.brand_ids, {"slugs": new})).fetchall())
    return found


async def _item_ids(conn: AsyncConnection[Any], items: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Ids by key; items that are new are written, and their words."""
    wanted = {"keys": sorted(items)}
    ids = {str(key): number for key, number in await (await conn.execute(_q.item_ids, wanted)).fetchall()}
    new = [items[key] for key in sorted(items) if key not in ids]
    if not new:
        return ids
    cursor = await conn.execute(_q.put_items, {"rows": _encode(new).decode()})
    ids |= {str(key): number for key, number in await cursor.fetchall()}
    found = {word for item in new for text in (item["a"], item["b"], item["c"]) for word in text.split()}
    pairs = [(word, spelling) for word in sorted(found) for spelling in sorted(keys.spellings(word))]
    if pairs:
        await conn.execute(_q.put_words, {"words": [w for w, _ in pairs], "spellings": [s for _, s in pairs]})
    return ids


def _item(product: Row, key: str, brand_id: int | None, category: str) -> dict[str, Any]:
    kinds = (
        product["category"],
        product["subcategory"],
        product["strain_type"],
        category,
        product["subcategory_canon"],
    )
    a, b, c = keys.document(product["name"], product["brand_name"], kinds)
    return {
        "key": key,
        "name": product["name"],
        "brand_id": brand_id,
        "category": category,
        "subcategory": product["subcategory_canon"],
        "strain": product["strain_canon"],
        "a": a,
        "b": b,
        "c": c,
        "first_seen": product["first_seen"],
    }


def _offer(product: Row, store_id: int, key: str, brand_id: int | None, category: str) -> dict[str, Any]:
    variants = _variants.decode(product["variants"])
    price, regular = keys.cents(product["price"]), keys.cents(product["regular"])
    per_gram = [Decimal(str(one["price_per_g"])) for one in variants if one.get("price_per_g") is not None]
    return {
        "product_id": product["id"],
        "store_id": store_id,
        "key": key,
        "stamp": product["stamp"],
        "since": product["state_from"],
        "first_seen": product["first_seen"],
        "price": price,
        "regular": regular if price is not None and regular is not None and regular > price else None,
        "was": _was(price, keys.cents(product["price_before"]), product["price_shelved"], product["was"]),
        "per_gram": min((int(one * 10_000) for one in per_gram if 0 < one < 100_000), default=None),
        "thc": int(product["thc"] * 100) if product["thc"] is not None and 0 <= product["thc"] <= 100 else None,
        "brand_id": brand_id,
        "in_stock": product["is_in_stock"],
        "category": category,
        "strain": product["strain_canon"],
        "sizes": keys.sizes(variants),
    }


def _was(price: int | None, before: int | None, shelved: int | None, was: int | None) -> int | None:
    """What it cost before its price fell to what it is. A change of something else than the price leaves it as it was known."""
    if price is None:
        return None
    if before is not None and before != price:
        return before if before > price else None
    return was if shelved == price and was is not None and was > price else None


async def _totals(conn: AsyncConnection[Any], *, changed: bool) -> None:
    found = await (await conn.execute(_q.totals_age)).fetchone()
    age = found[0] if found is not None else None
    if age is not None and age < (TOTALS_SECONDS / 10 if changed else TOTALS_SECONDS):
        return
    async with conn.transaction():
        await conn.execute(_q.clear_totals)
        await conn.execute(_q.make_totals)
    await conn.execute(_q.forget_items, {"days": _FORGOTTEN_DAYS})
