"""The page of one item: description, offers of all stores by size, price history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import get_history
from menuwatch.catalog.service import Span
from menuwatch.core.errors import NotFound
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.site import chart, comparison, screen
from menuwatch.site import format as words
from menuwatch.site import json_ld as linked
from menuwatch.site.comparison import Line, SizeTable
from menuwatch.site.search_query import MILES, SearchQuery
from menuwatch.storefront import page_queries
from menuwatch.storefront.page_queries import Item
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter()

HISTORY = timedelta(days=90)
_MOST_STATES = 200
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
        per_size=_MOST_OFFERS if size or len(sizes) == 1 else _MOST_OF_SIZE,
        limit=_MOST_OFFERS,
    )
    offers = [comparison.to_shown(offer, item.name) for offer in listed]
    by_distance = place.nearby is not None
    tables = comparison.by_size(offers, [one for one in sizes if size in (None, one.size)], by_distance=by_distance)
    # Keep the input, including the store that the alert was requested for.
    at = asked.store if form is None else _store_of(form.value("reach"))
    line = comparison.choose(tables, store_id=at, by_distance=by_distance)
    shown = line.offer if line else None
    context: dict[str, Any] = {
        "item": item,
        "place": place,
        "sizes": [one for one in sizes if one.size is not None],
        "size": size,
        "size_path": lambda one: _with_size(path, one),
        "tables": tables,
        "line": line,
        "shown": shown,
        "chosen": asked.store is not None and shown is not None and shown.store_id == asked.store,
        "pictures": list(dict.fromkeys(offer.local_image_path for offer in offers if offer.local_image_path))[:4],
        "description_text": next((offer.description for offer in offers if offer.description), None),
        "brand_text": next((offer.brand_description for offer in offers if offer.brand_description), None),
        "labs": shown.lab_tables if shown else {},
        "batch": shown.batch_shown if shown else None,
        "history": await _history(request, conn, line) if line else None,
        "form": form or FormInput({"near": asked.near}),
        "mails": screen.system_of(request).settings.mail_url is not None,
        "miles": MILES,
        "similar": await page_queries.list_similar(conn, item, 4),
        "canonical": screen.absolute(request, path),
        "description": _description(item, tables),
        "linked": linked.item(item, tables, screen.absolute(request, path), lambda p: screen.absolute(request, p)),
    }
    if form is None:
        return screen.render(request, "item.html", context)
    return screen.render(request, "item.html", {**context, "index": False}, status=422, keep=0)


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


async def _history(request: Request, conn: Any, line: Line) -> chart.Chart | None:
    shown = line.offer
    now = screen.now()
    archived = ParquetPartitions(screen.system_of(request).archive.storage)
    history = await get_history(
        conn, shown.product_id, Span(since=now - HISTORY), limit=_MOST_STATES, archived=archived
    )
    return chart.draw(
        history.states,
        history.gaps,
        option=line.option.option if len(shown.options) > 1 else None,
        until=shown.seen_at,
        timezone=shown.timezone,
        state=shown.state,
    )


def _description(item: Item, tables: Sequence[SizeTable]) -> str:
    kind, name = words.category(item.category).lower(), words.title_of(item.name)[0]
    who = f" by {item.brand}" if item.brand else ""
    if not tables:
        return f"{name}{who}: not available right now. See its price history and set an alert for when it is back."
    state = tables[0].lines[0].offer.state
    prices = [f"{words.dollars(t.price, state)} for {t.size}" for t in tables if t.size and t.price is not None][:4]
    price = ", ".join(prices) or words.dollars(item.price, state)
    return f"{name}{who}, {kind}: from {price} at {pluralize(item.stores, 'store')}. Prices, stock and history."
