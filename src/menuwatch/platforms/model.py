"""What adapters give: stores, menus, pages of menus, normalized items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from menuwatch.catalog.model import Product, ProductWarning


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
    were found to be strict JSON (`core.strict_json`) when they were read, so that no check is repeated.
    """

    pages: tuple[bytes, ...]
    product_count: int
    total_count: int | None
    complete: bool
    notes: tuple[str, ...] = ()
    strict: frozenset[int] = frozenset()
    short: int = 0
    """Approximate number of rows missing by the menu's own pages and totals, although it counts as complete: totals are inexact."""


class Normalized(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of normalizing some raw items. Items and products need not be as many: a bad item is a warning."""

    products: tuple[Product, ...]
    warnings: tuple[ProductWarning, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a menu. The totals are None without plausible values. `partial`: it is a part of a menu, whatever the totals say."""

    items: list[msgspec.Raw]
    total_count: int | None
    total_pages: int | None
    partial: bool = False

    def inspect(self, identity: Callable[[msgspec.Raw], str | None]) -> PageInfo:
        """The page's data for paging; `identity` gives an item's product id."""
        return PageInfo(
            tuple([identity(item) for item in self.items]), self.total_count, self.total_pages, strict=False
        )


def page_count(total: int | None, per_page: int | None, rows: int) -> int | None:
    """Pages of a menu, by its total and the page size that the server states. None where a page of `rows` contradicts that size: a
    server that clamps pages may repeat the size that was requested, and an empty answer would then look like the menu's end."""
    if total is None or not per_page or rows < min(per_page, total):
        return None
    return -(-total // per_page)


class PageInfo(Struct, frozen=True):
    """A page's data for paging: `ids` has one entry per item, None without a readable id. `strict`: the body was found to be strict
    JSON.
    """

    ids: tuple[str | None, ...]
    total_count: int | None
    total_pages: int | None
    strict: bool
