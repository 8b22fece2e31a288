"""`menuwatch analytics`: reports across all stores, with the data they are based on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import typer
from msgspec import structs

from menuwatch.accounts import audit
from menuwatch.analytics import price_index as index
from menuwatch.analytics import refresh as refreshing
from menuwatch.analytics.price_index import PriceIndex
from menuwatch.analytics.refresh import RefreshResult, RefreshRunning
from menuwatch.analytics.reports import DaysInfo, flat_row
from menuwatch.analytics.service import (
    ALL,
    UNKNOWN,
    CheapestGroup,
    DayGroup,
    Page,
    Report,
    ReportFilter,
    SpecialGroup,
    StockGroup,
    read_report,
)
from menuwatch.analytics.special_checks import SpecialVerdict
from menuwatch.cli import bargains
from menuwatch.cli.analytics_options import (
    BrandOption,
    CanonicalOption,
    CategoryOption,
    StateOption,
    parse_category,
    parse_day,
    parse_scope,
)
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, StoresOption, find_store_ids, parse_past
from menuwatch.cli.output import Column, Format, ago, echo, notice, print_json, print_list
from menuwatch.cli.startup import read, with_system
from menuwatch.core.errors import Refused
from menuwatch.core.format import age, money, percent, pluralize
from menuwatch.db.pool import Connection
from menuwatch.system import System

app = Commands("Show analytics across all stores, with the data they are based on.")
app.add_typer(bargains.app)

_COVERAGE = (
    ("coverage_stores", "Stores"), ("coverage_stale_stores", "Stale"),
    ("coverage_partial", "Partial"), ("coverage_share", "Crawls ok"),
)  # fmt: skip
_COLUMNS = {
    Report.PRICES: (
        ("where", "State"), ("category", "Category"), ("options", "Options"), ("without_weight", "No weight"),
        ("implausible", "Implausible"), ("regular_median", "Regular"), ("effective_p10", "p10"), ("effective_median", "Paid (median)"),
        ("effective_p90", "p90"), ("effective_mean", "Mean"), *_COVERAGE,
    ),
    Report.BRANDS: (
        ("where", "State"), ("brand", "Brand"), ("products", "Products"), ("in_stock", "In stock"), ("share", "Share"),
        ("store_share", "Of stores"), *_COVERAGE,
    ),
    Report.CATEGORIES: (
        ("where", "State"), ("category", "Category"), ("products", "Products"), ("in_stock", "In stock"), ("share", "Share"),
        ("store_share", "Of stores"), *_COVERAGE,
    ),
    Report.DISCOUNTS: (
        ("where", "State"), ("what", "Category"), ("products", "Products"), ("on_special", "Discounted"), ("special_share", "Share"),
        ("depth_median", "Depth"), ("depth_p90", "p90"), ("named_only", "Unreduced"), *_COVERAGE,
    ),
    Report.STOCK: (
        ("where", "State"), ("store", "Store"), ("category", "Category"), ("products", "Products"), ("out_products", "Ever out"),
        ("in_hours", "In (h)"), ("out_hours", "Out (h)"), ("out_share", "Out"), *_COVERAGE,
    ),
    Report.OUT_PRODUCTS: (
        ("where", "State"), ("store", "Store"), ("name", "Product"), ("times_out", "Times"), ("category", "Category"),
        ("in_hours", "In (h)"), ("out_hours", "Out (h)"), ("out_share", "Out"), *_COVERAGE,
    ),
    Report.DAYS: (
        ("day", "Day"), ("where", "State"), ("store", "Store"), ("new_products", "New"), ("gone_products", "Gone"),
        ("returned", "Back"), ("price_changes", "Prices"), ("stock_changes", "Stock"), ("crawls", "Crawls"), *_COVERAGE,
    ),
    Report.STORES: (
        ("dispensary_id", "#"), ("store", "Store"), ("where", "State"), ("last_crawled_at", "Last crawl (UTC)"),
        ("age_hours", "Age"), ("is_stale", "Stale"), ("failed", "Failed"), ("quarantined", "Quarantined"),
        ("never_begun", "Not started"), ("observed_share", "Observed"), ("coverage_partial", "Partial"),
        ("coverage_scheduled", "Scheduled"), ("coverage_share", "Crawls ok"),
    ),
    Report.COVERAGE: (
        ("where", "State"), ("known_stores", "Known"), ("crawled_stores", "Seen"), ("stale_stores", "Stale"),
        ("coverage_partial", "Partial"),
        ("median_age_hours", "Median age"), ("observed_share", "Observed"), ("failed", "Failed"), ("quarantined", "Quarantined"),
        ("never_begun", "Not started"), ("coverage_scheduled", "Scheduled"), ("coverage_share", "Crawls ok"),
    ),
    Report.DISTRIBUTION: (
        ("canonical_product_id", "#"), ("name", "Product"), ("brand", "Brand"), ("where", "State"), ("category", "Category"),
        ("locations", "Locations"), ("in_stock", "On offer"), ("share", "Of locations"), ("category_share", "Of category"),
    ),
    Report.BRAND_DISTRIBUTION: (
        ("brand_id", "#"), ("brand", "Brand"), ("where", "State"), ("what", "Category"), ("locations", "Locations"),
        ("in_stock", "On offer"), ("share", "Of locations"), ("category_share", "Of category"),
        ("products_per_location", "Per location"),
    ),
    Report.DISPERSION: (
        ("canonical_product_id", "#"), ("name", "Product"), ("brand", "Brand"), ("where", "State"), ("size", "Size"),
        ("locations", "Locations"), ("min", "Min"), ("p25", "p25"), ("median", "Median"), ("p75", "p75"), ("max", "Max"), ("cv", "CV"),
    ),
    Report.GAPS: (
        ("canonical_product_id", "#"), ("name", "Product"), ("brand", "Brand"), ("where", "State"), ("size", "Size"),
        ("locations", "Locations"), ("min", "Min"), ("cheapest_store", "At"), ("max", "Max"), ("dearest_store", "At"), ("gap", "Gap"),
        ("gap_share", "Above min"), ("stale_locations", "Stale"), ("implausible_locations", "Implausible"),
    ),
    Report.CHEAPEST: (
        ("location_id", "Location"), ("dispensary_id", "Store #"), ("store", "Store"), ("state", "State"), ("category", "Category"),
        ("brand", "Brand"), ("compared", "Compared"), ("cheapest", "Cheapest"), ("share", "Share"),
    ),
    Report.SPECIALS: (
        ("product_id", "#"), ("name", "Product"), ("store", "Store"), ("state", "State"), ("size", "Size"), ("price", "Price"),
        ("regular", "Regular"), ("usual", "Usual"), ("verdict", "Verdict"), ("score", "Score"), ("observed_days", "Days"),
    ),
    Report.SPECIAL_GROUPS: (
        ("where", "State"), ("dispensary_id", "#"), ("store", "Store"), ("brand", "Brand"), ("category", "Category"),
        ("specials", "Specials"), ("genuine", "Genuine"), ("doubtful", "Doubtful"), ("never_asked", "Never asked"),
        ("unknown", "Unknown"), ("never_asked_share", "Share"), ("score_median", "Score"),
    ),
    Report.MARKET_DAYS: (
        ("day", "Day"), ("state", "State"), ("category", "Category"), ("products", "Products"), ("in_stock", "In stock"),
        ("out_of_stock", "Out"), ("unknown_stock", "Unknown"), ("out_share", "Out share"), ("priced", "Priced"),
        ("on_special", "Discounted"), ("special_share", "Share"), ("depth_median", "Depth"), ("stores", "Stores"),
        ("known_stores", "Known"),
    ),
    Report.BRAND_DAYS: (
        ("day", "Day"), ("state", "State"), ("brand_id", "#"), ("brand", "Brand"), ("products", "Products"), ("in_stock", "In stock"),
        ("share", "Share"), ("stores", "Stores"), ("store_share", "Of stores"),
    ),
    Report.SHRINKFLATION: (
        ("canonical_product_id", "#"), ("name", "Product"), ("brand", "Brand"), ("store", "Store"), ("stores", "Stores"),
        ("larger", "Was"), ("smaller", "Is"), ("larger_price", "Price"), ("smaller_price", "Price now"),
        ("unit_price_change", "Per unit"), ("larger_until", "Last seen (UTC)"), ("smaller_from", "First seen (UTC)"),
    ),
}  # fmt: skip


@app.command("price-per-gram")
def price_per_gram(out: LimitedOutput, state: StateOption = None, category: CategoryOption = None) -> None:
    """Show prices per gram of products on offer, by state and category."""
    _print_report(Report.PRICES, ReportFilter(state=parse_scope(state), category=parse_category(category)), out)


@app.command("brands")
def brands(out: LimitedOutput, state: StateOption = None, brand: BrandOption = None) -> None:
    """Show the brand distribution by state."""
    _print_report(Report.BRANDS, ReportFilter(state=parse_scope(state), brand=brand), out)


@app.command("categories")
def categories(out: LimitedOutput, state: StateOption = None, category: CategoryOption = None) -> None:
    """Show the category distribution by state."""
    _print_report(Report.CATEGORIES, ReportFilter(state=parse_scope(state), category=parse_category(category)), out)


@app.command("discounts")
def discounts(
    out: LimitedOutput,
    state: StateOption = None,
    category: Annotated[
        str | None, typer.Option(help="Only this canonical category; `all`: all of them together; `unknown`.")
    ] = None,
) -> None:
    """Show the share and depth of discounts."""
    _print_report(Report.DISCOUNTS, ReportFilter(state=parse_scope(state), category=parse_category(category, ALL)), out)


@app.command("out-of-stock")
def out_of_stock(
    out: LimitedOutput,
    by: Annotated[
        StockGroup | None, typer.Option(help="Dimension to aggregate by.", show_default=str(StockGroup.STATE_CATEGORY))
    ] = None,
    products: Annotated[
        bool, typer.Option("--products", help="List single products, longest out of stock first.")
    ] = False,
    state: StateOption = None,
    category: CategoryOption = None,
    store: StoresOption = None,
    brand: BrandOption = None,
) -> None:
    """Show the share of observed time that products were out of stock."""
    filters = ReportFilter(state=parse_scope(state), category=parse_category(category), brand=brand, by=by)
    if filters.state == ALL:
        raise Refused("--state all is not supported here: use --by all or --by category")
    if brand is not None and not products:
        raise Refused("--brand is for single products: add --products")
    if by is not None and products:
        raise Refused("--products and --by are mutually exclusive")
    _print_report(Report.OUT_PRODUCTS if products else Report.STOCK, filters, out, store)


@app.command("new-and-gone")
def new_and_gone(
    out: LimitedOutput,
    by: Annotated[DayGroup, typer.Option(help="Dimension to aggregate each day by.")] = DayGroup.STATE,
    since: Annotated[str | None, typer.Option(help="First day: a date, or an age such as 7d.")] = None,
    state: StateOption = None,
    store: StoresOption = None,
) -> None:
    """Show new and removed products by day (UTC)."""
    start = parse_past(since, datetime.now(UTC)).astimezone(UTC).date() if since else None
    _print_report(Report.DAYS, ReportFilter(state=parse_scope(state), since=start, by=by), out, store)


@app.command("stores")
def list_stores(
    out: LimitedOutput,
    state: StateOption = None,
    store: StoresOption = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only stale stores.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Only stores that are not stale.")] = False,
) -> None:
    """Show the last crawl of each store and the outcome of its crawls."""
    if stale and fresh:
        raise Refused("--stale and --fresh are mutually exclusive")
    filters = ReportFilter(state=parse_scope(state), stale=stale if stale or fresh else None)
    _print_report(Report.STORES, filters, out, store)


@app.command("coverage")
def coverage(out: LimitedOutput, state: StateOption = None) -> None:
    """Show the crawl coverage by state."""
    _print_report(Report.COVERAGE, ReportFilter(state=parse_scope(state)), out)


@app.command("distribution")
def distribution(
    out: LimitedOutput,
    brands: Annotated[bool, typer.Option("--brands", help="List brands instead of canonical products.")] = False,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    product: CanonicalOption = None,
) -> None:
    """Show the share of locations that have a canonical product or a brand in stock."""
    if brands and product is not None:
        raise Refused("--brands and --canonical-product are mutually exclusive")
    filters = ReportFilter(
        state=parse_scope(state),
        category=parse_category(category, *([ALL] if brands else [])),
        brand=brand,
        canonical_product=product,
    )
    _print_report(Report.BRAND_DISTRIBUTION if brands else Report.DISTRIBUTION, filters, out)


@app.command("price-dispersion")
def price_dispersion(
    out: LimitedOutput,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    product: CanonicalOption = None,
) -> None:
    """Show the prices of one size of a canonical product across locations."""
    filters = ReportFilter(
        state=parse_scope(state), category=parse_category(category), brand=brand, canonical_product=product
    )
    _print_report(Report.DISPERSION, filters, out)


@app.command("widest-gaps")
def widest_gaps(
    out: LimitedOutput,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    product: CanonicalOption = None,
) -> None:
    """Show the widest gaps between the highest and the lowest price of a product."""
    filters = ReportFilter(
        state=parse_scope(state), category=parse_category(category), brand=brand, canonical_product=product
    )
    _print_report(Report.GAPS, filters, out)


@app.command("cheapest-quarter")
def cheapest_quarter(
    out: LimitedOutput,
    by: Annotated[CheapestGroup, typer.Option(help="Dimension to aggregate by.")] = CheapestGroup.ALL,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    store: StoresOption = None,
) -> None:
    """Show how often locations are in the cheapest quarter of their state."""
    filters = ReportFilter(state=parse_scope(state), category=parse_category(category), brand=brand, by=by)
    if filters.state in (ALL, UNKNOWN):
        raise Refused(f"--state {filters.state} is not supported here: prices are compared within a state")
    _print_report(Report.CHEAPEST, filters, out, store)


@app.command("specials")
def specials(
    out: LimitedOutput,
    by: Annotated[
        SpecialGroup | None, typer.Option(help="Aggregate by this dimension instead of listing specials.")
    ] = None,
    verdict: Annotated[SpecialVerdict | None, typer.Option(help="Only specials with this verdict.")] = None,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    store: StoresOption = None,
) -> None:
    """Show specials, and whether the store really charged the regular price."""
    if by is not None and verdict is not None:
        raise Refused("--by and --verdict are mutually exclusive")
    filters = ReportFilter(
        state=parse_scope(state), category=parse_category(category), brand=brand, by=by, verdict=verdict
    )
    _print_report(Report.SPECIALS if by is None else Report.SPECIAL_GROUPS, filters, out, store)


@app.command("shrinkflation")
def shrinkflation(
    out: LimitedOutput,
    state: StateOption = None,
    category: CategoryOption = None,
    brand: BrandOption = None,
    product: CanonicalOption = None,
    store: StoresOption = None,
) -> None:
    """Show smaller sizes that replaced larger ones, at a higher price per unit."""
    filters = ReportFilter(
        state=parse_scope(state), category=parse_category(category), brand=brand, canonical_product=product
    )
    _print_report(Report.SHRINKFLATION, filters, out, store)


@app.command("by-day")
def by_day(
    out: LimitedOutput,
    brands: Annotated[bool, typer.Option("--brands", help="Shares of brands instead of stock and discounts.")] = False,
    state: StateOption = None,
    category: Annotated[
        str | None, typer.Option(help="Only this canonical category; `all`: all of them together; `unknown`.")
    ] = None,
    brand: BrandOption = None,
    since: Annotated[str | None, typer.Option("--from", help="First day, for example 2026-11-20.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Last day, included.")] = None,
) -> None:
    """Show stock, discounts or brand shares by day (UTC); days are kept."""
    if brands and category is not None:
        raise Refused("--brands and --category are mutually exclusive")
    if brand is not None and not brands:
        raise Refused("--brand is for shares of brands: add --brands")
    first, last = parse_day(since, "--from"), parse_day(until, "--to")
    if first and last and first > last:
        raise Refused(f"--from {first} is after --to {last}")
    filters = ReportFilter(
        state=parse_scope(state),
        category=parse_category(category, ALL),
        brand=brand,
        since=first,
        until=last and last + timedelta(days=1),
    )
    _print_report(Report.BRAND_DAYS if brands else Report.MARKET_DAYS, filters, out)


_INDEX_COLUMNS = (
    Column("Day", "day"), Column("Index", "index"), Column("Low", "low"), Column("High", "high"),
    Column("Change", "change", lambda value: None if value is None else percent(float(value), 2), align="right"),
    Column("Matched", "matched"), Column("Stores", "stores"), Column("Carried", "carried"), Column("Entered", "entered"),
    Column("Expired", "expired"), Column("Outliers", "outliers"), Column("No index", "reason"),
)  # fmt: skip


@app.command("price-index")
def show_price_index(
    out: LimitedOutput,
    state: Annotated[str, typer.Option(help="Two-letter state, `all` or `unknown`.")] = ALL,
    category: Annotated[str, typer.Option(help="Canonical category, `all` or `unknown`.")] = ALL,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=index.LONGEST_DAYS, help="Number of days.", show_default=str(index.USUAL_DAYS)),
    ] = None,
    first: Annotated[str | None, typer.Option("--from", help="First day, for example 2026-11-20.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last day, included.")] = None,
) -> None:
    """Show how prices of the same items changed by day (UTC)."""
    if days is not None and first is not None:
        raise Refused("--days and --from are mutually exclusive")
    where, what = parse_scope(state) or ALL, parse_category(category, ALL) or ALL
    span = {"first": parse_day(first, "--from"), "last": parse_day(last, "--to"), "days": days or index.USUAL_DAYS}

    async def act(_: System, conn: Connection) -> PriceIndex:
        return await index.read_price_index(conn, state=where, category=what, **span)  # type: ignore[arg-type]

    found = read(act)
    if out.format is Format.JSON:
        print_json(found)
        return
    print_list(found.items[-out.rows :], _INDEX_COLUMNS, out.format, empty=found.notice or "No computed days.")
    if out.is_table and found.items:
        if found.base is not None:
            notice(f"Days are kept since {found.first_day}.")
            notice(f"The index is 100 on {found.base}; low and high are the 95 % confidence interval.")
        elif found.notice is not None:
            notice(found.notice)
        if len(found.items) > out.rows and out.limit is None:
            notice(f"The last {out.rows} days; use --limit or --csv for more.")


@app.command("refresh")
def refresh(json: JsonOption = False) -> None:
    """Recompute all analytics now."""
    result = with_system(_refresh)
    if isinstance(result, RefreshRunning):
        raise Refused("another refresh is running: its results will be available when it is done")
    if json:
        print_json(
            {
                "run_id": result.run_id,
                "seconds": round(result.seconds, 3),
                "window": {"from": result.window_from, "to": result.window_to},
                "steps": result.steps,
            }
        )
        return
    rows = sum(step.rows for step in result.steps)
    echo(f"Analytics refreshed: {pluralize(rows, 'row')} in {result.seconds:.1f} s.")


async def _refresh(system: System) -> RefreshResult | RefreshRunning:
    async with system.pool.connection() as conn:
        await audit.record(conn, "figures_refreshed")
    return await refreshing.refresh(system.pool, window=timedelta(days=system.settings.analytics_window_days))


def _print_report(report: Report, filters: ReportFilter, out: LimitedOutput, stores: list[str] | None = None) -> None:
    """Reads a report, of the stores with these names, and prints it."""

    async def act(_: System, conn: Connection) -> Page:
        ids = await find_store_ids(conn, stores)
        return await read_report(conn, report, replace(filters, store=ids), limit=out.rows)

    page = read(act)
    if out.format is Format.JSON:
        print_json({**structs.asdict(page.info), "items": page.rows})
        return
    rows = [flat_row(row) for row in page.rows]
    empty = page.info.notice or "No matching rows."
    left_out = [row for row in rows if not row["options"]] if out.is_table and report is Report.PRICES else []
    if left_out:
        rows = [row for row in rows if row["options"]]
        empty = "No rows with a price per gram."
    print_list(rows, _columns(report, rows), out.format, empty=empty)
    if left_out:
        options = pluralize(sum(row["without_weight"] for row in left_out), "option")
        notice(
            f"Not shown: {pluralize(len(left_out), 'row')} without a known weight ({options}); use --json to see them."
        )
    if out.is_table:
        _print_info(page)
        out.note_limit(page.next is not None)


def _columns(report: Report, rows: list[dict[str, Any]]) -> list[Column]:
    """Columns of a report without those that have no value; those of the coverage stay."""
    ranks = {} if report in (Report.STORES, Report.COVERAGE) else {key: rank for rank, (key, _) in enumerate(_COVERAGE)}
    columns = []
    for key, heading in _COLUMNS[report]:
        value = partial(_money, key) if key in _AMOUNTS else _TOTALS.get(key, key)
        form = _form(key)
        column = Column(heading, value, form, rank=ranks.get(key), align="right" if form or key in _AMOUNTS else None)
        if key in ranks or any(column.get(row) is not None for row in rows):
            columns.append(column)
    return columns


def _form(key: str) -> Callable[[Any], str | None] | None:
    """How a column's values are written in tables; None: by their type."""
    if key.endswith(("share", "_change")):
        return _share
    if key.startswith("depth_"):
        return _depth
    return _age if key.endswith("age_hours") else None


_TOTALS = {
    "where": lambda row: "all" if row.get("all_states") else row.get("state"),
    "what": lambda row: "all" if row.get("all_categories") else row.get("category"),
}

_AMOUNTS = frozenset({
    "regular_median", "effective_p10", "effective_median", "effective_p90", "effective_mean", "min", "p25", "median", "p75", "max",
    "gap", "price", "regular", "usual", "larger_price", "smaller_price",
})  # fmt: skip
"""Columns in the currency of the row."""


def _money(key: str, row: dict[str, Any]) -> str | None:
    return None if row[key] is None else money(row[key], row["currency"])


def _share(value: Decimal | None) -> str | None:
    # As exact as reports are: rounding their four digits again could give another number than the dashboard.
    return None if value is None else percent(float(value), 2)


def _age(hours: Decimal | None) -> str | None:
    return None if hours is None else age(hours)


def _depth(value: Decimal | None) -> str | None:
    return None if value is None else percent(float(value))


def _print_info(page: Page) -> None:
    info = page.info
    if info.window is not None:
        notice(f"Refreshed {ago(info.refreshed_at)}; window since {info.window.from_:%Y-%m-%d %H:%M} UTC.")
    if isinstance(info, DaysInfo) and info.kept_since is not None and info.notice is None:
        notice(f"Days are kept since {info.kept_since}.")
    if info.failed is not None:
        notice(f"Refresh failed {ago(info.failed.at)}: {info.failed.error}")
