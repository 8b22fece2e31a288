"""The sites of shops with Joint: a page each, and the search that WordPress passes on to Elasticsearch.

All sites are at one address, a shop's page being at `/<host>/`. Products have the keys of the recorded ones (2025); which keys exist,
which are null and what they are called follows the recordings; see there before changing anything. Pages, nonces and the two addresses
of the search are as public callers see them: every second shop has the old address, and every third refuses requests without a nonce,
which is renewed at every tick.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from menuwatch.sim.batches import batch_of
from menuwatch.sim.endpoint import Body, Endpoint
from menuwatch.sim.expected import OptionRow, Row, dollars, option_stock
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import POS_CAP, Content, ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.product_factory import slug_of, uuid
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES

MOST_PER_PAGE = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEARCH = re.compile(r"/wp-json/joint-ecommerce/v1/products/([a-z0-9-]+)/_search/?")
_PAGE = re.compile(r"/([a-z0-9.-]+\.[a-z]+)(?:/[a-z-]+)*/?")
_INDEX = "ecommerce-production"

# (category, subcategory) of what the market calls so.
_KINDS = {
    "Flower": ("FLOWER", "DEFAULT"),
    "Pre-Rolls": ("PRE_ROLLS", "SINGLES"),
    "Vaporizers": ("VAPORIZERS", "CARTRIDGES"),
    "Concentrate": ("CONCENTRATES", "LIVE_RESIN"),
    "Edible": ("EDIBLES", "GUMMIES"),
    "Tincture": ("TINCTURES", "FLAVORED"),
    "Topicals": ("TOPICALS", "BALMS"),
    "Oral": ("ORALS", "CAPSULES_TABLETS"),
    "Accessories": ("ACCESSORIES", "GRINDERS"),
}
_SIZES: dict[str, tuple[Sizes, ...]] = {
    "Flower": ((("1/8oz", 3.5, 35),), (("1g", 1.0, 12),), (("1/8oz", 3.5, 34), ("1/4oz", 7.0, 60), ("1oz", 28.0, 180))),
    "Pre-Rolls": ((("1g", 1.0, 10),), ((".5g", 0.5, 7), ("1g", 1.0, 11))),
    "Vaporizers": (((".5g", 0.5, 32),), (("1g", 1.0, 54),)),
    "Concentrate": ((("1g", 1.0, 42),), ((".5g", 0.5, 25), ("1g", 1.0, 42))),
    "Edible": (((".1g", None, 20),), (("0.025g", None, 7),), ((".1g", None, 20), (".2g", None, 36))),
    "Accessories": ((("N/A", None, 22),),),
}
_STRAINS = {
    "Indica": "INDICA", "Sativa": "SATIVA", "Hybrid": "HYBRID", "Indica-Hybrid": "INDICA_HYBRID",
    "Sativa-Hybrid": "SATIVA_HYBRID", "1 to 1": "ONE_TO_ONE",
}  # fmt: skip
_UNITS = {"PERCENTAGE": "%", "MILLIGRAMS": "mg", "MILLIGRAMS_PER_GRAM": "mg/g"}
_NAMES = {
    "THCA": "THCA (Δ9-tetrahydrocannabinolic acid)",
    "D9": "THC-D9 (Delta 9–tetrahydrocannabinol)",
    "CBG": "CBG (Cannabigerol)",
}
_encoder = msgspec.json.Encoder()


class JointEndpoint(Endpoint):
    """The sites of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_item, faults, stats)
        self._businesses = {business_of(store): store for store in market.on("joint")}

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is no site's."""
        search = _SEARCH.fullmatch(request.path)
        if search is not None:
            return self._search(request, search[1], identity)
        page = _PAGE.fullmatch(request.path)
        store = self._market.find(page[1], "joint") if page is not None else None
        if store is None or request.method != "GET":
            return None
        api_request = self._log("site_page", identity, store, 0)
        html = site_page(store, self._nonce(store)).encode()
        response = self._respond(api_request, store, lambda _: Body(html))
        return replace(response, content_type="text/html; charset=UTF-8")

    def _nonce(self, store: SimStore) -> str:
        return sha256(f"{store.id}:{self.tick}".encode()).hexdigest()[:10]

    def _search(self, request: Request, route: str, identity: Identity) -> Response:
        if request.method != "POST":
            return self._refuse(404, "rest_no_route", "No route was found matching the URL and request method.")
        try:
            query = msgspec.json.decode(request.body)
            terms = [row["bool"]["should"][0]["term"] for row in query["query"]["bool"]["filter"]]
            business, menu, start, size = (
                terms[0]["businessId"],
                terms[1]["menuType"],
                int(query["from"]),
                int(query["size"]),
            )
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
            return self._refuse(400, "rest_invalid_param", "Invalid query")
        store = self._businesses.get(str(business))
        if route != (str(business) if store is not None and has_old_route(store) else _INDEX):
            return self._blocked(identity, store) or self._refuse(
                404, "rest_no_route", "No route was found matching the URL and request method."
            )
        if store is not None and wants_nonce(store) and request.headers.get("x-wp-nonce") != self._nonce(store):
            return self._blocked(identity, store) or self._refuse(
                403, "rest_cookie_invalid_nonce", "Cookie check failed"
            )
        if size < 1 or start < 0 or start % size:
            return self._refuse(400, "rest_invalid_param", "Invalid query")
        size = min(size, MOST_PER_PAGE)
        api_request = self._log("search", identity, store, start // size)
        shown = store if menu == "RECREATIONAL" else None
        return self._respond(
            api_request, store, lambda emptied: self._menu(shown, api_request, start, size, emptied=emptied)
        )

    def _blocked(self, identity: Identity, store: SimStore | None) -> Response | None:
        """What the service before the site answers instead of the site, None where it lets the request through."""
        answer = self._respond(self._log("search", identity, store, 0), store, lambda _: Body(b""))
        return answer if answer.status != 200 else None

    def _refuse(self, status: int, code: str, message: str) -> Response:
        self._stats.refused()
        return Response(status, _encoder.encode({"code": code, "message": message, "data": {"status": status}}))

    def _menu(self, store: SimStore | None, api_request: ApiRequest, start: int, size: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)] if store is not None else []
        page = self._menu_page(rows, api_request, size, emptied=emptied)
        old = store is not None and has_old_route(store)
        total = page.stated_total if old else {"value": page.stated_total, "relation": "eq"}
        hits = b",".join(b'{"_source":%s}' % row for row in page.rows)
        body = b'{"took":3,"timed_out":false,"hits":{"total":%s,"max_score":null,"hits":[%s]}}' % (
            _encoder.encode(total),
            hits,
        )
        number = start // size
        return Body(body, (number, page.pages) if number < max(page.pages, 1) else None)


def business_of(store: SimStore) -> str:
    """The number of a store's business."""
    return store.id.rpartition("/")[2]


def has_old_route(store: SimStore) -> bool:
    return int(business_of(store)) % 2 == 0


def wants_nonce(store: SimStore) -> bool:
    return int(business_of(store)) % 3 == 0


def site_page(store: SimStore, nonce: str) -> str:
    """A page of the shop's site."""
    current = {
        "businessId": int(business_of(store)), "name": store.name, "address": store.street, "city": store.city, "state": store.state,
        "zip": store.zipcode, "latitude": store.latitude, "longitude": store.longitude, "timezone": store.timezone,
    }  # fmt: skip
    config = {"baseUrl": f"https://{store.slug}/wp-json/joint-ecommerce/v1", "nonce": nonce}
    script = f"window.jointEcommerce = {_encoder.encode(config).decode().replace('/', chr(92) + '/')};\n"
    return (
        f'<!DOCTYPE html><html lang="en-US"><head><title>{store.name} | Menu</title>\n'
        f'<script>var other = {{"nonce":"0123456789"}};</script></head><body class="joint-store-77">\n'
        f'<script id="joint-ecommerce-js-extra">{script}jointEcommerce.currentStore = {_encoder.encode(current).decode()};</script>\n'
        "</body></html>\n"
    )


def render_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one `_source`."""
    return _encoder.encode(item_document(state, store))


def item_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One `_source`, its keys in the order of the recordings."""
    product = state.product
    category, subcategory = _KINDS[product.category]
    applied = _special(state, store)
    rng = Random(product.id)
    pictures = [picture.url for picture in product.images or () if picture.active]
    thc, cbd = _content(state.lab.thc), _content(state.lab.cbd)
    low = min(_paid(cents, percent_off(state, store)) for cents in state.prices)
    brand = product.brand.label if product.brand is not None else ""
    return {
        "jointId": product.id,
        "globalProductId": uuid(rng),
        "businessId": int(business_of(store)),
        "providerBusinessId": store.enterprise_id,
        "posId": product.duplicated_id or product.id[::-1],
        "name": product.name,
        "nameText": product.name,
        "category": category,
        "subCategory": subcategory,
        "menuType": ["RECREATIONAL"],
        "description": product.description.replace("\n", "<br />"),
        "descriptionHtml": f"<p>{product.description}</p>",
        "effects": [name.upper() for name, _ in product.effects],
        "primaryImage": product.image,
        "images": pictures,
        "staffPick": product.featured_ms is not None,
        "strainType": _STRAINS.get(product.strain or "", "NOT_APPLICABLE"),
        "tagList": [],
        "urlFragment": product.slug,
        "brandId": uuid(rng),
        "brandName": brand,
        "brandNameText": brand,
        **_repeated("Thc", thc),
        **_repeated("Cbd", cbd),
        "lowestPrice": _money(low),
        "collections": [],
        "potencies": [
            _potency(state, name, content) for name, content in (("THC", thc), ("CBD", cbd)) if content is not None
        ],
        "variants": [_variant(state, store, place, applied) for place in range(len(product.options))],
        "cannabinoids": [_lab_row(name, value, unit) for name, value, unit in _cannabinoids(state)],
        "terpenes": [
            {"effects": [], **_lab_row(name, value, "%"), "medicalEffects": ["Pain Relief"]}
            for name, value in _terpenes(state)
        ],
        "applicableSpecials": applied,
    }


def _variant(state: ProductState, store: SimStore, place: int, applied: list[dict[str, Any]]) -> dict[str, Any]:
    product = state.product
    cents = state.prices[place]
    off = percent_off(state, store)
    return {
        "createdAt": _iso(product.created_ms),
        "quantity": str(min(state.stock[place], POS_CAP)),
        "productId": product.id,
        "minQuantity": "0",
        "price": f"{cents / 100:.2f}",
        "menuType": "RECREATIONAL",
        "jointId": f"{product.id[:-2]}{place:02d}",
        "specialPrice": _money(_paid(cents, off)),
        "appliedSpecials": applied,
        "updatedAt": _iso(state.updated_ms),
        "option": product.options[place],
    }


def _paid(cents: int, off: int | None) -> int:
    return cents if off is None else (cents * (100 - off) + 50) // 100


def _money(cents: int) -> str | int | float:
    """Texts and numbers, as they come."""
    return f"{cents / 100:.2f}" if cents % 3 else cents // 100 if cents % 100 == 0 else cents / 100


def _special(state: ProductState, store: SimStore) -> list[dict[str, Any]]:
    off = percent_off(state, store)
    if off is None:
        return []
    return [
        {"specialImageUrl": "", "specialName": f"Storewide [{off}% Off]", "discountAmount": 0, "discountType": "DOLLAR_AMOUNT",
         "posSpecialId": f"{off:024x}", "specialDescription": "", "specialId": uuid(Random(off))}
    ]  # fmt: skip


def _content(content: Content | None) -> tuple[float, float, str] | None:
    if content is None or content.range is None:
        return None
    return content.range[0], content.range[-1], _UNITS[content.unit]


def _repeated(name: str, content: tuple[float, float, str] | None) -> dict[str, Any]:
    low, high, unit = content or (None, None, None)
    return {
        f"potency{name}DisplayValue": None if content is None else f"{high}{unit}",
        f"potency{name}RangeLow": None if content is None else str(low),
        f"potency{name}RangeHigh": None if content is None else str(high),
        f"potency{name}Unit": unit,
    }


def _potency(state: ProductState, name: str, content: tuple[float, float, str]) -> dict[str, Any]:
    low, high, unit = content
    return {
        "displayValue": f"{high}{unit}",
        "createdAt": _iso(state.product.created_ms),
        "rangeHigh": str(high),
        "unit": unit,
        "productId": state.product.id,
        "rangeLow": str(low),
        "jointId": f"{state.product.id[:-2]}{name[:2].lower()}",
        "type": name,
        "updatedAt": _iso(state.updated_ms),
    }


def _cannabinoids(state: ProductState) -> Iterator[tuple[str, float, str]]:
    for row in state.lab.rows or ():
        for key, name in _NAMES.items():
            if key in row.name:
                yield name, row.value, _UNITS.get(row.unit, "%")


def _terpenes(state: ProductState) -> list[tuple[str, float]]:
    batch = batch_of(state)
    return list(batch.terpenes) if batch is not None else []


def _lab_row(name: str, value: float, unit: str) -> dict[str, Any]:
    return {"unit": unit, "name": name, "description": f"{name} is found in many plants.", "value": value}


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Joint(SimPlatform):
    """Prices are recreational, and a percentage off makes the special one; stock is 25 for 25 and more."""

    name = "joint"
    first_index = 500_000

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        shop = SHOP_NAMES[(number + 6) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        name = f"{store_name(shop, store.city, number)} Provisions"
        host = f"www.{slug_of(name)}.example"
        return plain_store(
            store,
            self.name,
            shop,
            id=f"{host}/{5_700 + 7 * number}",
            slug=host,
            name=name,
            recreational=True,
            counting="pos",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return JointEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for option, cents, stock in zip(state.product.options, state.prices, state.stock, strict=True):
            quantity = min(stock, POS_CAP)
            yield OptionRow(
                option=option,
                price_rec=dollars(cents),
                special_rec=None if off is None else dollars(_paid(cents, off)),
                price_med=None,
                special_med=None,
                quantity=quantity,
                stock=option_stock(quantity),
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        return replace(row, terpenes=tuple((name, Decimal(str(value)), "%") for name, value in _terpenes(state)))

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return uuid(rng)

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_SIZES.get(category, ((("1g", None, 30),),)))


PLATFORM = _Joint()
