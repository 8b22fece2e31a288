"""The catalogue as people look at it: products with filters, one product's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.exports.packs import Packs
from menuwatch.operations import packed
from menuwatch.operations.reading import Row, pattern, row, rows
from menuwatch.operations.refusals import NotFound

_q = sql.load(__package__)


class Order(StrEnum):
    """How a list of products is sorted. `updated` is the newest change first; a product without a price comes last."""

    NAME = "name"
    PRICE = "price"
    PRICE_DESCENDING = "-price"
    UPDATED = "updated"


_BY_ORDER = {
    Order.NAME: _q.products_by_name,
    Order.PRICE: _q.products_by_price,
    Order.PRICE_DESCENDING: _q.products_by_price_descending,
    Order.UPDATED: _q.products_by_updated,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFilter:
    """Which products; None takes all. `q` is text that the name contains, in any case; prices are those of the cheapest
    option, specials included. What ends in `canon` is in the words of all platforms, the rest in each platform's own. `present` asks
    whether the product was in its store's last crawl, `special` whether it costs less than it usually does, `states` are those that
    its store lies in."""

    stores: Sequence[int] | None = None
    brands: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    strain_types: Sequence[str] | None = None
    categories_canon: Sequence[str] | None = None
    subcategories_canon: Sequence[str] | None = None
    strains_canon: Sequence[str] | None = None
    stock: Sequence[str] | None = None
    present: bool | None = None
    states: Sequence[str] | None = None
    special: bool | None = None
    q: str | None = None
    price_min: Decimal | None = None
    price_max: Decimal | None = None

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"q": None if self.q is None else pattern(self.q)}


Key = str | Decimal | datetime
"""The value that a list of products is sorted by: of the type that its order has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPage:
    """Some products, and where the next page starts (None at the end)."""

    rows: list[Row]
    next: tuple[Key, int] | None


async def page(
    conn: AsyncConnection[Any],
    where: ProductFilter,
    *,
    order: Order = Order.NAME,
    after: tuple[Key, int] | None = None,
    limit: int = 50,
) -> ProductPage:
    """Products in that order, after the one whose (key, id) is `after`."""
    found = await _keys(conn, where, order, after, limit + 1)
    shown = found[:limit]
    details = await rows(conn, _q.products_in_brief, {"ids": [r["id"] for r in shown]}) if shown else []
    more = len(found) > limit
    return ProductPage(rows=details, next=(shown[-1]["key"], shown[-1]["id"]) if more else None)


async def _keys(
    conn: AsyncConnection[Any], where: ProductFilter, order: Order, after: tuple[Key, int] | None, limit: int
) -> list[Row]:
    """Keys and ids in that order. Planned anew each time: which index serves depends on what is asked for."""
    key, product_id = after if after is not None else (None, None)
    names = await names_with(conn, where)
    if names == []:
        return []
    values = {
        **where.values(),
        "names": names,
        "after_key": key,
        "after_id": product_id,
        "limit": limit,
        "priced": True,
    }
    if order not in (Order.PRICE, Order.PRICE_DESCENDING):
        return await rows(conn, _BY_ORDER[order], values, prepare=False)
    # Those without a price have a key that no price has.
    begun = isinstance(key, Decimal) and not key.is_finite()
    found = [] if begun else await rows(conn, _BY_ORDER[order], values, prepare=False)
    if len(found) < limit:
        rest = {**values, "priced": False, "limit": limit - len(found), "after_id": product_id if begun else None}
        found += await rows(conn, _BY_ORDER[order], rest, prepare=False)
    return found


_NAMES = 1000
"""Up to so many names are looked for one by one; what more have is found soon in any order."""


async def names_with(conn: AsyncConnection[Any], where: ProductFilter) -> list[str] | None:
    """The names that `q` is in, in lower case; None where it is not worth to know: they are many, or the stores are few."""
    if where.q is None or len(where.q) < 3 or where.stores is not None:
        return None
    values = {"text": where.q, "pattern": pattern(where.q), "limit": _NAMES + 1}
    found = await rows(conn, _q.names_with, values, prepare=False)
    return None if len(found) > _NAMES else [one["name"] for one in found]


async def one(conn: AsyncConnection[Any], product_id: int) -> Row:
    """Everything that is known of one product; raises NotFound."""
    found = await row(conn, _q.get_product, {"id": product_id})
    if found is None:
        raise NotFound(f"product {product_id} does not exist")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time: from `since` on, before `until`."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """States of one product, newest first, and the gaps in what is known between them."""

    states: list[Row]
    gaps: list[Row]
    next: datetime | None


async def history(
    conn: AsyncConnection[Any],
    product_id: int,
    span: Span,
    *,
    after: datetime | None = None,
    limit: int = 50,
    packs: Packs | None = None,
) -> History:
    """The product's states that touch `span`, those that began before `after`, also those that lie in `packs`; raises NotFound.

    Gaps are those of the time that the page covers, so every gap is on some page.
    """
    await one(conn, product_id)

    async def ask(packed_states: str) -> History:
        which = {"packed": packed_states, "id": product_id}
        asked = {"since": span.since, "until": span.until, "after": after, "limit": limit + 1}
        found = await rows(conn, _q.product_states, {**which, **asked})
        shown, more = found[:limit], len(found) > limit
        covered = {
            "since": shown[-1]["from"] if more else span.since,
            "until": after if after is not None else span.until,
        }
        gaps = await rows(conn, _q.product_gaps, {**which, **covered})
        return History(states=shown, gaps=gaps, next=shown[-1]["from"] if more else None)

    return await packed.beside(packs, lambda files: files.states_of(product_id), ask)


async def snapshots(
    conn: AsyncConnection[Any],
    product_id: int,
    span: Span,
    *,
    after: datetime | None = None,
    limit: int = 50,
    packs: Packs | None = None,
) -> list[Row]:
    """The product as each crawl saw it, newest first, those before `after`; raises NotFound."""
    await one(conn, product_id)
    asked = {"id": product_id, "since": span.since, "until": span.until, "after": after, "limit": limit}

    async def ask(packed_states: str) -> list[Row]:
        return await rows(conn, _q.product_snapshots, {**asked, "packed": packed_states})

    return await packed.beside(packs, lambda files: files.states_of(product_id), ask)


async def _names(
    conn: AsyncConnection[Any],
    kind: str,
    query: Any,
    stores: Sequence[int] | None,
    q: str | None,
    after: str | None,
    limit: int,
) -> list[Row]:
    values = {"kind": kind, "stores": stores, "q": None if q is None else pattern(q), "after": after, "limit": limit}
    if stores is None:
        (counted,) = await rows(conn, _q.are_there_totals, values)
        if counted["found"]:
            return await rows(conn, _q.totals, values, prepare=False)
    return await rows(conn, query, values, prepare=False)


async def brands(
    conn: AsyncConnection[Any],
    *,
    stores: Sequence[int] | None = None,
    q: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[Row]:
    """Brand names after `after`, with how many products and stores have them; of a large catalogue as upkeep counted them last."""
    return await _names(conn, "brand", _q.list_brands, stores, q, after, limit)


async def categories(
    conn: AsyncConnection[Any],
    *,
    stores: Sequence[int] | None = None,
    q: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[Row]:
    """Category names after `after`, with how many products and stores have them; of a large catalogue as upkeep counted them last."""
    return await _names(conn, "category", _q.list_categories, stores, q, after, limit)
