"""Analytics as of the last refresh: brands and categories of a state, and the other reports as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.analytics.price_index import PriceIndex, read_price_index
from menuwatch.analytics.reports import MarketDay, flat_row
from menuwatch.analytics.service import (
    ALL,
    SOURCES,
    ExpiredRun,
    Report,
    ReportFilter,
    cursor_type,
    read_report,
)
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.time_chart import Series, TimeChart
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.report_filters import (
    CATEGORY_CHOICES,
    OF_BRAND,
    OF_CATEGORY,
    OF_DAYS,
    OF_PRODUCT,
    list_states,
    parse_category,
    parse_filter,
    parse_scope,
    read_coverage,
    state_choices,
)
from menuwatch.dashboard.table_file import csv_response, parquet_response
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/analytics", dependencies=[require(Permission.READ)])

_MOST = 50
_MOST_IN_FILE = 100_000


class _Column(NamedTuple):
    """A column of a report: `path` leads to its value, with dots into what is nested."""

    label: str
    path: str
    kind: str = "number"


_STATE, _CATEGORY, _STORE = (
    _Column("State", "state", "state"),
    _Column("Category", "category", "category"),
    _Column("Store", "store", "store"),
)
_OUT = (
    _Column("Hours out", "out_hours", "hours"),
    _Column("Hours in", "in_hours", "hours"),
    _Column("Share out", "out_share", "share"),
)
_BASIS = (_Column("Stores", "coverage", "stores"), _Column("Success", "coverage.share", "share"))
_PARTIAL = _Column("Partial", "coverage.partial", "flag")
_CRAWLS = (
    _Column("Scheduled", "coverage.scheduled"),
    _Column("Succeeded", "coverage.succeeded"),
    _Column("Success", "coverage.share", "share"),
    _Column("Failed", "failed"), _Column("Quarantined", "quarantined"), _Column("Never started", "never_begun"),
)  # fmt: skip
_PRICES = (
    _Column("Product", "name", "canonical"), _Column("Brand", "brand", "name"), _STATE, _Column("Size", "size", "text"),
    _Column("Locations", "locations"), _Column("Lowest", "min", "money"), _Column("First quartile", "p25", "money"),
    _Column("Median", "median", "money"), _Column("Third quartile", "p75", "money"), _Column("Highest", "max", "money"),
    _Column("Variation", "cv", "percent"),
)  # fmt: skip
_VERDICTS = (
    _Column("Specials", "specials"), _Column("Genuine", "genuine"), _Column("Doubtful", "doubtful"),
    _Column("Never asked", "never_asked"), _Column("Unknown", "unknown"),
    _Column("Share never charged", "never_asked_share", "share"), _Column("Median score", "score_median", "hours"),
)  # fmt: skip
_LEFT_OUT = _Column("Left out", "stale_locations", "left_out")
REPORTS: dict[Report, tuple[str, tuple[_Column, ...]]] = {
    Report.PRICES: ("Price per gram", (
        _STATE, _CATEGORY, _Column("Products", "products", "weighed"), _Column("Median", "effective", "spread"),
        _Column("Before specials", "regular", "spread"), *_BASIS,
    )),
    Report.DISCOUNTS: ("Discounts", (
        _STATE, _CATEGORY, _Column("Products", "products"), _Column("On special", "on_special"),
        _Column("Share", "special_share", "share"), _Column("Median discount", "depth_median", "share"),
        _Column("90th percentile", "depth_p90", "share"), *_BASIS,
    )),
    Report.STOCK: ("Out of stock", (
        _STATE, _CATEGORY, _Column("Products", "products"), _Column("Out at some time", "out_products"), *_OUT, *_BASIS,
    )),
    Report.OUT_PRODUCTS: ("Out longest", (
        _Column("Product", "name", "product"), _STORE, _STATE, _CATEGORY, _Column("Times out", "times_out"), *_OUT,
        _PARTIAL, _BASIS[-1],
    )),
    Report.DAYS: ("New and gone", (
        _Column("Day (UTC)", "day", "text"), _STATE, _Column("New", "new_products"), _Column("Gone", "gone_products"),
        _Column("Returned", "returned"), _Column("Price changes", "price_changes"), _Column("Stock changes", "stock_changes"),
        _Column("Crawls", "crawls"), *_BASIS,
    )),
    Report.STORES: ("Freshness", (
        _STORE, _STATE, _Column("Last crawl", "last_crawled_at", "time"), _Column("Stale", "is_stale", "flag"), _PARTIAL,
        _Column("Products", "products"), *_CRAWLS,
    )),
    Report.COVERAGE: ("Coverage", (
        _STATE, _Column("Stores", "known_stores"), _Column("Crawled", "crawled_stores"), _Column("Stale", "stale_stores"),
        _Column("Partial", "coverage.partial"), _Column("Not scheduled", "not_scheduled"),
        _Column("Median age", "median_age_hours", "age"), *_CRAWLS,
    )),
    Report.DISTRIBUTION: ("Distribution", (
        _Column("Product", "name", "canonical"), _Column("Brand", "brand", "name"), _STATE, _CATEGORY,
        _Column("Locations", "locations"),
        _Column("On offer", "in_stock"), _Column("Share of locations", "share", "share"),
        _Column("Share of those with the category", "category_share", "share"),
    )),
    Report.BRAND_DISTRIBUTION: ("Brands by location", (
        _Column("Brand", "brand", "name"), _STATE, _Column("Locations", "locations"), _Column("On offer", "in_stock"),
        _Column("Share of locations", "share", "share"), _Column("Products per location", "products_per_location", "hours"),
    )),
    Report.DISPERSION: ("Price dispersion", (*_PRICES, _LEFT_OUT)),
    Report.GAPS: ("Widest gaps", (
        *_PRICES[:5], _Column("Lowest", "min", "cheapest"), _Column("Highest", "max", "dearest"), _Column("Gap", "gap", "money"),
        _Column("Above the lowest", "gap_share", "percent"), _LEFT_OUT,
    )),
    Report.CHEAPEST: ("Cheapest quarter", (
        _Column("Location", "store", "store"), _Column("State", "state", "text"), _Column("Compared", "compared"),
        _Column("In the cheapest quarter", "cheapest"), _Column("Share", "share", "share"),
    )),
    Report.SPECIALS: ("Specials", (
        _Column("Product", "name", "product"), _STORE, _Column("Size", "size", "text"),
        _Column("Price", "price", "money"), _Column("Regular", "regular", "money"), _Column("Usual", "usual", "money"),
        _Column("Stated saving", "stated_saving", "percent"), _Column("Saving", "saving", "percent"),
        _Column("Verdict", "verdict", "verdict"), _Column("Score", "score"), _Column("Days observed", "observed_days", "hours"),
    )),
    Report.SPECIAL_GROUPS: ("Specials by store", (
        _Column("Store, brand or category", "store", "group"), _STATE, *_VERDICTS
    )),
    Report.SHRINKFLATION: ("Shrinkflation", (
        _Column("Product", "name", "canonical"), _Column("Brand", "brand", "name"), _STORE, _Column("Stores", "stores"),
        _Column("Was", "larger", "text"), _Column("Is", "smaller", "text"), _Column("Price", "larger_price", "money"),
        _Column("Price now", "smaller_price", "money"), _Column("Size", "size_change", "percent"),
        _Column("Price per unit", "unit_price_change", "percent"), _Column("Last seen", "larger_until", "time"),
        _Column("First seen", "smaller_from", "time"),
    )),
    Report.MARKET_DAYS: ("By day", (
        _Column("Day (UTC)", "day", "text"), _Column("Products", "products"), _Column("Out of stock", "out_of_stock"),
        _Column("Unknown stock", "unknown_stock"), _Column("Share out", "out_share", "share"),
        _Column("Share on special", "special_share", "share"), _Column("Median discount", "depth_median", "share"),
        _Column("Stores", "stores"), _Column("Known stores", "known_stores"),
    )),
    Report.BRAND_DAYS: ("Brands by day", (
        _Column("Day (UTC)", "day", "text"), _Column("Brand", "brand", "name"), _Column("Products", "products"),
        _Column("In stock", "in_stock"), _Column("Share of products", "share", "share"), _Column("Stores", "stores"),
        _Column("Of stores", "of_stores"), _Column("Share of stores", "store_share", "share"),
    )),
}  # fmt: skip
"""Title and columns of the reports that are tables."""
_SCREENS = {
    "": "Categories and brands", "price-index": "Price index", "lowest-prices": "Lowest prices", "cheapest-basket": "Cheapest basket",
}  # fmt: skip
"""Titles of the reports that have screens of their own, by their path."""
_GROUPS: dict[str, tuple[str, ...]] = {
    "Market": ("", Report.MARKET_DAYS, Report.DAYS),
    "Prices": (
        Report.PRICES, "price-index", "lowest-prices", "cheapest-basket", Report.CHEAPEST, Report.DISPERSION, Report.GAPS,
        Report.SHRINKFLATION,
    ),
    "Specials": (Report.DISCOUNTS, Report.SPECIALS, Report.SPECIAL_GROUPS),
    "Brands": (Report.DISTRIBUTION, Report.BRAND_DISTRIBUTION, Report.BRAND_DAYS),
    "Stock": (Report.STOCK, Report.OUT_PRODUCTS),
    "Coverage": (Report.COVERAGE, Report.STORES),
}  # fmt: skip
_TITLES: dict[str, str] = {**_SCREENS, **{str(report): title for report, (title, _) in REPORTS.items()}}
REPORT_GROUPS = [(group, [(path, _TITLES[path]) for path in paths]) for group, paths in _GROUPS.items()]
"""Groups of reports, with the path and the title of each report."""


def days_chart(rows: Sequence[MarketDay]) -> TimeChart:
    """Shares of one state and category, of days from the newest on; a day without a refresh is a gap. Pure."""
    known = {row.day: row for row in rows}
    newest, oldest = max(known), min(known)
    days = [oldest + timedelta(days=n) for n in range((newest - oldest).days + 1)]

    def values(name: str) -> list[float | None]:
        return [
            None if day not in known or (value := getattr(known[day], name)) is None else float(value) for day in days
        ]

    return TimeChart(
        "by-day",
        "Shares by day",
        [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days],
        [
            Series("Out of stock", values("out_share"), "bad"),
            Series("On special", values("special_share"), "info"),
            Series("Median discount", values("depth_median"), "good", dash=True),
        ],
        unit="percent",
        step=timedelta(days=1),
        partial=False,
        height=240,
    )


_SPANS = (30, 90, 365)
_MOST_DAYS = 1100
"""Days of a chart, the newest ones."""


@router.get("/price-index")
async def show_price_index(
    request: Request,
    conn: ReadConn,
    state: Annotated[str, Query(max_length=20)] = ALL,
    category: Annotated[str, Query(max_length=20)] = ALL,
    days: Annotated[str, Query(max_length=20)] = str(_SPANS[1]),
) -> Response:
    """The price index of a state and category, as a chart and a table."""
    form = FormInput({"state": state, "category": category, "days": days})
    scope, group = parse_scope(form), parse_category(form, ALL) or ALL
    span = form.parse_choice("days", [str(one) for one in _SPANS]) or str(_SPANS[1])
    found = await read_price_index(conn, state=scope, category=group, days=int(span)) if form.ok else None
    context = {
        "form": form,
        "states": await list_states(conn, scope),
        "categories": [(ALL, "All categories"), *CATEGORY_CHOICES],
        "spans": [(str(one), f"{one} days") for one in _SPANS],
        "report_groups": REPORT_GROUPS,
        "info": (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=1)).info,
        "found": found,
        "chart": None if found is None else index_chart(found),
    }
    return screen.render(request, "analytics/price_index.html", context)


def index_chart(found: PriceIndex) -> TimeChart:
    """The index with its interval; days without one are gaps. Pure."""

    def values(name: str) -> list[float | None]:
        return [None if (value := getattr(one, name)) is None else float(value) for one in found.items]

    return TimeChart(
        "price-index",
        "Price index by day",
        [datetime(one.day.year, one.day.month, one.day.day, tzinfo=UTC) for one in found.items],
        [
            Series("Upper limit", values("high"), "none", dash=True),
            Series("Index", values("index"), "info"),
            Series("Lower limit", values("low"), "none", dash=True),
        ],
        unit="number",
        step=timedelta(days=1),
        partial=False,
        height=280,
        zero=False,
        bands=[(1, 3)],
    )


@router.get("/{report:path}")
async def show_report(
    request: Request,
    conn: ReadConn,
    report: Report,
    state: Annotated[str, Query(max_length=20)] = ALL,
    category: Annotated[str, Query(max_length=20)] = "",
    brand: Annotated[str, Query(max_length=200)] = "",
    canonical_product: Annotated[str, Query(max_length=20)] = "",
    first: Annotated[str, Query(alias="from", max_length=20)] = "",
    last: Annotated[str, Query(alias="to", max_length=20)] = "",
    as_file: Annotated[Literal["csv", "parquet"] | None, Query(alias="format")] = None,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """One report as a table, or all of it as a file."""
    if report not in REPORTS:
        return screen.redirect(request, "/analytics")
    values = {
        "state": state, "category": "" if category == ALL else category, "brand": brand.replace("\0", ""),
        "canonical_product": canonical_product, "from": first, "to": last,
    }  # fmt: skip
    form = FormInput(values)
    where = parse_filter(report, form)
    if as_file:
        screen.refuse_invalid(form)
        rows = [flat_row(row) for row in (await read_report(conn, report, where, limit=_MOST_IN_FILE)).rows]
        fields = list(rows[0]) if rows else SOURCES[report].row.__struct_fields__
        if as_file == "parquet":
            return await run_in_threadpool(parquet_response, report, fields, rows)
        return csv_response(report, fields, rows)
    after = screen.parse_cursor(request, cursor, cursor_type(report, where))
    try:
        page = await read_report(conn, report, where, after=after, limit=_MOST)
    except ExpiredRun:
        request.state.lost_place = True
        page = await read_report(conn, report, where, limit=_MOST)
    if not form.ok:
        page = replace(page, rows=[], next=None)
    chart = None
    if (
        form.ok
        and report is Report.MARKET_DAYS
        and len(days := (await read_report(conn, report, where, limit=_MOST_DAYS)).rows) > 1
    ):
        chart = days_chart(days)
    title, columns = REPORTS[report]
    covered = await read_coverage(conn)
    context = {
        "form": form,
        "basis": covered.get(where.state or ALL),
        "of_days": report in OF_DAYS,
        "chart": chart,
        "states": state_choices(covered, parse_scope(form)),
        "categories": CATEGORY_CHOICES if report in OF_CATEGORY else None,
        "of_brand": report in OF_BRAND,
        "of_product": report in OF_PRODUCT,
        "info": page.info,
        "report_groups": REPORT_GROUPS,
        "report": report,
        "title": title,
        "about": SOURCES[report].description.replace("\n", " "),
        "columns": columns,
        "rows": [[(column, _value(row, column.path)) for column in columns] for row in decoded(page.rows)],
        "keys": page.rows,
        **screen.page_links(request, paging.encode(*page.next) if page.next else None),
    }
    return screen.render(request, "analytics/report.html", context)


def _value(row: dict[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = None if value is None else value.get(name)
    if path == "category" and row.get("all_categories"):
        return ALL
    return ALL if path == "state" and row.get("all_states") else value


@router.get("")
async def shown(request: Request, conn: ReadConn, state: Annotated[str, Query(max_length=20)] = ALL) -> Response:
    """The shares of categories and brands on the menus of a state, or of all."""
    form = FormInput({"state": state})
    scope = parse_scope(form)
    where = ReportFilter(state=scope)
    categories = await read_report(conn, Report.CATEGORIES, where, limit=_MOST)
    brands = await read_report(conn, Report.BRANDS, where, limit=_MOST)
    covered = await read_coverage(conn)
    context = {
        "form": form,
        "states": state_choices(covered, scope),
        "basis": covered.get(scope),
        "report_groups": REPORT_GROUPS,
        "info": categories.info,
        "categories": decoded(categories.rows),
        "brands": decoded(brands.rows),
        "most": _MOST if brands.next else None,
    }
    return screen.render(request, "analytics/overview.html", context)
