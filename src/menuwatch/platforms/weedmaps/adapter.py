"""The Weedmaps platform: what Menuwatch asks of it, put together from this package's parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from menuwatch.core.errors import Permanent
from menuwatch.core.http import Response, Session
from menuwatch.platforms.asking import Asking
from menuwatch.platforms.base import FoundStore, Menu, Normalized
from menuwatch.platforms.fields import Field
from menuwatch.platforms.walk import Survey, all_stores, whole_menu
from menuwatch.platforms.weedmaps import identity, page, stores
from menuwatch.platforms.weedmaps import normalize as normalizer
from menuwatch.platforms.weedmaps.fields import FIELDS
from menuwatch.platforms.weedmaps.regions import region_slug

PER_PAGE = 100
_LISTINGS = "/discovery/v1/listings"

Answer = TypeVar("Answer")


class Weedmaps:
    """Implements `platforms.base.Platform`. One object serves any number of sessions at once.

    Without a `base_url` it reads recorded answers alone: it has no hosts, and what would need one raises Permanent.

    Verified on recorded answers: the shape of a menu and its paging (`meta.page` from 1, 100 items a page). As public callers ask: the
    list of stores and its filter by region, the record of one store by its slug. Assumptions: that a region is called by the name of
    its state or city (`new-mexico`); that a menu is also given by the listing's id, and in the recorded shape (public callers of today
    are given another, which is refused as a changed schema).
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
        self._asking = Asking(retry_base_seconds, sleep)
        self.hosts = frozenset({urlsplit(self._base_url).netloc.lower()}) if self._base_url else frozenset[str]()

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists the storefronts of a region, or all."""
        region = region_slug(state=state, city=city)
        where = {"filter[any_retailer_services][]": "storefront", "size": str(PER_PAGE)}
        if region is not None:
            where["filter[region_slug[dispensaries]]"] = region

        async def page_of(number: int) -> list[FoundStore]:
            params = {**where, "page": str(number + 1), "page_size": str(PER_PAGE)}
            _, records = await self._ask(session, _LISTINGS, params, page.read_stores)
            return [stores.found_store(record) for record in records]

        async for store in all_stores(page_of):
            yield store

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

        async def page_of(number: int) -> tuple[bytes, Survey]:
            params = {"page": str(number + 1), "page_size": str(PER_PAGE)}
            return await self._ask(session, path, params, page.survey)

        return await whole_menu(page_of, per_page=PER_PAGE, store=platform_dispensary_id, pause=self._asking.pause)

    async def _ask(
        self,
        session: Session,
        path: str,
        params: Mapping[str, str],
        read: Callable[[bytes, int], Answer],
        *,
        absent: Answer | None = None,
    ) -> tuple[bytes, Answer]:
        """The body of an answer and what `read` makes of it; `absent` stands for 404, where it is given."""
        if not self._base_url:
            raise Permanent("Weedmaps is not asked: WEEDMAPS_BASE_URL is not set")

        def read_it(response: Response) -> Answer:
            if response.status == 404 and absent is not None:
                return absent
            return read(response.body, response.status)

        return await self._asking.answer(
            lambda: session.request(
                "GET", self._base_url + path, params=params, headers={"accept": "application/json"}
            ),
            read_it,
            what=path,
        )

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
        return stores.store_of(items)

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """What the items tell of their store: id, slug, address, licences."""
        return stores.store_in(items)

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products; see `normalize` for the rules."""
        return normalizer.normalize(items)

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in the address of a Weedmaps menu, None when it is none."""
        return stores.slug_of(menu_url)
