"""Figures for analysts: prices per gram, brands, discounts, time out of stock, what came and went, and what all of it rests on."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer
from menuwatch.api.answers import page as listed
from menuwatch.api.problems import BadCursor
from menuwatch.api.schemas.analytics import (
    BrandsPage,
    BrandsQuery,
    CoveragePage,
    CoverageQuery,
    DaysPage,
    DaysQuery,
    DiscountsPage,
    DiscountsQuery,
    OutProductsPage,
    OutProductsQuery,
    Overview,
    PricesPage,
    PricesQuery,
    StockPage,
    StockQuery,
    StoresPage,
    StoresQuery,
)
from menuwatch.api.schemas.common import NoQuery, PageQuery
from menuwatch.db.pool import Connection
from menuwatch.operations import analytics
from menuwatch.operations.analytics import By, Days, Figure, Level, Page, Renewed, Where
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(prefix="/api/analytics", tags=["analytics"], dependencies=[allowed(Permission.READ)])


async def _shown(request: Request, mark: str, reading: Awaitable[Page]) -> Response:
    try:
        found = await reading
    except Renewed as error:
        raise BadCursor(str(error)) from error
    cursor = paging.encode(mark, *found.next) if found.next is not None else None
    return listed(request, found.rows, cursor, **found.head)


async def _figure(request: Request, conn: Connection, query: PageQuery, figure: Figure, where: Where) -> Response:
    mark = paging.mark(f"analytics {figure}", where)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int, int])
    return await _shown(request, mark, analytics.page(conn, figure, where, after=after, limit=query.limit))


@router.get("", response_model=Overview, summary="What figures there are")
async def show_analytics(request: Request, conn: Reading, _query: Annotated[NoQuery, Query()]) -> Response:
    """When the figures were made, and how much there is of each. `analytics_refresh` makes them anew, by schedule every 6 hours."""
    return answer(request, await analytics.overview(conn))


@router.get("/price-per-gram", response_model=PricesPage, summary="Price per gram by category and state")
async def list_prices_per_gram(request: Request, conn: Reading, query: Annotated[PricesQuery, Query()]) -> Response:
    """Of what is on offer: options in stock of products that were in their store's last crawl."""
    return await _figure(request, conn, query, Figure.PRICES, Where(scope=query.state, category=query.category))


@router.get("/brands", response_model=BrandsPage, summary="Brand distribution by state")
async def list_brand_shares(request: Request, conn: Reading, query: Annotated[BrandsQuery, Query()]) -> Response:
    """How many products of each brand are on the menus, and at how many stores; in each state the largest first."""
    return await _figure(request, conn, query, Figure.BRANDS, Where(scope=query.state, brand=query.brand))


@router.get("/discounts", response_model=DiscountsPage, summary="Share and depth of discounts")
async def list_discounts(request: Request, conn: Reading, query: Annotated[DiscountsQuery, Query()]) -> Response:
    """How many products on offer have an option below its regular price, and by how much of it, by state and category."""
    return await _figure(request, conn, query, Figure.DISCOUNTS, Where(scope=query.state, category=query.category))


@router.get("/out-of-stock", response_model=StockPage, summary="Time out of stock by group")
async def list_times_out_of_stock(request: Request, conn: Reading, query: Annotated[StockQuery, Query()]) -> Response:
    """Of the time in the window in which stores were observed. Times in which a store was not crawled for twice its interval count
    neither as in nor as out of stock, and neither does the time after the last crawl that saw a product."""
    where = Where(scope=query.state, category=query.category, stores=query.store, level=Level(query.by))
    return await _figure(request, conn, query, Figure.STOCK, where)


@router.get("/out-of-stock/products", response_model=OutProductsPage, summary="Products out of stock, longest first")
async def list_products_out_of_stock(
    request: Request, conn: Reading, query: Annotated[OutProductsQuery, Query()]
) -> Response:
    """Products that were listed as out of stock at some time of the window. One that is not here never was."""
    where = Where(
        scope=query.state,
        category=query.category,
        stores=query.store,
        brand=query.brand,
        product=query.product,
    )
    return await _figure(request, conn, query, Figure.OUT_PRODUCTS, where)


@router.get("/new-and-gone", response_model=DaysPage, summary="New and gone products by day")
async def list_new_and_gone(request: Request, conn: Reading, query: Annotated[DaysQuery, Query()]) -> Response:
    """Each day (UTC) of the last 30, newest first: what stores had for the first time and for the last."""
    wanted = Days(
        since=query.since,
        until=query.until,
        by=By(query.by),
        where=Where(scope=query.state, stores=query.store),
    )
    mark = paging.mark("analytics days", wanted)
    kind: Any = tuple[int, date, int] if wanted.by is By.STORE else tuple[int, date, str]
    after = None if query.cursor is None else paging.decode(query.cursor, mark, kind)
    return await _shown(request, mark, analytics.days(conn, wanted, after=after, limit=query.limit))


@router.get("/stores", response_model=StoresPage, summary="Freshness and coverage by store")
async def list_store_freshness(request: Request, conn: Reading, query: Annotated[StoresQuery, Query()]) -> Response:
    """When each store was seen last, and what became of the crawls that were scheduled for it."""
    where = Where(scope=query.state, stores=query.store)
    mark = paging.mark("analytics stores", where, query.platform, query.stale)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int, int])
    found = analytics.stores(conn, where, platform=query.platform, stale=query.stale, after=after, limit=query.limit)
    return await _shown(request, mark, found)


@router.get("/coverage", response_model=CoveragePage, summary="Coverage by state")
async def list_coverage(request: Request, conn: Reading, query: Annotated[CoverageQuery, Query()]) -> Response:
    """Of all states together, and of each: how many stores are known and seen, and how many scheduled crawls succeeded."""
    return await _shown(request, "", analytics.coverage(conn, query.state))
