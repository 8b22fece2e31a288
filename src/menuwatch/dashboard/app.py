"""The dashboard: every screen, on the parts it is given, closed to whoever has not logged in."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from menuwatch.core.errors import MenuwatchError
from menuwatch.core.telemetry import get_logger
from menuwatch.dashboard import commands, login, screen
from menuwatch.dashboard.gate import MAX_FORM_BYTES, BeforeBody
from menuwatch.dashboard.pages import ROUTERS
from menuwatch.dashboard.screens import close, listed_in
from menuwatch.operations.refusals import Conflict, NotFound
from menuwatch.web.assets import HERE as WEB
from menuwatch.web.assets import VENDOR, Assets
from menuwatch.web.auth import Authenticate, NotAllowed, NotSignedIn, PasswordDue
from menuwatch.web.head import Head
from menuwatch.web.headers import PageHeaders
from menuwatch.web.live import Live
from menuwatch.web.observe import Observe, Traffic
from menuwatch.web.pages import FRAGMENT, Pages
from menuwatch.web.system import System

log = get_logger(__name__)

HERE = Path(__file__).parent


def assets() -> Assets:
    """Styles and scripts of the dashboard; raises Refused where the installation lacks one."""
    own, shared = HERE / "static", WEB / "static"
    return Assets({
        "dashboard.css": [own / "dashboard.css", *sorted(own.glob("screens/*.css"))],
        "theme.js": [shared / "theme.js"],
        # One file, so that neither runs before the other is there.
        "app.js": [VENDOR / "htmx.js", shared / "app.js", *sorted(own.glob("screens/*.js"))],
        "chart.js": [VENDOR / "uplot.js", own / "chart.js"],
        "chart.css": [VENDOR / "uplot.css"],
        "icon.svg": [shared / "icon.svg"],
    })  # fmt: skip


def create_dashboard(system: System, traffic: Traffic, live: Live) -> FastAPI:
    """The dashboard on its parts, to be mounted below `/admin`. They stay the caller's."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.system = system
    app.state.live = live
    app.state.pages = Pages([HERE / "templates"], assets(), filters={"ticked": commands.ticked})
    app.add_api_route("/static/{mark}/{name}", _static, methods=["GET"])
    app.include_router(login.router)
    for router in ROUTERS:
        app.include_router(router)
    handlers: dict[Any, Any] = {
        NotSignedIn: _to_login,
        NotAllowed: _not_allowed,
        MenuwatchError: _refused,
        psycopg.Error: _database,
        PoolTimeout: _database,
        RequestValidationError: _invalid,
        HTTPException: _http,
        **login.handlers(),
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(BeforeBody, routers=(login.router, *ROUTERS), handlers=handlers)
    app.add_middleware(Authenticate, via="dashboard")
    app.add_middleware(Head)
    app.add_middleware(PageHeaders)
    app.add_middleware(Observe, traffic=traffic, on_fault=_fault, most=MAX_FORM_BYTES)
    return app


async def _static(request: Request, mark: str, name: str) -> Response:
    pages: Pages = request.app.state.pages
    found = pages.assets.answer(request, mark, name)
    if found is None:
        raise HTTPException(404)
    return found


async def _to_login(request: Request, error: NotSignedIn) -> Response:
    """To the login, and back here afterwards. What was only a part of a page, or was sent, is not where one returns to."""
    root: str = request.scope.get("root_path", "")
    there = screen.came_from(request) if FRAGMENT in request.headers or request.method != "GET" else _address(request)
    query = urlencode({"next": root + there})
    return RedirectResponse(f"{root}/login?{query}", status_code=303)


def _address(request: Request) -> str:
    return screen.here(request) + (f"?{request.url.query}" if request.url.query else "")


async def _not_allowed(request: Request, error: NotAllowed) -> Response:
    if isinstance(error, PasswordDue):
        query = urlencode({"next": screen.root(request) + _address(request)}) if request.method == "GET" else ""
        return RedirectResponse(f"{screen.root(request)}/account?{query}".rstrip("?"), status_code=303)
    who = screen.principal(request)
    detail = f"{who.name} is a {who.role}; {error}. An admin can give you another role."
    return _problem(request, 403, "Not for your role", detail)


async def _refused(request: Request, error: MenuwatchError) -> Response:
    """A change that was refused leads back to where it was asked for, which says why; a page that does not exist says so."""
    if request.method != "GET":
        return screen.back(request, screen.came_from(request), f"Nothing was changed: {error}", "bad")
    if isinstance(error, NotFound):
        return _problem(request, 404, "There is no such thing", str(error))
    return _problem(request, 409 if isinstance(error, Conflict) else 400, "That cannot be shown", str(error))


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    said = "; ".join(f"{'.'.join(str(part) for part in one['loc'][1:])}: {one['msg']}" for one in error.errors()[:5])
    if any(one["loc"][0] == "path" for one in error.errors()):
        return _problem(request, 404, "There is no such page", "The address names something that cannot exist.")
    return _problem(request, 422, "The request cannot be used", said)


async def _database(request: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.DataError):
        return _problem(
            request, 400, "That cannot be shown", "A value is out of range, or holds characters that cannot be stored."
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        log.warning("the database did not answer", action="dashboard_database", error=type(error).__name__)
        return _problem(
            request,
            503,
            "The database does not answer",
            "It cannot be reached or is overloaded. Try again in a moment.",
        )
    raise error


async def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and request.method == "GET" and screen.here(request).endswith("/"):
        # By path alone: what Host says, and whether a proxy took TLS off, is nothing to build an address from.
        query = f"?{request.url.query}" if request.url.query else ""
        return screen.elsewhere(request, quote("/" + screen.here(request).strip("/")) + query)
    if error.status_code == 404:
        return _problem(
            request,
            404,
            "There is no such page",
            f"Nothing is at {request.scope['path'][:200]}.",
            close=close(screen.here(request)),
        )
    if error.status_code == 405:
        return _problem(
            request, 405, "That does not work here", "This address is not for opening: it is where a form is sent to."
        )
    if error.status_code == 413:
        return _problem(
            request, 413, "That is too much at once", f"Nothing was changed: {error.detail}. Send it in parts."
        )
    return _problem(request, error.status_code, "The request cannot be carried out", str(error.detail))


def _problem(request: Request, status: int, title: str, detail: str, **more: Any) -> Response:
    if getattr(request.state, "principal", None) is None:
        # Whoever is not signed in sees no frame of the dashboard.
        pages: Pages = request.app.state.pages
        return pages.render(request, "outside.html", {"title": title, "detail": detail}, status=status)
    part_of = listed_in(screen.here(request)) if status == 404 else None
    context = {
        "title": title,
        "detail": detail,
        "close": [one for one in more.get("close", ()) if one != part_of],
        "part_of": part_of if part_of is not None and screen.principal(request).may(part_of.needs) else None,
        "search": status == 404,
        "trace": more.get("trace"),
    }
    return screen.show(request, "error.html", context, status=status)


def _fault(request: Request) -> Response:
    trace = getattr(request.state, "trace_id", None)
    return _problem(request, 500, "Something went wrong on our side", "It has been noted.", trace=trace)
