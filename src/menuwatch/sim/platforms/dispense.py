"""The API of Dispense: a venue, and its products by `skip` and `limit`.

Products have the keys of the recorded ones (2025); which keys exist, which are null and what they are called follows the recordings;
see there before changing anything. Venues, the count of a menu and the refusal of a key are as public callers see them: a menu of an
unknown venue is empty, the venue itself 404. Products with several options are one row with `variants`, each with a product's fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec

from menuwatch.sim.batches import TERPENES, batch_of
from menuwatch.sim.endpoint import Body, Endpoint
from menuwatch.sim.expected import OptionRow, Row, Strength, dollars, option_stock
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import Content, ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES

API_KEY = "simulated-dispense-key"
MOST_PER_PAGE = 250
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VENUE = re.compile(r"/v1/venues/([0-9A-Za-z-]+)(/products)?/?")
_UNAUTHENTICATED = {
    "name": "UnauthenticatedError",
    "message": "Unauthorized",
    "errors": [{"message": "invalid venue id"}],
}

# (Dispense's own word, the shop's category, subtype) of what the market calls so.
_KINDS = {
    "Flower": ("FLOWER", "🌿Flower", "Flower"),
    "Pre-Rolls": ("PRE_ROLLS", "Pre-Rolls", "Pre Rolls - Single"),
    "Vaporizers": ("VAPORIZERS", "Vapes", "Cartridges"),
    "Concentrate": ("CONCENTRATES", "Concentrates", "Concentrates"),
    "Edible": ("EDIBLES", "🍬Edibles🍫", "Edibles"),
    "Tincture": ("TINCTURES", "Tinctures", "Tinctures"),
    "Topicals": ("TOPICALS", "Topicals", "Topicals"),
    "Oral": ("CAPSULES", "Capsules", "Capsules"),
    "Accessories": ("ACCESSORIES", "Gear", "Accessories"),
}
_GRAMS: dict[str, tuple[Sizes, ...]] = {
    "Flower": ((("3.5g", 3.5, 35),), (("1g", 1.0, 12),), (("3.5g", 3.5, 34), ("7g", 7.0, 60), ("28g", 28.0, 180))),
    "Pre-Rolls": ((("1g", 1.0, 10),), (("0.5g", 0.5, 7), ("1g", 1.0, 11))),
    "Vaporizers": ((("0.5g", 0.5, 32),), (("1g", 1.0, 54),)),
    "Concentrate": ((("1g", 1.0, 42),), (("0.5g", 0.5, 25), ("1g", 1.0, 42))),
    "Edible": ((("100mg", None, 20),), (("10mg", None, 7),), (("50mg", None, 14), ("100mg", None, 22))),
    "Tincture": ((("1000mg", None, 45),),),
    "Topicals": ((("250mg", None, 36),),),
    "Oral": ((("100mg", None, 25),),),
    "Accessories": ((("", None, 22),),),
}
_TYPES = {"Indica": "INDICA", "Sativa": "SATIVA", "Hybrid": "HYBRID", "Indica-Hybrid": "HYBRID_INDICA",
          "Sativa-Hybrid": "HYBRID_SATIVA"}  # fmt: skip
# Keys of terpenes, each with one more for its unit; those of the market's words first.
_KEYS = (
    "betaMyrcene",
    "limonene",
    "betaCaryophyllene",
    "linalool",
    "humulene",
    "alphaPinene",
    "terpinolene",
    "ocimene",
)
_TERPENES = dict(zip(TERPENES, _KEYS, strict=True))
_OTHER_TERPENES = ("betaEudesmol", "betaPinene", "bisabolol", "caryophylleneOxide", "guaiol", "terpinene", "threeCarene",
                   "transNerolidol")  # fmt: skip
_NAMES = ("Beta Myrcene", "Limonene", "Beta Caryophyllene", "Linalool", "Humulene", "Alpha Pinene", "Terpinolene",
          "Ocimene")  # fmt: skip
_SHOWN = dict(zip(TERPENES, _NAMES, strict=True))
_RATINGS = tuple(f"total{word}StarRatings" for word in ("One", "Two", "Three", "Four", "Five"))

_encoder = msgspec.json.Encoder()


class DispenseEndpoint(Endpoint):
    """The API of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_item, faults, stats)

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not this API's."""
        match = _VENUE.fullmatch(request.path)
        if match is None:
            return None
        if request.method != "GET":
            return self._refuse(405, {"message": "Method Not Allowed"})
        if request.headers.get("api-key") != API_KEY:
            return self._refuse(401, _UNAUTHENTICATED)
        store = self._market.find(match[1], "dispense")
        if match[2] is None:
            if store is None:
                return self._refuse(404, {"message": "venue not found"})
            api_request = self._log("venue", identity, store, 0)
            return self._respond(api_request, store, lambda _: Body(_encoder.encode({"data": venue_document(store)})))
        skip, limit = _number(request, "skip", 0), _number(request, "limit", 100)
        if skip is None or limit is None or not limit or skip % limit:
            return self._refuse(400, {"message": "skip and limit are numbers"})
        limit = min(limit, MOST_PER_PAGE)
        api_request = self._log("venue_products", identity, store, skip // limit)
        return self._respond(
            api_request, store, lambda emptied: self._menu(store, api_request, skip, limit, emptied=emptied)
        )

    def _refuse(self, status: int, document: Any) -> Response:
        self._stats.refused()
        return Response(status, _encoder.encode(document))

    def _menu(self, store: SimStore | None, api_request: ApiRequest, skip: int, limit: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)] if store is not None else []
        page = self._menu_page(rows, api_request, limit, emptied=emptied)
        counts = {"count": page.stated_total, "pageCount": len(page.rows), "skip": skip, "limit": limit}
        body = _encoder.encode(counts)[:-1] + b',"data":[%s]}' % b",".join(page.rows)
        number = skip // limit
        return Body(body, (number, page.pages) if number < max(page.pages, 1) else None)


def _number(request: Request, name: str, otherwise: int) -> int | None:
    text = request.query.get(name, str(otherwise))
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None


def venue_document(store: SimStore) -> dict[str, Any]:
    """A store's record."""
    number, _, street = store.street.partition(" ")
    return {
        "id": store.id,
        "name": store.name,
        "medicalDispensary": store.medical,
        "organization": store.enterprise_id.replace("-", "")[:16],
        "address": {
            "number": number,
            "street": street,
            "city": store.city,
            "administrativeArea": store.state,
            "administrativeAreaDisplay": store.state,
            "country": store.country,
            "postalCode": store.zipcode,
            "latitude": store.latitude,
            "longitude": store.longitude,
        },
        "addressFormatted": f"{store.street}, {store.city}, {store.state} {store.zipcode}",
        "timezone": store.timezone,
        "schedule": [{"day": 0, "closed": True, "hours": []}],
    }


def render_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `data`."""
    return _encoder.encode(item_document(state, store))


def item_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `data`. Its variants have the product's fields, and the first one is the product itself."""
    variants = [_variant(state, store, place) for place in range(len(state.product.options))]
    return {"variants": [{"variants": [], **variant} for variant in variants], **variants[0]}


def _variant(state: ProductState, store: SimStore, place: int) -> dict[str, Any]:
    product = state.product
    compliance, category, subtype = _KINDS[product.category]
    off = percent_off(state, store)
    cents, text = state.prices[place], product.options[place]
    paid = _less(cents, off)
    amount, unit = (
        (float(text.rstrip("mg")), "MILLIGRAMS" if text.endswith("mg") else "GRAMS") if text else (0.0, "GRAMS")
    )
    pictures = [picture for picture in product.images or () if picture.active]
    brand = {"name": product.brand.label} if product.brand is not None else {"name": None}
    strain = product.strain or "No Strain"
    batch = batch_of(state)
    product_id = _variant_id(product.id, place)
    share = off / 100 if off else 0
    return {
        "productCategory": f"{len(category):016x}",
        "productCategoryName": category,
        "productCategoryIconImage": f"{product.image}?icon",
        "modifierGroups": None,
        "brand": brand,
        "vendor": "Simulated Wholesale LLC",
        "sku": f"{product.pos_number}{place}",
        "productOrderType": "ORDERING_ALLOWED",
        "flowerEquivalentInGrams": 2.8,
        "slug": product.slug,
        "productUrl": f"https://menus.dispenseapp.com/{store.id}/menu/none/{product.slug}",
        "enable": state.active,
        "new": product.serial % 5 == 0,
        "featured": product.featured_ms is not None,
        "organization": store.enterprise_id.replace("-", "")[:16],
        "venue": store.id,
        "subType": subtype,
        "discounts": [_discount(product.id, share)] if off else [],
        "created": _iso(product.created_ms),
        "modified": _iso(state.updated_ms),
        "discountValue": None,
        "discountValueFinal": share,
        "discountAmountFinal": (cents - paid) / 100,
        "discountType": "PERCENT",
        "discountTypeFinal": "PERCENT",
        "price": cents / 100,
        "priceWithDiscounts": paid / 100,
        "priceGross": round(cents * 1.08) / 100,
        "priceNet": round(paid * 1.08) / 100,
        "priceType": "REGULAR",
        "quantity": state.stock[place],
        "quantityTotal": sum(state.stock),
        "quantitySold": _sold(state, place),
        "quantityThreshold": 0,
        "isBelowQuantityThreshold": False,
        "reviewStats": {"total": 0, "averageRating": 0, **dict.fromkeys(_RATINGS, 0)},
        "totalSold": _sold(state, place) // 2,
        "totalQuantitySold": _sold(state, place) * 9 // 10,
        "posLastSyncData": _encoder.encode({"name": product.name, "quantity": state.stock[place]}).decode(),
        "leaflogix": {
            "productId": product.pos_number,
            "quantity": state.stock[place],
            "category": category,
            "sku": f"{product.pos_number}{place}",
            "subCategory": subtype,
            "batchId": str(_batch_number(batch.number)) if batch is not None else "0",
            "batchName": "" if batch is None else batch.package_tag if product.serial % 10 else batch.number,
            "strain": strain,
            "strainType": product.strain if product.strain in _TYPES else None,
            "roomQuantities": [],
        },
        "fourleaf": {"isCannabis": False, "rooms": []},
        "posProductId": product.pos_number,
        "id": product_id,
        "deleted": False,
        "name": product.name,
        "description": product.description.replace("\n", "<br />"),
        "seoDescription": product.description,
        "cannabisComplianceType": compliance,
        "size": None,
        "weight": int(amount) if amount.is_integer() else amount,
        "weightInGrams": amount / 1000 if unit == "MILLIGRAMS" else amount,
        "weightUnit": unit,
        "weightFormatted": text,
        "effects": None,
        "terpenes": [],
        "effectOnset": "",
        "effectDuration": "",
        "cannabisType": _TYPES.get(strain, "HYBRID"),
        "cannabisStrain": strain,
        "_id": product_id,
        "image": product.image,
        "images": [
            {"fileUrl": picture.url, "originalFileUrl": f"{picture.url}?source", "order": order}
            for order, picture in enumerate(pictures, 1)
        ],
        "search": {},
        "labs": _labs(state),
    }


def _less(cents: int, off: int | None) -> int:
    return cents if off is None else (cents * (100 - off) + 50) // 100


def _sold(state: ProductState, place: int) -> int:
    """What the first option has sold since it was made; the others are new."""
    return state.product.serial * 3 + state.sold if place == 0 else 0


def _batch_number(number: str) -> int:
    return 7_000_000 + int(re.sub(r"\D", "", number)) % 1_000_000


def _variant_id(product_id: str, place: int) -> str:
    return product_id if place == 0 else f"{product_id[:-1]}{place}"


def _discount(product_id: str, share: float) -> dict[str, Any]:
    return {
        "productOffer": product_id[::-1], "productOfferType": "SALE", "value": share, "type": "PERCENT", "disableStacking": False,
        "stackingLimit": None, "weights": [], "orderPickUpTypes": [], "days": [], "startAndEndMinutesByTimezone": [],
    }  # fmt: skip


def _labs(state: ProductState) -> dict[str, Any]:
    """A number per substance, 0 where nothing was measured, and its unit."""
    batch = batch_of(state)
    measured = {_TERPENES[name]: value for name, value in batch.terpenes} if batch is not None else {}
    keys = (*_TERPENES.values(), *_OTHER_TERPENES)
    labs: dict[str, Any] = {"terpenes": [name.lower() for name in measured], "potency": "STRONG" if measured else None}
    labs |= {key: measured.get(key, 0) for key in keys}
    labs |= {f"{key}ContentUnit": "%" if key in measured else None for key in keys}
    for name, content in (("thc", state.lab.thc), ("cbd", state.lab.cbd)):
        found = _content(content)
        labs |= {f"{name}Max": found[0] if found else 0, name: found[0] if found else 0}
        labs |= {f"{name}ContentUnit": found[1] if found else None, f"{name}A": 0, f"{name}AContentUnit": None}
    return labs | {"cbn": 0, "cbnContentUnit": None, "cbg": 0, "cbgContentUnit": None}


def _content(content: Content | None) -> tuple[float, str] | None:
    if content is None or content.range is None:
        return None
    return content.range[-1], "mg" if content.unit == "MILLIGRAMS" else "%"


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Dispense(SimPlatform):
    """Prices are recreational, and a percentage off makes the special one; stock is exact; a potency of zero is none."""

    name = "dispense"
    first_index = 400_000
    settings = MappingProxyType({"api_key": API_KEY})

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        shop = SHOP_NAMES[(number + 4) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        venue = f"{rng.getrandbits(64):016x}"
        return plain_store(
            store,
            self.name,
            shop,
            id=venue,
            slug=venue,
            name=f"{store_name(shop, store.city, number)} Collective",
            counting="manual",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return DispenseEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for option, cents, stock in zip(state.product.options, state.prices, state.stock, strict=True):
            yield OptionRow(
                option=option or "each",
                price_rec=dollars(cents),
                special_rec=None if off is None else dollars(_less(cents, off)),
                price_med=None,
                special_med=None,
                quantity=stock,
                stock=option_stock(stock) if state.active else "oos",
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        batch = batch_of(state)
        shown: dict[str, str] | None = None
        terpenes: tuple[tuple[str, Decimal, str], ...] = ()
        if batch is not None:
            shown = {"batch_id": batch.number}
            if state.product.serial % 10:
                shown = {"batch_id": str(_batch_number(batch.number)), "package_tag": batch.package_tag}
            measured = dict(batch.terpenes)
            terpenes = tuple(
                (_SHOWN[name], Decimal(str(measured[name])), "%")
                for name in sorted(measured, key=_TERPENES.__getitem__)
            )
        return replace(
            row,
            thc=_nonzero(row.thc),
            cbd=_nonzero(row.cbd),
            terpenes=terpenes,
            batch=shown,
            sold=state.product.serial * 3 + state.sold,
        )

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return f"{rng.getrandbits(60):015x}0"

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_GRAMS[category])


def _nonzero(strength: Strength | None) -> Strength | None:
    return strength if strength is not None and strength.hi > 0 else None


PLATFORM = _Dispense()
