"""Stores: all of them, those of a state, those around a place, and one with its menu."""

from __future__ import annotations

from itertools import groupby
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from menuwatch.operations import shopping_places as places
from menuwatch.operations.refusals import NotFound
from menuwatch.site import linked, screen, words
from menuwatch.site.pages.items import number_of
from menuwatch.site.wishes import Asked
from menuwatch.web.system import Reading

router = APIRouter()

_ON_PAGE = 60
_OF_EACH = 4


@router.get("/stores")
async def every(request: Request, conn: Reading) -> Response:
    """All states that have stores, or the stores around a place."""
    asked = Asked.of(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    context = {
        "place": place,
        "states": [dict(one, label=words.state(one["state"])) for one in await places.states(conn)],
        "stores": await places.stores(conn, here=place.here, limit=200) if place.here is not None else [],
        "state": None,
        "label": None,
        "next": None,
        "canonical": screen.absolute(request, "/stores"),
        "description": "Every store whose menu we watch, by state and by distance.",
    }
    return screen.show(request, "stores.html", context)


@router.get("/stores/{state}")
async def of_state(request: Request, conn: Reading, state: str, after: int | None = None) -> Response:
    """The stores of a state, by city."""
    code = words.state_code(state)
    found = await places.stores(conn, state=code[:20], after=after, limit=_ON_PAGE + 1)
    if not found and after is None:
        raise NotFound(f"We watch no store in {state[:40]} yet.")
    if (elsewhere := screen.moved(request, f"/stores/{quote(code)}")) is not None:
        return elsewhere
    context = {
        "states": [],
        "stores": found[:_ON_PAGE],
        "state": code,
        "label": words.state(code),
        "next": f"/stores/{code}?after={found[_ON_PAGE - 1]['id']}" if len(found) > _ON_PAGE else None,
        "canonical": screen.absolute(request, f"/stores/{code}"),
        "description": f"Every store in {words.state(code)} whose menu we watch.",
    }
    return screen.show(request, "stores.html", context)


@router.get("/s/{address}")
async def one(request: Request, conn: Reading, address: str) -> Response:
    """A store and the beginning of each part of its menu."""
    store = await places.store(conn, number_of(address))
    if store is None:
        raise NotFound("We don’t watch that store, or not any more. Search for something else:")
    path = screen.store_path(store["id"], store["name"])
    if (elsewhere := screen.moved(request, path)) is not None:
        return elsewhere
    place = await screen.around(conn, Asked.of(request.query_params).near)
    menu = await places.store_menu(conn, store["id"], _OF_EACH)
    categories = await places.store_categories(conn, store["id"])
    shelves: dict[str, list[Any]] = {name: list(rows) for name, rows in groupby(menu, lambda row: str(row["category"]))}
    context = {
        "place": place,
        "store": store,
        "categories": categories,
        "shelves": [
            (c["category"], c["items"], shelves[c["category"]]) for c in categories if c["category"] in shelves
        ],
        "canonical": screen.absolute(request, path),
        "description": f"The menu of {store['name']}: prices, potency and stock, as last seen, with price history.",
        "linked": linked.store(store, screen.absolute(request, path)),
    }
    return screen.show(request, "store.html", context)
