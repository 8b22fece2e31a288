"""The Dutchie platform: what Menuwatch asks of it, put together from this package's parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from menuwatch.core.http import Session
from menuwatch.platforms.asking import Asking
from menuwatch.platforms.base import FoundStore, Menu, Normalized
from menuwatch.platforms.dutchie import identity, links, page
from menuwatch.platforms.dutchie import normalize as normalizer
from menuwatch.platforms.dutchie.client import Client
from menuwatch.platforms.dutchie.fields import FIELDS
from menuwatch.platforms.dutchie.queries import CONSUMER_DISPENSARIES, DEFAULT_HASHES, PER_PAGE
from menuwatch.platforms.dutchie.stores import found_store
from menuwatch.platforms.fields import Field
from menuwatch.platforms.walk import all_stores


class Dutchie:
    """Implements `platforms.base.Platform`. One object serves any number of sessions at once.

    `hashes` are merged over the built-in ones; an empty hash makes an operation always go by its full text. `retry_base_seconds` is
    the first wait before a page is asked for again.
    """

    name = "dutchie"
    normalizer_version = normalizer.VERSION
    fields: Sequence[Field] = FIELDS

    def __init__(
        self,
        *,
        base_url: str = "https://dutchie.com",
        graphql_path: str = "/api-3/graphql",
        hashes: Mapping[str, str] | None = None,
        retry_base_seconds: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._client = Client(
            endpoint=f"{self._base_url}/{graphql_path.lstrip('/')}",
            hashes={key: value for key, value in {**DEFAULT_HASHES, **(hashes or {})}.items() if value},
            asking=Asking(retry_base_seconds, sleep),
        )
        self.hosts = frozenset({urlsplit(self._base_url).netloc.lower()})

    async def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists the stores of a state or city, or all.

        Verified in public callers: the operation, its answer (`data.filteredDispensaries[]`, 116 keys a record) and the filter
        `cNameOrID`. An assumption: that the filter takes `state` and `city`, and that `page` and `perPage` beside it page
        the list; no public caller lists stores so.
        """
        where = {key: value for key, value in {"state": state, "city": city}.items() if value}

        async def page_of(number: int) -> list[FoundStore]:
            return await self._stores(session, {"dispensaryFilter": where, "page": number, "perPage": PER_PAGE})

        async for store in all_stores(page_of):
            yield store

    async def _stores(self, session: Session, variables: Mapping[str, Any]) -> list[FoundStore]:
        _, records = await self._client.ask(session, CONSUMER_DISPENSARIES, variables, page.read_stores)
        return [found_store(record, self._base_url) for record in records]

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug or id, None when Dutchie knows none (it answers with an empty list).

        Asked through ConsumerDispensaries with `cNameOrID`, as the five public callers do; `resolveDispensaryIdWithDetails`, which
        older documents name, was found in no caller.
        """
        found = await self._stores(session, {"dispensaryFilter": {"cNameOrID": slug}})
        return found[0] if found else None

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Every page of one store's menu.

        Raises BadPayload (kind empty where there are no products), Blocked, Throttled, Transient.
        """
        return await self._client.menu(session, platform_dispensary_id)

    def split(self, page_body: bytes) -> list[msgspec.Raw]:
        """The raw items of one page. Raises BadPayload where the page is no menu page, or holds no items."""
        return page.split(page_body)

    def totals(self, page_body: bytes) -> tuple[int | None, int | None]:
        """(products, pages) of the whole menu as its `queryInfo` has them."""
        found = page.read(page_body)
        return found.total_count, found.total_pages

    def identity(self, item: msgspec.Raw) -> str | None:
        """The product id of a raw item."""
        return identity.identity(item)

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """The store that the first item which says so is of."""
        return normalizer.store_of(items)

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """The store's id, which is all that items tell; a slug may be an id."""
        found = normalizer.store_of(items)
        return (
            None if found is None else FoundStore(platform_dispensary_id=found, slug=found, name_raw=found, name=found)
        )

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products; see `normalize` for the rules."""
        return normalizer.normalize(items)

    def slug_of(self, menu_url: str) -> str | None:
        """The slug or id in the address of a Dutchie menu, None when it is none."""
        return links.slug_of(menu_url, self.hosts)
