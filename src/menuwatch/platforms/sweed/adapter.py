"""The Sweed adapter: its requests, its hosts and the addresses of its shops.

Every request is a POST below `/_api/proxy/` that names its store in the header `storeid`:

| request | body | answer |
|---------|------|--------|
| Products/GetProductList | `{"filters": {}, "page": 1, "pageSize": 100, "saleType": "Recreational", …}` | a page of the menu |
| Store/GetStoreInfo | `{}` | the store's record |
| Store/GetStoreConfig | `{}`, or `{"domain": …, "routeName": …}` | configuration: id, licence, time zone |

**Stores** have numbers and no list: discovery counts from 1 and ends after `MAX_GAP` numbers without a store, or at `LAST_ID`. Of the
recorded numbers, 1 to 605, the longest gap is 87.

**Hosts.** A store's id is its number at the host of `base_url`. That of a store of another host has its name before it:
`curaleaf:128` is at web-ui-curaleaf.sweedpos.com.

Verified on recorded answers: lists by page (`page` from 1), by store, of one sale type; records of stores and their configuration.
As public callers ask: 100 rows a page, `filters: {}` for the whole shop, the hosts. Assumptions: `null`, 400 or 404 for a number
without a store; that GetStoreConfig finds a shop by its address (a shop's page has that query, without its answer); that a shop that
sells only to patients has an empty list for `Recreational`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.http import Response, Session
from menuwatch.platforms.base import Platform, split_url
from menuwatch.platforms.model import FoundStore, Menu, Page, PageInfo
from menuwatch.platforms.paging import whole_menu
from menuwatch.platforms.store_records import state_code
from menuwatch.platforms.sweed import normalize, rows, stores
from menuwatch.platforms.sweed.answers import inspect, lists_in, read, read_record
from menuwatch.platforms.sweed.normalize import ITEMS
from menuwatch.platforms.sweed.payload import FIELDS, id_text

_API = "/_api/proxy"
_HOST = re.compile(r"web-ui-(?:kiosk-)?(?P<name>[a-z0-9]+)\.sweedpos\.com")
_STORE_ID = re.compile(r"(?:(?P<host>[a-z][a-z0-9]*):)?(?P<number>[1-9]\d{0,8})")
_SLUG = re.compile(r"(?:.*-)?(?P<id>(?:[a-z][a-z0-9]*:)?[1-9]\d{0,8})")
_SHOP_PATH = re.compile(r"/s(?P<number>[1-9]\d{0,8})(?:/|$)")
_HOST_NAMES = ("production", "curaleaf", "prime")
"""Known hosts: web-ui-NAME.sweedpos.com."""

LAST_ID = 2_000
"""No store has a higher number; the highest recorded is 605."""
MAX_GAP = 150
"""Numbers without a store after which there are no more."""
_ATTEMPTS = 3
"""Requests for one number whose answers cannot be read."""
_ABSENT = frozenset({204, 400, 404, 410})

Answer = TypeVar("Answer")


class Sweed(Platform):
    """Without a `base_url`, what would need one raises Permanent."""

    name = "sweed"
    example_url = "https://web-ui-production.sweedpos.com/s376"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = ITEMS
    items_path = "list"

    def read_page(self, body: bytes) -> Page:
        return read(body)

    def documents(self, body: bytes) -> Sequence[bytes]:
        return lists_in(body)

    def row_key(self, item: msgspec.Raw) -> str | None:
        return rows.row_key(item)

    def merge(self, pages: list[Sequence[msgspec.Raw]]) -> list[Sequence[msgspec.Raw]]:
        return rows.merge(pages, self.identity)

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Every page of the menu for adults; for a shop that sells only to patients, theirs."""
        try:
            return await self._menu(session, platform_dispensary_id, "Recreational")
        except BadPayload as error:
            if error.kind != "empty":
                raise
            try:
                info = await self._record(session, platform_dispensary_id, "Store/GetStoreInfo")
            except BadPayload:
                info = None
            if info is None or not stores.sells_only_medical(info):
                raise
        return await self._menu(session, platform_dispensary_id, "Medical")

    async def _menu(self, session: Session, store_id: str, sale_type: str) -> Menu:
        """The menu; `product_count` counts products, where paging counts rows."""
        products: set[str] = set()
        unnamed = 0

        async def page(number: int) -> tuple[bytes, PageInfo]:
            nonlocal unnamed
            body, info = await self._page(session, store_id, number, sale_type)
            products.update(key.partition(":")[0] for key in info.ids if key is not None)
            unnamed = max(unnamed, info.ids.count(None))
            return body, info

        menu = await whole_menu(page, per_page=self.per_page, store=store_id, pause=self.retry.pause)
        return msgspec.structs.replace(menu, product_count=len(products) + unnamed)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        return await self._page(session, platform_dispensary_id, number, "Recreational")

    async def _page(self, session: Session, store_id: str, number: int, sale_type: str) -> tuple[bytes, PageInfo]:
        asked = {
            "filters": {},
            "page": number + 1,
            "pageSize": self.per_page,
            "sortingMethodId": 7,
            "searchTerm": "",
            "saleType": sale_type,
            "platformOs": "web",
            "sourcePage": 1,
        }
        return await self._post(
            session, store_id, "Products/GetProductList", asked, lambda answer: inspect(answer.body, answer.status)
        )

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Counts store numbers of the host of `base_url`, one request each and one more for the licence of each store that is wanted.

        Stores of other states and cities are left out. Raises the errors of a request.
        """
        wanted, place = state_code(state), " ".join((city or "").split()).casefold()
        gap = 0
        for number in range(1, LAST_ID + 1):
            info = await self._counted(session, str(number))
            gap = gap + 1 if info is None else 0
            if gap >= MAX_GAP:
                return
            if info is None:
                continue
            store = stores.found_store(info)
            if (wanted and store.state != wanted) or (place and (store.city or "").casefold() != place):
                continue
            yield store if store.problem is not None else await self._with_config(session, str(number), info)

    async def _counted(self, session: Session, number: str) -> msgspec.Raw | None:
        """The record with that number, None if there is none. One answer of hundreds that cannot be read is requested again, so that
        the count need not start over."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._record(session, number, "Store/GetStoreInfo")
            except BadPayload:
                await self.retry.pause()
        return await self._record(session, number, "Store/GetStoreInfo")

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that number (`376`, `gleaf-rockville-376`, `shop-128-curaleaf:128`) or own address (`www.gleaf.com/…`)."""
        store_id: str | None
        if "/" in slug or "." in slug:
            store_id = await self._of_address(session, slug)
        else:
            match = _SLUG.fullmatch(slug)
            store_id = match["id"] if match else None
        info = await self._record(session, store_id, "Store/GetStoreInfo") if store_id is not None else None
        return await self._with_config(session, store_id, info) if store_id is not None and info is not None else None

    async def _of_address(self, session: Session, address: str) -> str | None:
        domain, _, route = address.partition("/")
        asked = {"domain": domain, "routeName": route.strip("/")}
        config = await self._record(session, None, "Store/GetStoreConfig", asked)
        return id_text(msgspec.json.decode(config).get("id")) if config is not None else None

    async def _with_config(self, session: Session, store_id: str, info: msgspec.Raw) -> FoundStore:
        """The store with its licence and time zone, where its configuration can be read."""
        try:
            config = await self._record(session, store_id, "Store/GetStoreConfig")
        except BadPayload:
            config = None
        host, _, _ = store_id.rpartition(":")
        store = stores.found_store(info, config, prefix=f"{host}:" if host else "")
        if store.platform_dispensary_id != store_id:
            message = f"another store's: the record of store {store_id} has the id {store.platform_dispensary_id or 'of none'}"
            raise BadPayload("schema", message, bytes(info))
        return store

    async def _record(
        self, session: Session, store_id: str | None, operation: str, asked: dict[str, str] | None = None
    ) -> msgspec.Raw | None:
        """A store's record, None if there is none."""

        def read_answer(answer: Response) -> msgspec.Raw | None:
            return None if answer.status in _ABSENT else read_record(answer.body, answer.status)

        return (await self._post(session, store_id, operation, asked or {}, read_answer))[1]

    async def _post(
        self,
        session: Session,
        store_id: str | None,
        operation: str,
        asked: dict[str, Any],
        read: Callable[[Response], Answer],
    ) -> tuple[bytes, Answer]:
        """The body of an answer and the result of `read`."""
        if not self.base_url:
            raise Permanent("Sweed is not crawled: SWEED_BASE_URL is not set")
        url, headers = self.base_url, {"accept": "application/json", "ssr": "false"}
        if store_id is not None:
            match = _STORE_ID.fullmatch(store_id)
            if match is None:
                raise Permanent(f"{store_id!r} is not a store id of Sweed: use a number such as 376, or curaleaf:128")
            headers["storeid"] = match["number"]
            url = self._url_of(match["host"])
        return await self.retry.answer(
            lambda: session.request("POST", f"{url}{_API}/{operation}", json=asked, headers=headers),
            read,
            what=operation,
        )

    def _url_of(self, host: str | None) -> str:
        """The base URL of a host by its name; a `base_url` that is none of Sweed's stands for all of them."""
        parts = urlsplit(self.base_url)
        if host is None or not _HOST.fullmatch(parts.netloc.lower()):
            return self.base_url
        return f"{parts.scheme}://web-ui-{host}.sweedpos.com"

    def hosts_of(self, platform_dispensary_id: str | None) -> frozenset[str]:
        if not self.base_url:
            return self.hosts
        if platform_dispensary_id is None:
            return self.hosts | {urlsplit(self._url_of(name)).netloc.lower() for name in _HOST_NAMES}
        match = _STORE_ID.fullmatch(platform_dispensary_id)
        return frozenset({urlsplit(self._url_of(match["host"] if match else None)).netloc.lower()})

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """The store of a shop's page, with its address; None for lists, which do not name theirs."""
        return stores.store_in(items)

    def slug_of(self, menu_url: str) -> str | None:
        """The number in the URL of a shop at Sweed's own hosts, with the host's name if it is another than that of `base_url`."""
        parts = split_url(menu_url)
        if parts is None or (match := _SHOP_PATH.match(parts.path)) is None:
            return None
        if self.hosts and parts.netloc.lower() in self.hosts:
            return match["number"]
        host = _HOST.fullmatch((parts.hostname or "").lower())
        if host is None:
            return None
        own = _HOST.fullmatch(urlsplit(self.base_url).netloc.lower()) if self.base_url else None
        usual = own["name"] if own is not None else _HOST_NAMES[0]
        return match["number"] if host["name"] == usual else f"{host['name']}:{match['number']}"

    def slug_on_site(self, menu_url: str) -> str | None:
        """The address of a shop on its own domain, `www.gleaf.com/stores/maryland/rockville/shop`."""
        parts = split_url(menu_url)
        if (slug := self.slug_of(menu_url)) is not None or parts is None or "." not in (parts.hostname or ""):
            return slug
        return f"{(parts.hostname or '').lower()}/{parts.path.strip('/')}"
