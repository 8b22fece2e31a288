"""Canonical products: the same item across stores, platforms and sizes, with its prices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.analytics import products
from menuwatch.analytics.products import CanonicalFilter, CanonicalProductDetail, CanonicalProductRow
from menuwatch.api.inputs import BIGINT_MAX, Instant, LongPageQuery, NearQuery, Search, State, StoreId
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, page, returns, returns_page
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/canonical-products", tags=["catalog"], dependencies=[require(Permission.READ)])


class CanonicalQuery(LongPageQuery, NearQuery):
    """Which canonical products."""

    q: Search | None = Field(
        None, description="Only products whose name or brand contains this text, case-insensitive."
    )
    brand_id: StoreId | None = Field(
        None, description="Only products of this brand; the id of a merged one leads to its successor."
    )
    category: Category | None = Field(None, description="Only this canonical category.")
    state: list[State] | None = Field(
        None,
        description="Only products on the menu of a store in these states, for example NM (repeatable). Prices are then of the stores "
        "that `state` and `near` select.",
    )
    updated_since: Instant | None = Field(
        None,
        description="Only products that gained or lost listings or stores at or after this time (ISO 8601 with offset).",
    )


class OffersQuery(NearQuery):
    """Which offers of a canonical product."""

    state: State | None = Field(None, description="Only stores in this state; quartiles are then of this state.")


@router.get("", **returns_page(CanonicalProductRow), summary="List canonical products")
async def list_canonical_products(
    request: Request, conn: ReadConn, query: Annotated[CanonicalQuery, Query()]
) -> Response:
    """Lists products in the most stores first, with the prices of each size over locations."""
    where = CanonicalFilter(
        q=query.q,
        brand_id=query.brand_id,
        category=query.category,
        states=query.state,
        circle=query.circle,
        updated_since=query.updated_since,
    )
    keys = Keyset(query, tuple[int, int], "canonical products", where)
    rows = await products.list_canonical_products(conn, where, after=keys.after, limit=query.limit)
    return page(request, rows.items, keys.cursor(rows.next))


@router.get("/{canonical_product_id}", **returns(CanonicalProductDetail), summary="Get a canonical product")
async def get_canonical_product(
    request: Request,
    conn: ReadConn,
    canonical_product_id: Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the canonical product.")],
    query: Annotated[OffersQuery, Query()],
) -> Response:
    """Returns a product with each store's prices. For a merged product, its successor: `id` then differs from `requested_id`."""
    return answer(
        request,
        await products.get_canonical_product(conn, canonical_product_id, state=query.state, circle=query.circle),
    )
