"""The Dovetail adapter: its requests, and the addresses of its menus.

`GET /wp-json/dovetail-api/v1/products?page=1&perpage=50&orderby=menu_setting&order=asc&retailer=tampa&menutype=medical` on the shop's
own host; pages count from 1. As recorded, but for `categories[]`: without it, the whole menu is expected. No list of shops is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from menuwatch.core.errors import Permanent
from menuwatch.core.http import Response, Session
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dovetail import answers, normalize
from menuwatch.platforms.dovetail.menu_id import API_PATH, MENU_TYPES, MenuId, of_api_url, of_shop_url
from menuwatch.platforms.dovetail.payload import FIELDS, ITEMS_PATH
from menuwatch.platforms.model import FoundStore, Page, PageInfo


class Dovetail(Platform):
    """A store's id is `host/retailer/menutype`. With a `base_url` other than `own`, the host is the first step of the path."""

    name = "dovetail"
    normalizer_version = normalize.VERSION
    fields = FIELDS
    items = normalize.ITEMS
    items_path = ITEMS_PATH
    per_page = 50
    own_sites = True
    lists_stores = False
    example_url = "https://www.shop.example/tampa/shop/"

    def read_page(self, body: bytes) -> Page:
        return answers.read(body)

    async def menu_page(self, session: Session, platform_dispensary_id: str, number: int) -> tuple[bytes, PageInfo]:
        menu = MenuId.parse(platform_dispensary_id)
        if menu is None or menu.menu_type is None:
            raise Permanent(f"{platform_dispensary_id!r} is not a menu of Dovetail: its id is host/retailer/menutype")
        page = await self._request(session, menu, number, self.per_page)
        return page if page is not None else self._unknown(menu)

    def _unknown(self, menu: MenuId) -> tuple[bytes, PageInfo]:
        raise Permanent(f"{menu.host} has no menu of the retailer {menu.retailer!r}: it answers 404")

    async def resolve(self, session: Session, slug: str) -> FoundStore | None:
        """The store with that id; of an id without a type of menu, the first of the recreational and the medical menu that has
        products. None if neither has. Raises Permanent if both menus are the same: which prices they show would be a guess."""
        menu = MenuId.parse(slug)
        if menu is None:
            return None
        types = (menu.menu_type,) if menu.menu_type else MENU_TYPES
        found: dict[MenuId, bytes] = {}
        for menu_type in types:
            asked = menu._replace(menu_type=menu_type)
            page = await self._request(session, asked, 0, self.per_page)
            if page is not None and page[1].ids:
                found[asked] = page[0]
        if len(found) == len(MENU_TYPES) and len(set(map(answers.results, found.values()))) == 1:
            raise Permanent(
                f"{menu.host} shows the same menu as recreational and as medical: add the one that it is, by an address with "
                "menutype=recreational or menutype=medical"
            )
        return _found_store(next(iter(found))) if found else None

    async def _request(
        self, session: Session, menu: MenuId, number: int, per_page: int
    ) -> tuple[bytes, PageInfo] | None:
        """One page as it is archived; None for a 404."""
        if not self.requested:
            raise self._not_requested()
        params = {
            "page": str(number + 1),
            "perpage": str(per_page),
            "orderby": "menu_setting",
            "order": "asc",
            "retailer": menu.retailer,
            "menutype": menu.menu_type or MENU_TYPES[0],
        }
        root = f"{self.base_url}/{quote(menu.host, safe='')}" if self.base_url else f"https://{menu.host}"

        def read(response: Response) -> PageInfo | None:
            if response.status == 404:
                return None
            return answers.read_answer(response.body, response.status).inspect(self.identity)

        body, info = await self.retry.answer(
            lambda: session.request("GET", root + API_PATH, params=params, headers={"accept": "application/json"}),
            read,
            what=f"{menu.host}{API_PATH}",
        )
        if info is None:
            return None
        shown = {name: value for name, value in params.items() if name not in ("retailer", "menutype")}
        return answers.wrap(body, menu.api_url(**shown)), info

    def store_in(self, items: Iterable[msgspec.Raw]) -> FoundStore | None:
        """The menu that was requested; for a bare answer, the retailer in the items' links."""
        store = self.store_of(items)
        menu = MenuId.parse(store) if store else None
        return _found_store(menu) if menu is not None else None

    def slug_of(self, menu_url: str) -> str | None:
        """The id in the address of a request to the plugin, None for other URLs."""
        menu = of_api_url(menu_url)
        return str(menu) if menu is not None else None

    def slug_on_site(self, menu_url: str) -> str | None:
        """The id in any address of a shop that names the retailer."""
        menu = of_shop_url(menu_url)
        return str(menu) if menu is not None else None

    def hosts_of(self, platform_dispensary_id: str | None) -> frozenset[str]:
        """The shop's own host, or that of `base_url`."""
        menu = MenuId.parse(platform_dispensary_id) if platform_dispensary_id and self.requested else None
        return frozenset({menu.host}) if menu is not None and not self.base_url else self.hosts


def _found_store(menu: MenuId) -> FoundStore:
    """Nothing but its id is known of a store."""
    name = f"{menu.retailer} ({menu.host})"
    return FoundStore(
        platform_dispensary_id=str(menu),
        slug=str(menu),
        name_raw=name,
        name=name,
        is_recreational=True if menu.menu_type == "recreational" else None,
        is_medical=True if menu.menu_type == "medical" else None,
        menu_url=menu.api_url(),
    )
