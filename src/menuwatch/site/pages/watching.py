"""Alerts of shoppers: asking for one, confirming it, its page and its feed, ending it.

Whoever knows the token may do all of that, so a page with one is never kept by anybody, and tells nobody where one came from.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse

from menuwatch.operations import shopping, watch_words, watches
from menuwatch.operations import shopping_places as places
from menuwatch.operations.refusals import NotFound, Unusable
from menuwatch.operations.watches import Asked, TooMany
from menuwatch.shoppers import store as ledger
from menuwatch.shoppers.model import CONDITIONS, Scope, Watch
from menuwatch.site import atom, screen
from menuwatch.site.limits import Limits
from menuwatch.site.pages import items
from menuwatch.site.wishes import MILES, cents
from menuwatch.web.client import client_address, network_of, wider_network_of
from menuwatch.web.csrf import same_site
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Writing

router = APIRouter()

_LONGEST_TOKEN = 64
_GONE = "That alert has ended, or the address has a typing error. You can set a new one on any product’s page:"


_FIELDS = ("condition", "amount", "by", "email", "reach", "near", "within", "website")


async def _sent(request: Request) -> Form:
    data = await request.form(max_fields=20, max_files=0)
    return Form({name: _typed(data, name) for name in _FIELDS})


Sent = Annotated[Form, Depends(_sent)]
"""What was typed. It stands before a route's connection, so that whoever sends slowly keeps none from others."""


@router.post("/p/{address}/watch", dependencies=[Depends(same_site)])
async def ask(request: Request, form: Sent, conn: Writing, address: str) -> Response:
    """Asks for an alert."""
    item_id = items.number_of(address)
    if await shopping.item(conn, item_id) is None:
        raise NotFound("That product is not on any menu we know. Search for something like it:")
    asked = await _asked(conn, form, item_id)
    token = ""
    # Only machines fill in a field that nobody sees; they are told that all went well.
    if asked is not None and not form.value("website"):
        try:
            _limited(request)
            async with conn.transaction():
                token = await watches.ask(conn, asked, screen.system_of(request).settings)
        except Unusable as error:
            form.refuse(error.field, str(error))
        except TooMany as error:
            form.refuse("", str(error))
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
        raise TooMany("That is many alerts in a short time. Try again later.")


async def _asked(conn: Any, form: Form, item_id: int) -> Asked | None:
    """What the form asks for; None where something is wrong, which is noted in the form."""
    condition = next((one for one in CONDITIONS if one == form.value("condition")), None)
    if condition is None:
        form.refuse("condition", "Choose what you want to be told of.")
    amount = cents(form.value("amount")) if condition == "price_below" else None
    if condition == "price_below" and not amount:
        form.refuse("amount", "Below which price? Write it like 25 or 25.50.")
    by = form.value("by") or "feed"
    if by == "mail" and not form.value("email"):
        form.refuse("email", "To which address?")
    scope = await _scope(conn, form)
    if not form.ok or condition is None or scope is None:
        return None
    return Asked(
        item_id=item_id,
        condition=condition,
        amount=None if amount is None else shopping.dollars(amount),
        scope=scope,
        address=form.value("email") if by == "mail" else None,
    )


async def _scope(conn: Any, form: Form) -> Scope | None:
    reach = form.value("reach")
    if reach.startswith("store-") and reach[6:].isascii() and reach[6:].isdecimal() and len(reach) < 16:
        if await places.store(conn, int(reach[6:])) is not None:
            return Scope(store_id=int(reach[6:]))
        form.refuse("reach", "We don’t watch that store any more.")
        return None
    if reach != "near":
        return Scope()
    within = form.value("within")
    miles = int(within) if within.isascii() and within.isdecimal() and int(within) in MILES else 25
    place = (await screen.around(conn, form.value("near"), miles)).place
    if place is None:
        form.refuse("near", "Near where? A ZIP code, or a city with its state.")
        return None
    return Scope(place=place.label, latitude=place.latitude, longitude=place.longitude, miles=miles)


@router.get("/alerts/sent")
async def sent(request: Request) -> Response:
    """What comes next for somebody who gave an address."""
    return _own(request, "alert_sent.html", {})


@router.get("/alerts/ended")
async def ended(request: Request) -> Response:
    """It is over."""
    return _own(request, "alert_ended.html", {})


async def _watch(conn: Any, token: str) -> Watch:
    watch = await ledger.by_token(conn, token) if len(token) <= _LONGEST_TOKEN else None
    if watch is None:
        raise NotFound(_GONE)
    return watch


async def _context(request: Request, conn: Any, watch: Watch, token: str) -> dict[str, Any]:
    item = await shopping.item(conn, watch.item_id)
    store = await places.store(conn, watch.store_id) if watch.store_id is not None else None
    assert item is not None, "an item that is watched stays"
    return {
        "watch": watch,
        "item": item,
        "token": token,
        "wish": watch_words.wish(watch, item["name"], store["name"] if store else None),
        "feed": screen.whole(request, f"/feeds/{token}.atom"),
        "events": [(one, watch_words.headline(watch, item["name"], one.facts), watch_words.at(one.facts))
                   for one in await ledger.events(conn, watch.id, 20)],
    }  # fmt: skip


def _own(request: Request, template: str, context: dict[str, Any]) -> Response:
    return screen.show(
        request, template, {**context, "index": False}, keep=0, headers={"Referrer-Policy": "no-referrer"}
    )


@router.get("/alerts/{token}")
async def one(request: Request, conn: Reading, token: str) -> Response:
    """An alert: what it waits for, what it found, and how it ends."""
    watch = await _watch(conn, token)
    return _own(request, "alert.html", await _context(request, conn, watch, token))


@router.get("/alerts/{token}/confirm")
async def confirm_page(request: Request, conn: Reading, token: str) -> Response:
    """A button, for programs that look into mails follow every link."""
    watch = await _watch(conn, token)
    return _own(request, "alert_confirm.html", await _context(request, conn, watch, token))


@router.post("/alerts/{token}/confirm")
async def confirm(request: Request, conn: Writing, token: str) -> Response:
    """The address is whose it should be. Where the form came from is not asked: whoever has the token may, and a page that tells
    nobody its address has browsers send `Origin: null`, which over plain http is all that they say."""
    await _watch(conn, token)
    await watches.confirm(conn, token)
    return RedirectResponse(request.scope.get("root_path", "") + f"/alerts/{token}", status_code=303)


@router.get("/alerts/{token}/stop")
async def stop_page(request: Request, conn: Reading, token: str) -> Response:
    """A button that ends the alert."""
    watch = await _watch(conn, token)
    return _own(request, "alert_stop.html", await _context(request, conn, watch, token))


@router.post("/alerts/{token}/stop")
async def stop(request: Request, conn: Writing, token: str) -> Response:
    """Ends the alert and forgets the address. It is posted to from our page, and by mail programs (RFC 8058), which say nothing of
    where they come from: whoever has the token may. What has ended already is as good as ended now."""
    if len(token) <= _LONGEST_TOKEN:
        await watches.end(conn, token)
    return RedirectResponse(request.scope.get("root_path", "") + "/alerts/ended", status_code=303)


@router.get("/feeds/{token}.atom")
async def feed(request: Request, conn: Writing, token: str) -> Response:
    """An alert as a feed of one's own (Atom, RFC 4287)."""
    watch = await _watch(conn, token)
    await watches.was_read(conn, watch)
    context = await _context(request, conn, watch, token)
    body = atom.write(
        watch,
        item=context["item"]["name"],
        title=context["wish"],
        events=await ledger.events(conn, watch.id),
        address=context["feed"],
        page=screen.whole(request, screen.item_path(watch.item_id, context["item"]["name"])),
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
