"""Canonical products with their current prices at each store."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Struct

from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, like_pattern
from menuwatch.geo.circle import Circle, circle_values

_q = sql.load(__package__, "products.sql")

LEAST = 3
"""Locations below which a spread of prices is not stated."""
IMPLAUSIBLE = 5
"""A price this many times above or below the median of its product and size is taken for a slip of the menu."""


class PriceSpread(Struct, kw_only=True, frozen=True):
    """What locations ask for one size now, in one currency, specials included. A shop on two platforms counts once."""

    size: Annotated[
        str | None, doc("Size, for example `3.5 g`; null for options without one, which are not comparable.")
    ]
    currency: Annotated[str, doc("USD or CAD; each has a row of its own.")]
    locations: int
    min: Decimal | None
    max: Decimal | None
    p25: Annotated[Decimal | None, doc("First quartile; this and the next are null below three locations.")]
    median: Decimal | None
    p75: Annotated[Decimal | None, doc("Third quartile.")]
    cv: Annotated[Decimal | None, doc("Coefficient of variation: sample standard deviation divided by the mean.")]


class CanonicalProductRow(Struct, kw_only=True, frozen=True):
    """One product of one brand in all sizes, across stores and platforms."""

    id: int
    name: str
    brand_id: Annotated[int | None, doc("Id of the canonical brand; null if menus name none.")]
    brand: str | None
    category: Annotated[str | None, doc("Canonical category; null if unknown.")]
    form: str | None
    strain: str | None
    listings: Annotated[int, doc("Listings that are matched to it, in stock or not.")]
    stores: Annotated[int, doc("Stores with such listings.")]
    sizes: Annotated[list[PriceSpread], doc("Prices of each size that can be bought now, by currency.")]


class CanonicalOffer(Struct, kw_only=True, frozen=True):
    """An option of a listing that can be bought now."""

    product_id: Annotated[int, doc("Id of the listing.")]
    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: str
    state: str | None
    location_id: int | None
    provider: Annotated[str, doc("Platform of the store.")]
    name: Annotated[str, doc("Name on the menu.")]
    option: Annotated[str, doc("Size or package, as on the menu.")]
    size: Annotated[str | None, doc("Normalized size; null if it has none.")]
    currency: Annotated[str, doc("Currency of the price: USD, or CAD at stores in Canada.")]
    price: Annotated[Decimal | None, doc("Specials included; null if it has none.")]
    crawled_at: Instant
    counted: Annotated[
        bool,
        doc("Whether it is the location's price of that size: the cheapest one of its freshest menu with the size."),
    ]
    cheapest_quarter: Annotated[
        bool,
        doc("Whether that price is at or below the first quartile and below the median of at least three locations."),
    ]


class CanonicalProductDetail(CanonicalProductRow, kw_only=True, frozen=True):
    """A canonical product with what each store asks."""

    requested_id: Annotated[
        int, doc("The id of the request: differs from `id` if that product was merged into this one.")
    ]
    offers: Annotated[list[CanonicalOffer], doc("Options that can be bought now, cheapest first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalFilter:
    """Which products; None takes all. `q` is text that the name or the brand contains. `states` and `circle`: those on the menu of a
    store there. `updated_since`: their listings or stores, or what they were merged into, changed at or after this time."""

    q: str | None = None
    brand_id: int | None = None
    category: str | None = None
    product: int | None = None
    states: Sequence[str] | None = None
    circle: Circle | None = None
    updated_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalPage:
    """Products, and the key of the next page (None at the end)."""

    items: list[CanonicalProductRow]
    next: tuple[int, int] | None


async def list_canonical_products(
    conn: Connection, where: CanonicalFilter, *, after: tuple[int, int] | None = None, limit: int = 50
) -> CanonicalPage:
    """Products in the most stores first, after the (stores, id) of an earlier page; prices are those of the filter's stores."""
    shown, following = await list_product_rows(conn, where, after=after, limit=limit)
    offers = await _offers(conn, [row["id"] for row in shown], where.states, where.circle)
    items = [CanonicalProductRow(**row, sizes=_spreads(offers[row["id"]])) for row in shown]
    return CanonicalPage(items=items, next=following)


async def list_product_rows(
    conn: Connection, where: CanonicalFilter, *, after: tuple[int, int] | None, limit: int
) -> tuple[list[Row], tuple[int, int] | None]:
    """Products without their prices, in the same order, and the key of the next page."""
    stores, number = after or (None, None)
    values = {
        "q": None if where.q is None else like_pattern(where.q),
        "brand_id": where.brand_id,
        "category": where.category,
        "product": where.product,
        "states": where.states,
        **circle_values(where.circle),
        "anywhere": where.states is None and where.circle is None,
        "updated_since": where.updated_since,
        "after_stores": stores,
        "after_id": number,
        "limit": limit + 1,
    }
    rows = await fetch_all(conn, _q.list_products, values, prepare=False)
    shown = rows[:limit]
    return shown, (shown[-1]["stores"], shown[-1]["id"]) if len(rows) > limit else None


async def get_canonical_product(
    conn: Connection, number: int, *, state: str | None = None, circle: Circle | None = None
) -> CanonicalProductDetail:
    """One product, or the one that it was merged into, with the offers of all stores, or of those in a state or a circle. Raises
    NotFound."""
    row = await fetch_one(conn, _q.get_product, {"id": number})
    if row is None:
        raise NotFound(f"canonical product {number} does not exist")
    offers = (await _offers(conn, [row["id"]], None if state is None else [state], circle))[row["id"]]
    spreads = {(spread.size, spread.currency): spread for spread in _spreads(offers)}
    shown = []
    for offer in offers:
        spread = spreads.get((offer["size"], offer["currency"]))
        cheap = False
        if offer["counted"] and spread is not None and spread.p25 is not None and spread.median is not None:
            cheap = offer["price"] <= spread.p25 and offer["price"] < spread.median
        fields = {name: offer[name] for name in CanonicalOffer.__struct_fields__ if name in offer}
        shown.append(CanonicalOffer(**fields, cheapest_quarter=cheap))
    return CanonicalProductDetail(**row, sizes=list(spreads.values()), requested_id=number, offers=shown)


async def _offers(
    conn: Connection, ids: Sequence[int], states: Sequence[str] | None, circle: Circle | None
) -> dict[int, list[Row]]:
    """Offers by product, cheapest first, with their size and whether they count for their location."""
    values = {"ids": list(ids), "states": states, **circle_values(circle)}
    rows = await fetch_all(conn, _q.offers, values, prepare=False) if ids else []
    found: dict[int, list[Row]] = defaultdict(list)
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        row["size"] = size_of(row)
        row["counted"] = False
        found[row["canonical_product_id"]].append(row)
        if row["size"] is None or not row["price"]:
            continue
        place = row["location_id"] or -row["dispensary_id"]
        known = best.setdefault((row["canonical_product_id"], row["size"], place), row)
        # Rows come cheapest first: a later one counts only if its menu is fresher.
        if row["crawled_at"] > known["crawled_at"]:
            best[row["canonical_product_id"], row["size"], place] = row
    for row in best.values():
        row["counted"] = True
    return found


def _spreads(offers: Sequence[Row]) -> list[PriceSpread]:
    prices: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for offer in offers:
        if offer["counted"]:
            prices[offer["size"], offer["currency"]].append(offer["price"])
    return [spread_of(*key, values) for key, values in sorted(prices.items(), key=lambda one: (-len(one[1]), one[0]))]


def spread_of(size: str, currency: str, prices: Sequence[Decimal]) -> PriceSpread:
    """The spread of the prices of one size in one currency, of one location each. Pure."""
    enough = len(prices) >= LEAST
    quartiles = [round(quantile(prices, share), 4) if enough else None for share in (1, 2, 3)]
    numbers = [float(price) for price in prices]
    return PriceSpread(
        size=size,
        currency=currency,
        locations=len(prices),
        min=min(prices),
        max=max(prices),
        p25=quartiles[0],
        median=quartiles[1],
        p75=quartiles[2],
        cv=Decimal(f"{statistics.stdev(numbers) / statistics.fmean(numbers):.4f}") if enough else None,
    )


def quantile(values: Sequence[Decimal], quarters: int) -> Decimal:
    """That many quarters of the way through the values, in proportion between two neighbours. Pure."""
    ordered = sorted(values)
    whole, rest = divmod(quarters * (len(ordered) - 1), 4)
    low = ordered[whole]
    return low if not rest else low + (ordered[whole + 1] - low) * rest / 4
