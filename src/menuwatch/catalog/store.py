"""Statements about the whole catalog: totals, price drops, maintenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all

_q = sql.load(__package__)

NAMES_AT_ONCE = 10_000
"""New names that one statement adds to the index: a second or two."""


async def stock_counts(conn: AsyncConnection[Any], stores: Sequence[int]) -> dict[str, int]:
    """Products in these stores' last crawls, by stock status."""
    cursor = await conn.execute(_q.stock_counts, {"stores": list(stores)})
    return {str(status): int(count) for status, count in await cursor.fetchall()}


async def price_drops(conn: AsyncConnection[Any], limit: int) -> list[Row]:
    """The largest price drops, by share of the price before."""
    return await fetch_all(conn, _q.price_drops, {"limit": limit})


async def totals(conn: AsyncConnection[Any]) -> dict[str, int]:
    """`products, snapshots, price_changes, stock_changes, out_of_stock` over everything that was crawled."""
    (row,) = await fetch_all(conn, _q.totals, {})
    return {key: int(value) for key, value in row.items()}


async def ensure_partitions(conn: AsyncConnection[Any], months: int = 2) -> int:
    """Makes the partitions of past states for this month and `months` more; returns how many were missing."""
    row = await (await conn.execute(_q.ensure_partitions, {"months": months})).fetchone()
    return int(row[0]) if row else 0


async def set_local_images(conn: AsyncConnection[Any], paths: Mapping[int, str]) -> set[int]:
    """Sets the image file of each product; returns those that were written. Rows locked by other transactions are skipped."""
    cursor = await conn.execute(_q.set_local_images, {"ids": list(paths), "paths": list(paths.values())})
    return {row[0] for row in await cursor.fetchall()}


async def clear_local_images(conn: AsyncConnection[Any], products: Sequence[int]) -> None:
    """Clears the image file of these products."""
    await conn.execute(_q.clear_local_images, {"ids": list(products)})


async def fold_names(conn: AsyncConnection[Any]) -> int:
    """Adds new product names to the index for substring search, `NAMES_AT_ONCE` per statement; returns how many."""
    names, taken = 0, NAMES_AT_ONCE
    while taken == NAMES_AT_ONCE:
        row = await (await conn.execute(_q.fold_names, {"most": NAMES_AT_ONCE})).fetchone()
        assert row is not None, "a function gives a row"
        taken = int(row[0])
        names += taken
    if names:
        await conn.execute(_q.sort_in_names)
    return names


async def count_totals(conn: AsyncConnection[Any]) -> int:
    """Recounts brands and categories if the catalog is large; returns how many there are."""
    row = await (await conn.execute(_q.count_totals)).fetchone()
    assert row is not None, "a function gives a row"
    return int(row[0])


async def crawl_warnings(conn: AsyncConnection[Any], payload_id: int) -> list[dict[str, Any]]:
    """All warnings of the crawl that applied a payload, in the order of `ProductWarning`; empty if it was not applied."""
    row = await (await conn.execute(_q.crawl_warnings, {"payload_id": payload_id})).fetchone()
    return list(row[0]) if row is not None else []
