"""The public site for shoppers, built from the components passed in."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse, Response

from menuwatch.catalog.taxonomy.text import words as words_in
from menuwatch.core.errors import NotFound
from menuwatch.core.logging import get_logger
from menuwatch.site import format as words
from menuwatch.site import pages, screen, visit
from menuwatch.site.limits import Limits
from menuwatch.web.assets import HERE as WEB
from menuwatch.web.assets import Assets
from menuwatch.web.csrf import CrossSite
from menuwatch.web.dependencies import AppContext
from menuwatch.web.page_cache import PageCache
from menuwatch.web.pages import Pages
from menuwatch.web.request_middleware import Observe, Traffic
from menuwatch.web.routing import Head, include_package
from menuwatch.web.visits import CountVisits

log = get_logger(__name__)

HERE = Path(__file__).parent
_SMALL = 600
"""Minimum size in bytes for compression."""
_MOST_SENT = 50_000
"""Maximum size of a form in bytes; the site's forms have a few short fields."""


@functools.cache
def assets() -> Assets:
    """The style sheet of the site, and scripts that no page needs: they offer notifications of the browser, and its position."""
    static = HERE / "static"
    own = {name: [static / name] for name in ("site.css", "push.js", "locate.js")}
    return Assets({**own, "icon.svg": [WEB / "static" / "icon.svg"]})


def create_site(system: AppContext, traffic: Traffic) -> FastAPI:
    """Creates the site on the components of `system`, to be mounted at `/`. The caller closes the components."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.system = system
    app.state.limits = Limits()
    app.state.pages = Pages(
        [HERE / "templates"],
        assets(),
        words=words,
        item_path=screen.item_path,
        store_path=screen.store_path,
        brand_path=screen.brand_path,
        with_place=screen.with_place,
        with_near=screen.with_near,
        hours=visit.hours,
        directions=visit.directions,
        on_menu=visit.on_menu,
        picture=screen.picture,
        srcset=screen.srcset,
    )
    app.state.pages.assets.install(app)
    include_package(app, pages)
    handlers: dict[Any, Any] = {
        NotFound: _not_found,
        CrossSite: _cross_site,
        HTTPException: _http,
        RequestValidationError: _invalid,
        psycopg.Error: _database,
        PoolTimeout: _database,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(GZipMiddleware, minimum_size=_SMALL, compresslevel=5)
    app.add_middleware(
        PageCache, megabytes=system.settings.site_cache_mb, variant=screen.asked_age, results=traffic.page_cache
    )
    app.add_middleware(Head)
    app.add_middleware(Observe, traffic=traffic, on_fault=_fault, most=_MOST_SENT)
    if system.visits is not None:
        app.add_middleware(CountVisits, log=system.visits, trusted=system.settings.trusted_proxies)
    return app


def _problem(
    request: Request, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    context = {
        "title": title,
        "detail": detail,
        "again": _words_of(request.scope["path"]) if status == 404 else "",
        "trace": getattr(request.state, "trace_id", None) if status >= 500 else None,
    }
    return screen.render(request, "problem.html", context, status=status, keep=False, headers=headers)


def _words_of(path: str) -> str:
    """Search words from a path that was not found: `blue dream` for `/p/17-blue-dream`."""
    kind, _, name = path.rstrip("/").rpartition("/")
    if kind.rpartition("/")[2] not in ("p", "s", "b"):
        return ""
    return " ".join(words_in(re.sub(r"^\d+(-|$)", "", name)))[:80]


async def _not_found(request: Request, error: NotFound) -> Response:
    return _problem(request, 404, "Page not found", str(error))


async def _cross_site(request: Request, error: CrossSite) -> Response:
    return _problem(request, 403, "Cross-site request refused", "Open the page on this site and send the form again.")


async def _http(request: Request, error: HTTPException) -> Response:
    root: str = request.scope.get("root_path", "")
    own: str = request.scope["path"].removeprefix(root)
    if error.status_code == 404 and request.method == "GET" and own.endswith("/") and "//" not in own:
        # Redirect by path alone: Host and scheme may be wrong behind a proxy.
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(quote(root + own.rstrip("/")) + query, status_code=308)
    if error.status_code == 404:
        said = "It may have moved, or the address has a typo. Search for what you were looking for:"
        return _problem(request, 404, "Page not found", said)
    if error.status_code == 405:
        return _problem(request, 405, "Method not allowed", "This address only accepts form submissions.")
    return _problem(request, error.status_code, "Request failed", str(error.detail))


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    if any(one["loc"][0] == "path" for one in error.errors()):
        return await _http(request, HTTPException(404))
    return _problem(request, 422, "Invalid request", "A form field is missing or too long.")


async def _database(request: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.errors.QueryCanceled):
        return _problem(request, 503, "Search timed out", "Narrow the search and try again.", {"Retry-After": "10"})
    if isinstance(error, psycopg.DataError):
        return _problem(request, 400, "Invalid address", "The address contains an invalid value.")
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        log.warning("database did not respond", action="site_database", error=type(error).__name__)
        said = "We are busy right now. Please try again in a moment."
        return _problem(request, 503, "Temporarily unavailable", said, {"Retry-After": "10"})
    raise error


def _fault(request: Request) -> Response:
    return _problem(request, 500, "Something went wrong", "The error has been logged. Please try again.")
