"""Resets a store's products to their state after one of its crawls, so that later payloads can be applied again.

History has a product's price, stock, potency, batch and lab values at any crawl, and the crawls give every miss since it was last
seen. It lacks texts: names, weights, specials. These are read, with the current normalizer, from the payload of the crawl that last
saw the product; if that is no longer in the archive, from the first payload that is applied again. (Applying the preceding payload
as if it were the first would be simpler, but it lacks absent products: one out of stock for a year would need a year of payloads.)
The texts come with their item's hash, so that an unchanged item is skipped as it was then, unless history and normalizer disagree
on any of these: then history is kept up to here, and the next item is normalized.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.archive.store import Payload
from menuwatch.catalog import copy_format as rows
from menuwatch.catalog.apply import LONG_UNSEEN, content_hash
from menuwatch.catalog.brand_descriptions import brand_descriptions, keep_brand_descriptions
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.model import Product
from menuwatch.catalog.stock import MISSES_UNTIL_OOS, absent, says_nothing
from menuwatch.catalog.taxonomy.limits import shorten_id
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.db import sql
from menuwatch.pipeline.context import HandlerContext
from menuwatch.platforms.base import Platform

_q = sql.load(__package__, "rebuild.sql")
_COPY = f"COPY products_read ({rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}) FROM STDIN"


class UnobservedCrawl(NamedTuple):
    """What one crawl says about products without a state of their own in it."""

    crawled_at: datetime
    platform: str | None
    """None if the archive does not record it."""
    whole: bool
    nameless: bool
    """It had items without an id."""
    unread: frozenset[str]
    """Ids, as in warnings, of items that could not be read."""


class MissState(NamedTuple):
    """How long a product has been absent. `seen` is None if unknown."""

    misses: int
    seen: datetime | None


def miss_state_at(
    crawls: Iterable[UnobservedCrawl],
    provider: str,
    product_id: str,
    *,
    read_at: datetime | None,
    gone_at: datetime | None,
) -> MissState:
    """A product's miss state after these crawls, oldest first, none of which read it. `read_at` is the crawl that last did;
    `gone_at` the one of its third miss in a row. Recomputes what `apply` does at each crawl. Pure.
    """
    name = shorten_id(product_id)
    misses, seen = 0, read_at
    for crawl in crawls:
        if crawl.platform not in (None, provider) or (read_at is not None and crawl.crawled_at <= read_at):
            continue
        if name in crawl.unread:
            misses, seen = 0, crawl.crawled_at
        elif crawl.crawled_at == gone_at:
            misses = MISSES_UNTIL_OOS
        elif misses == MISSES_UNTIL_OOS or says_nothing(
            whole=crawl.whole, nameless=crawl.nameless, long_unseen=_long_unseen(seen, crawl)
        ):
            pass
        else:
            # Only an out-of-stock state has three misses, and history has its start.
            most = MISSES_UNTIL_OOS if gone_at is not None and crawl.crawled_at > gone_at else MISSES_UNTIL_OOS - 1
            misses = min(absent(misses).misses, most)
    return MissState(misses, seen)


def _long_unseen(seen: datetime | None, crawl: UnobservedCrawl) -> bool:
    return seen is not None and seen < crawl.crawled_at - LONG_UNSEEN


class StateRestore(Struct, frozen=True):
    """Restores one store's products, in the caller's transaction, which holds its row. Statements of `rebuild.sql` have copied the
    previous rows; nothing is deleted yet.
    """

    conn: AsyncConnection[Any]
    context: HandlerContext
    store_id: int
    at: datetime
    """The crawl whose state is restored."""
    approximate: set[int] = set()
    """Products that were seen later as well, and whose texts may be from a later time."""

    async def load_state_at(self) -> None:
        """Computes the products' state. Raises Refused if their history is no longer kept."""
        for statement in (_q.create_products_then, _q.create_products_read):
            await self.conn.execute(statement)
        (lost,) = await self._rows(_q.without_state)
        if lost["products"]:
            raise Refused(
                f"store {self.store_id}: the history of {lost['products']} of its products does not reach back to "
                f"{self.at:%Y-%m-%d %H:%M} UTC any more"
            )
        await self.conn.execute(_q.snapshot_state_at, self._which())
        await self._count_misses()

    async def restore(self, following: Sequence[Payload]) -> None:
        """Restores the products; `following` are the payloads that will be applied next."""
        for group in await self._rows(_q.products_to_read):
            await self._read(await self._payload_of(group["read_at"]), group["provider"], group["ids"])
        for group in await self._rows(_q.products_to_read):
            self.approximate.update(group["ids"].values())
            payload = next((one for one in following if one.platform == group["provider"]), None)
            await self._read(payload, group["provider"], group["ids"])
        await self.conn.execute(_q.unread)
        await self.conn.execute(_q.restore_products, self._which())

    async def date_changes(self) -> None:
        """Finds when products last changed whose change the rebuild did not see, by reading payloads backwards."""
        unmoved = await self._rows(_q.unmoved)
        dated = {one["id"]: one["before"] for one in unmoved if one["id"] in self.approximate and one["still"]}
        wanted = [one for one in unmoved if one["id"] not in self.approximate and one["read_at"] is not None]
        for provider in {one["provider"] for one in wanted}:
            dated |= await self._changed(provider, [one for one in wanted if one["provider"] == provider])
        await self.conn.execute(_q.date_change, {"ids": list(dated), "times": list(dated.values())})

    async def _changed(self, provider: str, products: Sequence[dict[str, Any]]) -> dict[int, datetime]:
        """When the texts of these products last changed, for those that changed since their state began."""
        dated: dict[int, datetime] = {}
        waiting = {one["provider_product_id"]: one for one in products}
        words: dict[str, Any] = {}
        later: dict[str, Any] | None = None
        first = min(one["seen_from"] for one in products)
        for crawl in await self._rows(_q.crawls_between, first=first):
            at = crawl["crawled_at"]
            ids = {name: one["id"] for name, one in waiting.items() if one["seen_from"] <= at <= one["read_at"]}
            if later is not None and not later["changed"]:
                ids = {name: number for name, number in ids.items() if name not in words}
            payload = await self._payload_of(at) if ids else None
            found = {} if payload is None else await self._readings(payload, provider, ids)
            for name, number in ids.items():
                now = _words(found[name][1]) if name in found else None
                if now is not None and later is not None and name in words and words[name] != now:
                    dated[number] = later["crawled_at"]
                if now is None or number in dated or waiting[name]["seen_from"] == at:
                    del waiting[name]
                words[name] = now
            later = crawl
        return dated

    def _which(self) -> dict[str, Any]:
        return {"id": self.store_id, "at": self.at}

    async def _rows(self, query: Any, **more: Any) -> list[dict[str, Any]]:
        async with self.conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, self._which() | more)
            return await cursor.fetchall()

    async def _count_misses(self) -> None:
        missing = await self._rows(_q.absent_then)
        if not missing:
            return
        for product in missing:
            if product["read_at"] is None and product["later"]:
                product["read_at"] = await self._read_at(product["product_id"], product["seen_from"])
        first = min(product["read_at"] or product["seen_from"] for product in missing)
        found = await self._rows(_q.crawls_until, first=first)
        crawls = [UnobservedCrawl(**row | {"unread": frozenset(row["unread"])}) for row in found]
        ids, seen, misses = [], [], []
        for product in missing:
            gone_at = None if product["present"] else product["seen_from"]
            state = miss_state_at(
                crawls, product["provider"], product["provider_product_id"], read_at=product["read_at"], gone_at=gone_at
            )
            ids.append(product["product_id"])
            # If it has not been seen since, its row still has it.
            seen.append((None if product["later"] else product["last_seen_at"]) or state.seen or product["seen_from"])
            misses.append(state.misses)
        values = {"ids": ids, "read_at": [product["read_at"] for product in missing], "seen": seen, "misses": misses}
        await self.conn.execute(_q.count_misses, values)

    async def _read_at(self, product_id: int, gone_at: datetime) -> datetime | None:
        """The end of a packed state."""
        archived = ParquetPartitions(self.context.archive.storage)
        packed = await asyncio.to_thread(archived.states_of, product_id)
        return next((state["seen_to"] for state in packed if state["ended_at"] == gone_at), None)

    async def _payload_of(self, crawled_at: datetime | None) -> Payload | None:
        async with self.conn.cursor(row_factory=class_row(Payload)) as cursor:
            await cursor.execute(_q.payload_of_crawl, {"id": self.store_id, "at": crawled_at})
            return await cursor.fetchone()

    async def _read(self, payload: Payload | None, provider: str, ids: Mapping[str, int]) -> None:
        """Reads those of these products that a payload contains."""
        if payload is None:
            return
        at = payload.fetched_at.isoformat()
        readings = await self._readings(payload, provider, ids)
        lines = [
            f"{rows.product_line(ids[name], key, product)}\t{rows.identity_line(self.store_id, provider, product, at)}\n"
            for name, (key, product) in readings.items()
        ]
        await keep_brand_descriptions(self.conn, brand_descriptions(product for _, product in readings.values()))
        if not await self._copied("".join(lines)):
            # A product that the database refuses is skipped alone.
            for line in lines:
                await self._copied(line)

    async def _readings(
        self, payload: Payload, provider: str, wanted: Mapping[str, int]
    ) -> dict[str, tuple[bytes, Product]]:
        platform = self.context.platforms.get(provider)
        if platform is None or payload.platform != provider:
            return {}
        return await asyncio.to_thread(_readings, self.context, payload, platform, wanted)

    async def _copied(self, lines: str) -> bool:
        try:
            async with self.conn.transaction(), self.conn.cursor() as cursor, cursor.copy(_COPY) as copy:
                await copy.write(lines)
        except (psycopg.DataError, psycopg.IntegrityError, ValueError):
            return False
        return True


_by_name = attrgetter(
    "name_raw", "brand_name_raw", "category", "subcategory", "strain_type", "status_raw", "cannabinoids", "specials", "image_url",
    "images", "description", "extra", "category_canon", "subcategory_canon", "strain_canon", "terpenes", "batch",
)  # fmt: skip


def _words(product: Product) -> tuple[Any, ...]:
    """The fields by which two readings of a product in one state differ, as in `merge_changed`."""
    return *_by_name(product), sorted(product.variants, key=attrgetter("option"))


def _readings(
    context: HandlerContext, payload: Payload, platform: Platform, wanted: Mapping[str, int]
) -> dict[str, tuple[bytes, Product]]:
    """Products of a payload by id, each with the hash of its last item; empty if it can no longer be read."""
    try:
        document = context.archive.read(payload.path, payload.sha256, payload.raw_bytes)
        items = [item for page in platform.split_menu(document.pages) for item in page]
    except (Refused, BadPayload):
        return {}
    chosen: dict[str, msgspec.Raw] = {}
    named: list[msgspec.Raw] = []
    for item in items:
        name = platform.identity(item)
        if name is not None and name in wanted:
            chosen[name] = item
            named.append(item)
    made = {product.provider_product_id: product for product in platform.normalize(named).products}
    return {
        name: (content_hash(item, platform), made[name]) for name, item in chosen.items() if made.get(name) is not None
    }
