"""Shoppers' alerts: request, confirm, view, feed, end.

The token in the address authorizes all of these, so such a page is never cached and sends no referrer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as Xml

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import RedirectResponse

from menuwatch.catalog.taxonomy.text import slug
from menuwatch.core.encryption import DecryptionError, SecretBox
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Connection
from menuwatch.geo.circle import DEFAULT_MILES
from menuwatch.geo.units import currency
from menuwatch.site import screen, watch_form
from menuwatch.site.limits import Limits
from menuwatch.site.pages import items
from menuwatch.site.search_query import MILES, SearchQuery
from menuwatch.site.watch_form import Sent, Watchable
from menuwatch.storefront import page_queries
from menuwatch.storefront.search import Order, list_brands
from menuwatch.storefront.watches import messages as watch_words
from menuwatch.storefront.watches import service as watches
from menuwatch.storefront.watches import store as watch_store
from menuwatch.storefront.watches.model import Event, Named, NewWatch, Watch
from menuwatch.storefront.watches.service import TooMany
from menuwatch.storefront.watches.web_push import push_key
from menuwatch.web.client import client_address, network_of, wider_network_of
from menuwatch.web.csrf import same_site
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput

log = get_logger(__name__)
router = APIRouter()

_LONGEST_TOKEN = 64
_PUSH_WORKER = (Path(__file__).parent.parent / "static" / "push-worker.js").read_bytes()
_ATOM = "http://www.w3.org/2005/Atom"
_GONE = "Alert not found: it was deleted, or the address has a typo. You can set a new one on any product page:"


@router.post("/p/{address}/watch", dependencies=[Depends(same_site)])
async def ask(request: Request, form: Sent, conn: WriteConn, address: str) -> Response:
    """Creates an alert on a product."""
    item = await page_queries.get_present_item(conn, items.number_of(address))
    if item is None:
        raise NotFound("Product not found. Search for something similar:")
    asked = await watch_form.read(conn, form, item_id=item.id, sizes=item.sizes)
    return await _created(request, conn, form, asked) or await items.page(request, conn, address, form=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What an alert on several products is about, in words, and as `watch_form.read` takes it."""

    about: str
    anywhere: bool
    place: screen.Around
    state: str | None
    """The store's, or else that of the place."""
    given: dict[str, Any]


async def _group(request: Request, conn: Connection) -> Group:
    """The brand, search or store that the address names; raises NotFound."""
    params = request.query_params
    asked = SearchQuery.parse(params)
    place = await screen.around(conn, asked.near, asked.within)
    store = await page_queries.get_store(conn, asked.store) if asked.store is not None else None
    state = store.state if store is not None else place.state
    match params.get("of"):
        case "brand":
            brand = await page_queries.get_brand(conn, (asked.brands or ("",))[0])
            if brand is not None:
                about, given = f"products of {brand['name']}", {"brand_id": brand["id"]}
                return Group(about=about, anywhere=True, place=place, state=place.state, given=given)
        case "store":
            if store is not None:
                about = f"products at {store.name}"
                return Group(about=about, anywhere=False, place=place, state=state, given={"store_id": store.id})
        case "search":
            query = replace(asked, near="", within=DEFAULT_MILES, sort=Order.RELEVANCE, after=None, store=None)
            brands = [brand["id"] for brand in await list_brands(conn, asked.brands)]
            if query.narrowed or query.q or store is not None:
                search = await watches.watched_search(conn, query.link(), query.request(brands=brands))
                about = f"products matching {watch_words.searched(query.link(), currency(state))}" + (
                    f" at {store.name}" if store else ""
                )
                given = {"search": search, "store_id": store.id if store is not None else None}
                return Group(about=about, anywhere=store is None, place=place, state=state, given=given)
    raise NotFound("Nothing to be notified about. Search for a product, a brand or a store first:")


@router.get("/alerts/new")
async def new(request: Request, conn: ReadConn) -> Response:
    """The form of an alert on a brand, a search or a store."""
    return await _new(request, await _group(request, conn), FormInput({}))


@router.post("/alerts/new", dependencies=[Depends(same_site)])
async def ask_group(request: Request, form: Sent, conn: WriteConn) -> Response:
    """Creates an alert on a brand, a search or a store."""
    group = await _group(request, conn)
    asked = await watch_form.read(conn, form, **group.given)
    return await _created(request, conn, form, asked) or await _new(request, group, form)


async def _new(request: Request, group: Group, form: FormInput) -> Response:
    settings = screen.system_of(request).settings
    context = {
        "about": group.about,
        "place": group.place,
        "form": form,
        "miles": MILES,
        "index": False,
        "watchable": Watchable(
            action=f"/alerts/new?{request.url.query}",
            conditions=watch_form.conditions(of_item=False),
            condition="new_deal",
            channels=watch_form.channels(settings),
            anywhere=group.anywhere,
            state=group.state,
        ),
    }
    return screen.render(request, "alert_new.html", context, status=200 if form.ok else 422, keep=False)


async def _created(request: Request, conn: Connection, form: FormInput, asked: NewWatch | None) -> Response | None:
    """Creates the watch and leads to its page; None if it was refused, with the reason noted in the form."""
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
        return None
    root = request.scope.get("root_path", "")
    where = f"/alerts/{token}" if token and asked is not None and asked.channel != "mail" else "/alerts/sent"
    return RedirectResponse(root + where, status_code=303, headers={"Cache-Control": "no-store"})


def _limited(request: Request) -> None:
    limits: Limits = request.app.state.limits
    settings = screen.system_of(request).settings
    client = client_address(request.scope, settings.trusted_proxies)
    if not limits.allows(network_of(client), wider_network_of(client)):
        raise TooMany("Too many alerts. Try again later.")


@router.get("/push-worker.js")
async def push_worker() -> Response:
    """The script that shows notifications in a browser. Its address stays the same, and it must be at the root of the site."""
    return Response(_PUSH_WORKER, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@router.get("/alerts/push-key")
async def push_key_of_site(request: Request, conn: WriteConn) -> Response:
    """The public key that browsers subscribe with."""
    try:
        async with conn.transaction():
            key = await push_key(conn, SecretBox(screen.system_of(request).settings.secret_key))
    except DecryptionError as error:
        log.warning("the key of web push cannot be read", action="push_key_locked", error=str(error))
        return Response("unavailable", status_code=503, media_type="text/plain", headers={"Cache-Control": "no-store"})
    return Response(key.public, media_type="text/plain", headers={"Cache-Control": "no-store"})


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


async def _context(request: Request, conn: Connection, watch: Watch, token: str) -> dict[str, Any]:
    named = await watch_store.names_of(conn, watch)
    events = await watch_store.events(conn, watch.id, 20)
    return {
        "watch": watch,
        "named": named,
        "token": token,
        "condition": watch_words.describe(watch, named),
        "page": _page_of(watch, named),
        "feed": screen.whole(request, f"/feeds/{token}.atom"),
        "topic": _topic(request, watch),
        "events": [(one, list(watch_words.lines(watch, named, one.facts))) for one in events],
    }


def _page_of(watch: Watch, named: Named) -> str:
    if watch.item_id is not None:
        return screen.item_path(watch.item_id, named.item or "")
    if watch.query is not None:
        store = urlencode({"store": watch.store_id}) if watch.store_id is not None else ""
        near = urlencode({"near": watch.place, "within": watch.miles}) if watch.place is not None else ""
        more = "&".join(part for part in (store, near) if part)
        return f"{watch.query}{'&' if '?' in watch.query else '?'}{more}" if more else watch.query
    if watch.brand_id is not None:
        return screen.brand_path(slug(named.brand or ""))
    return screen.store_path(watch.store_id or 0, named.store or "")


def _topic(request: Request, watch: Watch) -> str | None:
    """The topic of a watch by ntfy; None if it cannot be read."""
    if watch.channel != "ntfy":
        return None
    try:
        return SecretBox(screen.system_of(request).settings.secret_key).decrypt(watch.address)
    except DecryptionError:
        return None


def _own(request: Request, template: str, context: dict[str, Any]) -> Response:
    return screen.render(
        request, template, {**context, "index": False}, keep=False, headers={"Referrer-Policy": "no-referrer"}
    )


@router.get("/alerts/{token}")
async def one(request: Request, conn: WriteConn, token: str) -> Response:
    """An alert: its condition, its events, and how to end it. Opening it counts as use."""
    watch = await _watch(conn, token)
    if watch.channel != "feed":
        await watches.was_used(conn, watch)
    return _own(request, "alert.html", await _context(request, conn, watch, token))


@router.get("/alerts/{token}/confirm")
async def confirm_page(request: Request, conn: ReadConn, token: str) -> Response:
    """A page with a button, because mail scanners follow every link."""
    watch = await _watch(conn, token)
    return _own(request, "alert_confirm.html", await _context(request, conn, watch, token))


@router.post("/alerts/{token}/confirm")
async def confirm(request: Request, conn: WriteConn, token: str) -> Response:
    """Confirms the address of a mail or a topic. The Origin header is not checked: the token authorizes the request, and a page
    without referrer has browsers send `Origin: null`, which over plain http is all they send.
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
    await watches.was_used(conn, watch)
    named = await watch_store.names_of(conn, watch)
    body = _write_feed(
        watch,
        named,
        title=watch_words.describe(watch, named),
        events=await watch_store.events(conn, watch.id),
        address=screen.whole(request, f"/feeds/{token}.atom"),
        page=screen.whole(request, _page_of(watch, named)),
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
    watch: Watch, named: Named, *, title: str, events: Sequence[Event], address: str, page: str, manage: str
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
        _append(entry, "title", _printable(watch_words.headline(watch, named, event.facts)))
        _append(entry, "updated", _timestamp(event.happened_at))
        _link(entry, "alternate", page)
        happened = [(line, place) for line, _, place in watch_words.lines(watch, named, event.facts)]
        if "products" in event.facts:
            said = " ".join(f"{line}, at {place}." if place else f"{line}." for line, place in happened)
        else:
            said = f"At {happened[0][1]}." if happened[0][1] else ""
        warning = "Prices and stock come from the store’s menu and may change."
        _append(entry, "content", _printable(f"{said} {warning}".strip()))
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
