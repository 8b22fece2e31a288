"""Shared parts of all pages: rendering, the visitor's location, URLs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from menuwatch.catalog.taxonomy.text import slug
from menuwatch.db.pool import Connection
from menuwatch.geo import postcodes, states, units
from menuwatch.geo.circle import DEFAULT_MILES
from menuwatch.geo.postcodes import Place
from menuwatch.storefront.page_queries import NearbyStores
from menuwatch.storefront.search import find_nearby_stores
from menuwatch.visitors.service import visitor_place
from menuwatch.web import page_cache
from menuwatch.web.client import client_address
from menuwatch.web.dependencies import AppContext
from menuwatch.web.pages import Pages

_MOST_TRIED = 12
"""Cities of one name that are tried for stores around them."""

_PERMISSIONS = "camera=(), geolocation=(self), microphone=()"
"""What a page may ask the browser for: the position, when the visitor presses the button for it."""

WIDTHS = (200, 400, 800)
"""Image widths in pixels; presets that need no signature (IMAGE_PRESETS)."""


class Around(Struct, frozen=True, kw_only=True):
    """The visitor's location. `typed` is their text; `place` is None if it is unknown."""

    typed: str = ""
    miles: int = DEFAULT_MILES
    place: Place | None = None
    nearby: NearbyStores | None = None
    others: tuple[Place, ...] = ()
    """Further places of that name, the most populous first."""
    is_largest: bool = True
    """Whether `place` is the most populous one of its name."""
    guessed: bool = False
    """Derived from the visitor's network, not entered."""

    def distance(self, store_id: int) -> str:
        """The distance of a store in words: `12 mi`, in Canada `19 km`; empty if it is out of range. `about 12 mi` or `in 85001` where
        only the store's postcode is known."""
        return self._length(store_id) or self._area(store_id)

    def distance_from_place(self, store_id: int) -> str:
        """As `distance`, with the place: `12 mi from Santa Fe, NM`, `in 85001`; empty if the store is out of range."""
        length = self._length(store_id)
        return f"{length} from {self.place.label}" if length and self.place is not None else self._area(store_id)

    def _length(self, store_id: int) -> str:
        """Empty if it is out of range, or so near that a postcode does not tell."""
        meters = self.nearby.meters_of(store_id) if self.nearby is not None else None
        if meters is None or self._zipcode(store_id) is None:
            return units.distance(meters, self.state)
        return units.approximate_distance(meters, self.state) or ""

    def _area(self, store_id: int) -> str:
        zipcode = self._zipcode(store_id)
        if zipcode is None:
            return ""
        area = postcodes.find(zipcode)
        return f"in {(area.postcode or area.city) if area is not None else zipcode}"

    def _zipcode(self, store_id: int) -> str | None:
        """The postcode of a store near here of which no better position is known."""
        return self.nearby.zipcodes.get(store_id) if self.nearby is not None else None

    def radius(self, miles: int | None = None) -> str:
        """The radius that is searched, or another one, in words: `25 miles`, in Canada `40 km`."""
        return units.radius(self.miles if miles is None else miles, self.state)

    @property
    def has_default_miles(self) -> bool:
        """Whether the radius is the one that is searched if none is chosen."""
        return self.miles == DEFAULT_MILES

    @property
    def state(self) -> str | None:
        """State or province of the place; None if there is none. It decides the units and the currency that people use there."""
        return self.place.state if self.place is not None else None

    @property
    def unknown(self) -> bool:
        """The typed text matches no place."""
        return bool(self.typed) and self.place is None

    @property
    def error(self) -> str:
        """What is wrong with the typed text; empty if nothing is."""
        if not self.unknown:
            return ""
        typed = self.typed[:60]
        if states.code_in_america(self.typed):
            return f"“{typed}” is a state or province. Enter a city, ZIP or postal code."
        return f"We couldn’t find “{typed}”. Try a city, ZIP or postal code."


async def around(conn: Connection, typed: str, miles: int = DEFAULT_MILES) -> Around:
    """Resolves the typed location and finds the stores around it. If several cities share the name, the most populous one with stores
    around it is used."""
    if not typed:
        return Around(miles=miles)
    # The first call loads a list of places, which takes a while.
    places = await run_in_threadpool(postcodes.find_all, typed)
    if not places:
        return Around(typed=typed, miles=miles)
    chosen = places[0]
    nearby = await find_nearby_stores(conn, chosen.point, miles)
    for place in places[1:_MOST_TRIED]:
        if nearby.stores:
            break
        if (other := await find_nearby_stores(conn, place.point, miles)).stores:
            chosen, nearby = place, other
    others = tuple(place for place in places if place is not chosen)
    largest = chosen is places[0]
    return Around(typed=typed, miles=miles, place=chosen, nearby=nearby, others=others, is_largest=largest)


async def is_ambiguous(conn: Connection, where: Around) -> bool:
    """Whether the typed name may also mean another place: a larger one, one with stores around it, or, without stores, any."""
    if where.nearby is None or not where.nearby.stores or not where.is_largest:
        return bool(where.others)
    return any([(await find_nearby_stores(conn, one.point, where.miles)).stores for one in where.others[:_MOST_TRIED]])


async def around_visitor(request: Request, conn: Connection, miles: int = 50) -> Around:
    """The stores around the city of the visitor's network, if GEOIP_DATABASE is set. Nothing of it is stored or logged."""
    system = system_of(request)
    if system.geo is None:
        return Around()
    address = client_address(request.scope, system.settings.trusted_proxies)
    place = await run_in_threadpool(visitor_place, system.geo, address)
    if place is None:
        return Around()
    nearby = await find_nearby_stores(conn, place.point, miles)
    if not nearby.stores:
        return Around()
    return Around(miles=miles, place=place, nearby=nearby, guessed=True)


AGE_COOKIE = "menuwatch_age"
"""Has the age that the visitor confirmed."""
_NEVER_ASKED = ("about.html", "problem.html", "too_young.html")
"""Pages that show no products."""
_NOTHING = {"query": "", "canonical": None, "description": None, "linked": None, "trail": None}
"""What a page may leave out."""


def render(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    keep: bool = True,
    shared: bool = True,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Renders a page. With `keep` the browser may keep it for a minute, since menus change every few hours; so may the server if it
    is `shared`, the same for all visitors."""
    pages: Pages = request.app.state.pages
    asks = template not in _NEVER_ASKED and asked_age(request)
    given = {
        **_NOTHING,
        "place": Around(),
        "index": status == 200,
        "asked_age": asks,
        "here": _here(request),
        **context,
    }
    # A page with the question is not kept: after the answer it has none.
    kept = f"private, max-age={page_cache.SECONDS}" if keep and not asks else "no-store"
    if keep and shared:
        page_cache.share(request)
    own = {"Cache-Control": kept, "Permissions-Policy": _PERMISSIONS, **(headers or {})}
    return pages.render(request, template, given, status=status, **own)


def asked_age(request: Request) -> int:
    """The age that the visitor has yet to confirm; 0 if none. Search engines read the page behind the question."""
    minimum = system_of(request).settings.minimum_age
    confirmed = request.cookies.get(AGE_COOKIE, "")
    return 0 if confirmed.isascii() and confirmed.isdecimal() and int(confirmed[:3]) >= minimum else minimum


def _here(request: Request) -> str:
    """The URL of this page below the root; the front page for what was posted, which has no page to return to."""
    if request.method == "POST":
        return "/"
    path = quote(request.scope["path"].removeprefix(request.scope.get("root_path", "")))
    return f"{path}?{request.url.query}" if request.url.query else path


def system_of(request: Request) -> AppContext:
    """The components that the site was created with."""
    system: AppContext = request.app.state.system
    return system


def whole(request: Request, path: str) -> str:
    """The absolute URL of a page. Without PUBLIC_URL it uses the Host header of the request, which cannot be trusted: only this client
    may cache such a response, as it does pages; for others see `kept`.
    """
    if public := system_of(request).settings.public_url:
        return public.rstrip("/") + path
    return f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}{path}"


def kept(request: Request, seconds: int) -> str:
    """Cache-Control of a response with absolute URLs."""
    return f"{'public' if system_of(request).settings.public_url else 'private'}, max-age={seconds}"


def moved(request: Request, path: str) -> Response | None:
    """Redirect to the page's canonical URL; None if the request used it."""
    root = request.scope.get("root_path", "")
    if request.scope["path"].removeprefix(root) == unquote(path):
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(root + path + query, status_code=301)


def item_path(item_id: int, name: str) -> str:
    """URL path of an item; the text after the id is for readability only."""
    return _named(f"/p/{item_id}", name)


def store_path(store_id: int, name: str) -> str:
    return _named(f"/s/{store_id}", name)


def brand_path(brand_slug: str) -> str:
    return f"/b/{quote(brand_slug)}"


def _named(path: str, name: str) -> str:
    tail = slug(name)
    return f"{path}-{quote(tail)}" if tail else path


def with_place(path: str, place: Around) -> str:
    """The same URL with the visitor's location."""
    if not place.typed:
        return path
    query = urlencode({"near": place.typed, **({"within": place.miles} if not place.has_default_miles else {})})
    return f"{path}{'&' if '?' in path else '?'}{query}"


def with_near(request: Request, near: str) -> str:
    """The URL of this page, at its start, with another location."""
    query = [
        (name, value) for name, value in request.query_params.multi_items() if name not in ("near", "after", "page")
    ]
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return f"{quote(path)}?{urlencode([*query, ('near', near)])}"


def picture(path: str, width: int) -> str:
    """URL of an image at a width, relative to the server's root."""
    return f"/img/{quote(path)}?w={width}"


def srcset(home: Any, path: str) -> str:
    """`srcset` of an image with all widths."""
    return ", ".join(f"{home(picture(path, width))} {width}w" for width in WIDTHS)


def now() -> datetime:
    return datetime.now(UTC)
