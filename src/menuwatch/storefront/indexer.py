"""Keeps the storefront index in step with the catalog and with product matching. Each applied menu is indexed shortly after, in a
transaction of its own that writes only what changed; a listing appears once it is matched to a canonical product. A refresh does not
wait for it, and anything missed is indexed by the next run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.history import read_option_prices
from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.catalog.taxonomy.text import words
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.items import Aside, log_refused, run_item, uncharged, write_in_halves
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.geo import postcodes
from menuwatch.storefront import deals
from menuwatch.storefront import items as canonical
from menuwatch.storefront.options import (
    BY_WEIGHT,
    MenuOption,
    best_of_sizes,
    decode_variants,
    read_options,
    size_rank,
)

log = get_logger(__name__)
_q = sql.load(__package__, "indexer.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode

RULES = 6
"""Version of how offers are built; raise it to have all offers rebuilt."""

STORES_AT_ONCE = 50
TOTALS_SECONDS = 50.0
"""Age in seconds at which the totals of the whole catalog are made again, if anything was indexed since."""
_FEW_ITEMS = 5_000
"""Up to that many items are counted again at once: it takes milliseconds."""

_ITEMS_AT_ONCE = 500
_PAUSE = 4
"""While stores wait, the pause after a summation as a multiple of its duration: an item is in many of these stores."""
_LONGEST_PAUSE = 300.0
_UNUSED_DAYS = 180
"""Days after which the address of an item that no store offers is deleted."""

Watcher = Callable[[AsyncConnection[Any], "IndexedStore"], Awaitable[None]]
"""Called for each indexed store, in the transaction that indexed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedStore:
    """A store whose offers changed, with the items of these offers."""

    store_id: int
    items: Sequence[int]


@dataclass(slots=True)
class IndexRun:
    """Result of one indexing run."""

    stores: int = 0
    offers: int = 0
    removed: int = 0
    more: bool = False
    """More stores may be waiting."""


@dataclass(slots=True)
class Memory:
    """What a process knows from its former runs: failed stores, and the monotonic time before which nothing is summed up while stores
    wait."""

    stores: Aside = field(default_factory=Aside)
    pause_until: float = 0.0


async def index_changed_stores(
    pool: Pool, *, watcher: Watcher | None = None, limit: int = STORES_AT_ONCE, memory: Memory | None = None
) -> IndexRun:
    """Indexes the stores that changed, at most `limit` of them, except those that failed before. No-op while another process is
    indexing."""
    run = IndexRun()
    memory = memory or Memory()
    started = time.perf_counter()
    async with pool.connection() as conn:
        if not (await fetch_one(conn, _q.take_lock, {}) or {}).get("locked"):
            return run
        try:
            await _apply_canonical_changes(conn)
            values = {"index_version": RULES, "limit": limit, "exclude": list(memory.stores.now())}
            stores = await fetch_all(conn, _q.changed_stores, values)
            for store_id in (row["id"] for row in stores):

                async def put_aside(reason: str, store_id: int = store_id) -> None:
                    log.warning(
                        "storefront indexing failed",
                        action="storefront_index_failed",
                        dispensary_id=store_id,
                        again_in_seconds=round(memory.stores.put(store_id), 1),
                        error=reason,
                    )

                if await run_item(
                    "storefront_indexer", "store", store_id, _index_store(conn, store_id, watcher, run), put_aside
                ):
                    memory.stores.clear(store_id)
            run.more = len(stores) == limit and run.stores > 0
            if not run.more or time.monotonic() >= memory.pause_until:
                begun = time.monotonic()
                await _aggregate_items(conn)
                ended = time.monotonic()
                memory.pause_until = ended + min(_PAUSE * (ended - begun), _LONGEST_PAUSE)
            if not run.more:
                await _update_totals(conn)
        finally:
            if not conn.closed:
                await conn.execute(_q.free_lock)
    if run.stores:
        log.info(
            "storefront indexed",
            action="storefront_indexed",
            stores=run.stores,
            offers=run.offers,
            removed=run.removed,
            ms=round((time.perf_counter() - started) * 1000),
        )
    return run


class StorefrontIndexer(Loop):
    """Indexes stores whose menu changed. Any number of instances may run; one works at a time."""

    name: ClassVar[str] = "storefront_indexer"

    def __init__(self, pool: Pool, *, watcher: Watcher | None = None, interval: float = 3.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._watcher = watcher
        self._memory = Memory()

    async def step(self) -> float | None:
        run = await index_changed_stores(self._pool, watcher=self._watcher, memory=self._memory)
        return 0.0 if run.more else None


async def index_all_stores(pool: Pool, *, watcher: Watcher | None = None) -> int:
    """Indexes every store that changed; returns how many."""
    stores, more, memory = 0, True, Memory()
    while more:
        run = await index_changed_stores(pool, watcher=watcher, memory=memory)
        stores, more = stores + run.stores, run.more
    return stores


async def _index_store(conn: AsyncConnection[Any], store_id: int, watcher: Watcher | None, run: IndexRun) -> None:
    async with conn.transaction():
        await conn.execute(_q.clear_dirty_store, {"id": store_id})
        store = await fetch_one(conn, _q.store, {"id": store_id})
        cursor = await conn.execute(_q.delete_offers, {"id": store_id, "visible": store is not None})
        items = {row[0] for row in await cursor.fetchall()}
        removed, offers = cursor.rowcount, 0
        if store is None:
            await conn.execute(_q.delete_store, {"id": store_id})
        else:
            changed = await fetch_all(conn, _q.changed_products, {"id": store_id, "index_version": RULES})
            if store["indexed_location_key"] not in (None, store["location_key"]):
                items |= {row["item_id"] for row in await fetch_all(conn, _q.move_to_location, store)}
            offers = await _write_offers(conn, store, changed, items)
            latitude, longitude = await _position(store)
            values = {"index_version": RULES, "latitude": latitude, "longitude": longitude}
            await conn.execute(_q.store_indexed, {**store, **values})
        call = deals.update_store(conn, store_id, visible=store is not None)
        await run_item("storefront_indexer", "deals_of_store", store_id, _in_savepoint(conn, call), uncharged)
        if items:
            await conn.execute(_q.mark_dirty, {"ids": sorted(items)})
            if watcher is not None:
                indexed = IndexedStore(store_id=store_id, items=sorted(items))
                call = _in_savepoint(conn, watcher(conn, indexed))
                await run_item("storefront_indexer", "watches_of_store", store_id, call, uncharged)
    run.stores += 1
    run.offers += offers
    run.removed += removed


async def _apply_canonical_changes(conn: AsyncConnection[Any]) -> None:
    """Applies renames and merges of canonical products, before stores are indexed: offers of a merged product are moved together."""

    async def apply(ids: Sequence[int]) -> None:
        async with conn.transaction():
            changed = await canonical.apply_changes(conn, ids)
            await conn.execute(_q.mark_dirty, {"ids": changed})

    taken: list[int] | None = []
    while taken is not None:
        async with conn.transaction():
            taken = await canonical.take_changed(conn)
            await write_in_halves(
                taken or (), apply, lambda item_id, error: log_refused("storefront_indexer", "item", item_id, error)
            )


async def _in_savepoint(conn: AsyncConnection[Any], call: Awaitable[None]) -> None:
    async with conn.transaction():
        await call


async def _aggregate_items(conn: AsyncConnection[Any]) -> None:
    """Aggregates the items of all indexed stores, each once, since an item may be in many stores. After a crash, the next
    run continues."""
    while True:
        async with conn.transaction():
            row = await (await conn.execute(_q.aggregate_items, {"limit": _ITEMS_AT_ONCE}, prepare=False)).fetchone()
        if row is None or row[0] < _ITEMS_AT_ONCE:
            return


async def _position(store: Row) -> tuple[float | None, float | None]:
    if store["latitude"] is not None and store["longitude"] is not None:
        return store["latitude"], store["longitude"]
    place = await asyncio.to_thread(postcodes.find, store["zipcode"]) if store["zipcode"] else None
    return (place.latitude, place.longitude) if place is not None else (None, None)


async def _write_offers(conn: AsyncConnection[Any], store: Row, changed: Sequence[Row], items: set[int]) -> int:
    """Writes the offers and adds the items that they belong or belonged to; returns how many were written. A product that cannot be
    written is skipped until the store's next crawl.
    """
    written = 0

    async def write(products: Sequence[Row]) -> None:
        nonlocal written
        async with conn.transaction():
            item_ids = await _write_batch(conn, store, products)
        items.update(item_ids)
        written += len(products)

    await write_in_halves(
        changed, write, lambda product, error: log_refused("storefront_indexer", "product", product["id"], error)
    )
    return written


async def _write_batch(conn: AsyncConnection[Any], store: Row, changed: Sequence[Row]) -> set[int]:
    """Writes the offers; returns the items that they belong or belonged to."""
    texts: dict[int, set[str]] = {}
    for product in changed:
        texts.setdefault(product["item_id"], set()).update(words(product["name"]), words(product["brand_name"] or ""))
    made = await canonical.put_missing(conn, texts.keys())
    await canonical.add_words(conn, {item_id: text for item_id, text in texts.items() if item_id not in made})
    usual = {row["name"]: row["per_gram"] for row in await fetch_all(conn, _q.usual_per_gram, {})} if changed else {}
    rows = [offer for product in changed for offer in _offers(product, usual.get(product["category_canon"]))]
    values = {"store_id": store["id"], "location_key": store["location_key"], "rows": _encode(rows).decode()}
    await conn.execute(_q.put_offers, values)
    sizes = {"products": [row["product_id"] for row in rows], "sizes": [row["size"] for row in rows]}
    await conn.execute(_q.delete_sizes, sizes)
    return texts.keys() | {product["indexed_item_id"] for product in changed} - {None}


def _offers(product: Row, usual_per_gram: int | None) -> Iterator[dict[str, Any]]:
    """An offer for each size of a listing; a listing without options has one without a price."""
    category = product["category_canon"]
    variants = decode_variants(product["variants"])
    options = read_options(
        variants,
        name=product["name"],
        category=category,
        in_stock=product["is_in_stock"],
        usual_per_gram=usual_per_gram,
    )
    thc = (
        product["thc"] if category in BY_WEIGHT and product["thc"] is not None and 0 <= product["thc"] <= 100 else None
    )
    before = _prices_before(product, options)
    indexed = msgspec.json.decode(product["indexed_prices"] or b"{}")
    best: Mapping[str | None, MenuOption | None] = best_of_sizes(options) or {None: None}
    for size, option in best.items():
        price = None if option is None else option.price
        indexed_price, previous = indexed.get(size or "", (None, None))
        yield {
            "product_id": product["id"],
            "size": size or "",
            "size_rank": size_rank(size),
            "from_name": option is not None and option.from_name,
            "item_id": product["item_id"],
            "source_version": product["source_version"],
            "changed_at": product["state_from"],
            "first_seen": product["first_seen"],
            "price": price,
            "regular": option.regular if option is not None else None,
            "previous_price": _previous_price(price, before.get(size), indexed_price, previous),
            "per_gram": option.per_gram if option is not None else None,
            "per_dose": option.per_dose if option is not None else None,
            "thc": None if thc is None else int(thc * 100),
            "in_stock": product["is_in_stock"] if option is None else option.in_stock,
            "strain": product["strain_canon"],
        }


def _prices_before(product: Row, options: Sequence[MenuOption]) -> dict[str | None, int]:
    """The lowest price of each size in the state before the present one, in cents."""
    if product["prices_before"] is None:
        return {}
    sizes = {option.option: option.size for option in options}
    prices: dict[str | None, int] = {}
    for one in read_option_prices(product["prices_before"]):
        if one.price is None:
            continue
        size = sizes[one.option] if one.option in sizes else size_of({"option": one.option})
        price = round(one.price * 100)
        prices[size] = min(price, prices.get(size, price))
    return prices


def _previous_price(price: int | None, before: int | None, indexed: int | None, known: int | None) -> int | None:
    """The price before the latest drop. A change of anything but the price keeps the known value."""
    if price is None:
        return None
    if before is not None and before != price:
        return before if before > price else None
    return known if indexed == price and known is not None and known > price else None


async def _update_totals(conn: AsyncConnection[Any]) -> None:
    (row,) = await fetch_all(conn, _q.totals_age, {})
    if row["age"] is not None:
        is_recent = row["age"] < TOTALS_SECONDS and row["items"] > _FEW_ITEMS
        if is_recent or not row["outdated"]:
            return
    async with conn.transaction():
        await conn.execute(_q.clear_totals)
        await conn.execute(_q.make_totals)
    await conn.execute(_q.delete_unused_items, {"days": _UNUSED_DAYS})
    await conn.execute(_q.forget_stores)
