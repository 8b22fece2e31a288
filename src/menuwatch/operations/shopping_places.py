"""What stores, brands and lists of everything show of what shoppers look through."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.shopping import Here, in_brief

_q = sql.load(__package__, "shopping.sql")


async def stores(
    conn: AsyncConnection[Any],
    *,
    state: str | None = None,
    here: Here | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[Row]:
    """Stores that are shown, by distance where a place is given, else by city and name, those after the one of that id."""
    last = await row(conn, _q.store, {"id": after}) if after is not None else None
    values = {
        "state": state,
        "near": None if here is None else list(here.stores),
        "meters": None if here is None else list(here.meters),
        "after_city": (last["city"] or "") if last else None,
        "after_name": last["name"] if last else None,
        "after_id": last["id"] if last else None,
        "limit": limit,
    }
    return await rows(conn, _q.stores, values, prepare=False)


async def store(conn: AsyncConnection[Any], store_id: int) -> Row | None:
    """One store that is shown; None where there is none."""
    return await row(conn, _q.store, {"id": store_id}) if store_id < 2**31 else None


async def states(conn: AsyncConnection[Any]) -> list[Row]:
    """States with how many stores and offers there are."""
    return await rows(conn, _q.states, {})


async def store_categories(conn: AsyncConnection[Any], store_id: int) -> list[Row]:
    """The parts of a store's menu with how many items each has, the largest first."""
    return await rows(conn, _q.store_categories, {"id": store_id})


async def store_menu(conn: AsyncConnection[Any], store_id: int, each: int) -> list[Row]:
    """The first items of each part of a store's menu, as that store offers them."""
    found = await rows(conn, _q.store_menu, {"id": store_id, "each": each})
    return await in_brief(conn, [one["id"] for one in found], Here(stores=(store_id,), meters=(0,)))


async def brand(conn: AsyncConnection[Any], slug: str) -> Row | None:
    """One brand; None where there is none."""
    return await row(conn, _q.brand, {"slug": slug})


async def brand_figures(conn: AsyncConnection[Any], brand_id: int) -> Row:
    """How many items of a brand there are, from which price on, and of which kinds."""
    found = await row(conn, _q.brand_figures, {"id": brand_id})
    assert found is not None, "an aggregate gives a row"
    return found | {"categories": await rows(conn, _q.brand_categories, {"id": brand_id})}


async def last_item(conn: AsyncConnection[Any]) -> int:
    """The highest number of an item; 0 where there is none."""
    found = await row(conn, _q.sitemap_bounds, {})
    return int((found["last"] if found else None) or 0)


async def sitemap_items(conn: AsyncConnection[Any], first: int, last: int) -> list[Row]:
    """Items on a menu whose numbers are from `first` on and below `last`."""
    return await rows(conn, _q.sitemap_items, {"first": first, "last": last})


async def sitemap_stores(conn: AsyncConnection[Any]) -> list[Row]:
    """Every store that is shown."""
    return await rows(conn, _q.sitemap_stores, {})


async def sitemap_brands(conn: AsyncConnection[Any], limit: int) -> list[Row]:
    """Brands by number, the first ones."""
    return (await rows(conn, _q.sitemap_brands, {"first": 0, "last": 2**31 - 1}))[:limit]
