"""Login, logout, and the user's own account."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from menuwatch.accounts.login_throttle import TooManyTries
from menuwatch.accounts.model import Principal
from menuwatch.accounts.passwords import TooMany
from menuwatch.core.errors import InvalidField
from menuwatch.dashboard import screen
from menuwatch.web import csrf, sessions
from menuwatch.web.auth import signed_in
from menuwatch.web.dependencies import AppContext
from menuwatch.web.forms import FormInput
from menuwatch.web.pages import Pages

router = APIRouter()

_WHOLE = {"X-Whole-Page": "1"}
"""Makes a partial request reload the whole page (app.js)."""


def _prefix(request: Request) -> str:
    return str(request.scope.get("prefix", ""))


def _page(request: Request, *, next_path: str, name: str = "", said: str = "", status: int = 200) -> Response:
    pages: Pages = request.app.state.pages
    context = {"next": next_path, "name": name, "said": said, "kind": "bad"}
    answer = pages.render(request, "login.html", context, status=status)
    answer.headers.update(_WHOLE)
    return answer


@router.get("/login")
async def login(request: Request, next: str = "") -> Response:  # noqa: A002  # its name in the address
    """The login form; redirects if already logged in."""
    there = safe_next(next, _prefix(request))
    if request.state.principal is not None:
        return RedirectResponse(there, status_code=303)
    return _page(request, next_path=there)


@router.post("/login")
async def log_in(
    request: Request,
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=1000)] = "",
    next: Annotated[str, Form(max_length=4000)] = "",  # noqa: A002
) -> Response:
    """Begins a session and redirects to the requested page."""
    there = safe_next(next, _prefix(request))
    csrf.check(request)
    system: AppContext = request.app.state.system
    try:
        begun = await sessions.log_in(request, name.strip(), password, via="dashboard")
    except sessions.WrongLogin as error:
        return _page(request, next_path=there, name=name, said=f"{str(error)[:1].upper()}{str(error)[1:]}.", status=401)
    except TooManyTries as error:
        answer = _page(request, next_path=there, name=name, said=f"{str(error).capitalize()}.", status=429)
        answer.headers["Retry-After"] = str(error.seconds)
        return answer
    except TooMany as error:
        return _page(request, next_path=there, name=name, said=f"{str(error).capitalize()}.", status=503)
    answer = RedirectResponse(there, status_code=303)
    begun.put(answer, system.settings)
    return answer


@router.post("/logout", dependencies=[signed_in])
async def log_out(request: Request) -> Response:
    """Ends the session."""
    root: str = request.scope.get("root_path", "")
    answer = RedirectResponse(f"{root}/login", status_code=303)
    await sessions.log_out(request, answer)
    return answer


@router.get("/account")
async def account(
    request: Request,
    who: Annotated[Principal, signed_in],
    next: str = "",  # noqa: A002
) -> Response:
    """The user's roles and permissions, and the password form."""
    return _account(request, FormInput({"next": next}))


def _account(request: Request, form: FormInput, *, status: int = 200) -> Response:
    return screen.render(request, "account.html", {"form": form}, status=status)


@router.post("/account")
async def change_password(
    request: Request,
    who: Annotated[Principal, signed_in],
    current: Annotated[str, Form(max_length=1000)] = "",
    new: Annotated[str, Form(max_length=1000)] = "",
    again: Annotated[str, Form(max_length=1000)] = "",
    next: Annotated[str, Form(max_length=4000)] = "",  # noqa: A002
) -> Response:
    """Changes the password and ends other sessions. After a mandatory change, redirects to the page originally requested."""
    form = FormInput({"next": next})  # the passwords are not shown again
    if new != again:
        form.add_error("again", "the passwords differ: type the new password twice")
        return _account(request, form, status=422)
    system: AppContext = request.app.state.system
    due = who.must_change_password
    try:
        begun = await sessions.change_password(request, current, new)
    except InvalidField as error:
        form.add_error(error.field, str(error))
        return _account(request, form, status=422)
    except TooManyTries as error:
        form.add_error("current", str(error))
        return _account(request, form, status=429)
    there = safe_next(next, _prefix(request)).removeprefix(screen.root(request)) if due else "/account"
    answer = screen.flash_to(request, there or "/", "Password changed. Your other sessions have ended.")
    begun.put(answer, system.settings)
    return answer


_LONGEST = 2000
_PLAIN = re.compile(r"[!-\[\]-~]*")
"""Printable ASCII without blanks and without the backslash, which browsers take for a slash. An address that is rightly encoded has
nothing else in it; a line break would begin another header."""


def safe_next(text: str | None, prefix: str = "") -> str:
    """The path to go to, `prefix` included: `text` where it is a path of ours, else the dashboard's first page."""
    home = f"{prefix}/admin/"
    if not text or len(text) > _LONGEST or not _PLAIN.fullmatch(text):
        return home
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    # What the browser makes of it must lie where it seems to: no other host (//host), no way out of the prefix (/menus/../else).
    if not path.startswith("/") or "//" in path or _climbs(path):
        return home
    if prefix and not path.startswith(f"{prefix}/"):
        return home
    return text


def _climbs(path: str) -> bool:
    return any(unquote(part) in (".", "..") for part in path.split("/"))
