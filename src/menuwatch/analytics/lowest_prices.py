"""The lowest price of each size of a canonical product: now, within 90 days, and since it was first observed, with when and where.

Computed on request from the history of all its listings, packed months included, so that corrections of matches, rebuilt and late
menus count at once. Prices are what customers paid, specials included, while the size could be bought and the store was observed.
Prices in different currencies are rows of their own. A price below a fifth of the median of all observed prices of the size is taken
for a slip of a menu and left out.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from menuwatch.analytics.products import IMPLAUSIBLE, CanonicalFilter, list_product_rows
from menuwatch.catalog.asked_prices import WINDOW, Asked, asked_prices, while_observed
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import PriceSpan, Unobserved, list_price_spans, list_unobserved
from menuwatch.catalog.taxonomy.sizes import size_of, size_order
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all

_q = sql.load(__package__, "lowest_prices.sql")
_variants = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode
_EVER = datetime(1970, 1, 1, tzinfo=UTC)

USUAL_PRODUCTS, MOST_PRODUCTS = 10, 50
"""Products of one page, by default and at most."""


class ObservedPrice(Struct, kw_only=True, frozen=True):
    """A price, and where and when it was charged."""

    price: Decimal
    dispensary_id: int
    store: str
    product_id: Annotated[int, doc("Id of the listing.")]
    from_: Annotated[Instant, doc("First crawl of the last period in which the store charged it.")] = msgspec.field(
        name="from"
    )
    until: Annotated[Instant, doc("End of that period; the time of the request while it lasts.")]


class LowestPrice(Struct, kw_only=True, frozen=True):
    """The lowest prices of one size of a canonical product, specials included."""

    canonical_product_id: int
    name: str
    brand_id: Annotated[int | None, doc("Null if menus name none.")]
    brand: str | None
    category: Annotated[str | None, doc("Canonical category; null if unknown.")]
    size: Annotated[str | None, doc("Size; null for options without one, which may differ.")]
    currency: Annotated[str, doc("USD or CAD.")]
    stores: Annotated[int, doc("Stores at which it was ever observed with a price.")]
    observed_from: Annotated[Instant, doc("First observation of the size. `ever` begins here.")]
    now: Annotated[ObservedPrice | None, doc("Lowest price now; null if no observed store offers it.")]
    lowest_90_days: Annotated[ObservedPrice | None, doc("Lowest price within 90 days; null if it was not offered.")]
    lowest_ever: ObservedPrice
    is_lowest_90_days: Annotated[
        bool | None, doc("Whether no store charged less within 90 days; null if it is not offered now.")
    ]
    is_lowest_ever: Annotated[bool | None, doc("The same since the first observation.")]
    implausible: Annotated[int, doc("Observed prices left out because they are below a fifth of the median.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestPage:
    """Rows of some products, and the key of the next page (None at the end)."""

    items: list[LowestPrice]
    next: tuple[int, int] | None


async def list_lowest_prices(
    conn: Connection,
    where: CanonicalFilter,
    *,
    state: str | None = None,
    after: tuple[int, int] | None = None,
    limit: int = USUAL_PRODUCTS,
    archived: ParquetPartitions | None = None,
) -> LowestPage:
    """The lowest prices of `limit` products, those in the most stores first, at stores of a state or of all."""
    products, following = await list_product_rows(conn, where, after=after, limit=limit)
    now = await database_now(conn)
    listings = await fetch_all(
        conn, _q.listings, {"ids": [row["id"] for row in products], "state": state}, prepare=False
    )
    spans: dict[int, list[PriceSpan]] = defaultdict(list)
    for span in await list_price_spans(conn, [row["product_id"] for row in listings], None, now, archived=archived):
        spans[span.product_id].append(span)
    gaps: dict[int, list[Unobserved]] = defaultdict(list)
    for gap in await list_unobserved(conn, sorted({row["dispensary_id"] for row in listings}), None, now):
        gaps[gap.store_id].append(gap)
    found: dict[int, dict[tuple[str, str], list[tuple[Asked, Row]]]] = defaultdict(lambda: defaultdict(list))
    for listing in listings:
        sizes = {str(one.get("option", "")): size_of(one) or "" for one in _variants(listing["variants"])}
        known = spans[listing["product_id"]]
        old = {option.option for span in known for option in span.options()} - sizes.keys()
        for size in {*sizes.values(), *(size_of({"option": option}) or "" for option in old)}:
            asked = asked_prices(known, sizes, size)
            for one in while_observed(asked, gaps[listing["dispensary_id"]], _EVER, now):
                if one.price > 0:
                    found[listing["canonical_product_id"]][size, listing["currency"]].append((one, listing))
    items = [
        _row(product, size, currency, asked, now)
        for product in products
        for (size, currency), asked in sorted(
            found[product["id"]].items(), key=lambda one: (size_order(one[0][0] or None), one[0])
        )
    ]
    return LowestPage(items=items, next=following)


def _row(product: Row, size: str, currency: str, asked: Sequence[tuple[Asked, Row]], now: datetime) -> LowestPrice:
    usual = statistics.median(one.price for one, _ in asked)
    kept = [(one, listing) for one, listing in asked if one.price * IMPLAUSIBLE >= usual]
    current = _lowest([(one, listing) for one, listing in kept if one.end >= now])
    recent = _lowest([(one, listing) for one, listing in kept if one.end > now - WINDOW])
    ever = _lowest(kept)
    assert ever is not None, "the median itself is kept"
    return LowestPrice(
        canonical_product_id=product["id"],
        **{name: product[name] for name in ("name", "brand_id", "brand", "category")},
        size=size or None,
        currency=currency,
        stores=len({listing["dispensary_id"] for _, listing in asked}),
        observed_from=min(one.start for one, _ in asked),
        now=current,
        lowest_90_days=recent,
        lowest_ever=ever,
        is_lowest_90_days=None if current is None or recent is None else current.price <= recent.price,
        is_lowest_ever=None if current is None else current.price <= ever.price,
        implausible=len(asked) - len(kept),
    )


def _lowest(asked: Sequence[tuple[Asked, Row]]) -> ObservedPrice | None:
    """The lowest price; of equal ones, the latest."""
    if not asked:
        return None
    one, listing = min(asked, key=lambda pair: (pair[0].price, -pair[0].end.timestamp(), pair[1]["product_id"]))
    return ObservedPrice(
        price=Decimal(one.price) / 100,
        dispensary_id=listing["dispensary_id"],
        store=listing["store"],
        product_id=listing["product_id"],
        from_=one.start,
        until=one.end,
    )


_PRICES = ("now", "lowest_90_days", "lowest_ever")
_OF_PRICE = {"price": "price", "dispensary_id": "dispensary_id", "store": "store", "from_": "from", "until": "until"}
_PLAIN = (
    "canonical_product_id", "name", "brand", "category", "size", "currency", "stores", "observed_from", "is_lowest_90_days",
    "is_lowest_ever", "implausible",
)  # fmt: skip
FLAT_FIELDS = (*_PLAIN, *(f"{name}_{column}" for name in _PRICES for column in _OF_PRICE.values()))


def flat_lowest(row: LowestPrice) -> dict[str, Any]:
    """The row as FLAT_FIELDS, with the members of its prices as columns: `now_price`, `lowest_ever_store`. Pure."""
    flat = {name: getattr(row, name) for name in _PLAIN}
    for name in _PRICES:
        one: ObservedPrice | None = getattr(row, name)
        flat |= {f"{name}_{column}": getattr(one, field, None) for field, column in _OF_PRICE.items()}
    return flat
