"""Price and stock changes: a list with the newest first, and a feed for programs that must not miss any.

The feed is ordered by when crawls were committed to the catalog (`crawl_feed`), and within a crawl by product. A reader at some
position has received everything before it: a crawl that commits late comes later, whatever its date. A store that is rebuilt
from its archive appears again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, LiteralString

from msgspec import Raw, Struct

from menuwatch.catalog import match_changes
from menuwatch.catalog.match_changes import MatchChange
from menuwatch.catalog.model import StockStatus
from menuwatch.catalog.service import Span, listings_and_menus
from menuwatch.catalog.shapes import (
    BrandId,
    CanonicalProductId,
    LocationId,
    OptionPrices,
    OptionStock,
    Price,
    PriceMed,
    PriceMedSpecial,
    PriceRec,
    PriceRecSpecial,
    Quantity,
)
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_structs
from menuwatch.geo import states
from menuwatch.geo.circle import Circle

_q = sql.load(__package__, "changes.sql")

CRAWLS_AT_ONCE = 500
"""Maximum crawls that one page of the feed reads; limits the cost of rare matches, so a page may be short."""

PATIENCE = 0.05
"""Seconds that a page of the newest changes searches for rare matches."""

_REACH = 1000
"""Changes scanned in the first step; doubles with each step."""

_FEW = 500
"""Maximum products of a brand whose changes are read by product index; above it all changes are scanned."""

_FIRST = 0
"""Sorts before every product."""

_NEVER = 2**63 - 1
"""Sorts after every product of a crawl."""


class Kind(StrEnum):
    """Kind of change. Drops and rises refer to the price of the cheapest option, specials included."""

    PRICE = "price"
    PRICE_DROP = "price_drop"
    PRICE_RISE = "price_rise"
    STOCK = "stock"
    OUT_OF_STOCK = "out_of_stock"
    BACK_IN_STOCK = "back_in_stock"
    MERGED = "merged"
    SPLIT = "split"


MATCHING = (Kind.MERGED, Kind.SPLIT)
"""Kinds that are about canonical products, not about the listing of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Which changes; None takes all. `categories` are those of all platforms, `brands` in any case; `span` is of the crawls' dates."""

    span: Span = field(default_factory=Span)
    kind: Kind | None = None
    stores: Sequence[int] | None = None
    states: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    brands: Sequence[str] | None = None
    products: Sequence[int] | None = None
    percent: Decimal | None = None
    """Only prices that changed by at least this share, in percent of the price before."""
    canonical_products: Sequence[int] | None = None
    """Listings of these canonical products; numbers that were merged away are followed, as for brands and locations."""
    brand_ids: Sequence[int] | None = None
    locations: Sequence[int] | None = None
    circle: Circle | None = None
    """Of stores in this circle; those without a position are left out."""
    listings: Sequence[int] | None = None
    """Set by `resolve`: the listings of `canonical_products` and `brand_ids`."""

    @property
    def indexed(self) -> bool:
        """Whether the filter names stores, brands or products, whose changes an index finds."""
        few = None if self.listings is None or len(self.listings) > _FEW else self.listings
        return any(given is not None for given in (self.stores, self.brands, self.products, few))

    @property
    def with_products(self) -> bool:
        """Whether changes of listings can match."""
        return self.kind not in MATCHING

    @property
    def with_matching(self) -> bool:
        """Whether merged and split products can match: they are about no store and have no price."""
        of_stores = (self.stores, self.states, self.products, self.locations, self.circle, self.percent)
        return self.kind in (None, *MATCHING) and all(given is None for given in of_stores)

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        many = self.listings is not None and len(self.listings) > _FEW
        return {
            "kind": self.kind,
            "store": self.stores[0] if self.stores is not None and len(self.stores) == 1 else None,
            "stores": self.stores,
            "states": self.states,
            "products": self.products,
            "categories": self.categories,
            "brands": None if self.brands is None else [brand.lower() for brand in self.brands],
            "percent": self.percent,
            "canonical_products": self.canonical_products,
            "brand_ids": self.brand_ids,
            "listings": None if many else self.listings,
            "listings_of_many": self.listings if many else None,
            "since": self.span.since,
            "until": self.span.until,
        }


class ChangeSide(Struct, kw_only=True, frozen=True):
    """A product before or after a change."""

    price: Price
    price_rec: PriceRec
    price_rec_special: PriceRecSpecial
    price_med: PriceMed
    price_med_special: PriceMedSpecial
    prices: Annotated[list[OptionPrices], doc("Prices of each option.")]
    stock_status: Annotated[StockStatus, doc("Stock of the product as a whole.")]
    quantity: Quantity
    stock: Annotated[list[OptionStock], doc("Stock of each option.")]


class Change(Struct, kw_only=True, frozen=True):
    """A price or stock change of one product."""

    type: Literal["product"] = "product"
    product_id: int
    dispensary_id: Annotated[int, doc("Id of the store.")]
    store: Annotated[str, doc("Name of the store.")]
    state: Annotated[str | None, doc("Two-letter state of the store; null if unknown.")]
    provider_product_id: Annotated[str, doc("Id of the product on the platform.")]
    name: str
    brand_name: str | None
    category: Annotated[str | None, doc("Category as the platform names it; null if it has none.")]
    category_canon: Annotated[str | None, doc("Canonical category; null if unknown.")]
    changed_at: Annotated[Instant, doc("Time of the crawl that found the change.")]
    price_changed: bool
    stock_changed: bool
    present: Annotated[bool, doc("False if the product is out of stock because three crawls missed it.")]
    before: Annotated[Raw, json_of(ChangeSide)]
    after: Annotated[Raw, json_of(ChangeSide)]
    canonical_product_id: CanonicalProductId
    brand_id: BrandId
    location_id: LocationId


AnyChange = Change | MatchChange
"""A row of the list and of the feed."""


async def resolve(conn: Connection, where: ChangeFilter) -> ChangeFilter:
    """The filter with the listings of its canonical products and brands, and with the menus of its locations and in its circle as
    stores."""
    given = where.canonical_products, where.brand_ids, where.locations, where.circle
    if where.listings is not None or given == (None, None, None, None):
        return where
    listings, stores = await listings_and_menus(conn, *given, where.stores)
    return replace(where, listings=listings, stores=stores)


class ChangePage(Struct, frozen=True):
    """Changes, newest first, and the key of the next page (None at the end). A page may be shorter than the limit although
    more follow.
    """

    items: list[AnyChange]
    next: tuple[datetime, int] | None


async def list_changes(
    conn: Connection,
    where: ChangeFilter,
    *,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
    patience: float = PATIENCE,
) -> ChangePage:
    """Lists changes by the date of their crawl, after the one whose (changed_at, product_id) is `after`.

    Each row has the product `before` and `after` the change. The search for rare matches stops after `patience` seconds: the page may
    then be short or empty, and `next` is where it stopped.
    """
    where = await resolve(conn, where)
    found, end = await _listing_changes(conn, where, after, limit, patience) if where.with_products else ([], None)
    if where.with_matching:
        found += await match_changes.newest(conn, where.values(), after=after, end=end, limit=limit + 1)
        found.sort(key=_newest_first, reverse=True)
    if len(found) > limit:
        found, end = found[:limit], _newest_first(found[limit - 1])
    return ChangePage(await _read_changes(conn, found), end)


def _newest_first(row: Row) -> tuple[datetime, int]:
    return row["changed_at"], row["product_id"]


async def _listing_changes(
    conn: Connection, where: ChangeFilter, after: tuple[datetime, int] | None, limit: int, patience: float
) -> tuple[list[Row], tuple[datetime, int] | None]:
    """Keys of at most `limit` changes of listings, and where the search ended (None: there are no more)."""
    if where.states is not None and not await _any_store_in(conn, where.states):
        return [], None
    started = time.monotonic()
    rows: list[Row] = []
    span, begun = where.span, after
    reach = _REACH
    many = where.brands is not None and await _has_many_products(conn, where)
    indexed = where.indexed and not (many and where.stores is None and where.products is None)
    while True:
        low = None if indexed else await _reach(conn, begun[0] if begun is not None else span.until, reach)
        last = low is None or (span.since is not None and low <= span.since)
        step = where if last else replace(where, span=Span(since=low, until=span.until))
        rows += await _page(conn, step, begun, limit + 1 - len(rows), many=many)
        if len(rows) > limit:
            return rows[:limit], _newest_first(rows[limit - 1])
        if last:
            return rows, None
        assert low is not None, "else it is the last"
        begun = (low, _FIRST)
        # The next step takes about twice as long as this one.
        if time.monotonic() - started > patience / 3:
            return rows, begun
        reach *= 2


async def _page(
    conn: Connection, where: ChangeFilter, after: tuple[datetime, int] | None, limit: int, *, many: bool
) -> list[Row]:
    at, product_id = after if after is not None else (None, None)
    values = {**where.values(), "brands_of_many": None, "after_at": at, "after_id": product_id, "limit": limit}
    if many:
        values |= {"brands": None, "brands_of_many": values["brands"]}
    # Planned with the actual values, so that an unset filter does not prevent the use of an index.
    return await fetch_all(conn, _q.newest, values, prepare=False)


def select_keys(where: ChangeFilter, limit: int | None = None) -> tuple[LiteralString, dict[str, Any]]:
    """A statement that gives the `product_id` and `changed_at` of the newest changes that the filter selects (by default of all), and
    its parameters."""
    every = {"brands_of_many": None, "after_at": None, "after_id": None, "limit": limit}
    return _q.newest, {**where.values(), **every}


async def _reach(conn: Connection, until: datetime | None, n: int) -> datetime | None:
    """The time of the n-th change back; None if there are fewer."""
    rows = await fetch_all(conn, _q.reach, {"until": until, "n": n}, prepare=False)
    return rows[0]["at"] if rows else None


async def _has_many_products(conn: Connection, where: ChangeFilter) -> bool:
    (row,) = await fetch_all(conn, _q.more_of_brands, {"brands": where.values()["brands"], "n": _FEW}, prepare=False)
    return bool(row["found"])


async def _any_store_in(conn: Connection, states: Sequence[str]) -> bool:
    (row,) = await fetch_all(conn, _q.any_store_in, {"states": list(states)})
    return bool(row["found"])


async def price_trends(
    conn: Connection, products: Sequence[int], since: datetime
) -> dict[int, list[tuple[datetime, Decimal]]]:
    """(time, price) of each state that the products were in at `since` or later, oldest first, by product. States without a price, and
    those on no menu, are left out."""
    found: dict[int, list[tuple[datetime, Decimal]]] = {}
    for row in await fetch_all(conn, _q.price_trends, {"ids": list(products), "since": since}, prepare=False):
        found.setdefault(row["product_id"], []).append((row["at"], row["price"]))
    return found


class FeedPage(Struct, frozen=True, kw_only=True):
    """Changes in feed order, and the key of the next page, which always exists because the feed has no end. `more`: further changes
    exist already.
    """

    items: list[AnyChange]
    next: tuple[int, int]
    more: bool


async def read_feed(
    conn: Connection, where: ChangeFilter, *, after: tuple[int, int] = (0, 0), limit: int = 50
) -> FeedPage:
    """Reads changes after `after`, the (position, product_id) at which an earlier page ended."""
    await conn.execute(_q.number_crawls)
    where = await resolve(conn, where)
    known = (await fetch_all(conn, _q.last_position, {}))[0]["position"]
    rows: list[Row] = []
    scanned: int | None = None
    more = False
    if where.with_products:
        rows, scanned, more = await _fed_listings(conn, where, after, known, limit)
    if where.with_matching:
        # Only as far as listings are known: a later page has the rest.
        until = rows[-1]["position"] if len(rows) > limit else scanned if more and scanned else known
        rows += await match_changes.fed(conn, where.values(), position=after[0], until=until, limit=limit + 1)
        rows.sort(key=lambda row: row["position"])
    shown = rows[:limit]
    if len(rows) > limit:
        last = shown[-1]
        return FeedPage(items=await _read_changes(conn, shown), next=_position(last), more=True)
    end = max([after[0], scanned or 0, *(row["position"] for row in rows)])
    return FeedPage(
        items=await _read_changes(conn, shown), next=(end, _NEVER) if end > after[0] or scanned else after, more=more
    )


def _position(row: Row) -> tuple[int, int]:
    """The key of a row of the feed: an event of matching has a position of its own."""
    return row["position"], row["product_id"] if row["product_id"] > 0 else _NEVER


async def _fed_listings(
    conn: Connection, where: ChangeFilter, after: tuple[int, int], known: int, limit: int
) -> tuple[list[Row], int | None, bool]:
    """Keys of at most `limit` + 1 changes, the position of the last crawl that was read (None: none was), and whether more follow."""
    values = where.values()
    crawls = await fetch_all(
        conn, _q.crawls_fed, {**values, "position": after[0], "last": known, "limit": CRAWLS_AT_ONCE + 1}, prepare=False
    )
    scanned = crawls[:CRAWLS_AT_ONCE]
    rows: list[Row] = []
    # Few crawls fill a page, unless matches are rare.
    start, many = 0, 10
    while start < len(scanned) and len(rows) <= limit:
        part = scanned[start : start + many]
        start, many = start + many, many * 4
        page = {
            "positions": [crawl["position"] for crawl in part],
            "dispensaries": [crawl["dispensary_id"] for crawl in part],
            "times": [crawl["crawled_at"] for crawl in part],
            "after_position": after[0],
            "after_id": after[1],
            "limit": limit + 1 - len(rows),
        }
        rows += await fetch_all(conn, _q.fed, {**values, **page}, prepare=False)
    return rows, scanned[-1]["position"] if scanned else None, len(crawls) > CRAWLS_AT_ONCE


async def _read_changes(conn: Connection, keys: Sequence[Row]) -> list[AnyChange]:
    """The rows of these keys, in their order."""
    listings = [key for key in keys if key["product_id"] > 0]
    values = {"ids": [key["product_id"] for key in listings], "times": [key["changed_at"] for key in listings]}
    changed = iter(await fetch_structs(conn, Change, _q.in_full, values) if listings else [])
    events = await match_changes.read(conn, [-key["product_id"] for key in keys if key["product_id"] < 0])
    return [next(changed) if key["product_id"] > 0 else events[-key["product_id"]] for key in keys]


_NOT_KNOWN = "No changes yet: a store must be crawled twice first."


async def why_empty(conn: Connection, where: ChangeFilter) -> str | None:
    """Why there are no changes, if that is known: no store of these states is known, or none of the filter was crawled twice. Merged
    and split products belong to no store."""
    if where.kind in MATCHING:
        return None
    values = {
        name: None if chosen is None else list(chosen)
        for name, chosen in (("stores", where.stores), ("states", where.states))
    }
    found = await fetch_one(conn, _q.why_empty, values)
    assert found is not None, "it gives one row"
    if where.states and found["no_stores"]:
        return states.no_store_in(", ".join(states.name_of(state) for state in where.states))
    return None if found["known"] else _NOT_KNOWN
