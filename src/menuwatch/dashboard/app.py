"""The dashboard: every screen, on the parts it is given, closed without a login."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse, Response

from menuwatch.core.errors import Conflict, MenuwatchError, NotFound, PayloadDamaged, PayloadMissing
from menuwatch.core.logging import get_logger
from menuwatch.dashboard import command_links as commands
from menuwatch.dashboard import demo_login, pages, screen
from menuwatch.dashboard.badges import Badges, count_badges
from menuwatch.dashboard.known_parameters import refuse_unknown
from menuwatch.dashboard.navigation import close, listed_in
from menuwatch.ops.health import AwayCode, away
from menuwatch.platforms.base import label_of
from menuwatch.web.assets import HERE as WEB
from menuwatch.web.assets import VENDOR, Assets
from menuwatch.web.auth import Authenticate, NotAllowed, NotSignedIn, PasswordChangeRequired
from menuwatch.web.before_body import BeforeBody
from menuwatch.web.csrf import CrossSite
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.pages import FRAGMENT, Pages
from menuwatch.web.request_middleware import Observe, Traffic
from menuwatch.web.routing import Head, include_package
from menuwatch.web.validation import describe

log = get_logger(__name__)

HERE = Path(__file__).parent
MAX_FORM_BYTES = 250_000
"""Largest form that is read, in bytes; a list of proxies may be larger (web/request_middleware.py)."""


@functools.cache
def assets() -> Assets:
    """Styles and scripts of the dashboard; raises Refused where the installation lacks one."""
    own, shared = HERE / "static", WEB / "static"
    return Assets({
        "inter.woff2": [VENDOR / "inter.woff2"],
        "dashboard.css": [VENDOR / "uplot.css", own / "dashboard.css", *sorted(own.glob("screens/*.css"))],
        "theme.js": [shared / "theme.js"],
        # One file, so that neither runs before the other is there.
        "app.js": [
            VENDOR / "htmx.js", VENDOR / "uplot.js",
            *(shared / name for name in ("times.js", "dialogs.js", "app.js")),
            own / "chart.js", *sorted(own.glob("screens/*.js")),
        ],
        "icon.svg": [shared / "icon.svg"],
    })  # fmt: skip


def create_dashboard(system: AppContext, traffic: Traffic, live: Live) -> FastAPI:
    """The dashboard on its parts, to be mounted below `/admin`. They stay the caller's."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.system = system
    app.state.badges = Badges(system.pool)
    app.state.live = live
    filters: dict[str, Callable[..., Any]] = {
        "code_spans": commands.code_spans,
        "platform_label": partial(label_of, system.platforms),
    }
    app.state.pages = Pages([HERE / "templates"], assets(), filters=filters)
    app.state.pages.assets.install(app)
    counted = [Depends(count_badges)]
    screens = include_package(app, pages, dependencies=[*counted, Depends(refuse_unknown)])
    if system.demo_token is not None:
        app.include_router(demo_login.router, dependencies=counted)
    handlers: dict[Any, Any] = {
        NotSignedIn: _to_login,
        NotAllowed: _not_allowed,
        MenuwatchError: _refused,
        psycopg.Error: _database,
        PoolTimeout: _database,
        RequestValidationError: _invalid,
        HTTPException: _http,
        CrossSite: _cross_site,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(BeforeBody, routers=(screens,), handlers=handlers)
    app.add_middleware(Authenticate, via="dashboard")
    # Streams of events are left alone. BREACH learns a secret of a page from the sizes of many compressed responses that also hold a
    # text of the attacker's. There is no such secret here: CSRF protection needs no token (web/csrf.py), the session is in a cookie
    # that no page repeats, and a new password or token is shown once, in the response to a form that another site cannot send.
    app.add_middleware(GZipMiddleware, minimum_size=600, compresslevel=5)
    app.add_middleware(Head)
    app.add_middleware(Observe, traffic=traffic, on_fault=_fault, most=MAX_FORM_BYTES)
    return app


async def _to_login(request: Request, error: NotSignedIn) -> Response:
    """Redirects to the login and back afterwards. Partial requests and form posts do not return to their own URL."""
    root: str = request.scope.get("root_path", "")
    there = (
        screen.referer_path(request) if FRAGMENT in request.headers or request.method != "GET" else _address(request)
    )
    query = urlencode({"next": root + there})
    return RedirectResponse(f"{root}/login?{query}", status_code=303)


def _address(request: Request) -> str:
    return screen.current_path(request) + (f"?{request.url.query}" if request.url.query else "")


async def _not_allowed(request: Request, error: NotAllowed) -> Response:
    if isinstance(error, PasswordChangeRequired):
        query = urlencode({"next": screen.root(request) + _address(request)}) if request.method == "GET" else ""
        return RedirectResponse(f"{screen.root(request)}/account?{query}".rstrip("?"), status_code=303)
    who = screen.principal(request)
    detail = f"{who.name} is a {who.role}; {error}. An admin can give you another role."
    return _problem(request, 403, "Forbidden", detail)


async def _refused(request: Request, error: MenuwatchError) -> Response:
    """Redirects a refused change back to its form with the reason; renders an error page for GET."""
    if request.method != "GET":
        return screen.flash_to(request, screen.referer_path(request), f"Nothing was changed: {error}", "bad")
    if isinstance(error, NotFound):
        return _problem(request, 404, "Not found", str(error))
    if isinstance(error, PayloadMissing | PayloadDamaged):
        return _problem(request, 500, "The archived file is missing or damaged", str(error))
    return _problem(request, 409 if isinstance(error, Conflict) else 400, "Invalid address", str(error))


async def _cross_site(request: Request, error: CrossSite) -> Response:
    return _outside(request, 403, "Cross-site request refused", f"Nothing was changed: {error}.")


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    said = "; ".join(f"{'.'.join(str(part) for part in one['loc'][1:])}: {describe(one)}" for one in error.errors()[:5])
    if any(one["loc"][0] == "path" for one in error.errors()):
        return _problem(request, 404, "Page not found", "The address contains an invalid value.")
    return _problem(request, 422, "Invalid request", said)


async def _database(request: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.DataError):
        return _problem(
            request, 400, "Invalid address", "A value is out of range, or contains characters that cannot be stored."
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        log.warning("database did not respond", action="dashboard_database", error=type(error).__name__)
        found = away(error, request.app.state.system.keeper)
        title = "The disk is full" if found.code == AwayCode.DISK_FULL else "Database unavailable"
        return _problem(request, 503, title, f"{found.detail[0].upper()}{found.detail[1:]}.")
    raise error


async def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and request.method == "GET" and screen.current_path(request).endswith("/"):
        # By path alone: Host and the scheme behind a TLS proxy are not reliable enough to build a URL from.
        query = f"?{request.url.query}" if request.url.query else ""
        return screen.redirect(request, quote("/" + screen.current_path(request).strip("/")) + query)
    if error.status_code == 404:
        return _problem(
            request,
            404,
            "Page not found",
            f"Nothing is at {request.scope['path'][:200]}.",
            close=close(screen.current_path(request)),
        )
    if error.status_code == 405:
        return _problem(request, 405, "Method not allowed", "This address only accepts form submissions.")
    if error.status_code == 413:
        return _problem(
            request, 413, "Request too large", f"Nothing was changed: {error.detail}. Split it into smaller requests."
        )
    return _problem(request, error.status_code, "Request failed", str(error.detail))


def _problem(request: Request, status: int, title: str, detail: str, **more: Any) -> Response:
    if getattr(request.state, "principal", None) is None:
        return _outside(request, status, title, detail)
    part_of = listed_in(screen.current_path(request)) if status == 404 else None
    context = {
        "title": title,
        "detail": detail,
        "close": [one for one in more.get("close", ()) if one != part_of],
        "part_of": part_of if part_of is not None and screen.principal(request).may(part_of.needs) else None,
        "search": status == 404,
        "trace": more.get("trace"),
    }
    return screen.render(request, "error.html", context, status=status)


def _outside(request: Request, status: int, title: str, detail: str) -> Response:
    """An error without the frame of the dashboard, which is for users who are logged in."""
    pages: Pages = request.app.state.pages
    return pages.render(request, "outside.html", {"title": title, "detail": detail}, status=status)


def _fault(request: Request) -> Response:
    trace = getattr(request.state, "trace_id", None)
    return _problem(request, 500, "Internal error", "The error has been logged.", trace=trace)
