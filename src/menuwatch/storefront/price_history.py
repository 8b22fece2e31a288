"""What one size of a product cost: at a store, and at the cheapest of several stores, as steps without holes. Only what was observed
counts: between its observations a store's price is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import PriceSpan, Unobserved, list_price_spans, list_unobserved
from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.db import sql
from menuwatch.db.query import fetch_structs
from menuwatch.storefront.options import decode_variants, read_sizes

_q = sql.load(__package__, "price_history.sql")

MOST_LISTINGS = 30
"""Listings of one line: those on a menu first, the cheapest first. A page that compares more says so."""

State = Literal["offered", "out", "unobserved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From `start` to `end`. Prices in cents; a price is also known where the size is out of stock (`out`). A product that is not on
    the menu is `out` without a price."""

    start: datetime
    end: datetime
    state: State
    price: int | None = None
    regular: int | None = None

    @property
    def cost(self) -> int | None:
        """What a shopper pays; None if it cannot be bought."""
        return self.price if self.state == "offered" else None

    def between(self, start: datetime, end: datetime) -> Step:
        """The part of it from `start` to `end`."""
        return Step(start=start, end=end, state=self.state, price=self.price, regular=self.regular)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLine:
    """Steps, oldest first, each beginning where the one before ends. It compares `stores` stores, and leaves out `more` others."""

    steps: Sequence[Step]
    stores: int = 1
    more: int = 0


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A listing of the product at a visible store, also one that left the menu."""

    product_id: int
    store_id: int
    location_key: int
    name: str
    category: str | None
    variants: msgspec.Raw


async def read_price_lines(
    conn: AsyncConnection[Any],
    item_id: int,
    size: str | None,
    *,
    since: datetime | None,
    now: datetime,
    product_id: int | None = None,
    stores: Sequence[int] | None = None,
    archived: ParquetPartitions | None = None,
) -> tuple[PriceLine | None, PriceLine | None]:
    """The line of one listing, and that of the cheapest of all listings at `stores` (None: everywhere); each None without a price.
    A `size` of None stands for options without one."""
    near = None if stores is None else list(stores)
    values = {"id": item_id, "since": since, "stores": near, "product_id": product_id}
    found = await fetch_structs(conn, Listing, _q.listings, values, prepare=False)
    some = [one for one in found if one.product_id == product_id][:1]
    some += [one for one in found if one.product_id != product_id][: MOST_LISTINGS - len(some)]
    spans = await list_price_spans(conn, [one.product_id for one in some], since, now, archived=archived)
    gaps = await list_unobserved(conn, sorted({one.store_id for one in some}), since, now)
    lines = {
        one.product_id: _steps(
            [span for span in spans if span.product_id == one.product_id],
            [gap for gap in gaps if gap.store_id == one.store_id],
            _sizes(one),
            size,
            since,
            now,
        )
        for one in some
    }
    own = lines.get(product_id) if product_id is not None else None
    priced = [
        one
        for one in some
        if (stores is None or one.store_id in stores) and any(step.price is not None for step in lines[one.product_id])
    ]
    compared = {one.location_key for one in priced}
    others = {one.location_key for one in found} - {one.location_key for one in some}
    return (
        PriceLine(steps=own) if own and any(step.price is not None for step in own) else None,
        PriceLine(steps=cheapest([lines[one.product_id] for one in priced]), stores=len(compared), more=len(others))
        if priced
        else None,
    )


def _sizes(listing: Listing) -> Mapping[str, str | None]:
    """The sizes of the options that the listing has now."""
    variants = decode_variants(listing.variants)
    sizes = read_sizes(variants, listing.name, listing.category)
    return {str(one.get("option", "")): read.size for one, read in zip(variants, sizes, strict=True)}


def _steps(
    spans: Sequence[PriceSpan],
    gaps: Sequence[Unobserved],
    known: Mapping[str, str | None],
    size: str | None,
    since: datetime | None,
    now: datetime,
) -> list[Step]:
    """The steps of one listing. A time that no span covers and in which the store was crawled is one without the product."""
    found: list[Step] = []
    for span in spans:
        start = span.from_ if since is None else max(span.from_, since)
        if found and start > found[-1].end:
            found.append(Step(start=found[-1].end, end=start, state="out"))
        if span.until > start:
            found.append(_step(span, known, size, start))
    return _joined(_without(found, gaps, now))


def _step(span: PriceSpan, known: Mapping[str, str | None], size: str | None, start: datetime) -> Step:
    options = [
        one
        for one in (span.options() if span.present else ())
        if (known[one.option] if one.option in known else size_of({"option": one.option})) == size
    ]
    best = min(
        (one for one in options if one.price is not None),
        key=lambda one: (one.in_stock is False, one.price),
        default=None,
    )
    if best is None or best.price is None:
        return Step(start=start, end=span.until, state="out")
    return Step(
        start=start,
        end=span.until,
        state="out" if best.in_stock is False else "offered",
        price=round(best.price * 100),
        regular=None if best.regular is None else round(best.regular * 100),
    )


def _without(steps: Sequence[Step], gaps: Sequence[Unobserved], now: datetime) -> list[Step]:
    """The steps, unobserved in the gaps."""
    if not steps:
        return []
    found: list[Step] = []
    ends = [(max(gap.from_, steps[0].start), gap.to or now) for gap in gaps if (gap.to or now) > steps[0].start]
    for step in steps:
        at = step.start
        for begin, end in ends:
            if begin >= step.end or end <= at:
                continue
            if begin > at:
                found.append(step.between(at, begin))
            at = max(at, min(end, step.end))
            found.append(Step(start=max(begin, step.start), end=at, state="unobserved"))
        if at < step.end:
            found.append(step.between(at, step.end))
    if ends and ends[-1][1] > found[-1].end:
        found.append(Step(start=found[-1].end, end=ends[-1][1], state="unobserved"))
    return found


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Neighbours that say the same as one."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        if (
            last
            and last.end == step.start
            and (last.state, last.price, last.regular) == (step.state, step.price, step.regular)
        ):
            found[-1] = step.between(last.start, step.end)
        else:
            found.append(step)
    return found


def cheapest(lines: Sequence[Sequence[Step]]) -> list[Step]:
    """At each time the lowest price of those that could be bought; `out` if it was observed, but could be bought nowhere. Pure."""
    changes = [(step.start, n, step.cost, step.state) for n, line in enumerate(lines) for step in line]
    changes += [(line[-1].end, n, None, "unobserved") for n, line in enumerate(lines) if line]
    changes.sort(key=lambda change: (change[0], change[3] != "unobserved"))
    costs: list[float] = [math.inf] * len(lines)
    states: list[State] = ["unobserved"] * len(lines)
    found: list[Step] = []
    for place, (at, n, cost, state) in enumerate(changes):
        costs[n], states[n] = math.inf if cost is None else cost, state
        until = changes[place + 1][0] if place + 1 < len(changes) else at
        if until > at:
            best = min(costs)
            known: State = "offered" if best < math.inf else "out" if "out" in states else "unobserved"
            found.append(Step(start=at, end=until, state=known, price=int(best) if best < math.inf else None))
    return _joined(found)
