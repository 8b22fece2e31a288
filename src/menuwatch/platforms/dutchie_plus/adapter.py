"""Dutchie Plus as a platform that is read, and not asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from menuwatch.core.errors import Permanent
from menuwatch.core.http import Session
from menuwatch.platforms.base import FoundStore, Menu, Normalized
from menuwatch.platforms.dutchie import identity
from menuwatch.platforms.dutchie_plus import normalize as normalizer
from menuwatch.platforms.dutchie_plus import page
from menuwatch.platforms.dutchie_plus.fields import FIELDS
from menuwatch.platforms.fields import Field


class DutchiePlus:
    """Implements `platforms.base.Platform`; what would need the network raises Permanent."""

    name = "dutchie_plus"
    normalizer_version = normalizer.VERSION
    fields: Sequence[Field] = FIELDS
    hosts: frozenset[str] = frozenset()

    def discover(
        self, session: Session, *, state: str | None = None, city: str | None = None
    ) -> AsyncIterator[FoundStore]:
        """Raises Permanent."""
        raise _not_asked()

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """Raises Permanent."""
        raise _not_asked()

    async def fetch_menu(self, session: Session, platform_dispensary_id: str) -> Menu:
        """Raises Permanent."""
        raise _not_asked()

    def split(self, page_body: bytes) -> list[msgspec.Raw]:
        """The raw items of one page. Raises BadPayload where the page is no menu page, or holds no items."""
        return page.split(page_body)

    def totals(self, page_body: bytes) -> tuple[int | None, int | None]:
        """(products, pages) of the list that the page is of."""
        return page.totals(page_body)

    def identity(self, item: msgspec.Raw) -> str | None:
        """The product id of a raw item."""
        return identity.identity(item)

    def store_of(self, items: Iterable[msgspec.Raw]) -> str | None:
        """None: the answers do not say."""
        return None

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """None: the answers do not say."""
        return None

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        """Canonical products; see `normalize` for the rules."""
        return normalizer.normalize(items)

    def slug_of(self, menu_url: str) -> str | None:
        """None: its menus stand on shops' own sites."""
        return None


def _not_asked() -> Permanent:
    return Permanent("Dutchie Plus is read from recorded answers (`menuwatch replay`) and not asked for more")
