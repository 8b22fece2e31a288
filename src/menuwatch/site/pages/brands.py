"""One brand: what it makes and what it costs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from menuwatch.operations import shopping
from menuwatch.operations import shopping_places as places
from menuwatch.operations.refusals import NotFound
from menuwatch.operations.shopping import Wish
from menuwatch.operations.shopping_keys import slug as slug_of
from menuwatch.site import screen
from menuwatch.site.wishes import Asked
from menuwatch.web.system import Reading

router = APIRouter()

_SHOWN = 24


@router.get("/b/{slug}")
async def brand(request: Request, conn: Reading, slug: str) -> Response:
    """A brand, with its most carried items."""
    found = await places.brand(conn, slug[:200]) or await places.brand(conn, slug_of(slug[:200]))
    if found is None:
        raise NotFound("We know no brand of that name. Search for something like it:")
    slug = found["slug"]
    if (elsewhere := screen.moved(request, screen.brand_path(slug))) is not None:
        return elsewhere
    asked = Asked.of(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    best = await shopping.search(conn, Wish(brands=(found["id"],), here=place.here), limit=_SHOWN)
    context = {
        "place": place,
        "brand": found,
        "figures": await places.brand_figures(conn, found["id"]),
        "items": best.items,
        "more": Asked(brands=(slug,), near=asked.near, within=asked.within).link() if best.next else None,
        "category_link": lambda name: Asked(brands=(slug,), category=name, near=asked.near, within=asked.within).link(),
        "canonical": screen.absolute(request, screen.brand_path(slug)),
        "description": f"Everything by {found['name']} on the menus we watch: prices, potency, stock and which stores carry it.",
    }
    return screen.show(request, "brand.html", context)
