"""The page of one item: description, offers of stores, price history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import get_history
from menuwatch.catalog.model import Batch
from menuwatch.catalog.service import Span
from menuwatch.catalog.taxonomy.sizes import size_of
from menuwatch.core.errors import NotFound
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.site import chart, screen
from menuwatch.site import format as words
from menuwatch.site import json_ld as linked
from menuwatch.site.search_query import MILES, SearchQuery
from menuwatch.storefront import page_queries
from menuwatch.storefront.page_queries import Item, Offer
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter()

HISTORY = timedelta(days=90)
_MOST_STATES = 200
_MOST_OFFERS = 60
_MOST_VALUES = 12
_NUMBER = re.compile(r"(\d{1,18})(?:-.*)?", re.DOTALL)


@router.get("/p/{address}")
async def item_page(request: Request, conn: ReadConn, address: str) -> Response:
    """An item and every store that carries it. `store` selects the store whose price history is shown."""
    return await page(request, conn, address)


async def page(request: Request, conn: Connection, address: str, *, form: FormInput | None = None) -> Response:
    """The page of an item, with a rejected `form` and its errors if given."""
    item = await page_queries.get_item(conn, number_of(address))
    if item is None:
        raise NotFound("Product not found. Search for something similar:")
    path = screen.item_path(item.id, item.name)
    if form is None and (elsewhere := screen.moved(request, path)) is not None:
        return elsewhere
    asked = SearchQuery.parse(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    offers = [_to_shown(offer) for offer in await page_queries.list_offers(conn, item.id, place.nearby, _MOST_OFFERS)]
    # Keep the input, including the store that the alert was requested for.
    at = asked.store if form is None else _store_of(form.value("reach"))
    shown = next((offer for offer in offers if offer.store_id == at), offers[0] if offers else None)
    context: dict[str, Any] = {
        "item": item,
        "place": place,
        "offers": offers,
        "shown": shown,
        "chosen": asked.store is not None and shown is not None and shown.store_id == asked.store,
        "pictures": list(dict.fromkeys(offer.local_image_path for offer in offers if offer.local_image_path))[:4],
        "description_text": next((offer.description for offer in offers if offer.description), None),
        "brand_text": next((offer.brand_description for offer in offers if offer.brand_description), None),
        "labs": shown.lab_tables if shown else {},
        "batch": shown.batch_shown if shown else None,
        "history": await _history(request, conn, shown) if shown else None,
        "form": form or FormInput({"near": asked.near}),
        "mails": screen.system_of(request).settings.mail_url is not None,
        "miles": MILES,
        "similar": await page_queries.list_similar(conn, item, 4),
        "canonical": screen.absolute(request, path),
        "description": _description(item, offers),
        "linked": linked.item(item, offers, screen.absolute(request, path), lambda p: screen.absolute(request, p)),
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


def _decoded(raw: Any) -> list[dict[str, Any]]:
    return [] if raw is None else msgspec.json.decode(raw, type=list[dict[str, Any]])


@dataclass(frozen=True, slots=True)
class LabTable:
    """Lab values, the largest first; `more` others are left out."""

    rows: Sequence[dict[str, Any]]
    more: int


def _lab_table(values: Any) -> LabTable:
    rows = [row for row in _decoded(values) if row.get("value") and not row.get("is_total")]
    rows.sort(key=lambda row: row["value"], reverse=True)
    return LabTable(rows[:_MOST_VALUES], len(rows) - len(rows[:_MOST_VALUES]))


class ShownOffer(Offer, frozen=True, kw_only=True):
    """An offer with its options (size, price, regular price if on special, price per gram, stock), lab results by heading, batch and
    promotions."""

    options: list[dict[str, Any]]
    lab_tables: dict[str, LabTable]
    batch_shown: Batch | None
    promotions: list[dict[str, Any]]


def _to_shown(offer: Offer) -> ShownOffer:
    options = []
    for variant in _decoded(offer.variants):
        regular, special = variant.get("price_rec"), variant.get("special_rec")
        if regular is None:
            regular, special = variant.get("price_med"), variant.get("special_med")
        price = min((p for p in (regular, special) if p is not None), default=None)
        options.append({
            "size": size_of(variant) or "",
            "price": None if price is None else round(price * 100),
            "regular": round(regular * 100) if regular is not None and price is not None and regular > price else None,
            "per_gram": round(variant["price_per_g"] * 10_000) if variant.get("price_per_g") is not None else None,
            "stock": variant.get("stock_status", "unknown"),
        })  # fmt: skip
    return ShownOffer(
        **msgspec.structs.asdict(offer),
        options=options,
        lab_tables={
            heading: table
            for heading, values in (("Cannabinoids", offer.cannabinoids), ("Terpenes", offer.terpenes))
            if (table := _lab_table(values)).rows
        },
        batch_shown=None if offer.batch is None else msgspec.json.decode(offer.batch, type=Batch),
        promotions=[s for s in _decoded(offer.specials) if s.get("name")],
    )


async def _history(request: Request, conn: Any, shown: Offer) -> chart.Chart | None:
    now = screen.now()
    archived = ParquetPartitions(screen.system_of(request).archive.storage)
    history = await get_history(
        conn, shown.product_id, Span(since=now - HISTORY), limit=_MOST_STATES, archived=archived
    )
    return chart.draw(history.states, history.gaps, until=shown.seen_at, timezone=shown.timezone, state=shown.state)


def _description(item: Item, offers: Sequence[Offer]) -> str:
    kind, name = words.category(item.category).lower(), words.title_of(item.name)[0]
    who = f" by {item.brand}" if item.brand else ""
    if not offers:
        return f"{name}{who}: not available right now. See its price history and set an alert for when it is back."
    price = words.dollars(item.price, offers[0].state)
    return f"{name}{who}, {kind}: from {price} at {pluralize(item.stores, 'store')}. Prices, stock and history."
