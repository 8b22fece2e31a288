"""Which menu an item or an address is of: the shop's host, the retailer on it, and whether the menu is recreational or medical.

The id of a store is `host/retailer/menutype`. The type of the menu is part of it, because the same products have other prices on the
other menu, and an answer says neither which of the two it is nor which price is whose.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlencode

from menuwatch.platforms.base import site_host, split_url

API_PATH = "/wp-json/dovetail-api/v1/products"
MENU_TYPES = ("recreational", "medical")
_API = "/wp-json/dovetail-api/"
_RETAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,99}")
_PAGES = frozenset(
    {
        "shop", "menu", "store", "stores", "product", "products", "brands", "brand", "deals", "specials", "wp-json", "wp-content",
        "cart", "checkout", "about", "contact", "blog",
    }
)  # fmt: skip
"""Path segments that are pages of a site and no retailer."""


class MenuId(NamedTuple):
    """One menu. `menu_type` is None where an address does not say it."""

    host: str
    retailer: str
    menu_type: str | None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Of `host/retailer` or `host/retailer/menutype`; None for anything else."""
        host, _, rest = text.partition("/")
        retailer, _, menu_type = rest.partition("/")
        if site_host(host) != host or not _RETAILER.fullmatch(retailer):
            return None
        return cls(host, retailer, menu_type or None) if not menu_type or menu_type in MENU_TYPES else None

    def __str__(self) -> str:
        return "/".join(part for part in self if part)

    def api_url(self, **params: str) -> str:
        """The address of its products."""
        more = {"menutype": self.menu_type} if self.menu_type else {}
        return f"https://{self.host}{API_PATH}?{urlencode({**params, 'retailer': self.retailer, **more})}"


def of_api_url(text: str) -> MenuId | None:
    """The menu in the address of a request to the plugin; None for other addresses, and without a retailer."""
    parts = split_url(text)
    if parts is None or _API not in parts.path:
        return None
    host, query = parts.netloc.rpartition("@")[2].lower(), parse_qs(parts.query)
    retailer, menu_type = query.get("retailer", [""])[0], query.get("menutype", [""])[0].lower()
    return MenuId.parse(f"{host}/{retailer}/{menu_type}".rstrip("/")) if retailer else None


def of_shop_url(text: str) -> MenuId | None:
    """The menu in any address of a shop that is known to have the plugin: the retailer is in the query (`retailer`), stands before
    `shop` in the path, or is all of the path; None where none of these holds, as on the site's front page."""
    parts = split_url(text)
    if parts is None or not parts.netloc:
        return None
    if _API in parts.path:
        return of_api_url(text)
    query = parse_qs(parts.query)
    menu_type = query.get("menutype", [""])[0].lower()
    host = parts.netloc.rpartition("@")[2].lower()
    segments = [unquote(segment) for segment in parts.path.split("/") if segment]
    retailer = query.get("retailer", [""])[0] or retailer_in(parts.path)
    if not retailer and len(segments) == 1 and segments[0].lower() not in _PAGES:
        retailer = segments[0]
    return MenuId.parse(f"{host}/{retailer}/{menu_type}".rstrip("/")) if retailer else None


def retailer_in(path: str) -> str | None:
    """The retailer in the path of a shop's page (`/tampa/shop/red-velvet-1-8oz/`), None without one."""
    segments = [unquote(segment) for segment in path.split("/") if segment]
    if len(segments) < 2 or segments[1].lower() != "shop" or segments[0].lower() in _PAGES:
        return None
    return segments[0]


def of_item(menu_of: str | None, link: str | None) -> MenuId | None:
    """The menu of an item: the one that was requested, or, where the item's own link names another retailer, that one's."""
    requested = MenuId.parse(menu_of) if menu_of else None
    parts = split_url(link) if link else None
    linked = retailer_in(parts.path) if parts is not None else None
    if requested is None:
        return MenuId.parse(f"{parts.netloc.lower()}/{linked}") if parts is not None and linked else None
    if linked and linked.lower() != requested.retailer.lower():
        return MenuId.parse(str(requested._replace(retailer=linked)))
    return requested
