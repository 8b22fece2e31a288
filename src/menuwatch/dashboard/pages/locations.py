"""Locations: shops across platforms and licences, why records are linked, and corrections; the licences of imported registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, NotFound, Refused
from menuwatch.dashboard import screen, tables
from menuwatch.geo.states import code_in_america
from menuwatch.matching.locations import service as locations
from menuwatch.matching.locations.compare import Reason
from menuwatch.matching.locations.model import (
    Licence,
    LicenceFilter,
    LocationFilter,
    LocationMenu,
    LocationStatus,
    Subject,
)
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/locations", dependencies=[require(Permission.READ)])
may = require(Permission.STORES)

LocationPath = Annotated[int, Path(ge=1, le=2**31 - 1)]
Text = Annotated[str, Query(max_length=200)]

STATUS: Mapping[LocationStatus, tuple[str, str, str]] = {
    LocationStatus.OPEN: ("Open", "good", "A menu with products was read in the last 7 days"),
    LocationStatus.LICENCE_ENDED: ("Licence ended", "warn", "The menu is current, but all known licences have ended"),
    LocationStatus.NO_MENU: ("No current menu", "amber", "No menu with products was read in the last 7 days"),
    LocationStatus.CLOSED: ("Closed", "none", "No current menu, and all known licences have ended"),
}  # fmt: skip
"""Label, colour and meaning of each status."""


@router.get("")
async def list_locations(
    request: Request,
    conn: ReadConn,
    q: Text = "",
    state: Annotated[str, Query(max_length=40)] = "",
    status: Annotated[str, Query(max_length=20)] = "",
    menus: Annotated[str, Query(max_length=10)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Each shop once."""
    form = FormInput({"q": q, "state": state, "status": status, "menus": menus})
    chosen = form.parse_choice("status", [str(one) for one in LocationStatus])
    form.parse_choice("menus", ("several", "one"))
    where = LocationFilter(
        states=_states(form),
        status=LocationStatus(chosen) if chosen is not None else None,
        several=form.value("menus") == "several" if form.text("menus") else None,
        q=_search(form),
    )
    after = screen.parse_cursor(request, cursor or None, int)
    size = tables.page_size(request)
    rows = await locations.list_locations(conn, where, after=after, limit=size + 1) if form.ok else []
    shown, page = tables.page(request, rows, "id")
    context = {"form": form, "shown": shown, "page": page, "status": STATUS, "filtered": any((q, state, status, menus))}
    return screen.render(request, "locations/list.html", context)


@router.get("/licences")
async def list_licences(
    request: Request,
    conn: ReadConn,
    q: Text = "",
    state: Annotated[str, Query(max_length=40)] = "",
    linked: Annotated[str, Query(max_length=10)] = "",
    ended: Annotated[str, Query(max_length=10)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Licences of all imported registers."""
    form = FormInput({"q": q, "state": state, "linked": linked, "ended": ended})
    form.parse_choice("linked", ("yes", "no"))
    form.parse_choice("ended", ("yes", "no"))
    where = LicenceFilter(
        states=_states(form),
        linked=form.value("linked") == "yes" if form.text("linked") else None,
        ended=form.value("ended") == "yes" if form.text("ended") else None,
        q=_search(form),
    )
    after = screen.parse_cursor(request, cursor or None, int)
    size = tables.page_size(request)
    rows = await locations.list_licences(conn, where, after=after, limit=size + 1) if form.ok else []
    shown, page = tables.page(request, rows, "id")
    context = {"form": form, "shown": shown, "page": page, "filtered": any((q, state, linked, ended))}
    return screen.render(request, "locations/licences.html", context)


def _states(form: FormInput) -> list[str] | None:
    text = form.text("state")
    return None if text is None else [code_in_america(text) or text]


def _search(form: FormInput) -> str | None:
    return (form.text("q") or "").replace("\x00", "") or None


@router.get("/{location_id}")
async def get_location(request: Request, conn: ReadConn, location_id: LocationPath) -> Response:
    """One shop: menus, licences, history, shops nearby."""
    number = await locations.resolve(conn, location_id)
    if number != location_id:
        return screen.redirect(request, f"/locations/{number}")
    return await _one(request, conn, location_id, FormInput({}))


async def _one(request: Request, conn: ReadConn, location_id: int, form: FormInput) -> Response:
    location = await locations.get_location(conn, location_id)
    context = {
        "location": location,
        "status": STATUS[location.status],
        "evidence": evidence,
        "form": form,
        "may": screen.may(request, Permission.STORES),
    }
    return screen.render(request, "locations/one.html", context, status=200 if form.ok else 422)


def evidence(row: LocationMenu | Licence) -> list[tuple[str, str, str]]:
    """(what, bits, what both say) of each reason of a link."""
    reasons = msgspec.json.decode(row.reasons, type=list[Reason]) if row.reasons is not None else []
    return [(str(r.code).replace("_", " "), f"{r.weight:+g}", r.detail) for r in reasons if r.weight is not None]


@router.post("/{location_id}/link", dependencies=[may])
async def link(
    request: Request, form: Annotated[FormInput, fields("store", "licence")], conn: WriteConn, location_id: LocationPath
) -> Response:
    """Puts a store or a licence into the location."""
    text = form.text("store")
    try:
        if text is not None:
            subject = Subject(store_id=(await stores.resolve(conn, text)).id)
        else:
            licence = form.parse_int("licence", low=1, high=2**31 - 1)
            if licence is None:
                form.add_error("store", "enter a store or the ID of a licence")
                return await _one(request, conn, location_id, form)
            subject = Subject(licence_id=licence)
        async with conn.transaction():
            number = await locations.link(conn, subject, location_id)
    except Refused as error:
        form.add_error("store" if text is not None else "licence", str(error))
        return await _one(request, conn, location_id, form)
    return screen.flash_to(request, f"/locations/{number}", f"Linked {subject}. The matcher will not overrule it.")


@router.post("/{location_id}/unlink", dependencies=[may])
async def unlink(
    request: Request, form: Annotated[FormInput, fields("store", "licence")], conn: WriteConn, location_id: LocationPath
) -> Response:
    """Takes a store or a licence out of the location."""
    subject = _subject(form)
    number = await locations.unlink(conn, subject, location_id)
    return screen.flash_to(request, f"/locations/{number}", f"Unlinked {subject}. The matcher will not put it back.")


@router.post("/{location_id}/release", dependencies=[may])
async def release(
    request: Request, form: Annotated[FormInput, fields("store", "licence")], conn: WriteConn, location_id: LocationPath
) -> Response:
    """Withdraws decisions about a store or a licence."""
    subject = _subject(form)
    await locations.release(conn, subject)
    return screen.flash_to(request, f"/locations/{location_id}", f"Decision about {subject} withdrawn.")


@router.post("/{location_id}/merge", dependencies=[may])
async def merge(
    request: Request, form: Annotated[FormInput, fields("into")], conn: WriteConn, location_id: LocationPath
) -> Response:
    """Makes two locations one."""
    into = form.parse_int("into", low=1, high=2**31 - 1)
    if into is None:
        form.add_error("into", "enter the ID of the location that stays")
        return await _one(request, conn, location_id, form)
    try:
        async with conn.transaction():
            number = await locations.merge(conn, location_id, into)
    except Refused as error:
        form.add_error("into", str(error))
        return await _one(request, conn, location_id, form)
    return screen.flash_to(request, f"/locations/{number}", f"Location {location_id} is now part of this one.")


def _subject(form: FormInput) -> Subject:
    store = form.parse_int("store", low=1, high=2**31 - 1)
    licence = form.parse_int("licence", low=1, high=2**31 - 1)
    if not form.ok:
        raise InvalidField(*next(iter(form.errors.items())))
    if store is None and licence is None:
        raise NotFound("choose a store or a licence of this location")
    return Subject(store_id=store, licence_id=licence)
