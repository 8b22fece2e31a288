"""`menuwatch analytics`: figures over all stores, with what each of them rests on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.analytics.model import UnderWay
from menuwatch.analytics.refresh import refresh as make_anew
from menuwatch.catalog.canon.kinds import CATEGORIES
from menuwatch.cli.figure_sheet import printed
from menuwatch.cli.output import Format, console, plural, print_json
from menuwatch.cli.process import settings
from menuwatch.cli.products import parse_since
from menuwatch.core.errors import Refused
from menuwatch.operations import analytics as operations
from menuwatch.operations import audit
from menuwatch.operations.analytics import ALL, UNKNOWN, By, Days, Figure, Level, Page, Where
from menuwatch.schedules.model import parse_state
from menuwatch.stores import store as stores

app = typer.Typer(help="Figures over all stores, and what each of them rests on.", no_args_is_help=True)

StateOption = Annotated[
    str | None, typer.Option(help="Only this state (two letters); `all`: all states together; `unknown`.")
]
CategoryOption = Annotated[str | None, typer.Option(help="Only this category of all platforms, or `unknown`.")]
StoreOption = Annotated[
    list[str] | None, typer.Option(help="Only this store: its slug, platform id or number; may be repeated.")
]
BrandOption = Annotated[str | None, typer.Option(help="Only this brand, in any case.")]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Print no more rows than this. Tables stop at 100 by themselves.")
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: when it was made, and `items`.")]


@app.command("price-per-gram")
def price_per_gram(
    state: StateOption = None,
    category: CategoryOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """Price per gram of what is on offer, by state and category."""
    where = Where(scope=_scope(state), category=_category(category))
    columns = (
        ("where", "State"),
        ("category", "Category"),
        ("options", "Options"),
        ("without_weight", "No weight"),
        ("regular_median", "Regular"),
        ("effective_p10", "p10"),
        ("effective_median", "Paid (median)"),
        ("effective_p90", "p90"),
        ("effective_mean", "Mean"),
    )
    _figure(Figure.PRICES, where, columns, fmt, json, limit, weighed=True)


@app.command("brands")
def brands(
    state: StateOption = None,
    brand: BrandOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """How much of what is on the menus is of which brand, by state."""
    columns = (
        ("where", "State"),
        ("brand", "Brand"),
        ("products", "Products"),
        ("in_stock", "In stock"),
        ("share", "Share"),
        ("store_share", "Of stores"),
    )
    _figure(Figure.BRANDS, Where(scope=_scope(state), brand=brand), columns, fmt, json, limit)


@app.command("discounts")
def discounts(
    state: StateOption = None,
    category: Annotated[
        str | None, typer.Option(help="Only this category of all platforms; `all`: all of them together; `unknown`.")
    ] = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """How many products on offer are reduced, and by how much."""
    where = Where(scope=_scope(state), category=_category(category, together=True))
    columns = (
        ("where", "State"),
        ("what", "Category"),
        ("products", "Products"),
        ("on_special", "Reduced"),
        ("special_share", "Share"),
        ("depth_median", "Depth"),
        ("depth_p90", "p90"),
        ("named_only", "Named only"),
    )
    _figure(Figure.DISCOUNTS, where, columns, fmt, json, limit)


@app.command("out-of-stock")
def out_of_stock(
    by: Annotated[
        Level | None, typer.Option(help="What is added up over.", show_default=str(Level.STATE_CATEGORY))
    ] = None,
    products: Annotated[bool, typer.Option("--products", help="Single products, longest out first.")] = False,
    state: StateOption = None,
    category: CategoryOption = None,
    store: StoreOption = None,
    brand: BrandOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """For how much of the observed time products were out of stock."""
    scope = _scope(state)
    if scope == ALL:
        raise Refused("--state all: say --by all or --by category")
    if brand is not None and not products:
        raise Refused("--brand is for single products: add --products")
    if by is not None and products:
        raise Refused("--products lists single products and --by adds them up: name one of them")
    where = Where(scope=scope, category=_category(category), brand=brand, level=by or Level.STATE_CATEGORY)
    group = () if products else (("products", "Products"), ("out_products", "Once out"))
    columns = (
        ("where", "State"),
        ("store", "Store"),
        *((("name", "Product"), ("times_out", "Times")) if products else ()),
        ("category", "Category"),
        *group,
        ("in_hours", "In (h)"),
        ("out_hours", "Out (h)"),
        ("out_share", "Out"),
    )
    _figure(Figure.OUT_PRODUCTS if products else Figure.STOCK, where, columns, fmt, json, limit, named=store)


@app.command("new-and-gone")
def new_and_gone(
    by: Annotated[By, typer.Option(help="What a day is added up over.")] = By.STATE,
    since: Annotated[str | None, typer.Option(help="From this day on: a date, or an age as 7d.")] = None,
    state: StateOption = None,
    store: StoreOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """What stores had for the first time and for the last, day by day (UTC)."""
    start = parse_since(since, datetime.now(UTC)).astimezone(UTC).date() if since else None
    scope = _scope(state)
    columns = (
        ("day", "Day"),
        ("where", "State"),
        ("store", "Store"),
        ("new_products", "New"),
        ("gone_products", "Gone"),
        ("returned", "Back"),
        ("price_changes", "Prices"),
        ("stock_changes", "Stock"),
        ("crawls", "Crawls"),
    )

    async def read(conn: Any, limit: int) -> Page:
        chosen = Where(scope=scope, stores=await _stores(conn, store))
        return await operations.days(conn, Days(since=start, where=chosen, by=by), limit=limit)

    printed(read, columns, fmt, json, limit)


@app.command("stores")
def list_stores(
    state: StateOption = None,
    store: StoreOption = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only stores that are stale.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Only stores that are not.")] = False,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """When each store was seen last, and what became of its crawls."""
    if stale and fresh:
        raise Refused("--stale and --fresh: no store is both; name one of them, or none for all")
    scope = _scope(state)
    columns = (
        ("dispensary_id", "#"),
        ("store", "Store"),
        ("where", "State"),
        ("last_crawled_at", "Last crawl (UTC)"),
        ("age_hours", "Age (h)"),
        ("is_stale", "Stale"),
        ("failed", "Failed"),
        ("quarantined", "Quarantined"),
        ("never_begun", "Never begun"),
        ("observed_share", "Observed"),
        ("coverage_scheduled", "Scheduled"),
        ("coverage_share", "Crawls ok"),
    )

    async def read(conn: Any, limit: int) -> Page:
        chosen = Where(scope=scope, stores=await _stores(conn, store))
        return await operations.stores(conn, chosen, stale=stale if stale or fresh else None, limit=limit)

    printed(read, columns, fmt, json, limit, rests_on=())


@app.command("coverage")
def coverage(
    state: StateOption = None,
    fmt: FormatOption = None,
    json: JsonOption = False,
    limit: LimitOption = None,
) -> None:
    """How well each state is seen."""
    scope = _scope(state)
    columns = (
        ("where", "State"),
        ("known_stores", "Known"),
        ("crawled_stores", "Seen"),
        ("stale_stores", "Stale"),
        ("median_age_hours", "Median age (h)"),
        ("observed_share", "Observed"),
        ("failed", "Failed"),
        ("quarantined", "Quarantined"),
        ("never_begun", "Never begun"),
        ("coverage_scheduled", "Scheduled"),
        ("coverage_share", "Crawls ok"),
    )

    async def read(conn: Any, limit: int) -> Page:
        found = await operations.coverage(conn, scope)
        return replace(found, rows=found.rows[:limit], next=(limit,) if len(found.rows) > limit else None)

    printed(read, columns, fmt, json, limit, rests_on=())


@app.command("refresh")
def refresh(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Make all figures anew, here and now."""
    made = asyncio.run(_refresh())
    if isinstance(made, UnderWay):
        raise Refused("another refresh is under way: its figures come as soon as it is done")
    if json:
        print_json(
            {
                "run_id": made.run_id,
                "seconds": round(made.seconds, 3),
                "window": {"from": made.window_from, "to": made.window_to},
                "steps": [{"step": one.step, "seconds": one.seconds, "rows": one.rows} for one in made.steps],
            }
        )
        return
    rows = sum(one.rows for one in made.steps)
    console.print(f"The figures are new: {plural(rows, 'row')} in {made.seconds:.1f} s.", markup=False)


async def _refresh() -> Any:
    async with bootstrap.open_system(settings()) as system:
        async with system.pool.connection() as conn:
            await audit.record(conn, "figures_refreshed")
        return await make_anew(system.pool, window=timedelta(days=system.settings.analytics_window_days))


def _figure(
    figure: Figure,
    where: Where,
    columns: Sequence[tuple[str, str]],
    fmt: Format | None,
    json: bool,
    limit: int | None,
    *,
    named: Sequence[str] | None = None,
    weighed: bool = False,
) -> None:
    async def read(conn: Any, limit: int) -> Page:
        chosen = Where(
            scope=where.scope,
            category=where.category,
            brand=where.brand,
            level=where.level,
            stores=await _stores(conn, named),
        )
        return await operations.page(conn, figure, chosen, limit=limit)

    printed(read, columns, fmt, json, limit, weighed=weighed)


def _scope(text: str | None) -> str | None:
    if text is None or text.strip().lower() in (ALL, UNKNOWN):
        return text and text.strip().lower()
    return parse_state(text)


def _category(text: str | None, *, together: bool = False) -> str | None:
    if text is None:
        return None
    words = (*sorted(CATEGORIES), *((ALL,) if together else ()), UNKNOWN)
    name = text.strip().lower()
    if name not in words:
        raise Refused(f"--category {text!r} does not exist: it is one of {', '.join(words)}")
    return name


async def _stores(conn: Any, named: Sequence[str] | None) -> list[int] | None:
    if not named:
        return None
    found = []
    for text in named:
        one = await stores.find(conn, text)
        if one is None:
            raise Refused(f"--store {text}: there is no such store; `menuwatch stores list` shows those there are")
        found.append(one.id)
    return found
