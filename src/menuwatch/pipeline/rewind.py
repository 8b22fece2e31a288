"""A store's products put back to what they were after one of its crawls, so that what came later can be applied anew.

History has what a product cost, how much there was and how strong it was at any crawl, and crawls tell of every miss since it was
last seen. What it has not is words: names, weights, specials. These are read, by today's normalizer, from the payload of the crawl
that last saw the product then; where that is not in the archive any more, from the first payload that is applied anew. (To apply
the payload before as if it were the first would have been simpler, but it says nothing of what is absent from it, and a product
that was out of stock for a year would ask for a year of payloads.) With the words comes the hash of their item, so that an item
that has not changed is passed over as it was then, unless history and reading disagree on its price, stock or potency: then history
is right up to here, and the next item is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import psycopg
from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.catalog import rows
from menuwatch.catalog.apply import LONG_UNSEEN, content_hash
from menuwatch.catalog.canon.bounds import shown_id
from menuwatch.catalog.model import Product
from menuwatch.catalog.stock import MISSES_UNTIL_OOS, absent, says_nothing
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.db import sql
from menuwatch.exports.packs import Packs
from menuwatch.payloads.extent import NOT_WHOLE
from menuwatch.payloads.store import Payload
from menuwatch.pipeline.parts import Parts
from menuwatch.platforms.base import Platform

_q = sql.load(__package__, "rebuild.sql")
_COPY = f"COPY products_read ({rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}) FROM STDIN"


class Unseen(NamedTuple):
    """What one crawl says of products that it has no state of."""

    crawled_at: datetime
    platform: str | None
    """None where the archive has not kept which."""
    whole: bool
    nameless: bool
    """There were items without an id."""
    unread: frozenset[str]
    """Ids, as warnings name them, of items that could not be read."""


class Standing(NamedTuple):
    """How long a product has been absent. `seen` is None where that is not known."""

    misses: int
    seen: datetime | None


def standing(
    crawls: Iterable[Unseen], provider: str, product_id: str, *, read_at: datetime | None, gone_at: datetime | None
) -> Standing:
    """Where a product stands after these crawls, the oldest first, none of which has read it. `read_at` is the crawl that last did;
    `gone_at` the one that was its third miss in a row. What `apply` does at each crawl, told from what is left of it. Pure."""
    name = shown_id(product_id)
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
            # Only a state of being gone has three, and history tells when such a one began.
            most = MISSES_UNTIL_OOS if gone_at is not None and crawl.crawled_at > gone_at else MISSES_UNTIL_OOS - 1
            misses = min(absent(misses).misses, most)
    return Standing(misses, seen)


def _long_unseen(seen: datetime | None, crawl: Unseen) -> bool:
    return seen is not None and seen < crawl.crawled_at - LONG_UNSEEN


@dataclass(frozen=True, slots=True)
class Rewinding:
    """Puts one store's products back, in the caller's transaction, which holds its row. The statements of `rebuild.sql` have kept
    what there was, and nothing of it is cleared yet."""

    conn: AsyncConnection[Any]
    parts: Parts
    store_id: int
    at: datetime
    """The crawl after which they are as they will be put back."""
    guessed: set[int] = field(default_factory=set)
    """Products that were seen later as well, and whose words are not known to be of their time."""

    async def look_back(self) -> None:
        """Works out what the products were. Raises Refused where their history is not kept any more."""
        for statement in (_q.create_products_then, _q.create_products_read):
            await self.conn.execute(statement)
        (lost,) = await self._rows(_q.without_state)
        if lost["products"]:
            raise Refused(
                f"store {self.store_id}: the history of {lost['products']} of its products does not reach back to "
                f"{self.at:%Y-%m-%d %H:%M} UTC any more"
            )
        await self.conn.execute(_q.look_back, self._which())
        await self._count_misses()

    async def put_back(self, following: Sequence[Payload]) -> None:
        """Puts the products back; `following` are the payloads that will be applied then."""
        for group in await self._rows(_q.to_read):
            await self._read(await self._payload_of(group["read_at"]), group["provider"], group["ids"])
        for group in await self._rows(_q.to_read):
            self.guessed.update(group["ids"].values())
            payload = next((one for one in following if one.platform == group["provider"]), None)
            await self._read(payload, group["provider"], group["ids"])
        await self.conn.execute(_q.unread)
        await self.conn.execute(_q.put_back, self._which())

    async def date_changes(self) -> None:
        """Finds when products last changed that had later, and have not in the rebuilding: by reading back, payload by payload."""
        unmoved = await self._rows(_q.unmoved)
        dated = {one["id"]: one["before"] for one in unmoved if one["id"] in self.guessed and one["still"]}
        wanted = [one for one in unmoved if one["id"] not in self.guessed and one["read_at"] is not None]
        for provider in {one["provider"] for one in wanted}:
            dated |= await self._changed(provider, [one for one in wanted if one["provider"] == provider])
        await self.conn.execute(_q.date_change, {"ids": list(dated), "times": list(dated.values())})

    async def _changed(self, provider: str, products: Sequence[dict[str, Any]]) -> dict[int, datetime]:
        """When the words of these last changed, of those where they did since their state began."""
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
        found = await self._rows(_q.crawls_until, first=first, not_whole=NOT_WHOLE)
        crawls = [Unseen(**row | {"unread": frozenset(row["unread"])}) for row in found]
        ids, seen, misses = [], [], []
        for product in missing:
            gone_at = None if product["present"] else product["seen_from"]
            stands = standing(
                crawls, product["provider"], product["provider_product_id"], read_at=product["read_at"], gone_at=gone_at
            )
            ids.append(product["product_id"])
            # Where it has not been seen since, its row still says it.
            seen.append((None if product["later"] else product["last_seen_at"]) or stands.seen or product["seen_from"])
            misses.append(stands.misses)
        values = {"ids": ids, "read_at": [product["read_at"] for product in missing], "seen": seen, "misses": misses}
        await self.conn.execute(_q.count_misses, values)

    async def _read_at(self, product_id: int, gone_at: datetime) -> datetime | None:
        """Until when a packed state lasted."""
        packs = Packs(self.parts.archive.root)
        packed = await asyncio.to_thread(packs.states_of, product_id)
        return next((state["seen_to"] for state in packed if state["ended_at"] == gone_at), None)

    async def _payload_of(self, crawled_at: datetime | None) -> Payload | None:
        async with self.conn.cursor(row_factory=class_row(Payload)) as cursor:
            await cursor.execute(_q.payload_of_crawl, {"id": self.store_id, "at": crawled_at})
            return await cursor.fetchone()

    async def _read(self, payload: Payload | None, provider: str, ids: Mapping[str, int]) -> None:
        """Reads those of these products that a payload has."""
        if payload is None:
            return
        at = payload.fetched_at.isoformat()
        lines = [
            f"{rows.product_line(ids[name], key, product)}\t{rows.identity_line(self.store_id, provider, product, at)}\n"
            for name, (key, product) in (await self._readings(payload, provider, ids)).items()
        ]
        if not await self._copied("".join(lines)):
            # One that the database refuses costs itself only.
            for line in lines:
                await self._copied(line)

    async def _readings(
        self, payload: Payload, provider: str, wanted: Mapping[str, int]
    ) -> dict[str, tuple[bytes, Product]]:
        platform = self.parts.platforms.get(provider)
        if platform is None or payload.platform != provider:
            return {}
        return await asyncio.to_thread(_readings, self.parts, payload, platform, wanted)

    async def _copied(self, lines: str) -> bool:
        try:
            async with self.conn.transaction(), self.conn.cursor() as cursor, cursor.copy(_COPY) as copy:
                await copy.write(lines)
        except (psycopg.DataError, psycopg.IntegrityError, ValueError):
            return False
        return True


_by_name = attrgetter(
    "name_raw", "brand_name_raw", "category", "subcategory", "strain_type", "status_raw", "cannabinoids", "specials", "image_url",
    "images", "description", "extra", "category_canon", "subcategory_canon", "strain_canon",
)  # fmt: skip


def _words(product: Product) -> tuple[Any, ...]:
    """What makes two readings of a product in one state differ, as `merge_stage` has it."""
    return *_by_name(product), sorted(product.variants, key=attrgetter("option"))


def _readings(
    parts: Parts, payload: Payload, platform: Platform, wanted: Mapping[str, int]
) -> dict[str, tuple[bytes, Product]]:
    """Products of a payload by id, each with the hash of its last item; none where it cannot be read any more."""
    try:
        document = parts.archive.read(payload.path, payload.sha256)
        items = [item for page in document.pages for item in platform.split(page)]
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
