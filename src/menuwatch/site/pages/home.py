"""The front page: a search, what there is, what became cheaper."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from menuwatch.operations import shopping
from menuwatch.operations import shopping_places as places
from menuwatch.site import linked, screen, words
from menuwatch.site.wishes import Asked
from menuwatch.web.system import Reading

router = APIRouter()

DROPS_FOR = timedelta(days=3)
_SHOWN = 8


@router.get("/")
async def home(request: Request, conn: Reading) -> Response:
    """The front page; with `near`, of that place."""
    asked = Asked.of(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    if not asked.near:
        place = await screen.around_visitor(request, conn)
    here = place.here
    categories = {one["name"]: one for one in await shopping.totals(conn, "category")}
    total = await shopping.totals(conn, "all")
    context = {
        "place": place,
        "total": total[0] if total else None,
        "categories": [categories[name] for name in words.CATEGORIES if name in categories and name != "other"],
        "brands": await shopping.totals(conn, "brand", 12),
        "drops": await shopping.drops(conn, screen.now() - DROPS_FOR, here=here, limit=_SHOWN),
        "specials": await shopping.specials(conn, here=here, limit=_SHOWN),
        "stores": await places.stores(conn, here=here, limit=4) if here is not None else [],
        "canonical": screen.absolute(request, "/"),
        "description": "Compare prices, potency and stock on the menus of cannabis stores near you, with price history and alerts.",
        "linked": linked.site(screen.absolute(request, "/"), screen.absolute(request, "/search")),
    }
    return screen.show(request, "home.html", context)
