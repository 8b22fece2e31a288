"""The page of a brand: its items and prices."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from menuwatch.core.errors import NotFound
from menuwatch.site import screen
from menuwatch.site.search_query import SearchQuery
from menuwatch.storefront import page_queries
from menuwatch.storefront.search import SearchRequest, search
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

_SHOWN = 24


@router.get("/b/{slug}")
async def brand(request: Request, conn: ReadConn, slug: str) -> Response:
    """A brand, with the items that most stores carry."""
    found = await page_queries.get_brand(conn, slug[:200])
    if found is None:
        raise NotFound("Brand not found. Search for something similar:")
    slug = found["slug"]
    if (elsewhere := screen.moved(request, screen.brand_path(slug))) is not None:
        return elsewhere
    asked = SearchQuery.parse(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    best = await search(conn, SearchRequest(brands=(found["id"],), nearby=place.nearby), limit=_SHOWN)
    context = {
        "place": place,
        "brand": found,
        "figures": await page_queries.get_brand_totals(conn, found["id"]),
        "items": best.items,
        "more": SearchQuery(brands=(slug,), near=asked.near, within=asked.within).link() if best.next else None,
        "category_link": lambda name: SearchQuery(
            brands=(slug,), category=name, near=asked.near, within=asked.within
        ).link(),
        "canonical": screen.whole(request, screen.brand_path(slug)),
        "description": f"Products by {found['name']}: prices, potency and stock at every store.",
    }
    return screen.render(request, "brand.html", context)
