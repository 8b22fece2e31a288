"""Analytics: prices per gram, brands, categories, discounts, time out of stock, new and removed products, freshness and coverage."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from msgspec import structs
from pydantic import AfterValidator, Field, create_model

from menuwatch.accounts.model import Permission
from menuwatch.analytics import price_index
from menuwatch.analytics import service as analytics
from menuwatch.analytics.price_index import PriceIndex
from menuwatch.analytics.reports import Overview
from menuwatch.analytics.service import (
    ALL,
    SOURCES,
    UNKNOWN,
    CheapestGroup,
    DayGroup,
    ExpiredRun,
    Report,
    ReportFilter,
    SpecialGroup,
    StockGroup,
)
from menuwatch.analytics.special_checks import SpecialVerdict
from menuwatch.api.inputs import BigId, FieldsQuery, Input, NoQuery, PageQuery, StoreId, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import BadCursor
from menuwatch.api.responses import answer, members_of, page, returns, returns_page
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.geo.states import parse_state
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/analytics", tags=["analytics"], dependencies=[require(Permission.READ)])


def _state(text: str) -> str:
    try:
        return UNKNOWN if text == UNKNOWN else parse_state(text)
    except Refused as error:
        raise ValueError(str(error)) from None


def _scope(text: str) -> str:
    word = text.strip().lower()
    try:
        return word if word in (ALL, UNKNOWN) else _state(text)
    except ValueError as error:
        raise ValueError(f"{error}; or `all` for all states together, or `unknown`") from None


_SCOPE = Annotated[
    Annotated[Text, AfterValidator(_scope)] | None,
    Field(
        description="Two-letter state, `all` for all states together, or `unknown` for stores without a known state; all of "
        "these if omitted."
    ),
]
_STATE = Annotated[
    Annotated[Text, AfterValidator(_state)] | None,
    Field(description="Only stores in this state (two letters), or `unknown`."),
]
_CATEGORY = Annotated[
    Literal[Category, "unknown"] | None,
    Field(description="Canonical category, or `unknown`; all categories if omitted."),
]
_ANY_CATEGORY = Annotated[
    Literal[Category, "all", "unknown"] | None,
    Field(description="Canonical category, `all` for all of them together, or `unknown`; all of these if omitted."),
]
_BRAND = Annotated[Text | None, Field(description="Only this brand, case-insensitive.")]
_BRAND_ID = Annotated[
    StoreId | None, Field(description="Only this canonical brand; the id of a merged one leads to its successor.")
]
_CANONICAL = Annotated[
    BigId | None, Field(description="Only this canonical product; the id of a merged one leads to its successor.")
]
_STORES = Annotated[list[StoreId] | None, Field(description="Only these stores (repeatable).")]
_PRODUCT = Annotated[BigId | None, Field(description="Only this product.")]
_SINCE = Annotated[date | None, Field(description="First day (UTC), for example 2026-11-20.")]
_UNTIL = Annotated[date | None, Field(description="Day after the last one (UTC).")]
_PLATFORM = Annotated[Text | None, Field(description="Only stores on this platform.")]
_STALE = Annotated[
    bool | None, Field(description="Only stale stores (`true`), or only stores that are not stale (`false`).")
]
_STOCK_GROUP = Annotated[StockGroup, Field(description="Dimension to aggregate by.")]
_CHEAPEST_GROUP = Annotated[CheapestGroup, Field(description="Dimension to aggregate by.")]
_SPECIAL_GROUP = Annotated[SpecialGroup, Field(description="Dimension to aggregate by.")]
_VERDICT = Annotated[SpecialVerdict | None, Field(description="Only specials with this verdict.")]
_DAY_GROUP = Annotated[DayGroup, Field(description="Dimension to aggregate each day by.")]

_FILTERS: dict[Report, tuple[str, dict[str, Any]]] = {
    Report.PRICES: ("list_prices_per_gram", {"state": _SCOPE, "category": _CATEGORY}),
    Report.BRANDS: ("list_brand_shares", {"state": _SCOPE, "brand": _BRAND}),
    Report.CATEGORIES: ("list_category_shares", {"state": _SCOPE, "category": _CATEGORY}),
    Report.DISCOUNTS: ("list_discounts", {"state": _SCOPE, "category": _ANY_CATEGORY}),
    Report.STOCK: (
        "list_times_out_of_stock", {"by": _STOCK_GROUP, "state": _STATE, "category": _CATEGORY, "store": _STORES}
    ),
    Report.OUT_PRODUCTS: (
        "list_products_out_of_stock",
        {"state": _STATE, "category": _CATEGORY, "store": _STORES, "brand": _BRAND, "product": _PRODUCT},
    ),
    Report.DAYS: (
        "list_new_and_gone",
        {"by": _DAY_GROUP, "since": _SINCE, "until": _UNTIL, "state": _STATE, "store": _STORES},
    ),
    Report.STORES: (
        "list_store_freshness", {"state": _STATE, "platform": _PLATFORM, "stale": _STALE, "store": _STORES}
    ),
    Report.COVERAGE: ("list_coverage", {"state": _SCOPE}),
    Report.DISTRIBUTION: ("list_distribution", {
        "state": _SCOPE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "canonical_product": _CANONICAL}),
    Report.BRAND_DISTRIBUTION: ("list_brand_distribution", {
        "state": _SCOPE, "category": _ANY_CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID}),
    Report.DISPERSION: ("list_price_dispersion", {
        "state": _SCOPE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "canonical_product": _CANONICAL}),
    Report.GAPS: ("list_widest_gaps", {
        "state": _SCOPE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "canonical_product": _CANONICAL}),
    Report.CHEAPEST: ("list_cheapest_quarter", {
        "by": _CHEAPEST_GROUP, "state": _STATE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "store": _STORES}),
    Report.SPECIALS: ("list_specials", {
        "verdict": _VERDICT, "state": _STATE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "store": _STORES}),
    Report.SPECIAL_GROUPS: ("list_special_groups", {
        "by": _SPECIAL_GROUP, "state": _SCOPE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "store": _STORES}),
    Report.SHRINKFLATION: ("list_shrinkflation", {
        "state": _STATE, "category": _CATEGORY, "brand": _BRAND, "brand_id": _BRAND_ID, "store": _STORES,
        "canonical_product": _CANONICAL}),
    Report.MARKET_DAYS: ("list_market_days", {
        "state": _SCOPE, "category": _ANY_CATEGORY, "since": _SINCE, "until": _UNTIL}),
    Report.BRAND_DAYS: ("list_brand_days", {
        "state": _SCOPE, "brand": _BRAND, "brand_id": _BRAND_ID, "since": _SINCE, "until": _UNTIL}),
}  # fmt: skip
"""Operation id and filters of each report."""
_DEFAULTS = {
    _STOCK_GROUP: StockGroup.STATE_CATEGORY,
    _DAY_GROUP: DayGroup.STATE,
    _CHEAPEST_GROUP: CheapestGroup.ALL,
    _SPECIAL_GROUP: SpecialGroup.STORE,
}
_UNPAGED = (Report.COVERAGE,)


@router.get("", **returns(Overview), summary="List available reports")
async def show_analytics(request: Request, conn: ReadConn, _query: Annotated[NoQuery, Query()]) -> Response:
    """Returns the time of the last refresh and the size of each report. `analytics_refresh` recomputes them, by default every 6
    hours."""
    return answer(request, await analytics.overview(conn))


class PriceIndexQuery(Input):
    """Which price index."""

    state: _SCOPE = Field(
        ALL,
        description="Two-letter state, `all` for all states together, or `unknown` for stores without a known state.",
    )
    category: Literal[Category, "all", "unknown"] = Field(
        "all", description="Canonical category, `all` for all of them together, or `unknown`."
    )
    first: date | None = Field(
        None,
        alias="from",
        description="First day (UTC), for example 2026-11-20; 90 days before the last one if omitted.",
    )
    last: date | None = Field(
        None, alias="to", description="Last day (UTC), included; the last computed one if omitted."
    )


@router.get("/price-index", **returns(PriceIndex), summary="Price index by day")
async def show_price_index(request: Request, conn: ReadConn, query: Annotated[PriceIndexQuery, Query()]) -> Response:
    """How prices of the same items changed: a chained geometric index of matched items, 100 on the day `base`, with a 95 % confidence
    interval. Items that come and go have no effect. Relatives have no currency, so nothing is converted. Days are computed six hours
    after their end, and then never change."""
    found = await price_index.read_price_index(
        conn, state=query.state or ALL, category=query.category, first=query.first, last=query.last
    )
    return answer(request, found)


async def _answer_report(request: Request, conn: Connection, report: Report, query: Input) -> Response:
    paged = query if isinstance(query, PageQuery) else PageQuery(limit=200, cursor=None, fields=None)
    filters = ReportFilter(**query.model_dump(exclude={"limit", "cursor"}))
    keys: Keyset[tuple[Any, ...]] = Keyset(paged, analytics.cursor_type(report, filters), "analytics", report, filters)
    try:
        rows = await analytics.read_report(conn, report, filters, after=keys.after, limit=paged.limit)
    except ExpiredRun as error:
        raise BadCursor(str(error)) from error
    return page(request, rows.rows, keys.cursor(rows.next), **structs.asdict(rows.info))


def _add_route(report: Report) -> None:
    name, filters = _FILTERS[report]
    base = FieldsQuery if report in _UNPAGED else PageQuery
    fields: Any = {field: (kind, _DEFAULTS.get(kind)) for field, kind in filters.items()}

    async def read(request: Request, conn: ReadConn, query: Any) -> Response:
        return await _answer_report(request, conn, report, query)

    read.__annotations__["query"] = Annotated[create_model(name, __base__=base, **fields), Query()]
    source = SOURCES[report]
    router.add_api_route(
        f"/{report}",
        read,
        name=name,
        summary=source.summary,
        description=source.description,
        **returns_page(source.row, **members_of(source.info)),
    )


for _report in Report:
    _add_route(_report)
