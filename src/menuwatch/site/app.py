"""The public site: what shoppers look at, on the parts it is given."""

from __future__ import annotations

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

from menuwatch.core.telemetry import get_logger
from menuwatch.operations.refusals import NotFound
from menuwatch.operations.shopping_keys import words as words_in
from menuwatch.site import screen, words
from menuwatch.site.limits import Limits
from menuwatch.site.pages import ROUTERS
from menuwatch.web.assets import HERE as WEB
from menuwatch.web.assets import Assets
from menuwatch.web.csrf import CrossSite
from menuwatch.web.head import Head
from menuwatch.web.headers import PageHeaders
from menuwatch.web.observe import Observe, Traffic
from menuwatch.web.pages import Pages
from menuwatch.web.system import System
from menuwatch.web.visits import CountVisits

log = get_logger(__name__)

HERE = Path(__file__).parent
_SMALL = 600
"""Bytes below which compressing gains nothing."""
_MOST_SENT = 50_000
"""Bytes of the largest form that is read: those of the site have a few short fields."""


def assets() -> Assets:
    """Styles of the site; it has no scripts."""
    return Assets({"site.css": [HERE / "static" / "site.css"], "icon.svg": [WEB / "static" / "icon.svg"]})


def create_site(system: System, traffic: Traffic) -> FastAPI:
    """The site on its parts, to be mounted at `/`. They stay the caller's."""
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
        picture=screen.picture,
        srcset=screen.srcset,
    )
    app.add_api_route("/static/{mark}/{name}", _static, methods=["GET"])
    for router in ROUTERS:
        app.include_router(router)
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
    app.add_middleware(Head)
    app.add_middleware(PageHeaders)
    app.add_middleware(Observe, traffic=traffic, on_fault=_fault, most=_MOST_SENT)
    if system.visits is not None:
        app.add_middleware(CountVisits, log=system.visits, trusted=system.settings.trusted_proxies)
    return app


async def _static(request: Request, mark: str, name: str) -> Response:
    pages: Pages = request.app.state.pages
    found = pages.assets.answer(request, mark, name)
    if found is None:
        raise HTTPException(404)
    return found


def _problem(
    request: Request, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    context = {
        "title": title,
        "detail": detail,
        "again": _words_of(request.scope["path"]) if status == 404 else "",
        "trace": getattr(request.state, "trace_id", None) if status >= 500 else None,
    }
    return screen.show(request, "problem.html", context, status=status, keep=0, headers=headers)


def _words_of(path: str) -> str:
    """What an address of ours that leads nowhere speaks of: `blue dream` of `/p/17-blue-dream`."""
    kind, _, name = path.rstrip("/").rpartition("/")
    if kind.rpartition("/")[2] not in ("p", "s", "b"):
        return ""
    return " ".join(words_in(re.sub(r"^\d+(-|$)", "", name)))[:80]


async def _not_found(request: Request, error: NotFound) -> Response:
    return _problem(request, 404, "We can’t find that page", str(error))


async def _cross_site(request: Request, error: CrossSite) -> Response:
    return _problem(request, 403, "That came from another site", "Open the page here and send the form again.")


async def _http(request: Request, error: HTTPException) -> Response:
    root: str = request.scope.get("root_path", "")
    own: str = request.scope["path"].removeprefix(root)
    if error.status_code == 404 and request.method == "GET" and own.endswith("/") and "//" not in own:
        # By path alone: what Host says, and whether a proxy took TLS off, is nothing to build an address from.
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(quote(root + own.rstrip("/")) + query, status_code=308)
    if error.status_code == 404:
        said = "It may have moved, or the address has a typing error. Search for what you were after:"
        return _problem(request, 404, "We can’t find that page", said)
    if error.status_code == 405:
        return _problem(request, 405, "That does not work here", "This address is where a form is sent to.")
    return _problem(request, error.status_code, "That cannot be done", str(error.detail))


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    if any(one["loc"][0] == "path" for one in error.errors()):
        return await _http(request, HTTPException(404))
    return _problem(request, 422, "That cannot be used", "Something in the form is missing or too long.")


async def _database(request: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.errors.QueryCanceled):
        return _problem(
            request, 503, "That takes too long", "Narrow the search a little and try again.", {"Retry-After": "10"}
        )
    if isinstance(error, psycopg.DataError):
        return _problem(request, 400, "That cannot be shown", "The address holds a value that cannot exist.")
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        log.warning("the database did not answer", action="site_database", error=type(error).__name__)
        said = "We are busy right now. Please try again in a moment."
        return _problem(request, 503, "Back in a moment", said, {"Retry-After": "10"})
    raise error


def _fault(request: Request) -> Response:
    return _problem(request, 500, "Something went wrong on our side", "It has been noted. Please try again.")
