"""Product search for shoppers: items across stores with facets, page by page.

An item is a canonical product: the same product in every store, in all sizes. Without a location a search reads items; near a location
it reads the offers of the stores there, with their prices, stock and distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import Any

from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.text import words
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.geo.units import KM_PER_MILE
from menuwatch.storefront.page_queries import ItemCard, NearbyStores, list_item_cards, nearby_values
from menuwatch.storefront.parsed_query import MAX_WORDS, ParsedQuery, parse_query, with_fewer_words

_q = sql.load(__package__, "search.sql")

MOST_COUNTED = 2_000
"""Maximum items counted exactly; larger results are estimated."""
SURE = 1_000
"""Estimates below this are replaced by an exact count."""
MOST_NEARBY_OFFERS = 12_000
"""Maximum offers of nearby stores that a search reads, nearest stores first."""
MOST_NEARBY_STORES = 200
_SAMPLE_ROWS = 8_000
_KM_PER_DEGREE = 111.2
_MOST = 2**31 - 2

PRICE_STEPS = (2_000, 4_000, 6_000, 10_000)
"""Bounds of the price ranges, in cents."""
THC_STEPS = (1_000, 1_500, 2_000, 2_500, 3_000)
"""Bounds of the potency ranges, in hundredths of a percent."""


class Order(StrEnum):
    """Sort order of results."""

    RELEVANCE = "relevance"
    PRICE = "price"
    PER_GRAM = "per_gram"
    THC = "thc"
    DISTANCE = "distance"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matches:
    """How a text was parsed, and the items it matches: their `ids` if they are few, else the tsquery `broad`."""

    parsed: ParsedQuery
    ids: list[int] | None = None
    broad: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search request. Prices in cents, price per gram in hundredths of a cent, THC in hundredths of a percent."""

    text: str = ""
    category: str | None = None
    strains: tuple[str, ...] = ()
    brands: tuple[int, ...] = ()
    sizes: tuple[str, ...] = ()
    in_stock: bool = False
    special: bool = False
    price_min: int | None = None
    price_max: int | None = None
    per_gram_max: int | None = None
    thc_min: int | None = None
    thc_max: int | None = None
    nearby: NearbyStores | None = None

    @property
    def by_size(self) -> bool:
        """Whether items have to be filtered by their sizes: one bound or stock alone is that of some offer of theirs."""
        bounds = (self.price_max is not None) + (self.per_gram_max is not None) + self.in_stock
        return bool(self.sizes) or self.special or self.price_min is not None or bounds > 1

    @property
    def counts_by_size(self) -> bool:
        """Whether the counts have to be of sizes: which ones are left depends on their prices."""
        return self.by_size or self.price_max is not None or self.per_gram_max is not None or self.in_stock

    def offer_values(self) -> dict[str, Any]:
        """What the request asks of one offer, as query parameters."""
        return {
            "sizes": list(self.sizes) or None,
            "in_stock": self.in_stock,
            "special": self.special,
            "price_min": self.price_min,
            "price_max": None if self.price_max is None else min(self.price_max, _MOST),
            "per_gram_max": None if self.per_gram_max is None else min(self.per_gram_max, _MOST),
        }

    def values(self, matches: _Matches) -> dict[str, Any]:
        """The request as query parameters. A range excludes items without a value, even if only one bound is set."""
        potent = self.thc_min is not None or self.thc_max is not None
        return {
            "words": matches.parsed.query,
            "ids": matches.ids,
            "broad": matches.broad,
            "category": self.category,
            "strains": list(self.strains) or None,
            "brands": list(self.brands) or None,
            **self.offer_values(),
            "thc_min": (self.thc_min or 0) if potent else None,
            "thc_max": self.thc_max,
            **nearby_values(self.nearby),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetValue:
    """A facet value with its number of items."""

    value: str
    label: str
    items: int


@dataclass(slots=True, kw_only=True)
class ResultCounts:
    """Number of items and facet counts; estimates unless `exact`."""

    items: int
    exact: bool
    facets: dict[str, list[FacetValue]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results, best first, and the key of the next page (None at the end)."""

    items: list[ItemCard]
    counts: ResultCounts
    parsed: ParsedQuery
    next: tuple[int, int] | None


async def find_city(conn: AsyncConnection[Any], names: Sequence[str]) -> Row | None:
    """The first of these names, in lower case, that is a city with a listed store."""
    rows = {row["name"]: row for row in await fetch_all(conn, _q.cities, {"names": list(names)})}
    return next((rows[name] for name in names if name in rows), None)


async def find_stores_named(conn: AsyncConnection[Any], text: str, limit: int = 6) -> list[Row]:
    """Stores whose names have all words of a text."""
    typed = [f"'{word}'" for word in words(text)[:MAX_WORDS]]
    return await fetch_all(conn, _q.stores_named, {"words": typed, "limit": limit}) if typed else []


async def search(
    conn: AsyncConnection[Any],
    request: SearchRequest,
    *,
    order: Order = Order.RELEVANCE,
    after: tuple[int, int] | None = None,
    limit: int = 24,
) -> SearchPage:
    """Finds items in the requested order, after the one whose (key, id) is `after`."""
    matches = await _matches(conn, await parse_query(conn, request.text))
    counts = await _count_with_facets(conn, request, matches)
    values = {
        **request.values(matches),
        "order": _order(order, request, matches),
        "after_key": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit + 1,
    }
    rows = await fetch_all(conn, _statement(request, counts), values, prepare=False) if counts.items else []
    page = rows[:limit]
    return SearchPage(
        items=await list_item_cards(
            conn, [row["id"] for row in page], request.nearby, {**request.offer_values(), "order": order.value}
        ),
        counts=counts,
        parsed=matches.parsed,
        next=(page[-1]["key"], page[-1]["id"]) if len(rows) > limit else None,
    )


def _statement(request: SearchRequest, counts: ResultCounts) -> Any:
    if request.nearby is not None:
        return _q.find_nearby
    if request.by_size:
        return _q.find_of_sizes
    return _q.find_few if counts.exact and counts.items <= SURE else _q.find


async def _matches(conn: AsyncConnection[Any], parsed: ParsedQuery) -> _Matches:
    if parsed.query is None:
        return _Matches(parsed=parsed)
    rows = await fetch_all(conn, _q.matching, {"words": parsed.query, "limit": MOST_COUNTED + 1}, prepare=False)
    if not rows and len(parsed.terms) > 1:
        fewer = await with_fewer_words(conn, parsed)
        if fewer.left_out:
            return await _matches(conn, fewer)
    if len(rows) > MOST_COUNTED:
        return _Matches(parsed=parsed, broad=parsed.query)
    return _Matches(parsed=parsed, ids=[row["item_id"] for row in rows])


def _order(order: Order, request: SearchRequest, matches: _Matches) -> str:
    if order is Order.DISTANCE and request.nearby is None:
        return "popular"
    # Among very many matches relevance hardly differs: sort by number of stores, which has an index.
    if order is Order.RELEVANCE and matches.ids is None:
        return "popular"
    return order.value


async def _count_with_facets(conn: AsyncConnection[Any], request: SearchRequest, matches: _Matches) -> ResultCounts:
    """Facet counts of the request. The counts of a facet ignore the selection within it."""
    counts = await _count(conn, request, matches)
    for facet, without in (
        ("category", replace(request, category=None)),
        ("strain", replace(request, strains=())),
        ("brand", replace(request, brands=())),
        ("size", replace(request, sizes=())),
        ("price", replace(request, price_min=None, price_max=None)),
        ("thc", replace(request, thc_min=None, thc_max=None)),
    ):
        if without != request:
            counts.facets[facet] = (await _count(conn, without, matches)).facets.get(facet, [])
    await _name_brands(conn, counts)
    return counts


async def _count(conn: AsyncConnection[Any], request: SearchRequest, matches: _Matches) -> ResultCounts:
    values = {**request.values(matches), "price_steps": list(PRICE_STEPS), "thc_steps": list(THC_STEPS)}
    if request.nearby is not None:
        return _to_counts(await fetch_all(conn, _q.facets_nearby, values, prepare=False))
    of_sizes = request.counts_by_size
    share = 1.0 if matches.ids is not None or request.brands else await _sampled_share(conn)
    if share < 1:
        query = _q.facets_of_sizes_sampled if of_sizes else _q.facets_sampled
        sampled = await fetch_all(conn, query, {**values, "percent": share * 100}, prepare=False)
        counts = _to_counts(sampled, 1 / share)
        if counts.items > SURE:
            return counts
    query = _q.facets_of_sizes if of_sizes else _q.facets
    rows = await fetch_all(conn, query, {**values, "most": _SAMPLE_ROWS}, prepare=False)
    counts = _to_counts(rows)
    counts.exact = max(counts.items, *[row["n"] for row in rows if row["facet"] == "rows"], 0) <= _SAMPLE_ROWS
    return counts


async def _sampled_share(conn: AsyncConnection[Any]) -> float:
    """Share of all items that an estimate samples."""
    total = await fetch_one(conn, _q.totals, {"kind": "all", "limit": 1})
    return min(1.0, _SAMPLE_ROWS / max(total["items"] if total else 0, 1))


def _to_counts(rows: Sequence[Row], times: float = 1.0) -> ResultCounts:
    exact = times == 1.0
    counts = ResultCounts(items=0, exact=exact)
    for row in rows:
        n, value = row["n"] if exact else _rounded(row["n"] * times), row["value"]
        if row["facet"] == "all":
            counts.items = n
        elif row["facet"] != "rows":
            counts.facets.setdefault(row["facet"], []).append(FacetValue(value=value, label=value, items=n))
    for values in counts.facets.values():
        values.sort(key=lambda facet_value: (-facet_value.items, facet_value.value))
    return counts


def _rounded(n: float) -> int:
    """An estimate rounded to two significant digits."""
    if n < 100:
        return round(n)
    unit: int = 10 ** (int(math.log10(n)) - 1)
    return round(n / unit) * unit


async def _name_brands(conn: AsyncConnection[Any], counts: ResultCounts) -> None:
    values = counts.facets.get("brand", [])
    rows = await fetch_all(conn, _q.brands_by_id, {"ids": [int(brand.value) for brand in values]}) if values else []
    brands = {str(row["id"]): row for row in rows}
    counts.facets["brand"] = [
        FacetValue(value=row["slug"], label=row["name"], items=brand.items)
        for brand in values
        if (row := brands.get(brand.value)) is not None
    ]


async def list_brands(conn: AsyncConnection[Any], slugs: Sequence[str]) -> list[Row]:
    """The existing brands with these slugs."""
    return await fetch_all(conn, _q.brands_by_slug, {"slugs": list(slugs)}) if slugs else []


async def find_nearby_stores(conn: AsyncConnection[Any], point: tuple[float, float], miles: float) -> NearbyStores:
    """Stores around a point, nearest first; cut at the maximum that a search reads."""
    latitude, longitude = point
    km = miles * KM_PER_MILE
    lat_span = km / _KM_PER_DEGREE
    values = {
        "lat": latitude,
        "lon": longitude,
        "lat_span": lat_span,
        "lon_span": lat_span / max(math.cos(math.radians(latitude)), 0.05),
        "meters": round(km * 1000),
        "limit": MOST_NEARBY_STORES + 1,
    }
    rows = await fetch_all(conn, _q.nearby_stores, values)
    offers = list(accumulate(row["offers"] for row in rows))
    stores = [row for n, row in enumerate(rows[:MOST_NEARBY_STORES]) if not n or offers[n] <= MOST_NEARBY_OFFERS]
    return NearbyStores(
        stores=tuple(row["store_id"] for row in stores),
        meters=tuple(row["meters"] for row in stores),
        cut=len(rows) > len(stores),
        locations=len({row["location_key"] for row in stores}),
        zipcodes={row["store_id"]: row["zipcode"] for row in stores if row["zipcode"] is not None},
    )
