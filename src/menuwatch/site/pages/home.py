"""The home page: search, totals, price drops."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from menuwatch.site import format as words
from menuwatch.site import json_ld as linked
from menuwatch.site import screen
from menuwatch.site.search_query import SearchQuery
from menuwatch.storefront import deals, page_queries
from menuwatch.storefront.deals import DealOrder
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

DROPS_FOR = timedelta(days=3)
_SHOWN = 8


@router.get("/")
async def home(request: Request, conn: ReadConn) -> Response:
    """The home page; with `near`, for that location."""
    asked = SearchQuery.parse(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    by_network = not asked.near and screen.system_of(request).geo is not None
    if by_network:
        place = await screen.around_visitor(request, conn)
    nearby = place.nearby
    categories = {one["name"]: one for one in await page_queries.list_totals(conn, "category")}
    saved = await deals.list_deals(conn, nearby=nearby, limit=_SHOWN)
    shown = saved or await deals.list_deals(conn, order=DealOrder.NEWEST, nearby=nearby, limit=_SHOWN)
    dealt = {deal.item_id for deal in shown}
    since = screen.now() - DROPS_FOR
    drops = await page_queries.list_drops(conn, since, nearby=nearby, limit=_SHOWN + len(dealt))
    total = await page_queries.list_totals(conn, "all")
    context = {
        "place": place,
        "total": total[0] if total else None,
        "categories": [categories[name] for name in words.CATEGORIES if name in categories and name != "other"],
        "brands": await page_queries.list_totals(conn, "brand", 12),
        "drops": [card for card in drops if card.id not in dealt][:_SHOWN],
        "deals": shown,
        "saved": bool(saved),
        "stores": await page_queries.list_stores(conn, nearby=nearby, limit=4) if nearby is not None else [],
        "canonical": screen.whole(request, "/"),
        "description": "Compare prices, potency and stock on the menus of cannabis stores near you, with price history and alerts.",
        "linked": linked.site(screen.whole(request, "/"), screen.whole(request, "/search")),
    }
    return screen.render(request, "home.html", context, shared=not by_network)
