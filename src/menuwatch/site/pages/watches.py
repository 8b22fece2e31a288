"""Shoppers' alerts: request, confirm, view, feed, end.

The token in the address authorizes all of these, so such a page is never cached and sends no referrer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any
from xml.etree import ElementTree as Xml

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse

from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.site import screen
from menuwatch.site.limits import Limits
from menuwatch.site.pages import items
from menuwatch.site.search_query import MILES, cents
from menuwatch.storefront import page_queries
from menuwatch.storefront.page_queries import Item
from menuwatch.storefront.watches import messages as watch_words
from menuwatch.storefront.watches import service as watches
from menuwatch.storefront.watches import store as watch_store
from menuwatch.storefront.watches.model import CONDITIONS, Event, Scope, Watch
from menuwatch.storefront.watches.service import NewWatch, TooMany
from menuwatch.web.client import client_address, network_of, wider_network_of
from menuwatch.web.csrf import same_site
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput

router = APIRouter()

_LONGEST_TOKEN = 64
_ATOM = "http://www.w3.org/2005/Atom"
_GONE = "Alert not found: it was deleted, or the address has a typo. You can set a new one on any product page:"


_FIELDS = ("condition", "amount", "by", "email", "reach", "near", "within", "size", "website")


async def _sent(request: Request) -> FormInput:
    data = await request.form(max_fields=20, max_files=0)
    return FormInput({name: _typed(data, name) for name in _FIELDS})


Sent = Annotated[FormInput, Depends(_sent)]
"""The form, parsed before a database connection is taken, so that slow clients hold none."""


@router.post("/p/{address}/watch", dependencies=[Depends(same_site)])
async def ask(request: Request, form: Sent, conn: WriteConn, address: str) -> Response:
    """Creates an alert."""
    item_id = items.number_of(address)
    item = await page_queries.get_present_item(conn, item_id)
    if item is None:
        raise NotFound("Product not found. Search for something similar:")
    asked = await _asked(conn, form, item)
    token = ""
    # Only bots fill in the hidden field; they get the success page.
    if asked is not None and not form.value("website"):
        try:
            _limited(request)
            async with conn.transaction():
                token = await watches.create(conn, asked, screen.system_of(request).settings)
        except InvalidField as error:
            form.add_error(error.field, str(error))
        except TooMany as error:
            form.add_error("", str(error))
    if not form.ok:
        return await items.page(request, conn, address, form=form)
    root = request.scope.get("root_path", "")
    where = f"/alerts/{token}" if token and asked is not None and asked.address is None else "/alerts/sent"
    return RedirectResponse(root + where, status_code=303, headers={"Cache-Control": "no-store"})


def _typed(data: FormData, name: str) -> str:
    found = data.get(name)
    return " ".join(found.replace("\0", "").split())[:300] if isinstance(found, str) else ""


def _limited(request: Request) -> None:
    limits: Limits = request.app.state.limits
    settings = screen.system_of(request).settings
    client = client_address(request.scope, settings.trusted_proxies)
    if not limits.allows(network_of(client), wider_network_of(client)):
        raise TooMany("Too many alerts. Try again later.")


async def _asked(conn: Any, form: FormInput, item: Item) -> NewWatch | None:
    """Converts the form to a new watch; None if it is invalid, with the errors noted in the form."""
    condition = next((one for one in CONDITIONS if one == form.value("condition")), None)
    if condition is None:
        form.add_error("condition", "Choose an alert condition.")
    amount = cents(form.value("amount")) if condition == "price_below" else None
    if condition == "price_below" and not amount:
        form.add_error("amount", "Enter a price such as 25 or 25.50.")
    by = form.value("by") or "feed"
    if by == "mail" and not form.value("email"):
        form.add_error("email", "Enter an e-mail address.")
    if form.value("size") and form.value("size") not in item.sizes:
        form.add_error("size", "No store lists that size any more. Choose another one.")
    scope = await _scope(conn, form)
    if not form.ok or condition is None or scope is None:
        return None
    return NewWatch(
        item_id=item.id,
        size=form.value("size") or None,
        condition=condition,
        amount=None if amount is None else Decimal(amount) / 100,
        scope=scope,
        address=form.value("email") if by == "mail" else None,
    )


async def _scope(conn: Any, form: FormInput) -> Scope | None:
    reach = form.value("reach")
    if reach.startswith("store-") and reach[6:].isascii() and reach[6:].isdecimal() and len(reach) < 16:
        if await page_queries.get_store(conn, int(reach[6:])) is not None:
            return Scope(store_id=int(reach[6:]))
        form.add_error("reach", "That store is no longer listed.")
        return None
    if reach != "near":
        return Scope()
    within = form.value("within")
    miles = int(within) if within.isascii() and within.isdecimal() and int(within) in MILES else 25
    place = (await screen.around(conn, form.value("near"), miles)).place
    if place is None:
        form.add_error("near", "Enter a ZIP code, or a city with its state.")
        return None
    return Scope(place=place.label, latitude=place.latitude, longitude=place.longitude, miles=miles)


@router.get("/alerts/sent")
async def sent(request: Request) -> Response:
    """Page shown after an e-mail address was entered: how to confirm."""
    return _own(request, "alert_sent.html", {})


@router.get("/alerts/ended")
async def ended(request: Request) -> Response:
    """Page shown after an alert was ended."""
    return _own(request, "alert_ended.html", {})


async def _watch(conn: Any, token: str) -> Watch:
    watch = await watch_store.by_token(conn, token) if len(token) <= _LONGEST_TOKEN else None
    if watch is None:
        raise NotFound(_GONE)
    return watch


async def _context(request: Request, conn: Any, watch: Watch, token: str) -> dict[str, Any]:
    item = await page_queries.get_item(conn, watch.item_id)
    store = await page_queries.get_store(conn, watch.store_id) if watch.store_id is not None else None
    assert item is not None, "an item that is watched stays"
    return {
        "watch": watch,
        "item": item,
        "token": token,
        "condition": watch_words.describe(watch, item.name, store.name if store else None),
        "feed": screen.whole(request, f"/feeds/{token}.atom"),
        "events": [(one, watch_words.headline(watch, item.name, one.facts), watch_words.at(one.facts))
                   for one in await watch_store.events(conn, watch.id, 20)],
    }  # fmt: skip


def _own(request: Request, template: str, context: dict[str, Any]) -> Response:
    return screen.render(
        request, template, {**context, "index": False}, keep=0, headers={"Referrer-Policy": "no-referrer"}
    )


@router.get("/alerts/{token}")
async def one(request: Request, conn: ReadConn, token: str) -> Response:
    """An alert: its condition, its events, and how to end it."""
    watch = await _watch(conn, token)
    return _own(request, "alert.html", await _context(request, conn, watch, token))


@router.get("/alerts/{token}/confirm")
async def confirm_page(request: Request, conn: ReadConn, token: str) -> Response:
    """A page with a button, because mail scanners follow every link."""
    watch = await _watch(conn, token)
    return _own(request, "alert_confirm.html", await _context(request, conn, watch, token))


@router.post("/alerts/{token}/confirm")
async def confirm(request: Request, conn: WriteConn, token: str) -> Response:
    """Confirms the address. The Origin header is not checked: the token authorizes the request, and a page without referrer has
    browsers send `Origin: null`, which over plain http is all they send.
    """
    await _watch(conn, token)
    await watches.confirm(conn, token)
    return RedirectResponse(request.scope.get("root_path", "") + f"/alerts/{token}", status_code=303)


@router.get("/alerts/{token}/stop")
async def stop_page(request: Request, conn: ReadConn, token: str) -> Response:
    """A page with a button that ends the alert."""
    watch = await _watch(conn, token)
    return _own(request, "alert_stop.html", await _context(request, conn, watch, token))


@router.post("/alerts/{token}/stop")
async def stop(request: Request, conn: WriteConn, token: str) -> Response:
    """Ends the alert and deletes the address. Posted by our page, and by mail programs (RFC 8058), which send no Origin: the token
    authorizes the request. Idempotent.
    """
    if len(token) <= _LONGEST_TOKEN:
        await watches.end(conn, token)
    return RedirectResponse(request.scope.get("root_path", "") + "/alerts/ended", status_code=303)


@router.get("/feeds/{token}.atom")
async def feed(request: Request, conn: WriteConn, token: str) -> Response:
    """An alert's private feed (Atom, RFC 4287)."""
    watch = await _watch(conn, token)
    await watches.was_read(conn, watch)
    context = await _context(request, conn, watch, token)
    body = _write_feed(
        watch,
        item=context["item"].name,
        title=context["condition"],
        events=await watch_store.events(conn, watch.id),
        address=context["feed"],
        page=screen.whole(request, screen.item_path(watch.item_id, context["item"].name)),
        manage=screen.whole(request, f"/alerts/{token}"),
    )
    mark = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {
        "ETag": mark,
        "Cache-Control": "private, max-age=900",
        "X-Robots-Tag": "noindex",
        "Referrer-Policy": "no-referrer",
    }
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/atom+xml", headers=headers)


def _write_feed(
    watch: Watch, *, item: str, title: str, events: Sequence[Event], address: str, page: str, manage: str
) -> bytes:
    """Writes an Atom feed (RFC 4287), with `events` newest first. One entry describes the watch, so that the feed is never empty."""
    Xml.register_namespace("", _ATOM)
    feed = Xml.Element(f"{{{_ATOM}}}feed")
    _append(feed, "id", address)
    _append(feed, "title", _printable(f"Alert: {title}"))
    _append(feed, "updated", _timestamp(events[0].happened_at if events else watch.created_at))
    _link(feed, "self", address)
    _link(feed, "alternate", page)
    _append(_element(feed, "author"), "name", "Menuwatch")
    for event in events:
        entry = _element(feed, "entry")
        _append(entry, "id", f"{address}#{event.id}")
        _append(entry, "title", _printable(watch_words.headline(watch, item, event.facts)))
        _append(entry, "updated", _timestamp(event.happened_at))
        _link(entry, "alternate", page)
        place = watch_words.at(event.facts)
        where = f"At {place}. " if place else ""
        _append(entry, "content", _printable(f"{where}Prices and stock come from the store’s menu and may change."))
    entry = _element(feed, "entry")
    _append(entry, "id", f"{address}#begun")
    _append(entry, "title", _printable(f"You will be notified here when {title}"))
    _append(entry, "updated", _timestamp(watch.created_at))
    _link(entry, "alternate", manage)
    _append(entry, "content", "New entries appear above this one. To delete the alert, follow the link.")
    return bytes(Xml.tostring(feed, encoding="utf-8", xml_declaration=True))


def _element(parent: Xml.Element, name: str) -> Xml.Element:
    return Xml.SubElement(parent, f"{{{_ATOM}}}{name}")


def _append(parent: Xml.Element, name: str, text: str) -> None:
    _element(parent, name).text = text


def _link(parent: Xml.Element, rel: str, href: str) -> None:
    link = _element(parent, "link")
    link.set("rel", rel)
    link.set("href", href)


def _printable(text: str) -> str:
    """Removes characters that XML does not allow."""
    return "".join(c if c.isprintable() else " " for c in text)


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
