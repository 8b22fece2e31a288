"""Bringing in proxies: one, or a list that is looked at first. What was given is in no page: it may hold passwords."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.operations.proxy_intake import Intake, bring_in
from menuwatch.proxies import sheet
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.place import country_code, state_code, time_zone
from menuwatch.proxies.sheet import Given
from menuwatch.web import carry
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Sys
from menuwatch.web.words import many

router = APIRouter(prefix="/proxies", dependencies=[allowed(Permission.PROXIES)])

TESTED_HERE = 50
"""Proxies that are tested while the page waits: more than that are left to the workers."""
MOST = 10_000
_LONGEST = 2_000_000
_SHOWN = 20

How = Literal["test", "later", "untested"]


@router.get("/add")
async def adding(request: Request) -> Response:
    """The form for one."""
    return screen.show(request, "proxies/add.html", {"form": Filled({})})


@router.post("/add")
async def add(
    request: Request,
    system: Sys,
    proxy: Annotated[str, Form(max_length=4000)] = "",
    city: Annotated[str, Form(max_length=200)] = "",
    state: Annotated[str, Form(max_length=100)] = "",
    country: Annotated[str, Form(max_length=100)] = "",
    timezone: Annotated[str, Form(max_length=100)] = "",
    untested: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """One proxy, after a test."""
    place = {"city": city, "state": state, "country": country, "timezone": timezone}
    form = Filled({**place, "untested": untested})
    try:
        parsed = parse_line(proxy)
    except Refused as error:
        form.refuse("proxy", str(error))
    given_country = None
    try:
        given_country = country_code(form.text("country"))
    except Refused as error:
        form.refuse("country", str(error))
    for name, check in (("state", lambda t: state_code(t, given_country)), ("timezone", time_zone)):
        try:
            check(form.text(name))
        except Refused as error:
            form.refuse(name, str(error))
    if not form.ok:
        if proxy.strip():
            form.refuse("proxy", "type it again: an address that may hold a password is not repeated in a page")
        return screen.show(request, "proxies/add.html", {"form": form}, status=422)
    new = sheet.placed(parsed, **{name: form.text(name) for name in place})
    intake = await bring_in(system.pool, system.settings, [Given(number=1, proxy=new)], test=not untested)
    (made,) = intake.brought
    done = f"Proxy {made.id} is {'added' if made.created else 'known already, and has its new password and place'}: {made.address}."
    if made.active:
        return screen.back(request, f"/proxies/{made.id}", done + ("" if untested else " It passed its test."))
    out = (
        "An operator had taken it out, and it stays so"
        if made.disabled
        else "It failed its test, and is tried again by itself"
    )
    return screen.back(request, f"/proxies/{made.id}", f"{done} {out}: {made.reason}.", "warn")


@router.get("/import")
async def importing(request: Request) -> Response:
    """The form for a list."""
    return screen.show(request, "proxies/import.html", {"form": Filled({}), "found": None, "most": MOST})


@router.post("/import")
async def import_(
    request: Request,
    system: Sys,
    lines: Annotated[str, Form(max_length=_LONGEST)] = "",
    carried: Annotated[str, Form(max_length=2 * _LONGEST)] = "",
    how: How = Form("later"),  # noqa: B008
) -> Response:
    """Looks at a list, and says what is good and bad in it; then brings it in."""
    form = Filled({"how": how})
    text = lines
    if carried:
        again = carry.opened(request, carried)
        if again is None:
            form.refuse("lines", "this list was looked at too long ago, or by another login: give it again")
        text = again or ""
    try:
        given, rejected = sheet.read(text)
    except Refused as error:
        form.refuse("lines", str(error))
        given, rejected = [], []
    if not given and not rejected:
        form.refuse("lines", "the list is empty: write one proxy on each line, as http://USER:PASSWORD@HOST:PORT")
    if len(given) > MOST:
        form.refuse("lines", f"the list has {len(given):,} proxies: bring in at most {MOST:,} at once")
    once = {one.proxy.key: one for one in given}
    if how == "test" and len(once) > TESTED_HERE and carried:
        form.refuse("how", f"up to {TESTED_HERE} are tested at once; leave {len(once):,} to the workers")
    if not form.ok or not carried:
        found = None
        if given or rejected:
            found = {
                "good": len(once),
                "sample": list(once.values())[:_SHOWN],
                "repeated": len(given) - len(once),
                "rejected": rejected[:_SHOWN],
                "bad": len(rejected),
            }
        context = {
            "form": form,
            "found": found if not form.wrong("lines") else None,
            "carried": carry.seal(request, text),
            "tested_here": TESTED_HERE,
            "most": MOST,
        }
        return screen.show(request, "proxies/import.html", context, status=200 if form.ok else 422)
    intake = await bring_in(system.pool, system.settings, given, rejected, test=how == "test", later=how == "later")
    odd = bool(intake.rejected or (how == "test" and intake.failed))
    return screen.back(request, "/proxies", _said(intake, how), "warn" if odd else "good")


def _said(intake: Intake, how: How) -> str:
    parts = [f"{intake.added:,} added"]
    if intake.updated:
        parts.append(f"{intake.updated:,} known already, with their new passwords and places")
    if intake.rejected:
        parts.append(f"{many(len(intake.rejected), 'line')} left out")
    if intake.failed:
        what = (
            "are tested by the workers within minutes" if how == "later" else "failed their test, and are tried again"
        )
        parts.append(f"{intake.failed:,} {what}")
    if intake.disabled:
        parts.append(f"{intake.disabled:,} stay disabled")
    return "; ".join(parts).capitalize() + "."
