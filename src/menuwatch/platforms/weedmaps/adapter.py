"""The Weedmaps platform: what Menuwatch asks of it, put together from this package's parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from menuwatch.core.errors import BadPayload, Permanent, Transient
from menuwatch.core.http import Session
from menuwatch.core.telemetry import get_logger
from menuwatch.platforms.base import FoundStore, Menu, Normalized
from menuwatch.platforms.dutchie.paging import Ask, Pager
from menuwatch.platforms.fields import Field
from menuwatch.platforms.weedmaps import identity, page, stores
from menuwatch.platforms.weedmaps import normalize as normalizer
from menuwatch.platforms.weedmaps.fields import FIELDS

log = get_logger(__name__)

PER_PAGE = 100
_MAX_STORE_PAGES = 200
_ATTEMPTS = 3
_WORTH_ASKING_AGAIN = frozenset({"html", "truncated"})
_LISTINGS = "/discovery/v1/listings"

Answer = TypeVar("Answer")


class Weedmaps:
    """Implements `platforms.base.Platform`. One object serves any number of sessions at once.

    Without a `base_url` it reads recorded answers alone: it has no hosts, and what would need one raises Permanent.

    Verified on recorded answers: the shape of a menu and its paging (`meta.page` from 1, 100 items a page). As public callers ask: the
    list of stores and its filter by region, the record of one store by its slug. An assumption: that a menu is also given by the
    listing's id, and in the recorded shape (public callers of today are given another, which is refused as a changed schema).
    """

    name = "weedmaps"
    normalizer_version = normalizer.VERSION
    fields: Sequence[Field] = FIELDS

    def __init__(
        self,
        *,
        base_url: str = "",
        retry_base_seconds: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._retry_base_seconds = retry_base_seconds
        self._sleep = sleep
        self.hosts = frozenset({urlsplit(self._base_url).netloc.lower()}) if self._base_url else frozenset[str]()

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists the storefronts of a region, or all: page by page until one has nothing new, or is shorter than another."""
        region = {"filter[region_slug[dispensaries]]": _slug(city or state)} if city or state else {}
        where = {"filter[any_retailer_services][]": "storefront", **region, "size": str(PER_PAGE)}
        seen: set[str] = set()
        largest = 0
        for number in range(1, _MAX_STORE_PAGES + 1):
            params = {**where, "page": str(number), "page_size": str(PER_PAGE)}
            _, records = await self._ask(session, _LISTINGS, params, page.read_stores)
            new = 0
            for record in records:
                store = stores.found_store(record)
                if store.platform_dispensary_id in seen:
                    continue
                new += 1
                seen.add(store.platform_dispensary_id)
                yield store
            largest = max(largest, len(records))
            if not new or (number > 1 and len(records) < largest):
                return

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug, None when Weedmaps knows none."""
        path = f"{_LISTINGS}/dispensaries/{quote(slug, safe='')}"
        none: list[msgspec.Raw] = []
        _, records = await self._ask(session, path, {}, page.read_stores, absent=none)
        return stores.found_store(records[0]) if records else None

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Every page of one store's menu.

        Raises BadPayload (kind empty where there are no products), Blocked, Throttled, Transient.
        """
        path = f"{_LISTINGS}/dispensaries/{quote(platform_dispensary_id, safe='')}/menu_items"
        pager = Pager(PER_PAGE)
        bodies: list[bytes] = []
        step = Ask(0)
        while True:
            params = {"page": str(step.page + 1), "page_size": str(PER_PAGE)}
            body, found = await self._ask(session, path, params, page.read)
            ids = found.ids()
            if ids:
                bodies.append(body)
            after = pager.feed(ids, found.total_count, found.total_pages)
            if isinstance(after, Ask):
                if after.again:
                    await self._sleep(self._retry_base_seconds)
                step = after
                continue
            if after.empty:
                raise BadPayload("empty", f"the menu of listing {platform_dispensary_id} has no products", body)
            return Menu(
                pages=tuple(bodies),
                product_count=pager.product_count,
                total_count=pager.total_count,
                complete=after.complete,
                notes=pager.notes,
            )

    async def _ask(
        self,
        session: Session,
        path: str,
        params: Mapping[str, str],
        read: Callable[[bytes, int], Answer],
        *,
        absent: Answer | None = None,
    ) -> tuple[bytes, Answer]:
        """The body of an answer and what `read` makes of it; `absent` stands for 404, where it is given. An answer that is cut off, a
        web page or a server fault is asked for again in place."""
        if not self._base_url:
            raise Permanent("Weedmaps is not asked: WEEDMAPS_BASE_URL is not set")
        attempt = 1
        while True:
            problem: Transient
            try:
                response = await session.request(
                    "GET", self._base_url + path, params=params, headers={"accept": "application/json"}
                )
                if response.status == 404 and absent is not None:
                    return response.body, absent
                if response.status < 500:
                    return response.body, read(response.body, response.status)
                problem = Transient(f"{path}: the server failed with HTTP {response.status}")
            except BadPayload as error:
                if error.kind not in _WORTH_ASKING_AGAIN:
                    raise
                problem = error
            if attempt >= _ATTEMPTS:
                raise problem
            wait = self._retry_base_seconds * 2 ** (attempt - 1)
            log.info("asked again", action="page_retried", path=path, attempt=attempt, wait=wait, why=str(problem))
            await self._sleep(wait)
            attempt += 1

    def split(self, page_body: bytes) -> list[msgspec.Raw]:
        """The raw items of one page. Raises BadPayload where the page is no menu page, or holds no items."""
        return page.split(page_body)

    def totals(self, page_body: bytes) -> tuple[int | None, int | None]:
        """(products, pages) of the whole menu as its `meta` has them."""
        found = page.read(page_body)
        return found.total_count, found.total_pages

    def identity(self, item: msgspec.Raw) -> str | None:
        """The product id of a raw item."""
        return identity.identity(item)

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """The listing that the first item which says so is of."""
        found = stores.store_in(items)
        return found.platform_dispensary_id if found is not None else None

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """What the items tell of their store: id, slug and address."""
        return stores.store_in(items)

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products; see `normalize` for the rules."""
        return normalizer.normalize(items)

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in the address of a Weedmaps menu, None when it is none."""
        return stores.slug_of(menu_url)


def _slug(region: str | None) -> str:
    return "-".join((region or "").lower().split())
