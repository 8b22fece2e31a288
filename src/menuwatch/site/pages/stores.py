"""Store pages: all states, one state, stores around a location, and one store with its menu."""

from __future__ import annotations

from itertools import groupby
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from menuwatch.core.errors import NotFound
from menuwatch.site import format as words
from menuwatch.site import json_ld as linked
from menuwatch.site import screen, store_map
from menuwatch.site.pages.items import number_of
from menuwatch.site.search_query import SearchQuery
from menuwatch.storefront import page_queries
from menuwatch.stores.service import quality_score
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

_ON_PAGE = 60
_OF_EACH = 4
_ELSEWHERE = "elsewhere"
_NO_STATE = "State unknown"
"""Stores in no known state: what their address calls them, and the page."""
_LAST = ("accessory", "apparel", "other")
"""Categories that come after all others, however large they are."""


@router.get("/stores")
async def every(request: Request, conn: ReadConn) -> Response:
    """All states that have stores, or the stores around a location."""
    asked = SearchQuery.parse(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    stores = await page_queries.list_stores(conn, nearby=place.nearby, limit=200) if place.nearby is not None else []
    context = {
        "place": place,
        "map": store_map.draw_stores(stores, place.place),
        "states": [
            dict(one, label=words.state(one["state"]) or _NO_STATE, path=f"/stores/{quote(one['state'] or _ELSEWHERE)}")
            for one in await page_queries.list_states(conn)
        ],
        "stores": stores,
        "label": None,
        "title": f"Stores near {place.place.label}" if place.place else "Stores",
        "next": None,
        "canonical": screen.whole(request, "/stores"),
        "description": "All stores, by state and by distance.",
    }
    return screen.render(request, "stores.html", context)


@router.get("/stores/{state}")
async def of_state(request: Request, conn: ReadConn, state: str, after: int | None = None) -> Response:
    """The stores of a state, by city; under `elsewhere` those in no known one."""
    code = "" if state == _ELSEWHERE else words.state_code(state)
    path = f"/stores/{quote(code or _ELSEWHERE)}"
    label = words.state(code) or _NO_STATE
    found = await page_queries.list_stores(conn, state=code[:20], after=after, limit=_ON_PAGE + 1)
    if not found and after is None:
        raise NotFound(f"No stores in {state[:40]} yet.")
    if (moved := screen.moved(request, path)) is not None:
        return moved
    context = {
        "map": store_map.draw_stores(found[:_ON_PAGE], state=code),
        "states": [],
        "stores": found[:_ON_PAGE],
        "label": label,
        "title": f"Stores in {label}" if code else "Stores in no known state",
        "next": f"{path}?after={found[_ON_PAGE - 1].id}" if len(found) > _ON_PAGE else None,
        "canonical": screen.whole(request, path),
        "description": f"All stores in {label}." if code else "All stores whose state is unknown.",
    }
    return screen.render(request, "stores.html", context)


@router.get("/s/{address}")
async def one(request: Request, conn: ReadConn, address: str) -> Response:
    """A store and the first items of each category of its menu."""
    store = await page_queries.get_store(conn, number_of(address))
    if store is None:
        raise NotFound("Store not found or no longer listed. Search for something else:")
    path = screen.store_path(store.id, store.name)
    if (elsewhere := screen.moved(request, path)) is not None:
        return elsewhere
    place = await screen.around(conn, SearchQuery.parse(request.query_params).near)
    menu = await page_queries.list_store_menu(conn, store.id, _OF_EACH)
    categories = await page_queries.list_store_categories(conn, store.id)
    categories.sort(key=lambda row: row["category"] in _LAST)
    items = {category: list(cards) for category, cards in groupby(menu, lambda item: item.category)}
    steps = [("Stores", "/stores"), (store.name, path)]
    if store.state:
        steps.insert(1, (words.state(store.state), f"/stores/{quote(store.state)}"))
    context = {
        "place": place,
        "store": store,
        "quality": (await quality_score(conn, store.id))[0],
        "categories": categories,
        "menus": await page_queries.list_other_menus(conn, store.id),
        "menu": [
            (category, row["items"], items[category]) for row in categories if (category := row["category"]) in items
        ],
        "canonical": screen.whole(request, path),
        "description": f"The menu of {store.name}: prices, potency and stock, with price history.",
        "linked": linked.store(store, screen.whole(request, path)),
        "trail": linked.trail([(name, screen.whole(request, at)) for name, at in steps]),
    }
    return screen.render(request, "store.html", context)
