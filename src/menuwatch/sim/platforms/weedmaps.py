"""The discovery API of Weedmaps: the list of stores, one store, and menus by the store's id or slug.

Items have the keys of the recorded menus of 2024; which keys exist, which are null and what they are called follows the recordings;
see there before changing anything. Stores are as public callers see them. Pages count from 1 and hold at most 100 items; a page beyond
the last is empty. An unknown store is 404.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import unquote

import msgspec

from menuwatch.sim.endpoint import MAX_PER_PAGE, Body, Endpoint
from menuwatch.sim.expected import OptionRow, Row, Strength, dollars, option_stock
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, store_name
from menuwatch.sim.model import ProductState, SimProduct, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import REGIONS, SHOP_NAMES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LISTINGS = re.compile(r"/discovery/v\d+/listings/?")
_LISTING = re.compile(r"/discovery/v\d+/listings/dispensaries/([^/]+)(/menu_items)?/?")
_REGION = "filter[region_slug[dispensaries]]"

# The label of a weight: its long name, weight, unit, and where it stands among the prices.
_WEIGHTS = {
    "1/2 g": ("1/2 gram", 0.5, "g", "price_half_gram"),
    "1 g": ("1 gram", 1, "g", "price_gram"),
    "1/8 oz": ("1/8 ounce", 0.125, "oz", "price_eighth"),
    "1/4 oz": ("1/4 ounce", 0.25, "oz", "price_quarter"),
    "1/2 oz": ("1/2 ounce", 0.5, "oz", "price_half_ounce"),
    "1 oz": ("1 ounce", 1, "oz", "price_ounce"),
}
_PRICES = (
    "price_unit", "price_half_gram", "price_gram", "price_two_grams", "price_eighth", "price_quarter", "price_half_ounce",
    "price_ounce",
)  # fmt: skip

# (category, its id) of what the market calls so, and the subcategory by the market's word; None is for all other words.
_KINDS: dict[str, tuple[str, int, dict[str | None, str]]] = {
    "Flower": ("Flower", 2, {"infused-buds": "Infused Flower", None: "Flower"}),
    "Pre-Rolls": ("Flower", 2, {"infused": "Infused Pre Roll", None: "Pre Roll"}),
    "Vaporizers": ("Vape Pens", 5, {"disposables": "Disposable", "live-resin-disposable": "Disposable", None: "Cartridge"}),
    "Concentrate": ("Concentrates", 3, {"badder": "Budder", "budder": "Budder", "crumble": "Crumble", "rosin": "Rosin",
                                        "live-resin": "Live Resin", None: "Concentrates"}),
    "Edible": ("Edibles", 4, {"gummies": "Gummies", "chocolates": "Chocolates", "drinks": "Drinks", None: "Edibles"}),
    "Tincture": ("Edibles", 4, {None: "Tincture"}),
    "Topicals": ("Topicals", 6, {"lotions": "Lotions", "bath-products": "Bombs", None: "Balms & Salves"}),
    "Oral": ("Edibles", 4, {None: "Capsules"}),
    "Accessories": ("Gear", 7, {"batteries": "Batteries", "grinders": "Grinders", "dab-tools": "Dab Tools", None: "Accessories"}),
}  # fmt: skip

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
        super().__init__(market, render_item, faults, stats)

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
        store = self._market.find(unquote(listing[1]), "weedmaps")
        if store is None:
            return self._refuse(404, "Listing not found")
        if listing[2] is None:
            api_request = self._log("listing", identity, store, 0)
            return self._respond(api_request, store, lambda _: Body(_json({"listing": self._record(store)})))
        api_request = self._log("menu_items", identity, store, number - 1)
        return self._respond(
            api_request, store, lambda emptied: self._menu(store, api_request, number, size, emptied=emptied)
        )

    def _refuse(self, status: int, detail: str) -> Response:
        self._stats.refused()
        return Response(status, msgspec.json.encode({"errors": [{"status": str(status), "detail": detail}]}))

    def _stores(self, request: Request, number: int, size: int) -> Body:
        region = request.query.get(_REGION)
        stores = [
            store
            for store in self._market.on("weedmaps")
            if region is None or region in (REGIONS.get(store.state), "-".join(store.city.lower().split()))
        ]
        listings = [self._record(store) for store in stores[(number - 1) * size : number * size]]
        return Body(_json({"listings": listings}, total_listings=len(stores)))

    def _menu(self, store: SimStore, api_request: ApiRequest, number: int, size: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)]
        page = self._menu_page(rows, api_request, size, emptied=emptied)
        # In the recordings per_page is the requested size, even if fewer are served.
        meta = {"page": number, "per_page": size, "total": page.stated_total}
        body = b'{"meta":%s,"data":[%s]}' % (msgspec.json.encode(meta), b",".join(page.rows))
        return Body(body, (number - 1, page.pages) if number <= max(page.pages, 1) else None)

    def _record(self, store: SimStore) -> dict[str, Any]:
        """A store as lists have it."""
        both = store.recreational and store.medical
        return {
            "id": int(store.id),
            "type": "dispensary",
            "slug": store.slug,
            "name": store.name,
            "license_type": "hybrid" if both else "recreational" if store.recreational else "medical",
            "address": store.street,
            "city": store.city,
            "state": store.state,
            "country": store.country,
            "zip_code": store.zipcode,
            "latitude": store.latitude,
            "longitude": store.longitude,
            "timezone": store.timezone,
            "phone_number": store.phone,
            "web_url": f"https://weedmaps.com/dispensaries/{store.slug}",
            "menu_items_count": len(self._market.menu(store, self.tick)),
            "rating": round(3 + store.latitude % 2, 1),
            "reviews_count": int(abs(store.longitude) * 3),
            "online_ordering": {"enabled_for_pickup": True, "enabled_for_delivery": False},
        }


def _number(request: Request, name: str, otherwise: int) -> int | None:
    """The parameter, None where it is no number from 1 on."""
    text = request.query.get(name)
    if text is None:
        return otherwise
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 and int(text) > 0 else None


def _json(data: Any, **meta: Any) -> bytes:
    return msgspec.json.encode({"meta": meta, "data": data})


def render_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `data`."""
    return _encoder.encode(item_document(state, store))


def item_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `data`, its keys in the order of the recordings."""
    product = state.product
    category, category_id, words = _KINDS[product.category]
    subcategory = words.get(product.subcategory, words[None])
    off = percent_off(state, store)
    image_url = _image_url(product)
    by_weight = [i for i, option in enumerate(product.options) if option in _WEIGHTS]
    path = f"/dispensaries/{store.slug}/menu/{product.slug}"
    return {
        "id": int(product.id),
        "type": "menu_item",
        "attributes": {
            "name": product.name,
            "slug": product.slug,
            "category_name": category,
            "body": f"<p>{product.description}</p>" if product.description else "",
            "is_published": state.active,
            "license_type": "recreational" if store.recreational else "medical",
            "online_orderable": True if product.serial % 6 else None,
            "picture_url": image_url,
            "position": None,
            "original_picture_url": image_url,
            "avatar_image_url": image_url,
            "is_badged": product.library_id is not None,
            "brand_name": product.brand.label if product.brand is not None else None,
            "cannabinoids": _percentages(state),
            "genetics": _genetics(product.strain),
            "prices": {**dict.fromkeys(_PRICES, 0), **_prices(state), "prices_other": {}},
            "grams_per_eighth": "3.5 grams",
            "created_at": _iso(product.created_ms),
            "updated_at": _iso(state.updated_ms),
            "parent_category": {"id": category_id, "name": category, "slug": _slug(category)},
            "sub_category": {"id": 100 + len(subcategory), "name": subcategory, "slug": _slug(subcategory)},
            "measurements": _measurements(state),
            "variants": [_variant(state, i) for i in by_weight],
            "external_id": product.enterprise_id,
            "sale": None if off is None else {"amount": off, "type": "percentage"},
            "sku": None,
            "compliance_net_mg": None if by_weight else 5000,
            "compliance_net_precalc": None if by_weight else False,
            "cart_quantity_multiplier": None,
            "inventory_quantity": None if product.counting == "none" else sum(state.stock),
            "shared_inventory": None if product.counting == "none" else not by_weight and product.serial % 2 == 0,
        },
        "links": {"self": path, "order": f"https://weedmaps.com{path}"},
        "relationships": {
            "brand": None if product.brand is None else {"data": {"id": int(product.brand.id[:6], 16), "type": "brand"}},
            "listing": {"data": {"id": int(store.id), "type": "dispensary"}},
            "product": {"data": {"id": int(product.pos_number), "type": "product"}} if product.library_id else None,
            "strain": {"data": None},
            "categories": {"meta": {"total": 1}, "data": [{"id": category_id, "type": "category"}]},
            "tags": {"meta": {"total": 0}, "data": []},
            "menu_parent": {"data": {"id": 900_000_000 + int(store.id), "type": "listing"}},
        },
    }  # fmt: skip


def _prices(state: ProductState) -> dict[str, int | float]:
    """By the weights that there are; else by the package."""
    prices = {}
    for option, cents in zip(state.product.options, state.prices, strict=True):
        name = _WEIGHTS[option][3] if option in _WEIGHTS else "price_unit"
        prices[name] = cents // 100 if cents % 100 == 0 else cents / 100
    return prices


def _variant(state: ProductState, place: int) -> dict[str, Any]:
    product = state.product
    name, value, unit, _ = _WEIGHTS[product.options[place]]
    return {
        "name": name,
        "label": product.options[place],
        "price": {"amount": f"{state.prices[place] / 100:.2f}", "currency": "USD"},
        "weight": {"value": value, "unit": unit},
        "sku": None,
        "compliance_net_mg": None,
        "compliance_net_precalc": False,
        "cart_quantity_multiplier": None,
        "inventory_quantity": None if product.counting == "none" else state.stock[place],
    }


def _measurements(state: ProductState) -> list[dict[str, Any]]:
    """Rows of THC and CBD in the unit that they were measured in; what is measured in milligrams has a percentage of 0 beside it."""
    rows: list[dict[str, Any]] = []
    for name, content in (("THC", state.lab.thc), ("CBD", state.lab.cbd)):
        if content is None or content.range is None:
            continue
        unit = "mg" if content.unit == "MILLIGRAMS" else "%"
        rows.append(_measurement(state, name, unit, content.range[-1]))
        if unit == "mg":
            rows.append(_measurement(state, name, "%", 0.0))
    return rows


def _measurement(state: ProductState, name: str, unit: str, value: float) -> dict[str, Any]:
    return {
        "id": int(state.product.pos_number) * 10 + ("THC", "CBD").index(name) * 2 + ("%", "mg").index(unit),
        "name": name,
        "classification": "cannabinoid",
        "full_name": {"THC": "Tetrahydrocannabinol", "CBD": "Cannabidiol"}[name],
        "unit": unit,
        "value": str(value),
    }


def _percentages(state: ProductState) -> dict[str, str]:
    rows = (("thc", state.lab.thc), ("cbd", state.lab.cbd))
    return {
        name: str(content.range[-1])
        for name, content in rows
        if content is not None and content.range is not None and content.unit == "PERCENTAGE"
    }


def _genetics(strain: str | None) -> str | None:
    word = (strain or "").lower()
    return word if word in ("indica", "sativa", "hybrid") else "hybrid" if word.endswith("-hybrid") else None


def _image_url(product: SimProduct) -> str:
    """The category's image where the shop has none of its own."""
    if product.image and "-stock-" not in product.image:
        return product.image
    return f"https://images.weedmaps.com/placeholder/{_slug(product.category)}.jpg"


def _slug(text: str) -> str:
    return "-".join(text.lower().replace("&", " ").split())


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="seconds").replace("+00:00", "Z")


class _Weedmaps(SimPlatform):
    """An option has one price, that of the shop's licence, and a percentage off makes its special one; unpublished products are out of
    stock, uncounted ones unknown; a potency of zero is none."""

    name = "weedmaps"
    first_index = 100_000

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        place_in_row = (0.5 + seed % 7 * 0.13 + number * 0.6180339887) % 1
        shop = SHOP_NAMES[(number + 2) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        name = f"{store_name(shop, store.city, number)} Dispensary"
        return replace(
            store,
            id=str(300_100 + 7 * number),
            slug=slug_of(name),
            name=name,
            chain=slug_of(shop),
            counting="none" if place_in_row < UNCOUNTED_SHARE else "manual",
            reserve=0,
            threshold=0,
            medical_percent=0,
            old=False,
            platform="weedmaps",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return DiscoveryEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for i, option in enumerate(state.product.options):
            price = dollars(state.prices[i])
            special = None if off is None else dollars((state.prices[i] * (100 - off) + 50) // 100)
            quantity = None if state.product.counting == "none" else state.stock[i]
            rec = store.recreational
            yield OptionRow(
                option=option,
                price_rec=price if rec else None,
                special_rec=special if rec else None,
                price_med=None if rec else price,
                special_med=None if rec else special,
                quantity=quantity,
                stock=option_stock(quantity) if state.active else "oos",
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        return replace(row, thc=_nonzero(row.thc), cbd=_nonzero(row.cbd))

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return str(int(store.id) * 100_000 + serial)

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_LABELLED.get(category, _EACH))


def _nonzero(strength: Strength | None) -> Strength | None:
    return strength if strength is not None and strength.hi > 0 else None


PLATFORM = _Weedmaps()
