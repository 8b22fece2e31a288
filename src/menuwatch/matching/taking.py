"""Takes in the changed listings of stores: signs them, writes their links and marks their blocks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.items import log_refused, write_in_halves
from menuwatch.db.query import fetch_structs
from menuwatch.matching import brands
from menuwatch.matching.alike import Alike, take_numbers
from menuwatch.matching.blocks import mark_dirty
from menuwatch.matching.brand_names import brand_core, words_for_brands
from menuwatch.matching.brands import OUTDATED_BY_PERSON, BrandIndex, Spellings
from menuwatch.matching.listings import Row, Seller, listing, sizes_of
from menuwatch.matching.model import Listing, Signature
from menuwatch.matching.names import RULES

_q = sql.load(__package__, "engine.sql")
_encode = msgspec.json.encode

AGAIN = 0
"""`match_stores.rules_version` of a store whose catalog was rebuilt or merged."""


@dataclass(slots=True, kw_only=True)
class TakenIn:
    """Counts of what was taken in. A store that is taken in again, because a brand became known, counts once; its listings that
    changed again count again."""

    store_ids: set[int] = field(default_factory=set)
    listings: int = 0
    removed: int = 0

    @property
    def stores(self) -> int:
        return len(self.store_ids)

    def add(self, more: TakenIn) -> None:
        """Adds what another run took in."""
        self.store_ids |= more.store_ids
        self.listings += more.listings
        self.removed += more.removed


class _Store(Seller, frozen=True, kw_only=True, gc=False):
    last_crawled_at: datetime
    rules_version: int | None
    """Of its last matching; null: none."""


class _Signed(NamedTuple):
    row: Row
    listing: Listing
    signature: Signature
    sizes: list[str]
    name_words: list[str] | None

    @property
    def is_renamed(self) -> bool:
        """Whether it had another signature."""
        return self.row.key not in (None, str(self.signature.key))

    @property
    def blocks(self) -> set[str]:
        """Of its signature, and of the one that it had."""
        return {self.signature.block, self.row.block or self.signature.block}


async def take_stores_in(
    conn: AsyncConnection[Any], store_ids: Sequence[int], index: BrandIndex, spellings: Spellings, run: TakenIn
) -> None:
    """Takes in what changed of stores, and removes the links of those that are gone, in one transaction."""
    async with conn.transaction():
        removed = await (await conn.execute(_q.delete_matches, {"ids": list(store_ids)})).fetchall()
        if ids := sorted({number for *_, number in removed if number is not None}):
            await conn.execute(_q.count_listings, {"ids": ids})
        await mark_dirty(conn, [block for block, *_ in removed], "menu", [number for _, number, _ in removed])
        stores = {store.id: store for store in await fetch_structs(conn, _Store, _q.stores, {"ids": list(store_ids)})}
        if gone := [number for number in store_ids if number not in stores]:
            await conn.execute(_q.delete_stores, {"ids": gone})
        written: dict[int, _Signed] = {}
        if stores:
            rows = await fetch_structs(conn, Row, _q.listings, {"ids": list(stores), "rules": RULES}, prepare=False)
            place = {number: at for at, number in enumerate(store_ids)}
            rows.sort(key=lambda row: place[row.store_id])
            new = index.add(brand_core(row.brand) for row in rows if row.brand)
            menus = {store.id: store.last_crawled_at for store in stores.values()}
            counted = spellings if spellings.cover(menus) else Spellings()
            written, signatures = await _write(conn, rows, stores, index, counted)
            by_cause: dict[str, list[_Signed]] = defaultdict(list)
            for one in written.values():
                if _is_changed(one):
                    by_cause[_cause(stores[one.row.store_id].rules_version)].append(one)
            for cause, changed in by_cause.items():
                await _have_grouped(conn, changed, signatures, cause)
            matched = [{"id": number, "last_crawled_at": at} for number, at in menus.items()]
            await conn.execute(_q.stores_matched, {"stores": _encode(matched).decode(), "rules": RULES})
            await brands.rematch_names(conn, new)
    run.store_ids.update(store_ids)
    run.listings += len(written)
    run.removed += len(removed)


def _cause(version: int | None) -> str:
    if version == OUTDATED_BY_PERSON:
        return "correction"
    return "menu" if version in (None, AGAIN, RULES) else "rules"


async def _write(
    conn: AsyncConnection[Any],
    rows: Sequence[Row],
    stores: Mapping[int, _Store],
    index: BrandIndex,
    spellings: Spellings,
) -> tuple[dict[int, _Signed], dict[int, int]]:
    """Writes the links of rows; returns those that were written, and the ids of their signatures, by their listings. A listing that
    cannot be written is skipped until the store's next menu."""
    signed = await asyncio.to_thread(_sign, rows, stores, index)
    written: dict[int, _Signed] = {}
    signatures: dict[int, int] = {}

    async def write(batch: Sequence[_Signed]) -> None:
        async with conn.transaction():
            found = await _write_batch(conn, batch, spellings)
        signatures.update(found)
        written.update((one.row.id, one) for one in batch)

    await write_in_halves(
        signed, write, lambda one, error: log_refused("product_matcher", "product", one.row.id, error)
    )
    return written, signatures


def _sign(rows: Sequence[Row], stores: Mapping[int, _Store], index: BrandIndex) -> list[_Signed]:
    signed: list[_Signed] = []
    for row in rows:
        try:
            read = listing(row, stores[row.store_id])
            one, signature = index.sign(read)
            signed.append(_Signed(row, one, signature, sizes_of(one, signature.kind), words_for_brands(read)))
        except Exception as error:
            log_refused("product_matcher", "product", row.id, error)
    return signed


async def _write_batch(
    conn: AsyncConnection[Any], batch: Sequence[_Signed], spellings: Spellings
) -> Sequence[tuple[int, int]]:
    await brands.learn(conn, ((one.listing, one.signature) for one in batch), spellings)
    named: dict[UUID, _Signed] = {}
    for one in batch:
        # The name is that of the first store that has it.
        if named.setdefault(one.signature.key, one).row.store_id == one.row.store_id:
            named[one.signature.key] = one
    new = [{"key": key, "block": one.signature.block, "parsed": one.signature} for key, one in named.items()]
    await conn.execute(_q.put_signatures, {"rows": _encode(new).decode()})
    rows = [
        {
            "product_id": one.row.id,
            "dispensary_id": one.row.store_id,
            "source_version": one.row.source_version,
            "key": one.signature.key,
            "platform_ids": one.listing.platform_ids,
            "sizes": one.sizes,
            "name_words": one.name_words,
        }
        for one in batch
    ]
    return await (await conn.execute(_q.put_matches, {"rows": _encode(rows).decode()})).fetchall()


def _is_changed(one: _Signed) -> bool:
    """Whether the listing may change groups. It does not if it only left the menu; if it is back, it may stand beside one that came
    meanwhile."""
    row = one.row
    before = (row.dispensary_id, row.key, row.sizes, row.platform_ids)
    after = (row.store_id, str(one.signature.key), one.sizes, list(one.listing.platform_ids))
    return before != after or row.on_menu


async def _have_grouped(
    conn: AsyncConnection[Any], changed: Sequence[_Signed], signatures: Mapping[int, int], cause: str
) -> None:
    """Marks what changed listings outdate. Those that have no other signature than before may take its number at once."""
    renamed = [one for one in changed if one.is_renamed]
    blocks = {block for one in renamed for block in one.blocks}
    left = [one.row.signature_id for one in renamed if one.row.signature_id is not None]
    await mark_dirty(conn, blocks, cause, [*left, *(signatures[one.row.id] for one in renamed)])
    same = [one for one in changed if not one.is_renamed]
    every_id = {one.row.id: {*one.listing.platform_ids, *(one.row.platform_ids or ())} for one in same}
    taken = await take_numbers(conn, [Alike(one.row.id, sorted(every_id[one.row.id]), one.sizes) for one in same])
    rest = [one for one in same if one.row.id not in taken]
    await mark_dirty(conn, [one.signature.block for one in rest], cause, [signatures[one.row.id] for one in rest])
