"""Tools about the market: the reports, the price index, the cheapest basket, lowest prices."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from msgspec.json import Decoder
from pydantic import Field, create_model

from menuwatch.analytics import basket, lowest_prices
from menuwatch.analytics import price_index as index
from menuwatch.analytics import service as analytics
from menuwatch.analytics.basket import CheapestBasket
from menuwatch.analytics.lowest_prices import LowestPrice
from menuwatch.analytics.price_index import PriceIndexDay
from menuwatch.analytics.products import CanonicalFilter
from menuwatch.analytics.reports import Coverage, DaysInfo, Failure, Window
from menuwatch.analytics.service import ALL, SOURCES, UNKNOWN, ExpiredRun, Report, ReportFilter, StockGroup
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.core.shapes import doc
from menuwatch.mcp.answer import AnswerCoverage, Page, in_brief
from menuwatch.mcp.inputs import (
    ANY_SCOPE,
    BRAND,
    CANONICAL,
    CATEGORY,
    ONE_SCOPE,
    REPORT_CATEGORY,
    STATE,
    STORE,
    WHEN,
    AnyCategory,
    Moment,
    NearInput,
    PastMoment,
    ReportCategory,
    Scope,
    day_of,
)
from menuwatch.mcp.tool import Call, ListInput, Run, Tool, ToolError, state_name, tool
from menuwatch.stores.service import StoreFilter
from menuwatch.web.inputs import BigId, Search, State, StoreId, Text

_decode_coverage = Decoder(Coverage).decode
_WINDOW = Annotated[Window | None, doc("Time window of the report; null before the first refresh.")]
_FAILED = Annotated[Failure | None, doc("The failure of the last refresh; null if it succeeded.")]
_KEPT = Annotated[date | None, doc("First day kept (UTC), for any state; null if none is kept.")]

_ANY_STATE = (Scope | None, ANY_SCOPE)
_ONE_STATE = (Scope, ONE_SCOPE)
_ONLY_STATE = (State | None, STATE)
_OF_CATEGORY = (ReportCategory | None, REPORT_CATEGORY)
_BRAND_NAME = (Text | None, BRAND)
_PRODUCT = (BigId | None, CANONICAL)
_ALL_CATEGORIES = (
    AnyCategory,
    Field("all", description="Category, `all` for all of them together, or `unknown`."),
)
_EACH_CATEGORY = (
    AnyCategory | None,
    Field(None, description="Category, `all` for all of them together, or `unknown`; all of these if omitted."),
)
_FIRST_DAY = (PastMoment | None, Field(None, description=f"First day (UTC): {WHEN}."))
_LAST_DAY = (Moment | None, Field(None, description=f"Day after the last one (UTC): {WHEN}."))


def _day(name: str, text: str | None) -> date | None:
    moment = day_of(name, text)
    return None if moment is None else moment.date()


def _stores_in(scope: str) -> StoreFilter:
    """The stores of a state, of all states or of none."""
    return StoreFilter(states=None if scope in (ALL, UNKNOWN) else [scope], stateless=scope == UNKNOWN)


async def _observed(call: Call, state: str | None, refreshed_at: datetime | None) -> dict[str, Any]:
    """Freshness and coverage of a report: those of its own run, of the state or of all stores."""
    scope = state or ALL
    if refreshed_at is None:
        return await call.observed(state_name(scope), _stores_in(scope))
    page = await analytics.read_report(call.conn, Report.COVERAGE, ReportFilter(state=scope))
    now = await call.observed("", _stores_in(scope))
    found = _decode_coverage(page.rows[0].coverage) if page.rows else None
    coverage = AnswerCoverage(
        scope=state_name(scope),
        stores=found.stores if found else 0,
        partial=found.partial if found else 0,
        known_stores=found.known_stores if found else 0,
    )
    return {
        "coverage": coverage,
        "newest": None if now["newest"] is None else min(now["newest"], refreshed_at),
        "oldest": None if now["oldest"] is None else min(now["oldest"], refreshed_at),
        "refreshed_at": refreshed_at,
    }


def _report(
    name: str, report: Report, title: str, description: str, fixed: dict[str, Any] | None = None, **fields: Any
) -> Tool[Any]:
    """A tool that lists a report with these filters; `fixed` are filters with one value."""
    source = SOURCES[report]
    shown: dict[str, Any] = {"window": _WINDOW, "failed": _FAILED} | (
        {"kept_since": _KEPT} if source.info is DaysInfo else {}
    )
    inputs = create_model(f"{source.row.__name__}Input", __base__=ListInput, **fields)

    async def run(call: Call, query: Any) -> Page:
        given = query.model_dump(exclude={"limit", "cursor"})
        for day in {"since", "until"} & given.keys():
            given[day] = _day(day, given[day])
        if (store := given.get("store")) is not None:
            given["store"] = [store]
        filters = ReportFilter(**given, **(fixed or {}))
        after = call.after(analytics.cursor_type(report, filters))
        try:
            found = await analytics.read_report(call.conn, report, filters, after=after, limit=call.limit)
        except ExpiredRun:
            raise ToolError("cursor: the report was refreshed twice in the meantime; start again without it") from None
        info = found.info
        observed = await _observed(call, filters.state, info.refreshed_at)
        return Page(
            rows=found.rows,
            next=found.next,
            members={name: getattr(info, name) for name in shown},
            notice=info.notice,
            **observed,
        )

    made: Run[Any] = run
    return tool(title, inputs, row=source.row, name=name, description=description, **shown)(made)


list_price_per_gram = _report(
    "list_price_per_gram", Report.PRICES, "Price per gram by category and state",
    "Regular and paid price per gram (percentiles and mean) of what is on offer, by category and state. Categories that are not sold "
    "by weight have counts only.",
    state=_ANY_STATE, category=_OF_CATEGORY,
)  # fmt: skip
list_brands_by_distribution = _report(
    "list_brands_by_distribution", Report.BRAND_DISTRIBUTION, "Top brands by distribution",
    "Brands by the share of locations that offer any of their products, the widest first.",
    state=_ONE_STATE, category=_ALL_CATEGORIES, brand=_BRAND_NAME,
)  # fmt: skip
list_products_by_distribution = _report(
    "list_products_by_distribution", Report.DISTRIBUTION, "Canonical products by distribution",
    "Canonical products by the share of locations that offer them, the widest first.",
    state=_ONE_STATE, category=_OF_CATEGORY, brand=_BRAND_NAME, canonical_product=_PRODUCT,
)  # fmt: skip
list_discount_depth = _report(
    "list_discount_depth", Report.MARKET_DAYS, "Discounts and stock by day",
    "Share of products on special, depth of their discounts and share out of stock by day (UTC), newest first, each as of the last "
    "refresh of that day.",
    state=_ONE_STATE, category=_ALL_CATEGORIES, since=_FIRST_DAY, until=_LAST_DAY,
)  # fmt: skip
list_discounts = _report(
    "list_discounts", Report.DISCOUNTS, "Discounts now, by state and category",
    "Number of products on special and the depth of their discounts, by state and category.",
    state=_ANY_STATE, category=_EACH_CATEGORY,
)  # fmt: skip
list_time_out_of_stock = _report(
    "list_time_out_of_stock", Report.STOCK, "Time out of stock by group",
    "Share of the observed time in the report's window that products were out of stock, by state, category or store.",
    by=(StockGroup, Field(StockGroup.STATE_CATEGORY, description="Level of the rows.")),
    state=_ONLY_STATE, category=_OF_CATEGORY, store=(StoreId | None, STORE),
)  # fmt: skip
list_price_dispersion = _report(
    "list_price_dispersion", Report.DISPERSION, "Price dispersion of products",
    "Lowest, highest, quartile and median price and the coefficient of variation of each size of a canonical product over locations; "
    "three locations at least. Most locations first.",
    state=_ONE_STATE, category=_OF_CATEGORY, brand=_BRAND_NAME, canonical_product=_PRODUCT,
)  # fmt: skip
list_widest_gaps = _report(
    "list_widest_gaps", Report.GAPS, "Widest price gaps",
    "The same sizes of products by the ratio of the highest to the lowest price, the widest first, with the stores of both prices.",
    state=_ONE_STATE, category=_OF_CATEGORY, brand=_BRAND_NAME, canonical_product=_PRODUCT,
)  # fmt: skip
get_coverage = _report(
    "get_coverage", Report.COVERAGE, "Coverage by state",
    "Known, crawled and stale stores, age of menus, and success of scheduled crawls, by state and for all states together.",
    state=_ANY_STATE,
)  # fmt: skip


class IndexInput(ListInput):
    """Which price index."""

    state: Scope = ONE_SCOPE
    category: AnyCategory = Field("all", description="Category, `all` for all of them together, or `unknown`.")
    since: PastMoment | None = Field(
        None, description=f"First day (UTC): {WHEN}. By default 90 days before the last one."
    )
    until: Moment | None = Field(
        None, description=f"Last day (UTC), included: {WHEN}. By default the last computed one."
    )


@tool(
    "Price index of a state or category",
    IndexInput,
    row=PriceIndexDay,
    base=Annotated[date | None, doc("The day on which the index is 100; null if there is no index.")],
    first_day=Annotated[date | None, doc("First computed day; null if none is computed.")],
    last_day=Annotated[date | None, doc("Last computed day; null if none is computed.")],
)
async def get_price_index(call: Call, query: IndexInput) -> Page:
    """How prices of the same items changed: a chained index by day, 100 on the day `base`, with its 95 % confidence interval, newest
    day first."""
    found = await index.read_price_index(
        call.conn,
        state=query.state,
        category=query.category,
        first=_day("since", query.since),
        last=_day("until", query.until),
    )
    rows, following = call.part_of(found.items[::-1])
    observed = await call.observed(state_name(query.state), _stores_in(query.state))
    members = {"base": found.base, "first_day": found.first_day, "last_day": found.last_day}
    return Page(rows=rows, next=following, members=members, notice=found.notice, **observed)


class BasketInput(NearInput):
    """What to buy, and near which place."""

    items: list[Text] = Field(
        min_length=1,
        max_length=basket.MOST_ITEMS,
        description="What to buy: `4711:3.5 g` (canonical product and size) or `flower:3.5 g` (any of a category), with `*2` behind "
        "it for two of them.",
    )
    medical: bool = Field(False, description="Whether to use prices for patients where there is no other.")


Baskets = in_brief(CheapestBasket, "Baskets", "notice")


@tool("Cheapest basket near a place", BasketInput, basket=Baskets)
async def find_cheapest_basket(call: Call, query: BasketInput) -> Page:
    """Where several products cost least together near a place: at one store, at two, and at any number of stores; with what is
    missing where."""
    wants = basket.parse_items(query.items)
    circle, label = query.area
    found = await basket.find_cheapest_basket(call.conn, wants, circle, medical=query.medical)
    members = {"basket": Baskets(**{name: getattr(found, name) for name in Baskets.__struct_fields__})}
    observed = await call.observed(label, StoreFilter(circle=circle))
    return Page(members=members, notice=found.notice, **observed)


class LowestInput(ListInput):
    """Which canonical products."""

    limit: int = Field(
        10,
        ge=1,
        le=lowest_prices.MOST_PRODUCTS,
        description="Maximum number of products; each has a row for each size.",
    )
    canonical_product_id: BigId | None = CANONICAL
    q: Search | None = Field(None, description="Only those whose name or brand contains this text, in any case.")
    category: Category | None = CATEGORY
    state: State | None = STATE


@tool("Lowest prices now, in 90 days and ever", LowestInput, row=LowestPrice)
async def list_lowest_prices(call: Call, query: LowestInput) -> Page:
    """The lowest price of each size of canonical products: now, within 90 days and since first observed, with when and where."""
    where = CanonicalFilter(q=query.q, category=query.category, product=query.canonical_product_id)
    found = await lowest_prices.list_lowest_prices(
        call.conn,
        where,
        state=query.state,
        after=call.after(tuple[int, int]),
        limit=call.limit,
        archived=call.archived,
    )
    states = None if query.state is None else [query.state]
    observed = await call.observed(state_name(query.state), StoreFilter(states=states))
    return Page(rows=found.items, next=found.next, **observed)


TOOLS: tuple[Tool[Any], ...] = (
    list_price_per_gram,
    list_brands_by_distribution,
    list_products_by_distribution,
    list_discount_depth,
    list_discounts,
    list_time_out_of_stock,
    list_price_dispersion,
    list_widest_gaps,
    get_coverage,
    get_price_index,
    find_cheapest_basket,
    list_lowest_prices,
)
