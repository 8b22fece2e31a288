"""What every page of the site needs: rendering, the place that somebody looks from, addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from menuwatch.db.pool import Connection
from menuwatch.geo import postcodes
from menuwatch.geo.postcodes import Place
from menuwatch.operations import shopping
from menuwatch.operations.shopping import Here
from menuwatch.operations.shopping_keys import slug
from menuwatch.operations.visitors import visitor_place
from menuwatch.web.client import client_address
from menuwatch.web.pages import Pages
from menuwatch.web.system import System

WIDTHS = (200, 400, 800)
"""Widths in which pictures are asked for, in pixels; presets that need no signature (IMAGE_PRESETS)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Where somebody looks from. `typed` is as they wrote it; without a `place` nobody knows where that is."""

    typed: str = ""
    miles: int = 25
    place: Place | None = None
    here: Here | None = None
    guessed: bool = False
    """Nobody said it: it is where the visitor's network seems to be."""

    @property
    def unknown(self) -> bool:
        """Something was typed that is no place."""
        return bool(self.typed) and self.place is None


async def around(conn: Connection, typed: str, miles: int = 25) -> Around:
    """The place that was typed and the stores around it."""
    if not typed:
        return Around(miles=miles)
    # The first question unpacks a list, which takes its time.
    place = await run_in_threadpool(postcodes.find, typed)
    if place is None:
        return Around(typed=typed, miles=miles)
    here = await shopping.near(conn, place.point, miles)
    return Around(typed=typed, miles=miles, place=place, here=here)


async def around_visitor(request: Request, conn: Connection, miles: int = 50) -> Around:
    """The stores around the city that the visitor's network is in, where a database of that is set (GEOIP_DATABASE). Nothing of it is
    kept or written down."""
    system = system_of(request)
    if system.geo is None:
        return Around()
    address = client_address(request.scope, system.settings.trusted_proxies)
    place = await run_in_threadpool(visitor_place, system.geo, address)
    if place is None:
        return Around()
    here = await shopping.near(conn, place.point, miles)
    if not here.stores:
        return Around()
    return Around(miles=miles, place=place, here=here, guessed=True)


def show(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    keep: int = 60,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page. Browsers may keep it for `keep` seconds: menus change every few hours."""
    pages: Pages = request.app.state.pages
    given = {"place": Around(), "query": "", "canonical": None, "description": None, "index": status == 200, **context}
    kept = "no-store" if keep == 0 else f"private, max-age={keep}"
    return pages.render(request, template, given, status=status, **{"Cache-Control": kept, **(headers or {})})


def system_of(request: Request) -> System:
    """What the site stands on."""
    system: System = request.app.state.system
    return system


def absolute(request: Request, path: str) -> str:
    """The whole address of a page of ours where PUBLIC_URL says what that is, else its path: clients may say anything of the host."""
    public = system_of(request).settings.public_url
    return public.rstrip("/") + path if public else request.scope.get("root_path", "") + path


def whole(request: Request, path: str) -> str:
    """The same where only a whole address is of use: without PUBLIC_URL by the host that the client asked. Nobody but that client may
    keep such an answer: see `kept`."""
    said = absolute(request, path)
    return said if "://" in said else f"{request.url.scheme}://{request.url.netloc}{said}"


def kept(request: Request, seconds: int) -> str:
    """Cache-Control of an answer with whole addresses."""
    return f"{'public' if system_of(request).settings.public_url else 'private'}, max-age={seconds}"


def moved(request: Request, path: str) -> Response | None:
    """Leads from another address to the one of the page; None where it was asked for by that one."""
    root = request.scope.get("root_path", "")
    if request.scope["path"].removeprefix(root) == unquote(path):
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(root + path + query, status_code=301)


def item_path(item_id: int, name: str) -> str:
    """The address of an item; what follows the number is for people."""
    return _named(f"/p/{item_id}", name)


def store_path(store_id: int, name: str) -> str:
    """The address of a store."""
    return _named(f"/s/{store_id}", name)


def brand_path(brand_slug: str) -> str:
    """The address of a brand."""
    return f"/b/{quote(brand_slug)}"


def _named(path: str, name: str) -> str:
    tail = slug(name)
    return f"{path}-{quote(tail)}" if tail else path


def with_place(path: str, place: Around) -> str:
    """The same address, still looking from there."""
    if not place.typed:
        return path
    query = urlencode({"near": place.typed, **({"within": place.miles} if place.miles != 25 else {})})
    return f"{path}{'&' if '?' in path else '?'}{query}"


def picture(path: str, width: int) -> str:
    """The address of a picture in a width, relative to the server's root."""
    return f"/img/{quote(path)}?w={width}"


def srcset(home: Any, path: str) -> str:
    """Every width of a picture."""
    return ", ".join(f"{home(picture(path, width))} {width}w" for width in WIDTHS)


def now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)
