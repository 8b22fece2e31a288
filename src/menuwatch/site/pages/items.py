"""One item: what it is, who has it, what it cost."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from menuwatch.db.pool import Connection
from menuwatch.exports.packs import Packs
from menuwatch.operations import products, shopping
from menuwatch.operations.products import Span
from menuwatch.operations.refusals import NotFound
from menuwatch.operations.shopping_keys import size_of
from menuwatch.site import chart, linked, screen, words
from menuwatch.site.wishes import MILES, Asked
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading

router = APIRouter()

HISTORY = timedelta(days=90)
_MOST_STATES = 200
_MOST_OFFERS = 60
_NUMBER = re.compile(r"(\d{1,18})(?:-.*)?", re.DOTALL)


@router.get("/p/{address}")
async def item(request: Request, conn: Reading, address: str) -> Response:
    """An item and every store that carries it. `store` says whose prices the history shows."""
    return await page(request, conn, address)


async def page(request: Request, conn: Connection, address: str, *, form: Form | None = None) -> Response:
    """The page of an item, with a `form` that was refused beside what is wrong with it."""
    found = await shopping.item(conn, number_of(address))
    if found is None:
        raise NotFound("That product is not on any menu we know. Search for something like it:")
    path = screen.item_path(found["id"], found["name"])
    if form is None and (elsewhere := screen.moved(request, path)) is not None:
        return elsewhere
    asked = Asked.of(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    offers = [_offer(one) for one in await shopping.offers(conn, found["id"], place.here, _MOST_OFFERS)]
    # What was typed stays: also the store that an alert was asked for.
    at = asked.store if form is None else _store_of(form.value("reach"))
    shown = next((one for one in offers if one["store_id"] == at), offers[0] if offers else None)
    context: dict[str, Any] = {
        "item": found,
        "place": place,
        "offers": offers,
        "shown": shown,
        "chosen": asked.store is not None and shown is not None and shown["store_id"] == asked.store,
        "pictures": list(dict.fromkeys(one["local_image_path"] for one in offers if one["local_image_path"]))[:4],
        "description_text": next((one["description"] for one in offers if one["description"]), None),
        "cannabinoids": shown["cannabinoids"] if shown else [],
        "history": await _history(request, conn, shown) if shown else None,
        "form": form or Form({"near": asked.near}),
        "mails": screen.system_of(request).settings.mail_url is not None,
        "miles": MILES,
        "similar": await shopping.similar(conn, found, 4),
        "canonical": screen.absolute(request, path),
        "description": _description(found, offers),
        "linked": linked.item(found, offers, screen.absolute(request, path), lambda p: screen.absolute(request, p)),
    }
    if form is None:
        return screen.show(request, "item.html", context)
    return screen.show(request, "item.html", {**context, "index": False}, status=422, keep=0)


def _store_of(reach: str) -> int | None:
    number = reach.removeprefix("store-")
    return int(number) if number != reach and number.isascii() and number.isdecimal() and len(number) < 10 else None


def number_of(address: str) -> int:
    """The number that an address begins with; raises NotFound."""
    match = _NUMBER.fullmatch(address)
    if match is None or int(match[1]) >= 2**63:
        raise NotFound("It may have moved, or the address has a typing error. Search for what you were after:")
    return int(match[1])


def _decoded(raw: Any) -> list[dict[str, Any]]:
    return [] if raw is None else msgspec.json.decode(raw, type=list[dict[str, Any]])


def _offer(one: dict[str, Any]) -> dict[str, Any]:
    """An offer with its options in words: size, price, the regular price where it is on special, price per gram."""
    options = []
    for variant in _decoded(one["variants"]):
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
    return {
        **one,
        "options": options,
        "cannabinoids": [c for c in _decoded(one["cannabinoids"]) if c.get("value") and not c.get("is_total")],
        "specials": [s for s in _decoded(one["specials"]) if s.get("name")],
    }


async def _history(request: Request, conn: Any, shown: dict[str, Any]) -> chart.Chart | None:
    now = screen.now()
    packs = Packs(screen.system_of(request).archive.root)
    found = await products.history(
        conn, shown["product_id"], Span(since=now - HISTORY), limit=_MOST_STATES, packs=packs
    )
    return chart.draw(
        found.states, found.gaps, until=shown["seen_at"], timezone=shown["timezone"], state=shown["state"]
    )


def _description(item: dict[str, Any], offers: list[dict[str, Any]]) -> str:
    kind, name = words.category(item["category"]).lower(), words.title_of(item["name"])[0]
    who = f" by {item['brand']}" if item["brand"] else ""
    if not offers:
        return f"{name}{who}: on no menu we watch at the moment. See its price history and be told when it is back."
    price = words.dollars(item["price"], offers[0]["state"])
    return f"{name}{who}, {kind}: from {price} at {words.many(item['stores'], 'store')}. Prices, stock and history."
