"""What shoppers look for and find: items across stores, with how they are spread, page by page.

An item is the same thing whoever has it (`shopping_keys.item_key`). Without a place a search looks at items; near a place it looks
at the offers of the stores there, whose prices, stock and distance then count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.shopping_text import Reading, read

_q = sql.load(__package__, "shopping.sql")

MOST_COUNTED = 2_000
"""Items that are counted one by one; what leaves more is estimated."""
SURE = 1_000
"""Estimates below that are counted after all."""
MOST_OFFERS_HERE = 12_000
"""Offers of the stores around a place that a search looks at: the nearest stores first."""
MOST_STORES_HERE = 200
_SAMPLE_ROWS = 8_000
_KM_PER_DEGREE = 111.2
_MOST = 2**31 - 2
METERS_PER_MILE = 1609.344

PRICE_STEPS = (2_000, 4_000, 6_000, 10_000)
"""Cents that divide prices for choosing."""
THC_STEPS = (1_000, 1_500, 2_000, 2_500, 3_000)
"""Hundredths of a percent that divide potencies for choosing."""


class Order(StrEnum):
    """How what is found is sorted."""

    RELEVANCE = "relevance"
    PRICE = "price"
    PER_GRAM = "per_gram"
    THC = "thc"
    DISTANCE = "distance"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Stores that count, with the distance of each in metres."""

    stores: tuple[int, ...]
    meters: tuple[int, ...]
    cut: bool = False
    """There are more within the distance that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matches:
    """What a text was read as, and the items that it finds: their `ids` where they are few, else the tsquery that is `broad`."""

    reading: Reading
    ids: list[int] | None = None
    broad: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is looked for. Prices in cents, price per gram in hundredths of a cent, THC in hundredths of a percent."""

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
    here: Here | None = None

    def values(self, matches: _Matches) -> dict[str, Any]:
        """The wish as query parameters. A range leaves out what has no value, also where only one end is given."""
        priced = self.price_min is not None or self.price_max is not None
        potent = self.thc_min is not None or self.thc_max is not None
        return {
            "words": matches.reading.query,
            "ids": matches.ids,
            "broad": matches.broad,
            "category": self.category,
            "strains": list(self.strains) or None,
            "brands": list(self.brands) or None,
            "sizes": list(self.sizes) or None,
            "in_stock": self.in_stock,
            "special": self.special,
            "price_min": self.price_min,
            "price_max": min(_MOST if self.price_max is None else self.price_max, _MOST) if priced else None,
            "per_gram_max": None if self.per_gram_max is None else min(self.per_gram_max, _MOST),
            "thc_min": (self.thc_min or 0) if potent else None,
            "thc_max": self.thc_max,
            "stores": None if self.here is None else list(self.here.stores),
            "meters": None if self.here is None else list(self.here.meters),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a facet and how many items it would leave."""

    value: str
    label: str
    items: int


@dataclass(slots=True, kw_only=True)
class Spread:
    """How many items there are, and how they are spread. Where not `exact`, the numbers are estimates."""

    items: int
    exact: bool
    facets: dict[str, list[Choice]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Some of what was found, best first, and where the next page begins (None at the end)."""

    items: list[Row]
    spread: Spread
    reading: Reading
    next: tuple[int, int] | None


async def search(
    conn: AsyncConnection[Any],
    wish: Wish,
    *,
    order: Order = Order.RELEVANCE,
    after: tuple[int, int] | None = None,
    limit: int = 24,
) -> Found:
    """Items in that order, after the one whose (key, id) is `after`."""
    matches = await _matches(conn, await read(conn, wish.text))
    spread = await _spread(conn, wish, matches)
    values = {
        **wish.values(matches),
        "order": _order(order, wish, matches),
        "after_key": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit + 1,
    }
    found = await rows(conn, _statement(wish, spread), values, prepare=False) if spread.items else []
    shown = found[:limit]
    brief = await in_brief(conn, [one["id"] for one in shown], wish.here)
    more = len(found) > limit
    return Found(
        items=brief, spread=spread, reading=matches.reading, next=(shown[-1]["key"], shown[-1]["id"]) if more else None
    )


def _statement(wish: Wish, spread: Spread) -> Any:
    if wish.here is not None:
        return _q.find_here
    return _q.find_few if spread.exact and spread.items <= SURE else _q.find


async def _matches(conn: AsyncConnection[Any], reading: Reading) -> _Matches:
    if reading.query is None:
        return _Matches(reading=reading)
    found = await rows(conn, _q.matching, {"words": reading.query, "most": MOST_COUNTED}, prepare=False)
    if len(found) > MOST_COUNTED:
        return _Matches(reading=reading, broad=reading.query)
    return _Matches(reading=reading, ids=[one["item_id"] for one in found])


def _order(order: Order, wish: Wish, matches: _Matches) -> str:
    if order is Order.DISTANCE and wish.here is None:
        return "popular"
    # Of very many matches one is as relevant as the other: then those that most stores have come first, by an index.
    if order is Order.RELEVANCE and matches.ids is None:
        return "popular"
    return order.value


async def in_brief(conn: AsyncConnection[Any], ids: Sequence[int], here: Here | None = None) -> list[Row]:
    """Items as lists show them, in the order of the ids, each with its best offer."""
    if not ids:
        return []
    if here is None:
        return await rows(conn, _q.in_brief, {"ids": list(ids)}, prepare=False)
    return await rows(conn, _q.in_brief_here, {"ids": list(ids), "stores": list(here.stores)}, prepare=False)


async def _spread(conn: AsyncConnection[Any], wish: Wish, matches: _Matches) -> Spread:
    """How the wish's items are spread. Of a facet that is chosen from, the counts are those without the choice."""
    spread = await _count(conn, wish, matches)
    for facet, without in (
        ("category", replace(wish, category=None)),
        ("strain", replace(wish, strains=())),
        ("brand", replace(wish, brands=())),
        ("size", replace(wish, sizes=())),
        ("price", replace(wish, price_min=None, price_max=None)),
        ("thc", replace(wish, thc_min=None, thc_max=None)),
    ):
        if without != wish:
            spread.facets[facet] = (await _count(conn, without, matches)).facets.get(facet, [])
    await _name_brands(conn, spread)
    return spread


async def _count(conn: AsyncConnection[Any], wish: Wish, matches: _Matches) -> Spread:
    values = {**wish.values(matches), "price_steps": list(PRICE_STEPS), "thc_steps": list(THC_STEPS)}
    if wish.here is not None:
        return _spread_of(await rows(conn, _q.facets_here, values, prepare=False))
    share = 1.0 if matches.ids is not None or wish.brands else await _share(conn)
    if share < 1:
        sampled = await rows(conn, _q.facets_sampled, {**values, "percent": share * 100}, prepare=False)
        spread = _spread_of(sampled, 1 / share)
        if spread.items > SURE:
            return spread
    counted = _spread_of(await rows(conn, _q.facets, {**values, "most": _SAMPLE_ROWS}, prepare=False))
    counted.exact = counted.items <= _SAMPLE_ROWS
    return counted


async def _share(conn: AsyncConnection[Any]) -> float:
    """Of all items, the share that is looked at for an estimate."""
    known = await row(conn, _q.totals, {"kind": "all", "limit": 1})
    return min(1.0, _SAMPLE_ROWS / max(known["items"] if known else 0, 1))


def _spread_of(found: Sequence[Row], times: float = 1.0) -> Spread:
    exact = times == 1.0
    spread = Spread(items=0, exact=exact)
    for one in found:
        n = one["n"] if exact else _rounded(one["n"] * times)
        if one["facet"] == "all":
            spread.items = n
        else:
            spread.facets.setdefault(one["facet"], []).append(Choice(value=one["value"], label=one["value"], items=n))
    for choices in spread.facets.values():
        choices.sort(key=lambda choice: (-choice.items, choice.value))
    return spread


def _rounded(n: float) -> int:
    """An estimate with two digits that mean something."""
    if n < 100:
        return round(n)
    unit: int = 10 ** (int(math.log10(n)) - 1)
    return round(n / unit) * unit


async def _name_brands(conn: AsyncConnection[Any], spread: Spread) -> None:
    choices = spread.facets.get("brand")
    if not choices:
        return
    found = await rows(conn, _q.brands_by_id, {"ids": [int(choice.value) for choice in choices]})
    named = {str(one["id"]): one for one in found}
    spread.facets["brand"] = [
        Choice(value=named[choice.value]["slug"], label=named[choice.value]["name"], items=choice.items)
        for choice in choices
        if choice.value in named
    ]


async def brands(conn: AsyncConnection[Any], slugs: Sequence[str]) -> list[Row]:
    """The brands of these slugs, those that exist."""
    return await rows(conn, _q.brands_by_slug, {"slugs": list(slugs)}) if slugs else []


async def near(conn: AsyncConnection[Any], point: tuple[float, float], miles: float) -> Here:
    """Stores around a point, the nearest first; cut where that are more than a search looks at."""
    latitude, longitude = point
    km = miles * METERS_PER_MILE / 1000
    lat_span = km / _KM_PER_DEGREE
    found = await rows(
        conn,
        _q.near,
        {
            "lat": latitude,
            "lon": longitude,
            "lat_span": lat_span,
            "lon_span": lat_span / max(math.cos(math.radians(latitude)), 0.05),
            "meters": round(km * 1000),
            "limit": MOST_STORES_HERE + 1,
        },
    )
    shown: list[Row] = []
    offers = 0
    for one in found[:MOST_STORES_HERE]:
        offers += one["offers"]
        if shown and offers > MOST_OFFERS_HERE:
            break
        shown.append(one)
    return Here(
        stores=tuple(one["store_id"] for one in shown),
        meters=tuple(one["meters"] for one in shown),
        cut=len(found) > len(shown),
    )


async def drops(conn: AsyncConnection[Any], since: datetime, *, here: Here | None = None, limit: int = 8) -> list[Row]:
    """Items whose price fell since then, the largest share first."""
    values = {"since": since, "stores": None if here is None else list(here.stores), "limit": limit}
    found = await rows(conn, _q.drops, values, prepare=False)
    return await in_brief(conn, [one["id"] for one in found], here)


async def specials(conn: AsyncConnection[Any], *, here: Here | None = None, limit: int = 8) -> list[Row]:
    """Items that came to be on special, the latest first."""
    values = {"stores": None if here is None else list(here.stores), "limit": limit}
    found = await rows(conn, _q.specials, values, prepare=False)
    return await in_brief(conn, [one["id"] for one in found], here)


async def totals(conn: AsyncConnection[Any], kind: str, limit: int = 100) -> list[Row]:
    """How much there is of each `category` or `brand`, or of `all`; as of some minutes ago."""
    return await rows(conn, _q.totals, {"kind": kind, "limit": limit})


async def item(conn: AsyncConnection[Any], item_id: int) -> Row | None:
    """One item, also one that nobody has at the moment; None where there is none."""
    return await row(conn, _q.item, {"id": item_id})


async def item_of_product(conn: AsyncConnection[Any], product_id: int) -> int | None:
    """The item that a store's product is one of."""
    found = await row(conn, _q.item_of_product, {"id": product_id})
    return None if found is None else int(found["item_id"])


async def offers(conn: AsyncConnection[Any], item_id: int, here: Here | None = None, limit: int = 100) -> list[Row]:
    """Who has the item: those that are not out of stock first, the nearest where a place is given, else the cheapest."""
    values: Mapping[str, Any] = {
        "id": item_id,
        "near": None if here is None else list(here.stores),
        "meters": None if here is None else list(here.meters),
        "by_distance": here is not None,
        "limit": limit,
    }
    return await rows(conn, _q.offers, values, prepare=False)


async def similar(conn: AsyncConnection[Any], of: Row, limit: int = 6) -> list[Row]:
    """Others of the same brand, those of the same kind first."""
    if of["brand_id"] is None:
        return []
    values = {"brand_id": of["brand_id"], "category": of["category"], "id": of["id"], "limit": limit}
    found = await rows(conn, _q.similar, values)
    return await in_brief(conn, [one["id"] for one in found])


def dollars(cents: int) -> Decimal:
    """A price in cents as the catalogue writes prices."""
    return Decimal(cents) / 100
