"""The catalog: products, their history, brands and categories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import (
    BRAND_IDS,
    CANONICAL_PRODUCTS,
    LOCATIONS,
    BigId,
    Instant,
    LongPageQuery,
    NearQuery,
    PageQuery,
    ProductPath,
    Search,
    SpanQuery,
    State,
    StoreId,
    Text,
)
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, page, returns, returns_page
from menuwatch.catalog import history
from menuwatch.catalog import service as products
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import Gap, ProductDetails, ProductState, Snapshot
from menuwatch.catalog.model import StockStatus
from menuwatch.catalog.service import Key, NameCount, Order, Product, ProductDetail, ProductFilter, Span
from menuwatch.catalog.taxonomy.categories import Category, Subcategory
from menuwatch.catalog.taxonomy.strains import Strain
from menuwatch.core.shapes import REF, embedded_schemas
from menuwatch.db.pool import Connection
from menuwatch.geo.circle import Circle
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn

router = APIRouter(prefix="/api", tags=["catalog"], dependencies=[require(Permission.READ)])


class StoreProductQuery(LongPageQuery):
    """Product filters and order. Repeatable filters match any of their values."""

    brand: list[Text] | None = Field(None, description="Only these brands, as /api/brands lists them (repeatable).")
    category: list[Text] | None = Field(
        None, description="Only these categories, as the platform names them (repeatable)."
    )
    strain_type: list[Text] | None = Field(
        None, description="Only these strain types, as the platform names them (repeatable)."
    )
    category_canon: list[Category] | None = Field(None, description="Only these canonical categories (repeatable).")
    subcategory_canon: list[Subcategory] | None = Field(
        None, description="Only these canonical subcategories (repeatable)."
    )
    strain_canon: list[Strain] | None = Field(None, description="Only these canonical strain types (repeatable).")
    stock: list[StockStatus] | None = Field(None, description="Only this stock status (repeatable).")
    present: bool | None = Field(
        None, description="Only products in (`true`) or missing from (`false`) their store's last crawl."
    )
    q: Search | None = Field(None, description="Only products whose name contains this text, case-insensitive.")
    price_min: Decimal | None = Field(
        None, ge=0, le=10_000_000, description="Minimum price of the cheapest option, in the store's currency."
    )
    price_max: Decimal | None = Field(
        None, ge=0, le=10_000_000, description="Maximum price of the cheapest option, in the store's currency."
    )
    new_since: Instant | None = Field(
        None,
        description="Only products seen for the first time at or after this time (ISO 8601 with offset), other than in the first "
        "crawl of their store.",
    )
    gone_since: Instant | None = Field(
        None, description="Only products that left the menu at or after this time (ISO 8601 with offset)."
    )
    updated_since: Instant | None = Field(
        None, description="Only products of which anything changed at or after this time (ISO 8601 with offset)."
    )
    canonical_product_id: list[BigId] | None = CANONICAL_PRODUCTS
    brand_id: list[StoreId] | None = BRAND_IDS
    location_id: list[StoreId] | None = LOCATIONS
    order: Literal["name", "price", "-price", "updated"] = Field(
        "name", description="`updated` is most recently changed first; products without a price come last."
    )


class ProductQuery(StoreProductQuery, NearQuery):
    """Which products of which stores."""

    store: list[StoreId] | None = Field(None, description="Only these stores (repeatable).")
    state: list[State] | None = Field(None, description="Only stores in these states, for example NM (repeatable).")


class NamesQuery(PageQuery):
    """Filter of names."""

    store: list[StoreId] | None = Field(None, description="Only names that occur in these stores (repeatable).")
    q: Search | None = Field(None, description="Only names that contain this text, case-insensitive.")


_KEYS: dict[Order, Any] = {
    Order.NAME: tuple[str, int],
    Order.PRICE: tuple[Decimal, int],
    Order.PRICE_DESCENDING: tuple[Decimal, int],
    Order.UPDATED: tuple[datetime, int],
}


async def answer_products(
    request: Request,
    conn: Connection,
    query: StoreProductQuery,
    stores: Sequence[int] | None,
    states: Sequence[str] | None = None,
    circle: Circle | None = None,
) -> Response:
    """One page of products of those stores."""
    where = ProductFilter(
        stores=stores,
        states=states,
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
        new_since=query.new_since,
        gone_since=query.gone_since,
        updated_since=query.updated_since,
        canonical_products=query.canonical_product_id,
        brand_ids=query.brand_id,
        locations=query.location_id,
        circle=circle,
    )
    order = Order(query.order)
    keys: Keyset[tuple[Key, int]] = Keyset(query, _KEYS[order], "products", order, where)
    rows = await products.list_products(conn, where, order=order, after=keys.after, limit=query.limit)
    return page(request, rows.items, keys.cursor(rows.next))


@router.get("/products", **returns_page(Product), summary="Search products across stores")
async def list_products(request: Request, conn: ReadConn, query: Annotated[ProductQuery, Query()]) -> Response:
    """Searches all stores, as of their last crawls, including products no longer on the menu."""
    return await answer_products(request, conn, query, query.store, query.state, query.circle)


@router.get("/products/{product_id}", **returns(ProductDetail), summary="Get a product")
async def get_product(request: Request, conn: ReadConn, product_id: ProductPath) -> Response:
    """Returns all details of one product at one store."""
    return answer(request, await products.get_product(conn, product_id))


(_GAP,), _components = msgspec.json.schema_components([Gap], ref_template=REF)
embedded_schemas.update(_components)
_GAPS = {"type": "array", "items": _GAP, "description": "Gaps in the period of this page, newest first."}


class HistoryQuery(SpanQuery):
    """States of a product over time."""

    since: Instant | None = Field(
        None,
        description="Only states in force at or after this time (ISO 8601 with offset). The first of them began earlier, and its last "
        "crawl may have been earlier: a state is in force until the next one begins.",
    )


@router.get(
    "/products/{product_id}/history", **returns_page(ProductState, gaps=_GAPS), summary="Get a product's history"
)
async def get_product_history(
    request: Request, app: AppDep, conn: ReadConn, product_id: ProductPath, query: Annotated[HistoryQuery, Query()]
) -> Response:
    """Prices, stock and potency: one row per change, newest first. Periods without observations are in `gaps`."""
    keys = Keyset(query, datetime, "history", product_id, query.since, query.until)
    past = await history.get_history(
        conn,
        product_id,
        Span(since=query.since, until=query.until),
        after=keys.after,
        limit=query.limit,
        archived=ParquetPartitions(app.archive.storage),
    )
    return page(request, past.states, keys.cursor(past.next), gaps=past.gaps)


@router.get(
    "/products/{product_id}/details", **returns_page(ProductDetails), summary="List a product's batches and lab values"
)
async def list_product_details(
    request: Request, conn: ReadConn, product_id: ProductPath, query: Annotated[SpanQuery, Query()]
) -> Response:
    """Batch, cannabinoids, terpenes and sold count over time: one row per change, newest first. Periods in which the menu had none
    of them are left out."""
    keys = Keyset(query, datetime, "details", product_id, query.since, query.until)
    span = Span(since=query.since, until=query.until)
    rows = await history.list_details(conn, product_id, span, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda details: details.from_)


@router.get("/products/{product_id}/snapshots", **returns_page(Snapshot), summary="List a product's snapshots")
async def list_product_snapshots(
    request: Request, app: AppDep, conn: ReadConn, product_id: ProductPath, query: Annotated[SpanQuery, Query()]
) -> Response:
    """The product as of each crawl, newest first: its history with one row per crawl."""
    keys = Keyset(query, datetime, "snapshots", product_id, query.since, query.until)
    rows = await history.list_snapshots(
        conn,
        product_id,
        Span(since=query.since, until=query.until),
        after=keys.after,
        limit=keys.limit,
        archived=ParquetPartitions(app.archive.storage),
    )
    return keys.page(request, rows, lambda snapshot: snapshot.crawled_at)


async def _answer_names(
    request: Request, conn: Connection, query: NamesQuery, name: str, read: Callable[..., Awaitable[list[NameCount]]]
) -> Response:
    keys = Keyset(query, str, name, query.store, query.q)
    rows = await read(conn, stores=query.store, q=query.q, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda row: row.name)


@router.get("/brands", **returns_page(NameCount), summary="List brands")
async def list_brands(request: Request, conn: ReadConn, query: Annotated[NamesQuery, Query()]) -> Response:
    """Lists brands by name, with the number of products. Products without a brand are not counted."""
    return await _answer_names(request, conn, query, "brands", products.list_brands)


@router.get("/categories", **returns_page(NameCount), summary="List categories")
async def list_categories(request: Request, conn: ReadConn, query: Annotated[NamesQuery, Query()]) -> Response:
    """Lists categories by name, with the number of products. Products without a category are not counted."""
    return await _answer_names(request, conn, query, "categories", products.list_categories)
