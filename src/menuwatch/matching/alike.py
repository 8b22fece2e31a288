"""Gives a listing with a known signature its number at once, where no block has to be grouped again for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.matching.blocks import brand_ids, put_products, put_sizes, stored_products
from menuwatch.matching.groups import CATALOGS
from menuwatch.matching.judging import summarize
from menuwatch.matching.model import Signature

_q = sql.load(__package__, "alike.sql")
_signature = msgspec.json.Decoder(Signature).decode


class Alike(NamedTuple):
    """A listing that is linked to its signature. `platform_ids` are those that it has or had."""

    product_id: int
    platform_ids: Sequence[str]
    sizes: Sequence[str]


async def take_numbers(conn: AsyncConnection[Any], listings: Sequence[Alike]) -> set[int]:
    """Gives listings the numbers of their signatures where that changes no group of their blocks; returns the ids of those listings.
    The blocks of the others have to be grouped again."""
    if not listings:
        return set()
    rows = [
        {
            "product_id": one.product_id,
            "ids": list(one.platform_ids),
            "catalogs": sorted(CATALOGS.intersection(text.partition(":")[0] for text in one.platform_ids)),
        }
        for one in listings
    ]
    values = {"rows": msgspec.json.encode(rows).decode(), "products": [one.product_id for one in listings]}
    numbers = dict(await (await conn.execute(_q.take_numbers, values, prepare=False)).fetchall())
    if numbers:
        sizes = ((numbers[one.product_id], size) for one in listings if one.product_id in numbers for size in one.sizes)
        await put_sizes(conn, sizes)
        await _summarize(conn, sorted(set(numbers.values())))
    return set(numbers)


async def _summarize(conn: AsyncConnection[Any], ids: Sequence[int]) -> None:
    """Updates the summaries of products that have more listings now."""
    stored = await stored_products(conn, ids)
    signatures: dict[int, list[tuple[Signature, int]]] = defaultdict(list)
    for number, parsed, listings in await (await conn.execute(_q.signatures, {"ids": ids}, prepare=False)).fetchall():
        signatures[number].append((_signature(parsed), listings))
    brands = await brand_ids(conn, (one for of_product in signatures.values() for one, _ in of_product))
    found = {}
    for number, listings, stores in await (await conn.execute(_q.counts, {"ids": ids}, prepare=False)).fetchall():
        anchor = stored[number].anchor_product_id
        found[number] = summarize(
            signatures[number], brands, anchor_product_id=anchor, listings=listings, stores=stores
        )
    await put_products(conn, {number: one for number, one in found.items() if one != stored[number]})
    await conn.execute(_q.count_impacts, {"ids": ids}, prepare=False)
