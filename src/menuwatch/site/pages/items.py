"""The page of one item: description, offers of all stores by size, price history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from msgspec import Struct

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import NotFound
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.site import chart, comparison, screen, store_map, watch_form
from menuwatch.site import format as words
from menuwatch.site import json_ld as linked
from menuwatch.site.comparison import Line, SizeTable
from menuwatch.site.search_query import MILES, SearchQuery
from menuwatch.storefront import deals, page_queries
from menuwatch.storefront.page_queries import Item, Offer, OfferedSize
from menuwatch.storefront.price_history import read_price_lines
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter()

_MOST_OFFERS = 60
_MOST_OF_SIZE = 10
"""Locations of each size, as long as no size is chosen."""
_NUMBER = re.compile(r"(\d{1,18})(?:-.*)?", re.DOTALL)


@router.get("/p/{address}")
async def item_page(request: Request, conn: ReadConn, address: str) -> Response:
    """An item and every store that carries it; `store` and `size` select what is compared and whose price history is shown."""
    return await page(request, conn, address)


async def page(request: Request, conn: Connection, address: str, *, form: FormInput | None = None) -> Response:
    """The page of an item, with a rejected `form` and its errors if given."""
    item = await page_queries.get_present_item(conn, number_of(address))
    if item is None:
        raise NotFound("Product not found. Search for something similar:")
    path = screen.item_path(item.id, item.name)
    if form is None and (elsewhere := screen.moved(request, path)) is not None:
        return elsewhere
    asked = SearchQuery.parse(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    sizes = await page_queries.list_sizes(conn, item.id)
    size = next((one.size for one in sizes if one.size is not None and [one.size] == [*asked.sizes]), None)
    listed = await page_queries.list_offers(
        conn,
        item.id,
        place.nearby,
        size=size,
        per_size=_MOST_OFFERS if size or len(sizes) == 1 or _has_no_choice(sizes) else _MOST_OF_SIZE,
        limit=_MOST_OFFERS,
    )
    saved = await deals.list_savings(conn, [offer.product_id for offer in listed])
    offers = [comparison.to_shown(offer, item.name, saved.get(offer.product_id, ())) for offer in listed]
    by_distance = place.nearby is not None
    tables = comparison.by_size(offers, [one for one in sizes if size in (None, one.size)], by_distance=by_distance)
    # Keep the input, including the store that the alert was requested for.
    at = asked.store if form is None else _store_of(form.value("reach"))
    line = comparison.choose(tables, store_id=at, by_distance=by_distance)
    shown = line.offer if line else None
    description = next((offer.description for offer in offers if offer.description), None)

    def absolute(path: str) -> str:
        return screen.whole(request, path)

    context: dict[str, Any] = {
        "item": item,
        "place": place,
        "sizes": [one for one in sizes if one.size is not None],
        "size": size,
        "size_path": lambda one: _with_size(path, one),
        "tables": tables,
        "map": store_map.draw_offers(offers, place.place) if place.place is not None else None,
        "line": line,
        "shown": shown,
        "chosen": asked.store is not None and shown is not None and shown.store_id == asked.store,
        "pictures": list(dict.fromkeys(offer.local_image_path for offer in offers if offer.local_image_path))[:4],
        "description_text": description,
        "whole": absolute,
        "brand_text": next((offer.brand_description for offer in offers if offer.brand_description), None),
        "labs": shown.lab_tables if shown else {},
        "batch": shown.batch_shown if shown else None,
        "history": await _history(request, conn, item, line, whole=at is None, place=place, offers=offers)
        if line
        else None,
        "form": form or FormInput({}),
        "watchable": watch_form.Watchable(
            action=f"/p/{item.id}/watch",
            conditions=watch_form.conditions(of_item=True),
            condition="any_drop" if shown and shown.in_stock is not False else "back_in_stock",
            channels=watch_form.channels(screen.system_of(request).settings),
            sizes=[one.size for one in sizes if one.size is not None],
            size=size,
            store=shown,
            state=place.state or (shown.state if shown else None),
        ),
        "miles": MILES,
        "similar": await page_queries.list_similar(conn, item, 4),
        "canonical": screen.whole(request, path),
        "description": _description(item, tables),
        "linked": linked.item(item, tables, absolute(path), absolute, description),
        "trail": linked.trail([(name, absolute(at)) for name, at in _trail(item, path)]),
    }
    if form is None:
        return screen.render(request, "item.html", context)
    return screen.render(request, "item.html", {**context, "index": False}, status=422, keep=False)


def _trail(item: Item, path: str) -> list[tuple[str, str]]:
    """The way to the page, as its breadcrumbs show it, and the page."""
    steps = [("Products", "/search"), (words.category(item.category), f"/search?category={item.category}")]
    if item.brand and item.brand_slug:
        steps.append((item.brand, screen.brand_path(item.brand_slug)))
    return [*steps, (item.name, path)]


def _has_no_choice(sizes: Sequence[OfferedSize]) -> bool:
    """Whether few enough stores list the product to show all: those that give no size cannot be chosen."""
    return any(one.size is None for one in sizes) and sum(one.stores for one in sizes) <= _MOST_OFFERS


def _store_of(reach: str) -> int | None:
    number = reach.removeprefix("store-")
    return int(number) if number != reach and number.isascii() and number.isdecimal() and len(number) < 10 else None


def number_of(address: str) -> int:
    """The id at the start of a URL segment; raises NotFound."""
    match = _NUMBER.fullmatch(address)
    if match is None or int(match[1]) >= 2**63:
        raise NotFound("It may have moved, or the address has a typo. Search for what you were looking for:")
    return int(match[1])


def _with_size(path: str, size: str | None) -> str:
    return f"{path}?{urlencode({'size': size})}" if size is not None else path


class History(Struct, frozen=True, kw_only=True):
    """The price history of one size, with links to other ranges; `more` stores are not compared."""

    heading: str
    chart: chart.Chart | None
    ranges: list[tuple[str, str, bool]]
    size: str
    more: int


async def _history(
    request: Request,
    conn: Connection,
    item: Item,
    line: Line,
    *,
    whole: bool,
    place: screen.Around,
    offers: Sequence[Offer],
) -> History:
    """The prices of the store of `line` beside the cheapest of all stores; with `whole` only the latter, if there are several."""
    now = screen.now()
    chosen = request.query_params.get("range", "")
    chosen = chosen if chosen in chart.RANGES else chart.DEFAULT_RANGE
    length = chart.RANGES[chosen][1]
    since = None if length is None else now - length
    own, all_stores = await read_price_lines(
        conn,
        item.id,
        line.option.size,
        since=None if since is None else min(since, now - chart.QUARTER),
        now=now,
        product_id=line.offer.product_id,
        stores=None if place.nearby is None else place.nearby.stores,
        archived=ParquetPartitions(screen.system_of(request).archive.storage),
    )
    several = all_stores is not None and all_stores.stores > 1
    near = f" near {place.place.city}" if place.place is not None else ""
    lines = []
    if own is not None and not (whole and several):
        lines.append((line.offer.store, own))
    if all_stores is not None and several:
        lines.append((f"Cheapest of {all_stores.stores} stores{near}", all_stores))
    about_all = whole and several
    zones = {offer.timezone for offer in offers}
    common = offers[0].timezone if place.place is not None or len(zones) == 1 else None
    zone = words.zone(common if about_all else line.offer.timezone)
    of = f" of {line.option.size}" if line.option.size else ""
    query = {name: value for name in ("size", "store") if (value := request.query_params.get(name))}
    path = screen.item_path(item.id, item.name)
    return History(
        heading=f"Lowest price{of} across all stores{near}" if about_all else f"Price{of} at {line.offer.store}",
        chart=chart.draw(lines, since=since, now=now, zone=zone, state=line.offer.state) if lines else None,
        ranges=[
            (label, f"{path}?{urlencode({**query, 'range': name})}", name == chosen)
            for name, (label, _) in chart.RANGES.items()
        ],
        size=of,
        more=all_stores.more if all_stores is not None else 0,
    )


def _description(item: Item, tables: Sequence[SizeTable]) -> str:
    kind, name = words.category(item.category).lower(), words.title(item)
    who = f" by {item.brand}" if item.brand else ""
    if not tables:
        return f"{name}{who}: not available right now. See its price history and set an alert for when it is back."
    state = tables[0].lines[0].offer.state
    prices = [f"{words.dollars(t.price, t.state)} for {t.size}" for t in tables if t.size and t.price is not None][:4]
    price = ", ".join(prices) or words.dollars(item.price, state)
    return f"{name}{who}, {kind}: from {price} at {pluralize(item.stores, 'store')}. Prices, stock and history."
