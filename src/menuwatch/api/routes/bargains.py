"""Bargains: the cheapest basket near a place, and lowest prices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.analytics import basket, lowest_prices
from menuwatch.analytics.basket import CheapestBasket
from menuwatch.analytics.lowest_prices import LowestPrice
from menuwatch.analytics.products import CanonicalFilter
from menuwatch.api.inputs import BigId, Input, PageQuery, Place, Search, State, StoreId, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, page, returns, returns_page
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.taxonomy.categories import Category
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS, parse_area
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn

router = APIRouter(prefix="/api/analytics", tags=["analytics"], dependencies=[require(Permission.READ)])


class BasketQuery(Input):
    """What to buy, and near which place."""

    item: list[Text] = Field(
        min_length=1,
        max_length=basket.MOST_ITEMS,
        description="What to buy (repeatable): the id of a canonical product or a canonical category, a colon and the size; `*2` "
        "behind it for two of them. A product that is offered in one size only needs none.",
        examples=["4711:3.5 g", "flower:3.5 g*2"],
    )
    near: Place = Field(
        description=f"The place: {PLACE_FORMS}. Stores without a position are left out.",
        examples=["Santa Fe, NM", "87501", "35.08,-106.65"],
    )
    miles: float = Field(DEFAULT_MILES, gt=0, le=FARTHEST_MILES, description="Distance from `near`, in miles.")
    medical: bool = Field(False, description="Whether to use prices for patients where there is no other.")


@router.get("/cheapest-basket", **returns(CheapestBasket), summary="Cheapest basket near a place")
async def find_cheapest_basket(request: Request, conn: ReadConn, query: Annotated[BasketQuery, Query()]) -> Response:
    """Where several products cost least together: at one store, at two stores and at any number of stores, with what is missing
    where. As of now: options on offer, specials included, of menus that are not stale. A shop with menus on two platforms is one
    store."""
    wants = basket.parse_items(query.item)
    circle = parse_area(query.near, query.miles).circle
    return answer(request, await basket.find_cheapest_basket(conn, wants, circle, medical=query.medical))


class LowestQuery(PageQuery):
    """Which canonical products."""

    limit: int = Field(
        lowest_prices.USUAL_PRODUCTS,
        ge=1,
        le=lowest_prices.MOST_PRODUCTS,
        description="Maximum number of products per page; each has a row for each size.",
    )
    canonical_product: BigId | None = Field(
        None, description="Only this canonical product; the id of a merged one leads to its successor."
    )
    q: Search | None = Field(
        None, description="Only products whose name or brand contains this text, case-insensitive."
    )
    brand_id: StoreId | None = Field(
        None, description="Only products of this brand; the id of a merged one leads to its successor."
    )
    category: Category | None = Field(None, description="Only this canonical category.")
    state: State | None = Field(None, description="Only prices at stores in this state.")


@router.get("/lowest-prices", **returns_page(LowestPrice), summary="Lowest prices now, in 90 days and ever")
async def list_lowest_prices(
    request: Request, conn: ReadConn, app: AppDep, query: Annotated[LowestQuery, Query()]
) -> Response:
    """The lowest price of each size of canonical products: now, within 90 days and since it was first observed, with when and where.
    Products in the most stores come first. Computed from the whole history, packed months included."""
    where = CanonicalFilter(
        q=query.q, brand_id=query.brand_id, category=query.category, product=query.canonical_product
    )
    keys = Keyset(query, tuple[int, int], "lowest prices", where, query.state)
    found = await lowest_prices.list_lowest_prices(
        conn,
        where,
        state=query.state,
        after=keys.after,
        limit=query.limit,
        archived=ParquetPartitions(app.archive.storage),
    )
    return page(request, found.items, keys.cursor(found.next))
