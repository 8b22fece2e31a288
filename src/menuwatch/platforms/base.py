"""A platform is an adapter: it knows where menus are served and what their answers mean, and nothing of our tables.

The network half (`discover`, `resolve`, `fetch_menu`) runs in tasks that hold a session; the pure half (`split`, `normalize`)
reads archived answers and never touches the network, so any payload can be replayed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.core.http import Session
from menuwatch.platforms.fields import Field


class FoundStore(msgspec.Struct, frozen=True, kw_only=True):
    """One store as a platform lists it. `latitude`, `longitude` in degrees; `timezone` an IANA name; `problem` says why it
    cannot be crawled, None where it can."""

    platform_dispensary_id: str
    slug: str
    name_raw: str
    name: str
    address: str | None = None
    city: str | None = None
    state: str | None = None
    country: str | None = None
    zipcode: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    timezone: str | None = None
    phone: str | None = None
    is_recreational: bool | None = None
    is_medical: bool | None = None
    enterprise_id: str | None = None
    menu_url: str | None = None
    category_counts: dict[str, int] = {}
    problem: str | None = None
    raw: dict[str, Any] = {}


class Menu(msgspec.Struct, frozen=True, kw_only=True):
    """A whole menu as it came: the bodies of its pages, verbatim, in order.

    `complete` is false when pages are known to be missing: such a menu is archived, and changes no product. `notes` records
    what was odd (`page 3 was empty before the total`), `product_count` counts distinct products. `strict` are positions of pages that
    were found to be strict JSON (`core.strict`) when they were read, so that nobody need look again.
    """

    pages: tuple[bytes, ...]
    product_count: int
    total_count: int | None
    complete: bool
    notes: tuple[str, ...] = ()
    strict: frozenset[int] = frozenset()
    short: int = 0
    """About how many rows are missing by the menu's own pages and totals, though it counts as complete: totals lie, too."""


class Normalized(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of normalizing some raw items. Items and products need not be as many: a bad item is a warning."""

    products: tuple[Product, ...]
    warnings: tuple[ProductWarning, ...]


class Platform(Protocol):
    """What Menuwatch asks of a place that serves menus."""

    name: str
    hosts: frozenset[str]
    """The hosts that serve it, in lower case, with their ports where they are not the usual ones."""
    normalizer_version: int
    """Raised whenever `normalize` would give another product for the same item; stored products are then made anew."""

    fields: Sequence[Field]
    """What becomes of each field of its menus."""

    def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Lists stores."""
        ...

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that slug or id, None when the platform knows none."""
        ...

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Every page of one store's menu. Raises BadPayload, Blocked, Throttled, Transient."""
        ...

    def split(self, page: bytes) -> Sequence[msgspec.Raw]:
        """The raw items of one page, in order, undecoded. Raises BadPayload where the page is no menu page."""
        ...

    def totals(self, page: bytes) -> tuple[int | None, int | None]:
        """(products, pages) of the whole menu as one of its pages tells them, None where it does not. Raises BadPayload as `split`."""
        ...

    def identity(self, item: msgspec.Raw) -> str | None:
        """The product id of a raw item, the same that `normalize` gives it; None when it has none that can be read."""
        ...

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """The platform's id of the store that these items are of, None when they do not say."""
        ...

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """What these items tell of their store, for one that is not known yet; None when they do not say which it is."""
        ...

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products in the order of their items; of several items with one id the last wins.

        When every item gives a product of its own, the n-th product is the n-th item's.
        """
        ...

    def slug_of(self, menu_url: str) -> str | None:
        """The slug in the address of a menu on this platform, None when the address is not one of this platform's."""
        ...
