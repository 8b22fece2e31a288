"""What changed at the stores: newest first, for people; and as a feed, for programs that must not miss anything.

The feed goes by the order in which crawls were taken into the catalogue (migration 0015, `crawl_feed`), and within a crawl by product.
Whoever has read up to some place of it has been given all that lies before: a crawl that is committed late comes later, whatever its
date. A store that is rebuilt from its archive comes again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.products import Span
from menuwatch.operations.reading import Row, rows

_q = sql.load(__package__, "changes.sql")

CRAWLS_AT_ONCE = 500
"""Crawls that one page of the feed looks into at most, so that a page of what is rare costs no more than others: it is short then."""

PATIENCE = 0.05
"""Seconds that a page of the newest looks for what is rare."""

_REACH = 1000
"""Changes that are looked through first; twice as many each time after."""

_FEW = 500
"""Products of a brand whose changes are found by their own index; of more, they are looked for among all."""

_FIRST = 0
"""Before every product."""

_NEVER = 2**63 - 1
"""Behind every product of a crawl."""


class Kind(StrEnum):
    """Which changes. Drops and rises are of what the cheapest option costs, specials included."""

    PRICE = "price"
    PRICE_DROP = "price_drop"
    PRICE_RISE = "price_rise"
    STOCK = "stock"
    OUT_OF_STOCK = "out_of_stock"
    BACK_IN_STOCK = "back_in_stock"


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

    @property
    def indexed(self) -> bool:
        """Whether it names stores, brands or products, whose changes an index finds."""
        return any(given is not None for given in (self.stores, self.brands, self.products))

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        return {
            "kind": self.kind,
            "store": self.stores[0] if self.stores is not None and len(self.stores) == 1 else None,
            "stores": self.stores,
            "states": self.states,
            "products": self.products,
            "categories": self.categories,
            "brands": None if self.brands is None else [brand.lower() for brand in self.brands],
            "since": self.span.since,
            "until": self.span.until,
        }


@dataclass(frozen=True, slots=True)
class Newest:
    """Some changes, newest first, and where the next page starts (None at the end). There may be fewer than were asked for, and yet
    more to come."""

    rows: list[Row]
    next: tuple[datetime, int] | None


async def newest(
    conn: AsyncConnection[Any],
    where: ChangeFilter,
    *,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
    patience: float = PATIENCE,
) -> Newest:
    """Changes by the date of the crawl that saw them, after the one whose (changed_at, product_id) is `after`.

    Each row has the product `before` and `after` the change. What is rare is looked for for `patience` seconds: the page may then be
    short, or empty, and `next` is as far as it came.
    """
    if where.states is not None and not await _any_store_in(conn, where.states):
        return Newest(rows=[], next=None)
    started = time.monotonic()
    found: list[Row] = []
    span, begun = where.span, after
    reach = _REACH
    many = where.brands is not None and await _more_of(conn, where)
    indexed = where.indexed and not (many and where.stores is None and where.products is None)
    while True:
        low = None if indexed else await _reach(conn, begun[0] if begun is not None else span.until, reach)
        last = low is None or (span.since is not None and low <= span.since)
        step = where if last else replace(where, span=Span(since=low, until=span.until))
        found += await _page(conn, step, begun, limit + 1 - len(found), many=many)
        if len(found) > limit:
            shown = found[:limit]
            return Newest(await _in_full(conn, shown), (shown[-1]["changed_at"], shown[-1]["product_id"]))
        if last:
            return Newest(await _in_full(conn, found), None)
        assert low is not None, "else it is the last"
        begun = (low, _FIRST)
        # The next step takes twice as long as this one.
        if time.monotonic() - started > patience / 3:
            return Newest(await _in_full(conn, found), begun)
        reach *= 2


async def _page(
    conn: AsyncConnection[Any], where: ChangeFilter, after: tuple[datetime, int] | None, limit: int, *, many: bool
) -> list[Row]:
    at, product_id = after if after is not None else (None, None)
    values = {**where.values(), "brands_of_many": None, "after_at": at, "after_id": product_id, "limit": limit}
    if many:
        values |= {"brands": None, "brands_of_many": values["brands"]}
    # Planned for these very values: a filter that is not set must not stand in the way of an index.
    return await rows(conn, _q.newest, values, prepare=False)


async def _reach(conn: AsyncConnection[Any], until: datetime | None, n: int) -> datetime | None:
    """How far back so many changes reach; None where there are no more."""
    found = await rows(conn, _q.reach, {"until": until, "n": n}, prepare=False)
    return found[0]["at"] if found else None


async def _more_of(conn: AsyncConnection[Any], where: ChangeFilter) -> bool:
    (found,) = await rows(conn, _q.more_of_brands, {"brands": where.values()["brands"], "n": _FEW}, prepare=False)
    return bool(found["found"])


async def _any_store_in(conn: AsyncConnection[Any], states: Sequence[str]) -> bool:
    (found,) = await rows(conn, _q.any_store_in, {"states": list(states)})
    return bool(found["found"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """Some changes in the order of the feed, and from where to go on: always somewhere, since the feed has no end. `more` says that
    there is more by now."""

    rows: list[Row]
    next: tuple[int, int]
    more: bool


async def feed(
    conn: AsyncConnection[Any], where: ChangeFilter, *, after: tuple[int, int] = (0, 0), limit: int = 50
) -> Fed:
    """Changes behind `after`, the (position, product_id) that an earlier page ended at."""
    await conn.execute(_q.number_crawls)
    values = where.values()
    crawls = await rows(
        conn, _q.crawls_fed, {**values, "position": after[0], "limit": CRAWLS_AT_ONCE + 1}, prepare=False
    )
    looked = crawls[:CRAWLS_AT_ONCE]
    found: list[Row] = []
    # Few crawls fill a page, unless what is asked for is rare.
    start, many = 0, 10
    while start < len(looked) and len(found) <= limit:
        part = looked[start : start + many]
        start, many = start + many, many * 4
        found += await rows(
            conn,
            _q.fed,
            {
                **values,
                "positions": [one["position"] for one in part],
                "dispensaries": [one["dispensary_id"] for one in part],
                "times": [one["crawled_at"] for one in part],
                "after_position": after[0],
                "after_id": after[1],
                "limit": limit + 1 - len(found),
            },
            prepare=False,
        )
    shown = found[:limit]
    if len(found) > limit:
        end = (shown[-1]["position"], shown[-1]["product_id"])
    else:
        end = (looked[-1]["position"], _NEVER) if looked else after
    return Fed(rows=await _in_full(conn, shown), next=end, more=len(found) > limit or len(crawls) > CRAWLS_AT_ONCE)


async def _in_full(conn: AsyncConnection[Any], keys: Sequence[Row]) -> list[Row]:
    if not keys:
        return []
    return await rows(
        conn, _q.in_full, {"ids": [k["product_id"] for k in keys], "times": [k["changed_at"] for k in keys]}
    )
