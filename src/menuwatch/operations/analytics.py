"""The figures for analysts as people ask for them: a page of one figure, with when it was made and what it rests on.

A list is read from one run to its end, also where newer figures are published meanwhile: the cursor names the run. The figures of the
run before the current one are kept for that; who pages for longer begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.operations.reading import Row, row, rows

_q = sql.load(__package__, "analytics.sql")

ALL = "all"
"""All states, or all categories, together."""
UNKNOWN = "unknown"
"""Stores of which no state is known, or products whose category is not."""


class Renewed(Refused):
    """The figures that a list was begun with are gone: newer ones were published twice since."""


class Figure(StrEnum):
    """What there is to ask for."""

    PRICES = "prices"
    BRANDS = "brands"
    DISCOUNTS = "discounts"
    STOCK = "stock"
    OUT_PRODUCTS = "out_products"


class Level(StrEnum):
    """What time out of stock is added up over."""

    ALL = "all"
    CATEGORY = "category"
    STATE = "state"
    STATE_CATEGORY = "state_category"
    STORE = "store"
    STORE_CATEGORY = "store_category"


class By(StrEnum):
    """What new and gone products of a day are added up over."""

    ALL = "all"
    STATE = "state"
    STORE = "store"


_BY_FIGURE = {
    Figure.PRICES: _q.prices,
    Figure.BRANDS: _q.brands,
    Figure.DISCOUNTS: _q.discounts,
    Figure.STOCK: _q.stock,
    Figure.OUT_PRODUCTS: _q.out_products,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What of a figure is wanted; None takes all. `scope` is a state, ALL or UNKNOWN; `category` is canonical, ALL or UNKNOWN."""

    scope: str | None = None
    category: str | None = None
    stores: Sequence[int] | None = None
    brand: str | None = None
    product: int | None = None
    level: Level = Level.STATE_CATEGORY

    def values(self) -> dict[str, Any]:
        """As query parameters."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some rows of a figure, and where the next page starts: (run, place) or more (None at the end). `head` says when it was made, of
    which time it is, and whether making it anew failed since; without any run its values are null."""

    head: Mapping[str, Any]
    rows: list[Row]
    next: tuple[Any, ...] | None = None


def _head(run: Row | None, failed: Row | None) -> dict[str, Any]:
    return {
        "run_id": run["id"] if run else None,
        "refreshed_at": run["refreshed_at"] if run else None,
        "window": {"from": run["window_from"], "to": run["window_to"]} if run else None,
        "failed": failed,
    }


async def _run(conn: AsyncConnection[Any], wanted: int | None) -> tuple[dict[str, Any], Row | None]:
    run = await row(conn, _q.current, {})
    failed = await row(conn, _q.failed_since, {"run": run["id"] if run else None})
    if wanted is not None and (run is None or run["id"] != wanted):
        run = await row(conn, _q.kept, {"run": wanted})
        if run is None:
            raise Renewed("these figures were made anew twice since the first page: ask again without `cursor`")
    return _head(run, failed), run


async def overview(conn: AsyncConnection[Any]) -> dict[str, Any]:
    """When the figures were made, how long it took, and how many rows each has."""
    head, run = await _run(conn, None)
    figures = await rows(conn, _q.figures, {"run": run["id"]}) if run else []
    return head | {"seconds": run["seconds"] if run else None, "figures": figures}


async def page(
    conn: AsyncConnection[Any],
    figure: Figure,
    where: Where,
    *,
    after: tuple[int, int] | None = None,
    limit: int = 50,
) -> Page:
    """Rows of that figure behind the (run, place) where an earlier page ended; raises Renewed."""
    head, run = await _run(conn, after[0] if after else None)
    if run is None:
        return Page(head=head, rows=[])
    query = _BY_FIGURE[figure]
    values = {**where.values(), "run": run["id"], "after": after[1] if after else 0, "limit": limit + 1}
    wanted = {name: value for name, value in values.items() if f"%({name})s" in query}
    found = await rows(conn, query, wanted, prepare=False)
    shown = found[:limit]
    more = (run["id"], shown[-1]["place"]) if len(found) > limit else None
    return Page(head=head, rows=[_without(one, "place") for one in shown], next=more)


def _without(one: Row, *names: str) -> Row:
    return {name: value for name, value in one.items() if name not in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Which days, in UTC: from `since` on, before `until`; and of which stores."""

    since: date | None = None
    until: date | None = None
    where: Where = field(default_factory=Where)
    by: By = By.STATE


async def days(
    conn: AsyncConnection[Any], wanted: Days, *, after: tuple[int, date, int | str] | None = None, limit: int = 50
) -> Page:
    """New and gone products, newest day first, behind the (run, day, store or state) where an earlier page ended; raises Renewed."""
    head, run = await _run(conn, after[0] if after else None)
    if run is None:
        return Page(head=head, rows=[])
    values: dict[str, Any] = {
        "run": run["id"],
        "since": wanted.since,
        "until": wanted.until,
        "scope": wanted.where.scope,
        "stores": wanted.where.stores,
        "after_day": after[1] if after else None,
        "limit": limit + 1,
    }
    if wanted.by is By.STORE:
        values["after_id"] = after[2] if after else None
        found = await rows(conn, _q.days_by_store, values, prepare=False)
    else:
        values |= {"after_state": after[2] if after else None, "together": wanted.by is By.ALL}
        found = await rows(conn, _q.days_by_state, values, prepare=False)
    shown = found[:limit]
    more = None
    if len(found) > limit:
        last = shown[-1]
        # States without a name come last.
        more = (run["id"], last["day"], last["dispensary_id"] if wanted.by is By.STORE else last["state"] or "~")
    return Page(head=head, rows=shown, next=more)


async def stores(
    conn: AsyncConnection[Any],
    where: Where,
    *,
    platform: str | None = None,
    stale: bool | None = None,
    after: tuple[int, int] | None = None,
    limit: int = 50,
) -> Page:
    """Stores with when they were seen last and what became of their crawls, behind (run, store); raises Renewed."""
    head, run = await _run(conn, after[0] if after else None)
    if run is None:
        return Page(head=head, rows=[])
    found = await rows(
        conn,
        _q.stores,
        {
            "run": run["id"],
            "scope": where.scope,
            "stores": where.stores,
            "platform": platform,
            "stale": stale,
            "after": after[1] if after else 0,
            "limit": limit + 1,
        },
        prepare=False,
    )
    shown = found[:limit]
    return Page(head=head, rows=shown, next=(run["id"], shown[-1]["dispensary_id"]) if len(found) > limit else None)


async def coverage(conn: AsyncConnection[Any], scope: str | None = None) -> Page:
    """Coverage of all states together, and of each."""
    head, run = await _run(conn, None)
    if run is None:
        return Page(head=head, rows=[])
    return Page(head=head, rows=await rows(conn, _q.coverage, {"run": run["id"], "scope": scope}, prepare=False))
