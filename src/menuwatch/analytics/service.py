"""Reads the analytics reports: one page of rows, with the time they were computed.

A list is read from one run to its end, even if newer reports are published meanwhile: the cursor names the run. The reports of the
previous run are kept for that; a list that takes longer must be restarted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from enum import StrEnum
from typing import Any, LiteralString, NamedTuple

from msgspec import Struct, structs

from menuwatch.analytics.reports import (
    NOT_MATCHED,
    NOT_REFRESHED,
    BrandDay,
    BrandDistribution,
    BrandShare,
    CategoryShare,
    CheapestQuarter,
    CheckedSpecial,
    DaysInfo,
    Discounts,
    Failure,
    MarketDay,
    NewAndGone,
    OutProduct,
    Overview,
    PriceDispersion,
    PricePerGram,
    ProductDistribution,
    ReportSize,
    RunInfo,
    Shrinkflation,
    SpecialShare,
    StateCoverage,
    StockTimes,
    StoreFreshness,
    Window,
)
from menuwatch.analytics.special_checks import SpecialVerdict
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_struct, fetch_structs
from menuwatch.geo import states
from menuwatch.matching.names import KINDS

_q = sql.load(__package__, "service.sql")

ALL = "all"
"""All states, or all categories, together."""
UNKNOWN = "unknown"
"""Stores without a known state, or products without a known category."""


class ExpiredRun(Refused):
    """The run that a list was started with is deleted: newer reports were published twice since."""


class Report(StrEnum):
    """The reports, by their path below `/api/analytics/`."""

    PRICES = "price-per-gram"
    BRANDS = "brands"
    CATEGORIES = "categories"
    DISCOUNTS = "discounts"
    STOCK = "out-of-stock"
    OUT_PRODUCTS = "out-of-stock/products"
    DAYS = "new-and-gone"
    STORES = "stores"
    COVERAGE = "coverage"
    DISTRIBUTION = "distribution"
    BRAND_DISTRIBUTION = "distribution/brands"
    DISPERSION = "price-dispersion"
    GAPS = "widest-gaps"
    CHEAPEST = "cheapest-quarter"
    SPECIALS = "specials"
    SPECIAL_GROUPS = "specials/groups"
    SHRINKFLATION = "shrinkflation"
    MARKET_DAYS = "by-day"
    BRAND_DAYS = "by-day/brands"


_OF_MATCHED = frozenset({
    Report.DISTRIBUTION, Report.BRAND_DISTRIBUTION, Report.DISPERSION, Report.GAPS, Report.CHEAPEST, Report.SHRINKFLATION,
})  # fmt: skip
"""Reports on listings that are matched."""


class StockGroup(StrEnum):
    """Dimension to aggregate by."""

    ALL = "all"
    CATEGORY = "category"
    STATE = "state"
    STATE_CATEGORY = "state_category"
    STORE = "store"
    STORE_CATEGORY = "store_category"


class DayGroup(StrEnum):
    """Dimension to aggregate each day by."""

    ALL = "all"
    STATE = "state"
    STORE = "store"


class CheapestGroup(StrEnum):
    """Dimension to aggregate a location's prices by."""

    ALL = "all"
    CATEGORY = "category"
    BRAND = "brand"


class SpecialGroup(StrEnum):
    """Dimension to aggregate specials by."""

    STATE = "state"
    STORE = "store"
    BRAND = "brand"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilter:
    """Which rows of a report; None takes all. Each report knows some of these. `state` is a state, ALL or UNKNOWN; `category` is of
    the taxonomy, ALL or UNKNOWN; `by` is the dimension to group by; days are UTC, from `since` on, before `until`."""

    state: str | None = None
    category: str | None = None
    brand: str | None = None
    store: Sequence[int] | None = None
    platform: str | None = None
    product: int | None = None
    stale: bool | None = None
    by: StockGroup | DayGroup | CheapestGroup | SpecialGroup | None = None
    verdict: SpecialVerdict | None = None
    since: date | None = None
    until: date | None = None
    brand_id: int | None = None
    canonical_product: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some rows of a report. `next` is where the next page starts, None at the end: the run and the last row's sort values."""

    info: RunInfo
    rows: list[Any]
    next: tuple[Any, ...] | None = None


class ReportSource(NamedTuple):
    """Where a report comes from. `order` are the columns that order the rows, with their types; `first_day` finds the first kept day
    of a report whose days are kept."""

    row: type[Struct]
    query: LiteralString
    order: dict[str, type]
    summary: str
    description: str
    first_day: LiteralString | None = None

    @property
    def info(self) -> type[RunInfo]:
        """What accompanies the rows."""
        return RunInfo if self.first_day is None else DaysInfo


_PLACE: dict[str, type] = {"place": int}
SOURCES = {
    Report.PRICES: ReportSource(
        PricePerGram, _q.price_per_gram, _PLACE, "Price per gram by category and state",
        "Covers products on offer: options not out of stock, of products that were in their store's last crawl.",
    ),
    Report.BRANDS: ReportSource(
        BrandShare, _q.brands, _PLACE, "Brand distribution by state",
        "Number of products and stores per brand; within each state the largest first.",
    ),
    Report.CATEGORIES: ReportSource(
        CategoryShare, _q.categories, _PLACE, "Category distribution by state",
        "Number of products and stores per canonical category; within each state the largest first.",
    ),
    Report.DISCOUNTS: ReportSource(
        Discounts, _q.discounts, _PLACE, "Share and depth of discounts",
        "Number of products on offer with an option below its regular price, and the discount, by state and category.",
    ),
    Report.STOCK: ReportSource(
        StockTimes, _q.out_of_stock, _PLACE, "Time out of stock by group",
        "Share of the observed time in the window. Gaps of more than twice the crawl interval count neither as in nor as out of\n"
        "stock, nor does the time after the last crawl that found a product.",
    ),
    Report.OUT_PRODUCTS: ReportSource(
        OutProduct, _q.out_of_stock_products, _PLACE, "Products out of stock, longest first",
        "Lists products that were out of stock at some time in the window; others are not listed.",
    ),
    Report.DAYS: ReportSource(
        NewAndGone, _q.new_and_gone_by_state, {"day": date, "state_key": str}, "New and removed products by day",
        "Each of the last 30 days (UTC), newest first: products seen for the first and for the last time.",
    ),
    Report.STORES: ReportSource(
        StoreFreshness, _q.stores, {"dispensary_id": int}, "Freshness and coverage by store",
        "Last crawl of each store, and the outcome of its scheduled crawls.",
    ),
    Report.COVERAGE: ReportSource(
        StateCoverage, _q.coverage, {}, "Coverage by state",
        "For all states together and for each state: known and crawled stores, and the success rate of scheduled crawls.",
    ),
    Report.DISTRIBUTION: ReportSource(
        ProductDistribution, _q.distribution, _PLACE, "Distribution of canonical products",
        "Share of locations that offer the product, of all that have a menu and of those that carry its category; the\n"
        "widest first. A shop on two platforms counts once. Products of a single location are left out.",
    ),
    Report.BRAND_DISTRIBUTION: ReportSource(
        BrandDistribution, _q.brand_distribution, _PLACE, "Distribution of brands by location",
        "Share of locations that offer any product of the brand, the widest first; by category for one brand or category.",
    ),
    Report.DISPERSION: ReportSource(
        PriceDispersion, _q.price_dispersion, _PLACE, "Price dispersion of canonical products",
        "Prices of one size of a canonical product over at least three locations, most locations first. Different sizes, and options\n"
        "without a size, are never compared. A shop on two platforms counts once, with its fresher menu. Left out and counted are\n"
        "stale menus, those with a newer one in quarantine, and prices above five times the median or below a fifth of it.",
    ),
    Report.GAPS: ReportSource(
        PriceDispersion, _q.widest_gaps, {"gap_place": int}, "Widest price gaps",
        "Gap between the highest and the lowest price of one size of a canonical product, by their ratio. The rows are those\n"
        "of the price dispersion, with the same left out: stale menus, those with a newer one in quarantine, and implausible prices.",
    ),
    Report.CHEAPEST: ReportSource(
        CheapestQuarter, _q.cheapest_quarter, _PLACE, "Locations in the cheapest quarter",
        "How often a location is in the cheapest quarter of its state: its price for a product and size is at or below the\n"
        "first quartile, and below the median. Most often first, with at least five comparisons.",
    ),
    Report.SPECIALS: ReportSource(
        CheckedSpecial, _q.specials, _PLACE, "Specials and their past prices",
        "Each special on offer with a verdict: whether the store charged the regular price, or more, within 90 days, and a score for\n"
        "how much of the stated saving is real, measured against the usual price. Regular prices that were never\n"
        "charged come first.",
    ),
    Report.SPECIAL_GROUPS: ReportSource(
        SpecialShare, _q.special_groups, _PLACE, "Specials by state, store, brand or category",
        "Share of specials whose regular price was never charged within 90 days, among those with a known verdict; the highest first.",
    ),
    Report.SHRINKFLATION: ReportSource(
        Shrinkflation, _q.shrinkflation, _PLACE, "Smaller sizes at higher prices per unit",
        "A smaller size of a canonical product that replaced a larger one, now on no menu, at a higher regular price per\n"
        "gram, milligram or piece. Sizes of half or less are different packages and left out. Most stores first.",
    ),
    Report.MARKET_DAYS: ReportSource(
        MarketDay, _q.market_days, {"day": date, "state": str, "category": str}, "Stock and discounts by day",
        "Products on the menus by stock, and share and depth of discounts, by day (UTC), state and category, newest first. As of the\n"
        "last refresh of each day, of menus that were not stale then.", _q.first_market_day,
    ),
    Report.BRAND_DAYS: ReportSource(
        BrandDay, _q.brand_days, {"day": date, "state": str, "products": int, "brand_id": int}, "Brand shares by day",
        "Share of each canonical brand on the menus, by day (UTC) and state, newest first. As of the last refresh of each day, of\n"
        "menus that were not stale then.", _q.first_brand_day,
    ),
}  # fmt: skip
_DAYS_BY_STORE = SOURCES[Report.DAYS]._replace(
    query=_q.new_and_gone_by_store, order={"day": date, "dispensary_id": int}
)
_DEFAULT_BY = {
    Report.STOCK: StockGroup.STATE_CATEGORY,
    Report.DAYS: DayGroup.STATE,
    Report.CHEAPEST: CheapestGroup.ALL,
    Report.SPECIAL_GROUPS: SpecialGroup.STORE,
}


def _source(report: Report, filters: ReportFilter) -> ReportSource:
    return _DAYS_BY_STORE if report is Report.DAYS and filters.by == DayGroup.STORE else SOURCES[report]


def cursor_type(report: Report, filters: ReportFilter) -> Any:
    """The type of `Page.next` of a report."""
    return tuple[(int, *_source(report, filters).order.values())]  # type: ignore[misc]


async def _run(conn: Connection, run_id: int | None) -> tuple[RunInfo, Row | None]:
    run = await fetch_one(conn, _q.current_run, {})
    failed = await fetch_struct(conn, Failure, _q.failed_since, {"run": run["id"] if run else None})
    if run_id is not None and (run is None or run["id"] != run_id):
        run = await fetch_one(conn, _q.kept_run, {"run": run_id})
        if run is None:
            raise ExpiredRun("analytics were refreshed twice since the first page: start again without `cursor`")
    info = RunInfo(
        run_id=run["id"] if run else None,
        refreshed_at=run["refreshed_at"] if run else None,
        window=Window(from_=run["window_from"], to=run["window_to"]) if run else None,
        failed=failed,
        notice=None if run else NOT_REFRESHED,
    )
    return info, run


async def _days_info(conn: Connection, info: RunInfo, first_day: LiteralString, filters: ReportFilter) -> DaysInfo:
    row = await fetch_one(conn, first_day, {})
    assert row is not None, "an aggregate answers with one row"
    kept = row["first_day"]
    before = kept is not None and filters.until is not None and filters.until <= kept
    notice = f"Days are kept since {kept}." if before else info.notice
    return DaysInfo(**structs.asdict(info) | {"kept_since": kept, "notice": notice})


async def overview(conn: Connection) -> Overview:
    """When the reports were computed, how long it took, and how many rows each has."""
    info, run = await _run(conn, None)
    sizes = await fetch_structs(conn, ReportSize, _q.report_sizes, {"run": run["id"]}) if run else []
    return Overview(**structs.asdict(info), seconds=run["seconds"] if run else None, figures=sizes)


async def _why_empty(conn: Connection, report: Report, filters: ReportFilter) -> str | None:
    """Why a report has no rows, if that is known."""
    values = {"state": filters.state, "canonical_product": filters.canonical_product}
    found = await fetch_one(conn, _q.why_empty, values)
    assert found is not None
    if filters.state not in (None, ALL, UNKNOWN) and found["no_stores"]:
        return states.no_store_in(states.name_of(filters.state))
    if report in _OF_MATCHED and found["not_matched"]:
        return NOT_MATCHED
    if filters.canonical_product is not None and found["no_product"]:
        return f"Canonical product {filters.canonical_product} does not exist."
    kind = KINDS.get(filters.category or "")
    if report in _OF_MATCHED and kind not in (None, filters.category):
        return f"Canonical products of the category {filters.category} are listed under {kind}."
    return None


async def read_report(
    conn: Connection,
    report: Report,
    filters: ReportFilter,
    *,
    after: tuple[Any, ...] | None = None,
    limit: int = 50,
) -> Page:
    """One page of a report, after the `next` of an earlier one; raises ExpiredRun."""
    info, run = await _run(conn, after[0] if after else None)
    source = _source(report, filters)
    if run is None:
        none_kept = {} if source.first_day is None else {"kept_since": None}
        return Page(info=source.info(**structs.asdict(info), **none_kept), rows=[])
    last = after[1:] if after else (None,) * len(source.order)
    values = asdict(filters) | {f"after_{name}": value for name, value in zip(source.order, last, strict=True)}
    values |= {"run": run["id"], "limit": limit + 1, "by": filters.by or _DEFAULT_BY.get(report)}
    rows = await fetch_all(conn, source.query, values, prepare=False)
    if source.first_day is not None:
        info = await _days_info(conn, info, source.first_day, filters)
    if not rows and after is None and info.notice is None:
        info = structs.replace(info, notice=await _why_empty(conn, report, filters))
    fields = frozenset(source.row.__struct_fields__)
    return Page(
        info=info,
        rows=[source.row(**{name: row[name] for name in row if name in fields}) for row in rows[:limit]],
        next=(run["id"], *(rows[limit - 1][name] for name in source.order)) if len(rows) > limit else None,
    )
