"""The Joint adapter: its requests and its answers.

The menu is on the shop's own site, which passes a query on to Elasticsearch: `POST /wp-json/joint-ecommerce/v1/products/
ecommerce-production/_search` (2026), or with the business id in place of the index (2025).

Some sites refuse requests without the nonce of their pages (`X-WP-Nonce`), which is valid for about a day. It is only read when it is
missed.

A store's id is `host/businessId`, since the number alone does not say whom to ask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core.errors import BadPayload, Permanent, Transient
from menuwatch.platforms.base import Platform, site_host, split_url
from menuwatch.platforms.envelope import excerpt
from menuwatch.platforms.joint import normalize
from menuwatch.platforms.joint.answers import NonceRefused, NoRoute, check_refusal, inspect, read
from menuwatch.platforms.joint.normalize import ITEMS, MEDICAL
from menuwatch.platforms.joint.page import SitePage, read_page
from menuwatch.platforms.joint.payload import FIELDS
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.numbers import id_text
from menuwatch.platforms.store_records import StoreRecord, iana_timezone, state_code, valid_coordinates

if TYPE_CHECKING:
    from menuwatch.core.http import Response, Session

_API = "/wp-json/joint-ecommerce/v1"
_OF_API = re.compile(r"(?:/[^/]+)*?/wp-json/joint-ecommerce/(?:v\d+/products/(?P<business>\d{1,12})(?:/|$))?")
_STORE_ID = re.compile(r"(?P<host>[A-Za-z0-9.:-]+)/(?P<business>\d{1,12})")
_NUMBER = re.compile(r"\d{1,12}")
_ROUTES = ("ecommerce-production", "{business}")
"""Parts of the search's address, the present one first."""
_STALE = "rest_cookie_invalid_nonce"
_MOST_SITES = 10_000
"""Sites whose nonce or route is remembered."""

SOURCE = (
    "globalProductId", "jointId", "posId", "businessId", "providerBusinessId", "name", "nameText", "category", "subCategory",
    "description", "descriptionHtml", "effects", "primaryImage", "images", "menuType", "strainType", "staffPick", "tagList",
    "collections", "urlFragment", "brand", "brandId", "brandName", "brandNameText", "variants", "lowestPrice", "potencies",
    "potencyThcDisplayValue", "potencyThcRangeHigh", "potencyThcRangeLow", "potencyThcUnit", "potencyCbdDisplayValue",
    "potencyCbdRangeHigh", "potencyCbdRangeLow", "potencyCbdUnit", "terpenes", "cannabinoids", "applicableSpecials",
)  # fmt: skip
"""Fields that the shops' pages ask for. Queries of another shape are said to be refused."""

Answer = TypeVar("Answer")


class Joint(Platform):
    """Without a `base_url`, what would need one raises Permanent.

    With one URL for all stores, the search names the business id alone, and a shop's page is at `<base_url>/<host>/<path>`.

    Verified on recorded answers: the shape of products. As public callers ask: the query and both addresses. Assumptions: what a page
    tells (see `page`), that WordPress refuses a nonce as it does elsewhere, and that all of a recreational menu is what it calls so.
    """

    name = "joint"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = ITEMS
    items_path = "hits.hits"
    own_sites = True
    lists_stores = False
    example_url = "https://www.shop.example/menu/"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._nonces: dict[str, str] = {}
        self._routes: dict[str, str] = {}

    def read_page(self, body: bytes) -> Page:
        return read(body)

    def is_store(self, platform_dispensary_id: str | None, named: str) -> bool:
        """An item names the business alone, which may have several sites."""
        return platform_dispensary_id is not None and platform_dispensary_id.rpartition("/")[2] == named

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """The business; its site is in no menu."""
        menus: set[str] = set()
        business: str | None = None
        for raw in items:
            item = ITEMS.decode(raw)
            found = id_text(item.businessId) if item is not None else None
            if item is None or found is None or found != (business or found):
                continue
            business = found
            menus.update(
                [item.menuType] if isinstance(item.menuType, str) else [text for text in item.menuType or () if text]
            )
        if business is None:
            return None
        return FoundStore(
            platform_dispensary_id=business,
            slug=business,
            name_raw=business,
            name=business,
            is_recreational=True if "RECREATIONAL" in menus else None,
            is_medical=True if MEDICAL in menus else None,
        )

    def hosts_of(self, platform_dispensary_id: str | None) -> frozenset[str]:
        """The shop's own host, unless there is one URL for all."""
        match = _STORE_ID.fullmatch(platform_dispensary_id or "")
        host = site_host(match["host"]) if match is not None else None
        return self.hosts if self.hosts or host is None else frozenset({host})

    def slug_of(self, menu_url: str) -> str | None:
        """`host` or `host/businessId` of a URL of the plugin's API, None for other URLs."""
        parts = split_url(menu_url)
        host = site_host(parts.netloc) if parts is not None else None
        match = _OF_API.match(parts.path) if parts is not None and host is not None else None
        if match is None:
            return None
        return f"{host}/{match['business']}" if match["business"] else host

    def slug_on_site(self, menu_url: str) -> str | None:
        """`host/path` of any URL: the path may be that of one of several shops."""
        if (known := self.slug_of(menu_url)) is not None:
            return known
        parts = split_url(menu_url)
        host = site_host(parts.netloc) if parts is not None and parts.scheme in ("", "http", "https") else None
        return f"{host}{parts.path}".rstrip("/") if parts is not None and host is not None else None

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store of a page, or of `host/businessId`; None for a page that does not exist. Raises BadPayload for a page
        without Joint, or that names no store."""
        known = _STORE_ID.fullmatch(slug)
        host, _, path = slug.partition("/")
        if site_host(host) != host.lower():
            return None
        address = host if known else f"{host}/{path}".rstrip("/")
        page = await self._page(session, address, lambda page: page.uses_joint and (known or _names_store(page)))
        if page is None:
            return None
        business = known["business"] if known else page.business_id
        self._remember(self._nonces, host, page.nonce)
        return _found_store(page, slug, host, business, tells=known is None or page.business_id == business)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        host, business = self._address(platform_dispensary_id)
        try:
            return await self._search(session, host, business, number)
        except NonceRefused as refused:
            used = self._nonces.pop(host, None)
            page = await self._page(session, host, lambda page: page.nonce)
            if page is None or page.nonce is None:
                raise Permanent(f"{refused}, and the site has no page with a nonce") from refused
            nonce = page.nonce
            self._remember(self._nonces, host, nonce)
            try:
                return await self._search(session, host, business, number)
            except NonceRefused as again:
                self._nonces.pop(host, None)
                if nonce == used or again.code == _STALE:
                    raise Transient(
                        f"{again}; the nonce of its page is out of date: the page may come from a cache"
                    ) from again
                raise Permanent(f"{again}, also with the nonce of its page") from again

    def _address(self, platform_dispensary_id: str) -> tuple[str, str]:
        """(host, business id). Raises Permanent."""
        if not self.requested:
            raise Permanent("Joint is not crawled: JOINT_BASE_URL is not set")
        match = _STORE_ID.fullmatch(platform_dispensary_id)
        if match is not None:
            if (host := site_host(match["host"])) is None:
                raise Permanent(f"{match['host']} is not a shop's site: use its public host name")
            return host, match["business"]
        if self.base_url and _NUMBER.fullmatch(platform_dispensary_id):
            return "", platform_dispensary_id
        raise Permanent(
            f"business {platform_dispensary_id} has no site: add the store by the address of its menu "
            "(`menuwatch stores add URL --platform joint`)"
        )

    def _site(self, host: str) -> str:
        return self.base_url or f"https://{host}"

    async def _search(self, session: Session, host: str, business: str, number: int) -> tuple[bytes, PageInfo]:
        """One page of the menu. Raises NonceRefused, and NoRoute where the site has none of the known addresses."""
        routes = [self._routes[host]] if host in self._routes else list(_ROUTES)
        for route in routes:
            try:
                answer = await self._search_at(session, host, route.format(business=business), business, number)
            except NoRoute:
                self._routes.pop(host, None)
                if route == routes[-1]:
                    raise
            else:
                self._remember(self._routes, host, route)
                return answer
        raise AssertionError("the last route returns or raises")

    async def _search_at(
        self, session: Session, host: str, route: str, business: str, number: int
    ) -> tuple[bytes, PageInfo]:
        site = self._site(host)
        path = f"{_API}/products/{route}/_search"
        headers = {"accept": "*/*", "origin": site, "referer": f"{site}/menu/"}
        if host in self._nonces:
            headers["x-wp-nonce"] = self._nonces[host]
        json = query(business, number * self.per_page, self.per_page)

        def read_answer(response: Response) -> PageInfo:
            check_refusal(response, host or site)
            return inspect(response.body, response.status, business)

        return await self._asked(
            lambda: session.request("POST", site + path, json=json, headers=headers), read_answer, f"{host}{path}"
        )

    async def _page(self, session: Session, address: str, usable: Callable[[SitePage], object]) -> SitePage | None:
        """A page of a site, `address` being `host/path`; None if it does not exist. Raises BadPayload, after retries, if it is not
        usable: a server's fault may look like that."""
        if not self.requested:
            raise Permanent("Joint is not crawled: JOINT_BASE_URL is not set")
        url = f"{self.base_url}/{address}" if self.base_url else f"https://{address}"

        def read_answer(response: Response) -> SitePage | None:
            if response.status in (404, 410):
                return None
            if response.status >= 400:
                raise Permanent(f"{address} answered HTTP {response.status}: “{excerpt(response.body[:200])}”")
            page = read_page(response.body)
            if not usable(page):
                lacks = (
                    "what the menu needs (jointEcommerce: the store, its number, the nonce)"
                    if page.uses_joint
                    else "Joint"
                )
                raise BadPayload("html", f"the page {address} is without {lacks}", response.body)
            return page

        headers = {"accept": "text/html"}
        _, page = await self._asked(
            lambda: session.request("GET", f"{url}/", headers=headers, expect="html"), read_answer, address
        )
        return page

    async def _asked(
        self, send: Callable[[], Any], read_answer: Callable[[Response], Answer], what: str
    ) -> tuple[bytes, Answer]:
        return await self.retry.answer(send, read_answer, what=what)

    @staticmethod
    def _remember(known: dict[str, str], host: str, value: str | None) -> None:
        if value is not None and (host in known or len(known) < _MOST_SITES):
            known[host] = value


def query(business: str, start: int, size: int) -> dict[str, Any]:
    """The query of a shop's page for its recreational menu."""
    return {
        "size": size,
        "from": start,
        "_source": {"includes": list(SOURCE)},
        "query": {
            "bool": {
                "filter": [
                    {"bool": {"should": [{"term": {"businessId": business}}]}},
                    {"bool": {"should": [{"term": {"menuType": "RECREATIONAL"}}]}},
                ]
            }
        },
        "sort": [{"potencyThcRangeHigh": "asc"}],
    }


def _names_store(page: SitePage) -> bool:
    """Whether a page names its store; of one that is cut off the number alone is not enough."""
    return page.business_id is not None and (page.whole or page.store.value("businessId") is not None)


def _found_store(page: SitePage, slug: str, host: str, business: str | None, *, tells: bool) -> FoundStore:
    """The store of a page; `tells`: the page is of this store and not of another one of the site."""
    store = page.store if tells else StoreRecord({})
    title = page.title or host
    name = store.text("name", "businessName", "storeName")
    latitude, longitude = valid_coordinates(store.value("latitude"), store.value("longitude"))
    return FoundStore(
        platform_dispensary_id=f"{host}/{business}" if business else "",
        slug=slug,
        name_raw=name or title,
        name=clean(name or title),
        address=store.text("address", "address.address1", "address.street", "address1"),
        city=store.text("city", "address.city"),
        state=state_code(store.text("state", "address.state")),
        zipcode=store.text("zip", "zipCode", "postalCode", "address.zip", "address.postalCode"),
        phone=store.text("phone", "phoneNumber"),
        latitude=latitude,
        longitude=longitude,
        timezone=iana_timezone(store.text("timezone", "timeZone")),
        menu_url=f"https://{host}/",
        problem=None
        if business
        else "its page names no business id (jointEcommerce.currentStore): give the page of one store",
    )
