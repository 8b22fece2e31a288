"""The doors: logging in and out, one's own account."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from menuwatch.accounts.model import Principal
from menuwatch.accounts.passwords import TooMany
from menuwatch.dashboard import screen
from menuwatch.operations.refusals import Unusable
from menuwatch.web import csrf, sessions
from menuwatch.web.auth import signed_in
from menuwatch.web.forms import Form as Filled
from menuwatch.web.pages import Pages
from menuwatch.web.system import System
from menuwatch.web.throttle import TooManyTries
from menuwatch.web.way_back import safe_next

router = APIRouter()

_WHOLE = {"X-Whole-Page": "1"}
"""A page that asked for a part of itself goes there as a whole (app.js)."""


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
    """The form. Whoever is logged in already goes on."""
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
    """Begins a session and goes on to where one wanted to be."""
    there = safe_next(next, _prefix(request))
    csrf.check(request)
    system: System = request.app.state.system
    try:
        begun = await sessions.log_in(request, name.strip(), password, via="dashboard")
    except sessions.WrongLogin as error:
        return _page(request, next_path=there, name=name, said=f"That did not work: {error}.", status=401)
    except TooManyTries as error:
        answer = _page(request, next_path=there, name=name, said=f"{str(error).capitalize()}.", status=429)
        answer.headers["Retry-After"] = str(error.seconds)
        return answer
    except TooMany as error:
        return _page(request, next_path=there, name=name, said=f"{str(error).capitalize()}.", status=503)
    answer = RedirectResponse(there, status_code=303)
    begun.put(answer, system.settings)
    return answer


@router.post("/logout")
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
    """Who one is, what one may do, and the form for another password."""
    return _account(request, Filled({"next": next}))


def _account(request: Request, form: Filled, *, status: int = 200) -> Response:
    return screen.show(request, "account.html", {"form": form}, status=status)


@router.post("/account")
async def change_password(
    request: Request,
    who: Annotated[Principal, signed_in],
    current: Annotated[str, Form(max_length=1000)] = "",
    new: Annotated[str, Form(max_length=1000)] = "",
    again: Annotated[str, Form(max_length=1000)] = "",
    next: Annotated[str, Form(max_length=4000)] = "",  # noqa: A002
) -> Response:
    """Another password; other sessions end. Who had to choose one goes on to where they wanted to be."""
    form = Filled({"next": next})
    if new != again:
        form.refuse("again", "these are not the same: type the new password twice")
        return _account(request, form, status=422)
    system: System = request.app.state.system
    due = who.must_change_password
    try:
        begun = await sessions.change_password(request, current, new)
    except Unusable as error:
        form.refuse(error.field, str(error))
        return _account(request, form, status=422)
    except TooManyTries as error:
        form.refuse("current", str(error))
        return _account(request, form, status=429)
    there = safe_next(next, _prefix(request)).removeprefix(screen.root(request)) if due else "/account"
    answer = screen.back(request, there or "/", "Your password is changed; other sessions of yours have ended.")
    begun.put(answer, system.settings)
    return answer


def handlers() -> dict[type[Exception], Any]:
    """What becomes of requests that are not from our pages."""
    return {csrf.CrossSite: _cross_site}


async def _cross_site(request: Request, error: csrf.CrossSite) -> Response:
    pages: Pages = request.app.state.pages
    context = {"title": "That did not come from one of our pages", "detail": f"Nothing was changed: {error}."}
    return pages.render(request, "outside.html", context, status=403)
