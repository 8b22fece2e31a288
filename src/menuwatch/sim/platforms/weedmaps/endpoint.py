"""The discovery API of Weedmaps: the list of stores, one store, and menus by the store's id or slug.

Which keys exist, which are null and what they are called follows the recordings; see there before changing anything. Version 1 serves
menus as the live one of 2021 (`live`), every other version as the recorded ones of 2024: which request gave those is not
known. Stores are as the 311 recorded listings. Pages count from 1 and hold at most 100 items; a page beyond the last is empty. An
unknown store is 404.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import unquote

import msgspec

from menuwatch.sim.endpoint import MAX_PER_PAGE, Body, Endpoint, Menus
from menuwatch.sim.expected import OptionRow, Row, Strength, dollars
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.platforms.weedmaps.items import iso, render_item
from menuwatch.sim.platforms.weedmaps.live import SOLD_BY_MASS, render_live_item
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES, STATE_NAMES

_LISTINGS = re.compile(r"/discovery/v\d+/listings/?")
_LISTING = re.compile(r"/discovery/v(?P<version>\d+)/listings/dispensaries/(?P<key>[^/]+)(?P<menu>/menu_items)?/?")
_REGION = "filter[region_slug[dispensaries]]"

# Weedmaps sells by the weights that it knows, or by the package.
_EACH: tuple[Sizes, ...] = ((("each", None, 24),), (("each", None, 38),))
_LABELLED: dict[str, tuple[Sizes, ...]] = {
    "Flower": (
        (("1/8 oz", 3.5, 34),), (("1 g", 1.0, 11),), (("1 g", 1.0, 11), ("1/8 oz", 3.5, 34)),
        (("1/8 oz", 3.5, 32), ("1/4 oz", 7.0, 60), ("1/2 oz", 14.0, 105), ("1 oz", 28.0, 180)), (("each", None, 30),),
    ),
    "Concentrate": ((("1 g", 1.0, 43),), (("1/2 g", 0.5, 26), ("1 g", 1.0, 43)), (("each", None, 35),)),
    "Pre-Rolls": ((("1 g", 1.0, 9),), (("each", None, 12),)),
}  # fmt: skip

UNCOUNTED_SHARE = 0.3
"""Stores that say no quantities: of the recorded New Mexican items a quarter to a third have none."""

_encoder = msgspec.json.Encoder()


class DiscoveryEndpoint(Endpoint):
    """The discovery API of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_live_item, faults, stats)
        self._recorded = Menus(market, render_item)

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not this API's."""
        listing = _LISTING.fullmatch(request.path)
        if listing is None and not _LISTINGS.fullmatch(request.path):
            return None
        if request.method != "GET":
            return self._refuse(405, "Method Not Allowed")
        number, size = _number(request, "page", 1), _number(request, "page_size", 20)
        if number is None or size is None:
            return self._refuse(422, "page and page_size are numbers from 1 on")
        size = min(size, MAX_PER_PAGE)
        if listing is None:
            api_request = self._log("listings", identity, None, number - 1)
            return self._respond(api_request, None, lambda _: self._stores(request, number, size))
        store = self._market.find(unquote(listing["key"]), "weedmaps")
        if store is None:
            return self._refuse(404, "Listing not found")
        if listing["menu"] is None:
            api_request = self._log("listing", identity, store, 0)
            return self._respond(api_request, store, lambda _: Body(_json({"listing": self._record(store)})))
        api_request = self._log("menu_items", identity, store, number - 1)
        return self._respond(
            api_request,
            store,
            lambda emptied: self._menu(
                store, api_request, number, size, emptied=emptied, live=listing["version"] == "1"
            ),
        )

    def _refuse(self, status: int, detail: str) -> Response:
        self._stats.refused()
        return Response(status, msgspec.json.encode({"errors": [{"status": str(status), "detail": detail}]}))

    def _stores(self, request: Request, number: int, size: int) -> Body:
        region = request.query.get(_REGION)
        stores = [
            store
            for store in self._market.on("weedmaps")
            if region is None or region in (_region(STATE_NAMES.get(store.state, "")), _region(store.city))
        ]
        listings = [self._record(store) for store in stores[(number - 1) * size : number * size]]
        return Body(_json({"listings": listings}, total_listings=len(stores)))

    def _menu(
        self, store: SimStore, api_request: ApiRequest, number: int, size: int, *, emptied: bool, live: bool
    ) -> Body:
        states = (self._menus if live else self._recorded).menu(store, self.tick)
        page = self._menu_page([body for _, body in states], api_request, size, emptied=emptied)
        rows = b",".join(page.rows)
        if live:
            updated = iso(max((state.updated_ms for state, _ in states), default=0))
            meta = {"total_menu_items": page.stated_total, "updated_at": updated, "has_live_menu": True}
            body = b'{"meta":%s,"data":{"menu_items":[%s]}}' % (_encoder.encode(meta), rows)
        else:
            # In the recordings per_page is the requested size, even if fewer are served.
            meta = {"page": number, "per_page": size, "total": page.stated_total}
            body = b'{"meta":%s,"data":[%s]}' % (_encoder.encode(meta), rows)
        return Body(body, (number - 1, page.pages) if number <= max(page.pages, 1) else None)

    def _record(self, store: SimStore) -> dict[str, Any]:
        """A store as lists have it."""
        both = store.recreational and store.medical
        items = len(self._market.menu(store, self.tick))
        wmid = 100_000_000 + int(store.id)
        return {
            "id": int(store.id),
            "wmid": wmid,
            "name": store.name,
            "slug": store.slug,
            "type": "dispensary",
            "license_type": "hybrid" if both else "recreational" if store.recreational else "medical",
            "address": store.street,
            "city": store.city,
            "state": STATE_NAMES[store.state],
            "zip_code": store.zipcode,
            "latitude": store.latitude,
            "longitude": store.longitude,
            "timezone": store.timezone,
            "phone_number": store.phone,
            "web_url": f"https://weedmaps.com/dispensaries/{store.slug}",
            "package_level": ("free", "basic", "listing_plus")[int(store.id) % 3],
            "ranking": round(2 + store.latitude % 2, 6),
            "rating": round(3 + store.latitude % 2, 1),
            "reviews_count": int(abs(store.longitude) * 3),
            "menu_items_count": items,
            "verified_menu_items_count": items // 3,
            "has_sale_items": False,
            "is_published": True,
            "open_now": False,
            "todays_hours_str": "10:00am -  7:00pm",
            "menu_id": wmid,
        }


def _region(name: str) -> str:
    """The name of a state or city in addresses."""
    return "-".join(name.lower().split())


def _number(request: Request, name: str, otherwise: int) -> int | None:
    """The parameter, None where it is no number from 1 on."""
    text = request.query.get(name)
    if text is None:
        return otherwise
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 and int(text) > 0 else None


def _json(data: Any, **meta: Any) -> bytes:
    return msgspec.json.encode({"meta": meta, "data": data})


class _Weedmaps(SimPlatform):
    """Live menus: an option has one price, that of the shop's licence, and a percentage off makes its special one; stock is not
    there; a potency is that of what is sold by its own mass, and one of zero is none."""

    name = "weedmaps"
    first_index = 100_000

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        place_in_row = (0.5 + seed % 7 * 0.13 + number * 0.6180339887) % 1
        shop = SHOP_NAMES[(number + 2) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        name = f"{store_name(shop, store.city, number)} Dispensary"
        return plain_store(
            store,
            self.name,
            shop,
            id=str(300_100 + 7 * number),
            slug=slug_of(name),
            name=name,
            counting="none" if place_in_row < UNCOUNTED_SHARE else "manual",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return DiscoveryEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for i, option in enumerate(state.product.options):
            price = dollars(state.prices[i])
            special = None if off is None else dollars((state.prices[i] * (100 - off) + 50) // 100)
            rec = store.recreational
            yield OptionRow(
                option=option,
                price_rec=price if rec else None,
                special_rec=special if rec else None,
                price_med=None if rec else price,
                special_med=None if rec else special,
                quantity=None,
                stock="unknown",
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        if state.product.category not in SOLD_BY_MASS:
            return replace(row, thc=None, cbd=None)
        return replace(row, thc=_percentage(row.thc), cbd=_percentage(row.cbd))

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return str(int(store.id) * 100_000 + serial)

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_LABELLED.get(category, _EACH))


def _percentage(strength: Strength | None) -> Strength | None:
    return strength if strength is not None and strength.unit == "%" and strength.hi > 0 else None


PLATFORM = _Weedmaps()
