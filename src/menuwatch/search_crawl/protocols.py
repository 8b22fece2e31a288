"""Interfaces of search crawls: the site that is crawled, and the provider that fetches its pages.

A site is pure: it knows URLs and parses bodies. A provider takes an order for one page and delivers the page later: by calling our
webhook, or as a row written by one of our workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from menuwatch.core.errors import MenuwatchError

LARGEST_PAGE = 16_000_000
"""Bytes of a page, unpacked."""


class UrlType(StrEnum):
    """Kind of a page."""

    SEARCH = "search"
    PAGINATION = "pagination"
    PRODUCT = "product"


class Found(Struct, frozen=True, kw_only=True):
    """What a page leads to. `url` is absolute, on one of the site's hosts, and spelled one way only: a page has one address. `page`
    is the number of a page of results, counted from 1; None for a product."""

    url: str
    url_type: UrlType
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One form in which a product is sold. `weight_g` is in grams, packed; `price` in the product's currency."""

    variant_id: str
    sku: str | None
    name: str | None
    price: Decimal | None
    weight_g: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawledProduct:
    """A product as shown on its page. `listed` is how many shops sell it, by the site's own count. Texts hold no control
    characters; images are absolute URLs."""

    site_product_id: str
    name: str
    url: str
    price_min: Decimal | None
    price_max: Decimal | None
    currency: str
    weight_g: Decimal | None
    listed: int | None
    variants: tuple[Variant, ...] = ()
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Content of a page. `removed`: the product is no longer sold, which is a valid result. `total` is the number of results of
    the search, if the page states it."""

    found: tuple[Found, ...] = ()
    product: CrawledProduct | None = None
    removed: bool = False
    total: int | None = None


class BlockPage(MenuwatchError):
    """The body is a refusal instead of a page of the site: a challenge, a block, an empty shell. It may come with the next try."""


class Unreadable(MenuwatchError):
    """The body is not a valid page; the message says what is missing."""


class Site(Protocol):
    """A shop searched by keyword. No method does I/O."""

    name: str
    hosts: frozenset[str]
    """Hosts of its pages, in lower case, with non-default ports."""

    def search_url(self, keyword: str) -> str:
        """The address of the first page of results."""
        ...

    def read(self, url_type: UrlType, url: str, body: bytes) -> Page:
        """Parses the page. `body` is untrusted: raises only BlockPage and Unreadable, in time linear to its size."""
        ...


class Order(Struct, frozen=True, kw_only=True):
    """A page to fetch. `reference` is returned with the delivery; `postback_url` is the webhook, None if the provider needs none;
    `country` is two letters, lower case."""

    url: str
    site: str
    reference: str
    postback_url: str | None = None
    country: str | None = None


class Delivery(Struct, frozen=True, kw_only=True):
    """What a provider brings: a page inline (`html`, bytes as they came, perhaps compressed) or where it lies (`html_url`), or an
    `error`."""

    reference: str
    ok: bool
    error: str | None = None
    html: bytes | None = None
    html_url: str | None = None
    request_id: str | None = None


class OrderRefused(MenuwatchError):
    """The provider did not take the order. `retry_after` is in seconds, None where it named no time; `final`: it will never take
    it."""

    def __init__(self, message: str, *, retry_after: float | None = None, final: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.final = final


class BadWebhook(MenuwatchError):
    """The webhook body has the wrong shape; the message names the error without quoting the body."""


class Provider(Protocol):
    """A service that fetches pages."""

    @property
    def name(self) -> str:
        """Name stored with jobs."""
        ...

    @property
    def needs_webhook(self) -> bool:
        """Whether it brings pages by calling us."""
        ...

    async def submit(self, order: Order) -> str | None:
        """Hands an order over; returns the provider's own id of it. Raises OrderRefused; nothing else for whatever the provider
        answers."""
        ...

    def read_webhook(self, body: object) -> list[Delivery]:
        """The deliveries in a decoded JSON body (a list, one result, or results in an envelope), in order. Raises BadWebhook."""
        ...
