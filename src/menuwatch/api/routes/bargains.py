"""Bargains: the cheapest basket near a place."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.analytics import basket
from menuwatch.analytics.basket import CheapestBasket
from menuwatch.api.inputs import POSITION, Input, Text
from menuwatch.api.responses import answer, returns
from menuwatch.stores.service import FARTHEST_MILES, Circle
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

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
    near: POSITION = Field(
        description="The place: latitude and longitude in degrees. Stores without a position are left out.",
        examples=["35.08,-106.65"],
    )
    miles: float = Field(25, gt=0, le=FARTHEST_MILES, description="Distance from `near`, in miles.")
    medical: bool = Field(False, description="Whether prices for patients count where there is no other.")


@router.get("/cheapest-basket", **returns(CheapestBasket), summary="Cheapest basket near a place")
async def find_cheapest_basket(request: Request, conn: ReadConn, query: Annotated[BasketQuery, Query()]) -> Response:
    """Where several products cost least together: at one store, over two stores and over any number of stores, with what is missing
    where. As of now: options on offer, specials included, of menus that are not stale. A shop with menus on two platforms is one
    store."""
    wants = basket.parse_items(query.item)
    circle = Circle.around(query.near, query.miles)
    return answer(request, await basket.find_cheapest_basket(conn, wants, circle, medical=query.medical))
