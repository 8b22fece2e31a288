"""The deals page: what stores offer below a struck price, and promotions for much of a menu."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from menuwatch.geo.circle import DEFAULT_MILES
from menuwatch.site import format as words
from menuwatch.site import screen
from menuwatch.site.search_query import SearchQuery
from menuwatch.storefront import deals
from menuwatch.storefront.deals import DealOrder
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

_ON_PAGE = 24
_MOST_PAGES = 50
_ORDERS = {DealOrder.OFF: "Most % off", DealOrder.ENDING: "Ending soon", DealOrder.NEWEST: "Newest"}


@router.get("/deals")
async def deals_page(request: Request, conn: ReadConn) -> Response:
    """Deals, filtered by category and place."""
    params = request.query_params
    asked = SearchQuery.parse(params)
    place = await screen.around(conn, asked.near, asked.within)
    chosen = next((one for one in DealOrder if one == params.get("sort")), None)
    number = params.get("page", "")
    page = int(number) if number.isascii() and number.isdecimal() and 0 < len(number) < 4 else 1
    page = max(1, min(page, _MOST_PAGES))
    where: dict[str, Any] = {"category": asked.category or None, "nearby": place.nearby}
    where |= {"limit": _ON_PAGE + 1, "offset": (page - 1) * _ON_PAGE}
    order = chosen or DealOrder.OFF
    found = await deals.list_deals(conn, order=order, **where)
    if chosen is None and not found:
        # A new site has not seen yet what stores ask without a special.
        order = DealOrder.NEWEST
        found = await deals.list_deals(conn, order=order, **where)
    counts = await deals.count_categories(conn, order, place.nearby)

    def link(**changes: Any) -> str:
        values = {"category": asked.category, "sort": chosen.value if chosen else "", **changes}
        near = {"near": asked.near, "within": asked.within if asked.near and asked.within != DEFAULT_MILES else ""}
        query = urlencode({name: value for name, value in {**values, **near}.items() if value})
        return f"/deals?{query}" if query else "/deals"

    context = {
        "place": place,
        "category": asked.category,
        "order": order.value,
        "orders": {one.value: label for one, label in _ORDERS.items()},
        "categories": [(name, counts[name]) for name in words.CATEGORIES if name in counts],
        "deals": found[:_ON_PAGE],
        "more": len(found) > _ON_PAGE and page < _MOST_PAGES,
        "page": page,
        "promotions": await deals.list_promotions(conn, place.nearby) if page == 1 and not asked.category else [],
        "link": link,
        "sort": chosen.value if chosen else "",
        "canonical": screen.whole(request, "/deals"),
        "description": "Deals on cannabis menus: specials below prices that stores really charged, and store-wide promotions.",
        "index": set(params) == set(),
    }
    return screen.render(request, "deals.html", context)
