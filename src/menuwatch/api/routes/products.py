"""The catalogue: products, their history, brands and categories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.schemas.common import ProductPath, SpanQuery
from menuwatch.api.schemas.products import (
    NameCountPage,
    NamesQuery,
    ProductDetail,
    ProductHistory,
    ProductPage,
    ProductQuery,
    SnapshotPage,
    StoreProductQuery,
)
from menuwatch.db.pool import Connection
from menuwatch.exports.packs import Packs
from menuwatch.operations import products
from menuwatch.operations.products import Key, Order, ProductFilter, Span
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys

router = APIRouter(prefix="/api", tags=["catalogue"], dependencies=[allowed(Permission.READ)])

_KEYS: dict[Order, Any] = {
    Order.NAME: tuple[str, int],
    Order.PRICE: tuple[Decimal, int],
    Order.PRICE_DESCENDING: tuple[Decimal, int],
    Order.UPDATED: tuple[datetime, int],
}


async def listing(
    request: Request, conn: Connection, query: StoreProductQuery, stores: Sequence[int] | None
) -> Response:
    """One page of products of those stores."""
    where = ProductFilter(
        stores=stores,
        brands=query.brand,
        categories=query.category,
        strain_types=query.strain_type,
        categories_canon=query.category_canon,
        subcategories_canon=query.subcategory_canon,
        strains_canon=query.strain_canon,
        stock=query.stock,
        present=query.present,
        q=query.q,
        price_min=query.price_min,
        price_max=query.price_max,
    )
    order = Order(query.order)
    mark = paging.mark("products", order, where)
    after: tuple[Key, int] | None = None
    if query.cursor is not None:
        after = paging.decode(query.cursor, mark, _KEYS[order])
    found = await products.page(conn, where, order=order, after=after, limit=query.limit)
    return page(request, found.rows, paging.encode(mark, *found.next) if found.next else None)


@router.get("/products", response_model=ProductPage, summary="Search products across stores")
async def list_products(request: Request, conn: Reading, query: Annotated[ProductQuery, Query()]) -> Response:
    """Products of every store, as their stores' last crawls saw them, with what used to be there."""
    return await listing(request, conn, query, query.store)


@router.get("/products/{product_id}", response_model=ProductDetail, summary="One product")
async def get_product(request: Request, conn: Reading, product_id: ProductPath) -> Response:
    """Everything that is known of one item at one store."""
    return answer(request, await products.one(conn, product_id))


def _time_after(cursor: str | None, mark: str) -> datetime | None:
    return None if cursor is None else paging.decode(cursor, mark, tuple[datetime])[0]


@router.get("/products/{product_id}/history", response_model=ProductHistory, summary="One product's states over time")
async def get_product_history(
    request: Request, system: Sys, conn: Reading, product_id: ProductPath, query: Annotated[SpanQuery, Query()]
) -> Response:
    """What it cost, how much there was and how strong it was: a row per change, newest first. Times of which nothing is known are in
    `gaps`."""
    mark = paging.mark("history", product_id, query.since, query.until)
    found = await products.history(
        conn,
        product_id,
        Span(since=query.since, until=query.until),
        after=_time_after(query.cursor, mark),
        limit=query.limit,
        packs=Packs(system.archive.root),
    )
    cursor = paging.encode(mark, found.next) if found.next is not None else None
    return page(request, found.states, cursor, gaps=found.gaps)


@router.get("/products/{product_id}/snapshots", response_model=SnapshotPage, summary="One product, crawl by crawl")
async def list_product_snapshots(
    request: Request, system: Sys, conn: Reading, product_id: ProductPath, query: Annotated[SpanQuery, Query()]
) -> Response:
    """The product as each crawl saw it, newest first. The same as its history, looked at another way."""
    mark = paging.mark("snapshots", product_id, query.since, query.until)
    found = await products.snapshots(
        conn,
        product_id,
        Span(since=query.since, until=query.until),
        after=_time_after(query.cursor, mark),
        limit=query.limit + 1,
        packs=Packs(system.archive.root),
    )
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["crawled_at"]) if len(found) > query.limit else None)


async def _names(
    request: Request,
    conn: Connection,
    query: NamesQuery,
    name: str,
    read: Callable[..., Awaitable[list[dict[str, Any]]]],
) -> Response:
    mark = paging.mark(name, query.store, query.q)
    after = paging.decode(query.cursor, mark, tuple[str])[0] if query.cursor is not None else None
    found = await read(conn, stores=query.store, q=query.q, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["name"]) if len(found) > query.limit else None)


@router.get("/brands", response_model=NameCountPage, summary="List brands")
async def list_brands(request: Request, conn: Reading, query: Annotated[NamesQuery, Query()]) -> Response:
    """Brands by name, with how much there is of each. Products without a brand are in none."""
    return await _names(request, conn, query, "brands", products.brands)


@router.get("/categories", response_model=NameCountPage, summary="List categories")
async def list_categories(request: Request, conn: Reading, query: Annotated[NamesQuery, Query()]) -> Response:
    """Categories by name, with how much there is of each. Products without a category are in none."""
    return await _names(request, conn, query, "categories", products.categories)
