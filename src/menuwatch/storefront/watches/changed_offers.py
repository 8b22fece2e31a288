"""Watches of brands, searches and stores, and of new deals: they are about offers that changed when a store was indexed. What a search
asks for is compared with the changed offers; no search is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_structs
from menuwatch.geo.units import currency
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.model import Condition

_q = sql.load(__package__, "changed_offers.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode

MOST_NAMED = 10
"""Products that an event names; it counts the others."""


class OfferChange(msgspec.Struct, frozen=True, kw_only=True):
    """An offer of one size, and what it was before (`listed`: it was there). Units as in storefront_offers."""

    product_id: int
    item_id: int
    name: str
    brand_id: int | None
    category: str
    strain: str | None
    size: str | None
    price: int | None
    regular: int | None
    per_gram: int | None
    thc: int | None
    in_stock: bool | None
    listed: bool
    former_price: int | None
    former_regular: int | None
    former_stock: bool | None
    recent: bool
    """The store has listed it for a short time only."""

    def meets(self, condition: Condition, amount: Decimal | None) -> bool:
        """Whether the change is what a watch waits for. Pure."""
        available = self.in_stock is not False
        match condition:
            case "any_drop":
                return available and self.price is not None and self.price < (self.former_price or 0)
            case "price_below":
                assert amount is not None, "a price is watched below an amount"
                bound = amount * 100
                was = self.listed and self.former_stock is not False and self.former_price is not None
                below = self.price is not None and self.price < bound
                return available and below and not (was and (self.former_price or 0) < bound)
            case "back_in_stock":
                return bool(self.in_stock) and (self.former_stock is False if self.listed else not self.recent)
            case "new_deal":
                return available and self.regular is not None and self.former_regular is None
            case "new_product":
                return not self.listed and self.recent


class _Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What a watched search asks of an offer."""

    id: int
    query: str
    category: str | None
    sizes: list[str]
    in_stock: bool
    special: bool
    price_min: int | None
    price_max: int | None
    per_gram_max: int | None
    thc_min: int | None
    thc_max: int | None

    @property
    def has_amounts(self) -> bool:
        return (self.price_min, self.price_max, self.per_gram_max) != (None, None, None)

    def admits(self, change: OfferChange) -> bool:
        return (
            (not self.sizes or change.size in self.sizes)
            and (not self.in_stock or bool(change.in_stock))
            and (not self.special or change.regular is not None)
            and _within(change.price, self.price_min, self.price_max)
            and _within(change.per_gram, None, self.per_gram_max)
            and _within(change.thc, self.thc_min, self.thc_max)
        )


def _within(value: int | None, low: int | None, high: int | None) -> bool:
    if low is None and high is None:
        return True
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """The fields of a watch that its evaluation needs."""

    id: int
    item_id: int | None
    brand_id: int | None
    search_id: int | None
    size: str | None
    store_id: int | None
    condition: Condition
    currency: str
    amount: Decimal | None
    latitude: float | None
    longitude: float | None
    miles: int | None

    @property
    def place(self) -> tuple[int | None, float | None, float | None]:
        """Miles around a point; everywhere (None), or nowhere but at the store (0)."""
        return (0, None, None) if self.store_id is not None else (self.miles, self.latitude, self.longitude)

    @property
    def wish(self) -> tuple[Any, ...]:
        """Equal for watches that wait for the same changes, wherever."""
        return self.item_id, self.brand_id, self.search_id, self.size, self.condition, self.amount


async def evaluate_changes(conn: AsyncConnection[Any], store_id: int, now: datetime) -> None:
    """Notes events of watches for the offers of a store that changed, in the transaction that indexed it."""
    changes = await fetch_structs(conn, OfferChange, _q.take, {"store_id": store_id})
    if not changes:
        return
    items = sorted({change.item_id for change in changes})
    found = await fetch_all(conn, _q.searches, {"items": items}, prepare=False)
    searches = sorted({row["id"] for row in found})
    filters = await fetch_structs(conn, _Filters, _q.search_filters, {"ids": searches}) if searches else []
    values = {
        "store_id": store_id,
        "items": items,
        "brands": sorted({change.brand_id for change in changes if change.brand_id is not None}),
        "searches": searches,
    }
    terms = await fetch_structs(conn, _Terms, _q.watches, values, prepare=False)
    if not terms:
        return
    (store,) = await fetch_all(conn, _q.store, {"store_id": store_id})
    matched = _Matcher(changes, filters, found, currency(store["state"]))
    wanted = [(one, matched.changes(one)) for one in terms if matched.can_compare(one)]
    carried = await _carried(conn, store_id, wanted, [change for change in changes if not change.listed])
    events = {
        one.id: _encode(_facts(some, store)).decode()
        for one, every in wanted
        if (some := every if one.condition != "new_product" else _new(one, every, carried))
    }
    if events:
        await conn.execute(_q.lock, {"ids": list(events)})
        await watches.add_events(conn, events, now=now)


class _Matcher:
    """The changes that each watch waits for; those of equal watches are found once. Prices are in the `paid` currency."""

    def __init__(
        self, changes: Sequence[OfferChange], filters: Sequence[_Filters], found: Sequence[Row], paid: str
    ) -> None:
        self._changes = changes
        self._paid = paid
        self._of_item: dict[int, list[OfferChange]] = {}
        self._of_brand: dict[int, list[OfferChange]] = {}
        for change in changes:
            self._of_item.setdefault(change.item_id, []).append(change)
            if change.brand_id is not None:
                self._of_brand.setdefault(change.brand_id, []).append(change)
        self._filters = {one.id: one for one in filters}
        self._found: dict[int, list[int]] = {}
        for row in found:
            self._found.setdefault(row["id"], []).append(row["item_id"])
        self._known: dict[tuple[Any, ...], list[OfferChange]] = {}

    def can_compare(self, terms: _Terms) -> bool:
        """Whether the amounts of a watch, if it has any, are in the currency of the prices."""
        filters = None if terms.search_id is None else self._filters[terms.search_id]
        has_amounts = terms.amount is not None or (filters is not None and filters.has_amounts)
        return terms.currency == self._paid or not has_amounts

    def changes(self, terms: _Terms) -> list[OfferChange]:
        known = self._known.get(terms.wish)
        if known is None:
            known = [one for one in self._of(terms) if one.meets(terms.condition, terms.amount)]
            self._known[terms.wish] = known
        return known

    def _of(self, terms: _Terms) -> Sequence[OfferChange]:
        if terms.item_id is not None:
            return [one for one in self._of_item.get(terms.item_id, ()) if terms.size in (None, one.size)]
        if terms.brand_id is not None:
            return self._of_brand.get(terms.brand_id, ())
        if terms.search_id is not None:
            admits = self._filters[terms.search_id].admits
            items = self._found.get(terms.search_id, ())
            return [change for item_id in items for change in self._of_item[item_id] if admits(change)]
        return self._changes


def _new(terms: _Terms, changes: Sequence[OfferChange], carried: set[tuple[Any, ...]]) -> list[OfferChange]:
    """New products, each once, whatever its sizes."""
    once = {change.product_id: change for change in reversed(changes)}
    new = [one for one in changes if once[one.product_id] is one]
    return [change for change in new if (change.item_id, *terms.place) not in carried]


async def _carried(
    conn: AsyncConnection[Any],
    store_id: int,
    wanted: Sequence[tuple[_Terms, list[OfferChange]]],
    added: Sequence[OfferChange],
) -> set[tuple[Any, ...]]:
    """(item, miles, latitude, longitude) of offers that were added, of products that are not new where a watch looks for them."""
    new = [(one, change) for one, changes in wanted if one.condition == "new_product" for change in changes]
    asked = sorted({(change.item_id, *one.place) for one, change in new}, key=repr)
    if not asked:
        return set()
    items, miles, latitudes, longitudes = (list(column) for column in zip(*asked, strict=True))
    values = {
        "store_id": store_id,
        "products": [change.product_id for change in added],
        "sizes": [change.size or "" for change in added],
        "items": items,
        "miles": miles,
        "latitudes": latitudes,
        "longitudes": longitudes,
    }
    rows = await fetch_all(conn, _q.carried, values, prepare=False)
    return {(row["item_id"], row["miles"], row["latitude"], row["longitude"]) for row in rows}


def _facts(changes: Sequence[OfferChange], store: Row) -> dict[str, Any]:
    products = [
        {
            "item_id": change.item_id,
            "name": change.name,
            "size": change.size,
            "price": _dollars(change.price),
            "before": _dollars(change.former_price),
            "store": store,
        }
        for change in changes[:MOST_NAMED]
    ]
    return {"products": products, "count": len(changes)}


def _dollars(cents: int | None) -> Decimal | None:
    return None if cents is None else Decimal(cents) / 100
