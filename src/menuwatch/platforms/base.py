"""Base class of platform adapters: how a platform serves menus and what its answers mean, independent of our tables.

An adapter is a declaration: `items` says how its items are read (`items.ItemReader`), `fields` how each field is used; it implements
`read_page`, and as far as the platform is requested at all, `menu_page`, `store_page` and `resolve`.

The network part (`discover`, `resolve`, `fetch_menu`) runs in tasks that hold a session; the pure part (`split`, `normalize`)
reads archived answers without network access, so any payload can be replayed.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from menuwatch.config.platforms import OWN_SITES, PlatformSettings
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.http import Session
from menuwatch.platforms.envelope import check_count
from menuwatch.platforms.fields import Field
from menuwatch.platforms.items import ItemReader
from menuwatch.platforms.model import FoundStore, Menu, Normalized, Page, PageInfo
from menuwatch.platforms.paging import whole_menu
from menuwatch.platforms.retry import RequestRetry

MAX_STORE_PAGES = 200
_SITE_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])(?::[0-9]{1,5})?")
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home", ".home.arpa", ".localdomain")


class Platform(ABC):
    """A platform adapter. One object serves any number of sessions concurrently."""

    name: ClassVar[str]
    label: ClassVar[str]
    """Its name for people; by default made of `name`: `Dutchie Plus`."""
    normalizer_version: ClassVar[int]
    """Version of `normalize`; raise it when the same item would give a different product. Stored products are then rebuilt."""
    fields: ClassVar[Sequence[Field]]
    """How each field of its menus is used."""
    items: ClassVar[ItemReader[Any]]
    items_path: ClassVar[str]
    """Path of the items of a page, for messages."""
    per_page: ClassVar[int] = 100
    """Products or stores requested per page."""
    own_sites: ClassVar[bool] = False
    """Its menus are on the shops' own sites, whose host is part of a store's id. `base_url` is then `own`, or one URL for all of them
    (a reverse proxy, the simulator)."""
    example_url: ClassVar[str] = ""
    """Address of a store or its menu, as an example of those that `slug_of` (on shops' own sites `slug_on_site`) knows."""
    lists_stores: ClassVar[bool] = True
    """It has a list of stores, so that they can be discovered."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "label") and hasattr(cls, "name"):
            cls.label = _label(cls.name)

    def __init__(
        self,
        *,
        base_url: str = "",
        retry_base_seconds: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`retry_base_seconds` is the first delay before a page is retried. Without a `base_url` only recorded answers are read."""
        self.requested = bool(base_url)
        """Whether it is requested at all, not only replayed."""
        self.base_url = "" if base_url == OWN_SITES else base_url.rstrip("/")
        self.retry = RequestRetry(retry_base_seconds, sleep)
        self.hosts = frozenset({urlsplit(self.base_url).netloc.lower()} - {""})
        """Its hosts, in lower case, with non-default ports."""

    @classmethod
    def configured(cls, settings: PlatformSettings, *, retry_base_seconds: float) -> Self:
        """The adapter with the settings of its platform. Raises Refused for unusable ones."""
        return cls(base_url=settings.base_url, retry_base_seconds=retry_base_seconds)

    @classmethod
    def can_be_requested(cls) -> bool:
        """Whether it has menus to request at all; otherwise it reads recorded answers only."""
        return cls.menu_page is not Platform.menu_page or cls.fetch_menu is not Platform.fetch_menu

    def lacks(self) -> tuple[str, ...]:
        """The settings without which it cannot be requested and that are not set."""
        return () if self.requested else (f"{self.name.upper()}_BASE_URL",)

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists the distinct stores of a state or city, or all.

        Raises BadPayload of kind limits for an endless list, and the errors of `store_page`. The list ends with a repeated page (from
        a server that ignores paging), an empty page, or one shorter than another. (A first page alone proves nothing: it may be
        clamped.)
        """
        seen: set[str] = set()
        largest = 0
        for number in range(MAX_STORE_PAGES):
            stores = await self.store_page(session, number, state=state, city=city)
            new = 0
            for store in stores:
                if store.platform_dispensary_id in seen:
                    continue
                new += 1
                seen.add(store.platform_dispensary_id)
                check_count(len(seen), b"")
                yield store
            largest = max(largest, len(stores))
            if not new or (number and len(stores) < largest):
                return

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Every page of one store's menu. Raises BadPayload (kind empty without products), Blocked, Throttled, Transient."""
        return await whole_menu(
            lambda number: self.menu_page(session, platform_dispensary_id, number),
            per_page=self.per_page,
            store=platform_dispensary_id,
            pause=self.retry.pause,
        )

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug or id, None if the platform has none."""
        raise self._not_requested()

    async def store_page(
        self, session: Session, number: int, *, state: str | None, city: str | None
    ) -> Sequence[FoundStore]:
        """One page (from 0) of a list of stores."""
        raise self._not_requested()

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        """One page (from 0) of a menu."""
        raise self._not_requested()

    def _not_requested(self) -> Permanent:
        return Permanent(
            f"Platform {self.name} has recorded responses only (`menuwatch replay`); it is never requested"
        )

    @abstractmethod
    def read_page(self, body: bytes) -> Page:
        """Parses a page, which may be empty. Raises BadPayload if it is not a menu page."""

    def split(self, body: bytes) -> list[msgspec.Raw]:
        """The raw items of one page, in order, undecoded. Raises BadPayload if it is not a menu page, or has no items."""
        page = self.read_page(body)
        if not page.items:
            total = f", the total is {page.total_count}" if page.total_count is not None else ""
            raise BadPayload("empty", f"the menu has no products: {self.items_path} is []{total}", body)
        return page.items

    def documents(self, body: bytes) -> Sequence[bytes]:
        """The JSON documents of a page, for reports on its fields: itself, unless it is a web page with answers in it."""
        return (body,)

    def totals(self, body: bytes) -> tuple[int | None, int | None]:
        """(products, pages) of the whole menu according to one page, None if it does not say. Raises BadPayload as `split`."""
        page = self.read_page(body)
        return page.total_count, page.total_pages

    def identity(self, item: msgspec.Raw) -> str | None:
        """The product id of a raw item, as `normalize` determines it; None without a readable id."""
        return self.items.identity(item)

    def row_key(self, item: msgspec.Raw) -> str | None:
        """Identifies a row of a page: the product's id, or more on platforms whose pages have several rows for one product."""
        return self.identity(item)

    def split_menu(self, pages: Iterable[bytes]) -> list[Sequence[msgspec.Raw]]:
        """The items of each page of a whole menu, each product once on platforms that spread it over rows. Raises BadPayload as
        `split`, and of kind limits for more items than a menu has."""
        return self.merge(split_pages(self.split, pages))

    def merge(self, pages: list[Sequence[msgspec.Raw]]) -> list[Sequence[msgspec.Raw]]:
        """The items of a whole menu, put together from rows that are of one product. By default a row is an item."""
        return pages

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products in the order of their items; of several items with one id the last wins.

        If every item gives a separate product, the n-th product is the n-th item's.
        """
        return self.items.normalize(items)

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """The platform's id of the items' store, None if they do not say."""
        return self.items.store_of(items)

    def stores_of(self, items: Iterable[msgspec.Raw]) -> dict[str, int]:
        """The stores that the items name, each with the number of its items: more than one where a page mixes menus."""
        return self.items.stores_of(items)

    def is_store(self, platform_dispensary_id: str | None, named: str) -> bool:
        """Whether the store that items name (`store_of`) is that one."""
        return named == platform_dispensary_id

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """Store data in the items, for an unknown store; None if they do not identify one. By default only its id, also as
        slug."""
        store = self.store_of(items)
        return FoundStore(platform_dispensary_id=store, slug=store, name_raw=store, name=store) if store else None

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in a menu URL of this platform, None for other URLs, and for shops' own sites that do not show what serves them."""
        return None

    def slug_on_site(self, menu_url: str) -> str | None:
        """The slug in a URL that is known to be a menu of this platform: for shops' own sites, whose URLs do not show it."""
        return self.slug_of(menu_url)

    def hosts_of(self, platform_dispensary_id: str | None) -> frozenset[str]:
        """The hosts that a store's menu is requested from."""
        return self.hosts


def label_of(platforms: Mapping[str, Platform], name: str) -> str:
    """The name for people of a platform, whose adapter may be gone."""
    platform = platforms.get(name)
    return platform.label if platform is not None else _label(name)


def _label(name: str) -> str:
    return name.replace("_", " ").title()


def split_url(text: str) -> SplitResult | None:
    """The parts of a URL, which may lack its scheme; None for an invalid one."""
    address = text.strip()
    try:
        parts = urlsplit(address if "://" in address or address.startswith(("/", ".")) else f"//{address}")
        _ = parts.hostname, parts.port  # these raise, too
    except ValueError:
        return None
    return parts if address else None


def site_host(netloc: str) -> str | None:
    """The host of a shop's own site, in lower case, with its port; None for an IP address and a name of a local network, so that no
    address of a store leads the crawler into its own network."""
    host = netloc.rpartition("@")[2].lower()
    name, _, port = host.partition(":")
    if not _SITE_HOST.fullmatch(host) or len(name) > 253 or int(port or 443) > 65_535:
        return None
    return None if name.endswith(_LOCAL_NAMES) else host


def split_pages(split: Callable[[bytes], Sequence[msgspec.Raw]], pages: Iterable[bytes]) -> list[Sequence[msgspec.Raw]]:
    """The items of each page of a menu; `split` is a platform's. Raises BadPayload, of kind limits for more items than a menu has."""
    items: list[Sequence[msgspec.Raw]] = []
    count = 0
    for page in pages:
        items.append(split(page))
        count += len(items[-1])
        check_count(count, page)
    return items
