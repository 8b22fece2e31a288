"""Reading the catalogue: what there is, what changed, how much of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.db import sql

_q = sql.load(__package__)


async def _rows(conn: AsyncConnection[Any], query: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        return await cur.fetchall()


async def stock_counts(conn: AsyncConnection[Any], stores: Sequence[int]) -> dict[str, int]:
    """Products in these stores' last crawls, by stock status."""
    cursor = await conn.execute(_q.stock_counts, {"stores": list(stores)})
    return {str(status): int(count) for status, count in await cursor.fetchall()}


async def products(
    conn: AsyncConnection[Any],
    *,
    dispensary_id: int | None,
    limit: int | None,
    categories_canon: Sequence[str] | None = None,
    subcategories_canon: Sequence[str] | None = None,
    strains_canon: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    platforms: Sequence[str] | None = None,
    brands: Sequence[str] | None = None,
    stock: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Products by store and name; None for every store, None for no limit, None for all words. `brands` are in any case."""
    values = {
        "dispensary_id": dispensary_id,
        "limit": limit,
        "categories_canon": categories_canon,
        "subcategories_canon": subcategories_canon,
        "strains_canon": strains_canon,
        "states": states,
        "platforms": platforms,
        "brands": _lower(brands),
        "stock": stock,
    }
    return await _rows(conn, _q.products_of, values)


async def changes(
    conn: AsyncConnection[Any],
    *,
    since: datetime | None,
    dispensary_id: int | None,
    limit: int | None,
    kind: str | None = None,
    states: Sequence[str] | None = None,
    categories_canon: Sequence[str] | None = None,
    brands: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Price and stock changes, newest first. Prices are what the cheapest option costs, specials included. `kind` is one of those of
    the operation `changes`; `brands` are in any case."""
    values = {
        "since": since,
        "dispensary_id": dispensary_id,
        "limit": limit,
        "kind": kind,
        "states": states,
        "categories_canon": categories_canon,
        "brands": _lower(brands),
    }
    return await _rows(conn, _q.changes_since, values)


def _lower(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else [name.lower() for name in names]


async def price_drops(conn: AsyncConnection[Any], limit: int) -> list[dict[str, Any]]:
    """The largest price drops, by share of the price before."""
    return await _rows(conn, _q.price_drops, {"limit": limit})


async def totals(conn: AsyncConnection[Any]) -> dict[str, int]:
    """`products, snapshots, price_changes, stock_changes, out_of_stock` over everything that was crawled."""
    (row,) = await _rows(conn, _q.totals, {})
    return {key: int(value) for key, value in row.items()}


async def ensure_partitions(conn: AsyncConnection[Any], months: int = 2) -> int:
    """Makes the partitions of past states for this month and `months` more; returns how many were missing."""
    row = await (await conn.execute(_q.ensure_partitions, {"months": months})).fetchone()
    return int(row[0]) if row else 0


async def set_local_images(conn: AsyncConnection[Any], paths: Mapping[int, str]) -> set[int]:
    """Product → the file of its picture; returns those that could be written now. Others are being changed by somebody else."""
    cursor = await conn.execute(_q.set_local_images, {"ids": list(paths), "paths": list(paths.values())})
    return {row[0] for row in await cursor.fetchall()}


async def clear_local_images(conn: AsyncConnection[Any], products: Sequence[int]) -> None:
    """These products have no file of their picture any more."""
    await conn.execute(_q.clear_local_images, {"ids": list(products)})


async def fold_names(conn: AsyncConnection[Any]) -> int:
    """Takes new names of products into the index that parts of names are looked for in; returns how many there were."""
    row = await (await conn.execute(_q.fold_names)).fetchone()
    assert row is not None, "a function gives a row"
    return int(row[0])


async def count_totals(conn: AsyncConnection[Any]) -> int:
    """Counts brands and categories anew where the catalogue is large; returns how many there are."""
    row = await (await conn.execute(_q.count_totals)).fetchone()
    assert row is not None, "a function gives a row"
    return int(row[0])
