"""Takes in the changed listings of a store: signs them, writes their links and marks their blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.items import log_refused, write_in_halves
from menuwatch.db.query import fetch_one, fetch_structs
from menuwatch.matching import brands
from menuwatch.matching.alike import Alike, take_numbers
from menuwatch.matching.blocks import mark_dirty
from menuwatch.matching.brand_names import brand_core, words_for_brands
from menuwatch.matching.brands import OUTDATED_BY_PERSON, BrandIndex
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


async def take_store_in(conn: AsyncConnection[Any], store_id: int, index: BrandIndex, run: TakenIn) -> None:
    """Takes in what changed of a store, or removes its links if it is gone, in one transaction."""
    async with conn.transaction():
        removed = await (await conn.execute(_q.delete_matches, {"id": store_id})).fetchall()
        if ids := sorted({number for *_, number in removed if number is not None}):
            await conn.execute(_q.count_listings, {"ids": ids})
        await mark_dirty(conn, [block for block, *_ in removed], "menu", [number for _, number, _ in removed])
        store = await fetch_one(conn, _q.store, {"id": store_id})
        written: dict[int, _Signed] = {}
        if store is None:
            await conn.execute(_q.delete_store, {"id": store_id})
        else:
            rows = await fetch_structs(conn, Row, _q.listings, {"id": store_id, "rules": RULES}, prepare=False)
            seller = Seller(id=store["id"], name=store["name"], enterprise_id=store["enterprise_id"])
            new = index.add(brand_core(row.brand) for row in rows if row.brand)
            written, signatures = await _write(conn, rows, seller, index)
            changed = [one for one in written.values() if _is_changed(one, store_id)]
            await _have_grouped(conn, changed, signatures, _cause(store["rules_version"]))
            matched = {"id": store_id, "crawled_at": store["last_crawled_at"], "rules": RULES}
            await conn.execute(_q.store_matched, matched)
            await brands.rematch_names(conn, new)
    run.store_ids.add(store_id)
    run.listings += len(written)
    run.removed += len(removed)


def _cause(version: int | None) -> str:
    if version == OUTDATED_BY_PERSON:
        return "correction"
    return "menu" if version in (None, AGAIN, RULES) else "rules"


async def _write(
    conn: AsyncConnection[Any], rows: Sequence[Row], store: Seller, index: BrandIndex
) -> tuple[dict[int, _Signed], dict[str, int]]:
    """Writes the links of rows; returns those that were written, by their listings, and the ids of signatures by their keys. A listing
    that cannot be written is skipped until the store's next menu."""
    signed = await asyncio.to_thread(_sign, rows, store, index)
    written: dict[int, _Signed] = {}
    signatures: dict[str, int] = {}

    async def write(batch: Sequence[_Signed]) -> None:
        async with conn.transaction():
            found = await _write_batch(conn, store.id, batch)
        signatures.update(found)
        written.update((one.row.id, one) for one in batch)

    await write_in_halves(
        signed, write, lambda one, error: log_refused("product_matcher", "product", one.row.id, error)
    )
    return written, signatures


def _sign(rows: Sequence[Row], store: Seller, index: BrandIndex) -> list[_Signed]:
    signed: list[_Signed] = []
    for row in rows:
        try:
            read = listing(row, store)
            one, signature = index.sign(read)
            signed.append(_Signed(row, one, signature, sizes_of(one, signature.kind), words_for_brands(read)))
        except Exception as error:
            log_refused("product_matcher", "product", row.id, error)
    return signed


async def _write_batch(conn: AsyncConnection[Any], store_id: int, batch: Sequence[_Signed]) -> Mapping[str, int]:
    await brands.learn(conn, ((one.listing, one.signature) for one in batch))
    signatures = {str(one.signature.key): one.signature for one in batch}
    keys = list(signatures)
    new = {
        "keys": keys,
        "blocks": [one.block for one in signatures.values()],
        "parsed": [_encode(one).decode() for one in signatures.values()],
    }
    await conn.execute(_q.put_signatures, new)
    ids = dict(await (await conn.execute(_q.signature_ids, {"keys": keys})).fetchall())
    rows = [
        {
            "product_id": one.row.id,
            "dispensary_id": store_id,
            "source_version": one.row.source_version,
            "signature_id": ids[str(one.signature.key)],
            "platform_ids": one.listing.platform_ids,
            "sizes": one.sizes,
            "name_words": one.name_words,
        }
        for one in batch
    ]
    await conn.execute(_q.put_matches, {"rows": _encode(rows).decode()})
    return ids


def _is_changed(one: _Signed, store_id: int) -> bool:
    """Whether the listing may change groups. It does not if it only left the menu; if it is back, it may stand beside one that came
    meanwhile."""
    row = one.row
    before = (row.dispensary_id, row.key, row.sizes, row.platform_ids)
    after = (store_id, str(one.signature.key), one.sizes, list(one.listing.platform_ids))
    return before != after or row.on_menu


async def _have_grouped(
    conn: AsyncConnection[Any], changed: Sequence[_Signed], signatures: Mapping[str, int], cause: str
) -> None:
    """Marks what changed listings outdate. Those that have no other signature than before may take its number at once."""
    ids = {one.row.id: signatures[str(one.signature.key)] for one in changed}
    renamed = [one for one in changed if one.is_renamed]
    blocks = {block for one in renamed for block in one.blocks}
    left = [one.row.signature_id for one in renamed if one.row.signature_id is not None]
    await mark_dirty(conn, blocks, cause, [*left, *(ids[one.row.id] for one in renamed)])
    same = [one for one in changed if not one.is_renamed]
    every_id = {one.row.id: {*one.listing.platform_ids, *(one.row.platform_ids or ())} for one in same}
    taken = await take_numbers(conn, [Alike(one.row.id, sorted(every_id[one.row.id]), one.sizes) for one in same])
    rest = [one for one in same if one.row.id not in taken]
    await mark_dirty(conn, [one.signature.block for one in rest], cause, [ids[one.row.id] for one in rest])
