"""Import of proxies: one, or a list with a preview. Input is never echoed on a page: it may contain passwords."""

from __future__ import annotations

import hashlib
import zlib
from base64 import urlsafe_b64encode
from typing import Annotated, Literal

from cryptography.fernet import Fernet, InvalidToken
from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.proxies import import_file
from menuwatch.proxies.import_file import ParsedProxy
from menuwatch.proxies.importer import ImportResult, import_proxies
from menuwatch.proxies.location import LOCATION, Location
from menuwatch.proxies.parse import parse_line
from menuwatch.web.auth import require
from menuwatch.web.cookie import cookie_of
from menuwatch.web.dependencies import AppContext, AppDep
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/proxies", dependencies=[require(Permission.PROXIES)])

TESTED_HERE = 50
"""Proxies that are tested while the page waits: more than that are left to the workers."""
MOST = 10_000
_LONGEST = 2_000_000
_SHOWN = 20

How = Literal["test", "later", "untested"]


@router.get("/add")
async def adding(request: Request) -> Response:
    """The form for one."""
    return screen.render(request, "proxies/add.html", {"form": FormInput({})})


@router.post("/add")
async def add(
    request: Request,
    form: Annotated[FormInput, fields(*LOCATION, "untested")],
    system: AppDep,
    proxy: Annotated[str, Form(max_length=4000)] = "",
) -> Response:
    """One proxy, after a test."""
    untested = bool(form.value("untested"))
    try:
        parsed = parse_line(proxy)
    except Refused as error:
        form.add_error("proxy", str(error))
    location, problems = Location.check(**{name: form.text(name) for name in LOCATION})
    for name, message in problems.items():
        form.add_error(name, message)
    if not form.ok:
        if proxy.strip():
            form.add_error("proxy", "enter it again: addresses that may contain a password are not shown again")
        return screen.render(request, "proxies/add.html", {"form": form}, status=422)
    new = ParsedProxy(number=1, proxy=location.of(parsed))
    (added,) = (await import_proxies(system.pool, system.settings, [new], test=not untested)).proxies
    done = f"Proxy {added.id} {'added' if added.created else 'already exists; password and location updated'}: {added.address}."
    if added.active:
        return screen.flash_to(request, f"/proxies/{added.id}", done + ("" if untested else " It passed its test."))
    out = (
        "An operator disabled it; it stays disabled"
        if added.disabled
        else "The test failed; it is retried automatically"
    )
    return screen.flash_to(request, f"/proxies/{added.id}", f"{done} {out}: {added.reason}.", "warn")


@router.get("/import")
async def importing(request: Request) -> Response:
    """The form for a list."""
    return screen.render(request, "proxies/import.html", {"form": FormInput({}), "found": None, "most": MOST})


@router.post("/import")
async def import_(
    request: Request,
    system: AppDep,
    lines: Annotated[str, Form(max_length=_LONGEST)] = "",
    carried: Annotated[str, Form(max_length=2 * _LONGEST)] = "",
    how: How = Form("later"),  # noqa: B008
) -> Response:
    """Previews a list with its errors, then imports it."""
    form = FormInput({"how": how})
    text = lines
    if carried:
        again = _opened(request, carried)
        if again is None:
            form.add_error("lines", "this preview has expired or belongs to another login: paste the list again")
        text = again or ""
    try:
        parsed, rejected = import_file.read(text)
    except Refused as error:
        form.add_error("lines", str(error))
        parsed, rejected = [], []
    if not parsed and not rejected:
        form.add_error("lines", "the list is empty: enter one proxy per line, e.g. http://USER:PASSWORD@HOST:PORT")
    if len(parsed) > MOST:
        form.add_error("lines", f"the list has {len(parsed):,} proxies: import at most {MOST:,} at a time")
    latest = {one.proxy.key: one for one in parsed}
    if how == "test" and len(latest) > TESTED_HERE and carried:
        form.add_error("how", f"up to {TESTED_HERE} can be tested immediately; test {len(latest):,} in the background")
    if not form.ok or not carried:
        found = None
        if parsed or rejected:
            found = {
                "good": len(latest),
                "sample": list(latest.values())[:_SHOWN],
                "repeated": len(parsed) - len(latest),
                "rejected": rejected[:_SHOWN],
                "bad": len(rejected),
            }
        context = {
            "form": form,
            "found": found if not form.error("lines") else None,
            "carried": _seal(request, text),
            "tested_here": TESTED_HERE,
            "most": MOST,
        }
        return screen.render(request, "proxies/import.html", context)
    result = await import_proxies(
        system.pool, system.settings, parsed, rejected, test=how == "test", later=how == "later"
    )
    odd = bool(result.rejected or (how == "test" and result.failed))
    return screen.flash_to(request, "/proxies", _summary(result, how), "warn" if odd else "good")


def _summary(result: ImportResult, how: How) -> str:
    parts = [f"{result.added:,} added"]
    if result.updated:
        parts.append(f"{result.updated:,} already existed; passwords and locations updated")
    if result.rejected:
        parts.append(f"{pluralize(len(result.rejected), 'line')} skipped")
    if result.failed:
        what = (
            "are tested in the background, usually within minutes"
            if how == "later"
            else "failed the test and are retried"
        )
        parts.append(f"{result.failed:,} {what}")
    if result.disabled:
        parts.append(f"{result.disabled:,} stay disabled")
    return "; ".join(parts).capitalize() + "."


_PREVIEW_SECONDS = 3600
"""So long the next step may be taken."""
_LARGEST = 4_000_000


def _seal(request: Request, text: str) -> str:
    """The text, so that only this login can have it opened."""
    return _key(request).encrypt(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()


def _opened(request: Request, sealed: str) -> str | None:
    """The text again; None where it is another login's, too old, or none of ours."""
    try:
        packed = _key(request).decrypt(sealed.encode(), ttl=_PREVIEW_SECONDS)
        return zlib.decompressobj().decompress(packed, _LARGEST).decode("utf-8", "surrogatepass")
    except (InvalidToken, zlib.error, UnicodeError, ValueError):
        return None


def _key(request: Request) -> Fernet:
    system: AppContext = request.app.state.system
    secret = request.cookies.get(cookie_of(system.settings).name) or request.headers.get("authorization", "")
    return Fernet(urlsafe_b64encode(hashlib.sha256(b"carried by a form: " + secret.encode()).digest()))
