"""What the simulated Sweed serves: rows of product lists, promotions, and records of stores.

Rows have the keys, types and nulls of a product list recorded in December 2025; see there before changing anything. A product has one
row for each option, and none for an option that is sold out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from menuwatch.sim.batches import TERPENES
from menuwatch.sim.model import Content, ProductState, SimProduct, SimStore, percent_off
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.words import STATE_NAMES

# The market's category: the category, its number as a filter and in other answers, and by the market's word (None: all others)
# subcategory and product type.
KINDS: dict[str, tuple[str, int, int, dict[str | None, tuple[str, str]]]] = {
    "Flower": ("Flower", 495364, 3763, {"pre-ground": ("Buds", "Ground Bud"), None: ("Buds", "Buds")}),
    "Pre-Rolls": ("Pre-Rolls", 495367, 3766, {"packs": ("Pack", "Pre-Roll Pack"), None: ("Single", "Pre-Roll")}),
    "Vaporizers": ("Cartridges", 495378, 3776, {"disposables": ("Specialty Cartridge", "Pod"),
                                                None: ("510 Thread", "Distillate Blend Cart")}),
    "Concentrate": ("Concentrates", 495365, 3764, {"badder": ("Dabs", "Live Badder"), "sugar": ("Dabs", "Live Sugar"),
                                                   None: ("Dabs", "Shatter")}),
    "Edible": ("Edibles", 495366, 3765, {None: ("Gummies", "Gummies")}),
    "Tincture": ("Tinctures", 495368, 3767, {None: ("Tincture", "Tincture")}),
    "Topicals": ("Topicals", 495371, 3770, {"lotions": ("Topical", "Lotion"), None: ("Topical", "Balm")}),
    "Oral": ("Edibles", 495366, 3765, {None: ("Other", "Tablets")}),
    "Accessories": ("Accessories", 495377, 3775, {"grinders": ("Grinders", "Grinder"), None: ("Batteries", "Battery")}),
}  # fmt: skip

_PREVALENCE = {"indica": "Indica", "sativa": "Sativa", "hybrid": "Hybrid", "indica-hybrid": "Indica Dominant",
               "sativa-hybrid": "Sativa Dominant"}  # fmt: skip
_ZONES = {"America/New_York": "Eastern Time", "America/Detroit": "Eastern Time", "America/Toronto": "Eastern Time",
          "US/Eastern": "Eastern Time", "US/Central": "Central Time", "America/Los_Angeles": "Pacific Time",
          "America/Phoenix": "Mountain Time"}  # fmt: skip
_PROMO: dict[str, Any] = {
    "id": 0, "name": None, "shortName": "", "description": None, "isBogo": None, "startDate": None, "endDate": None,
    "interval": None, "bannerUrl": None, "mobileBannerUrl": None, "displayInUpsellModal": False, "displayInCatalog": False,
    "productImages": None, "filter": None, "displayInDiscountMenu": False, "isConditional": False, "applicationMode": None,
    "discountAmount": None, "discountPercent": None, "minCartAmount": None, "minCartAmountNeeded": None,
    "matchedUserSegmentIds": None, "scheduleDisplayText": None, "isActiveBySchedule": True, "fulfilmentTypes": [],
    "promoWizardGeneration": None, "shopInShop": None,
}  # fmt: skip
_SCHEDULE = {"rangeType": "Daily", "days": "", "datePart": "", "timePart": "12:00 AM - 08:00 PM",
             "full": "Daily, 12:00 AM - 08:00 PM"}  # fmt: skip

_encode = msgspec.json.Encoder().encode


def shop_url(store: SimStore) -> str:
    """The address of a shop on its own site."""
    return f"https://shop.{store.chain}.example/{slug_of(store.city)}-{store.id}"


def store_info(store: SimStore) -> dict[str, Any]:
    """A store's record. States are spelled out, phone numbers have no plus."""
    region = STATE_NAMES[store.state]
    return {
        "id": int(store.id),
        "name": store.name,
        "description": None,
        "images": [],
        "amenities": [{"id": 1, "name": "ATM"}],
        "contacts": {
            "address": f"{store.street}, {store.city}, {region}",
            "email": None,
            "phone": "1" + re.sub(r"\D", "", store.phone),
        },
        "schedules": [
            {
                "id": "StoreHours",
                "fulfillmentType": 0,
                "name": "Store",
                "days": [[["10:00", "20:00"]] for _ in range(7)],
            }
        ],
        "saleTypeSchedules": [],
        "location": {
            "region": {"id": 27, "name": region},
            "coords": {"lat": store.latitude, "lng": store.longitude},
            "city": {"id": 5439, "name": store.city},
            "zipCode": store.zipcode,
        },
        "fulfillmentTypes": ["Pickup"],
        "fulfillmentOptions": [],
        "deliveryZones": [],
        "routeName": None,
        "saleTypes": sale_types(store),
        "url": shop_url(store),
        "isMock": False,
        "isCaregiverOrdersEnabled": False,
        "deliveryPromos": [],
    }


def store_config(store: SimStore) -> dict[str, Any]:
    """The part of a shop's configuration that says something of the store; the licence has a blank before it."""
    return {
        "id": int(store.id),
        "licenseCode": f" {store.state}-{int(store.id):05d}",
        "storesCount": 1,
        "timezoneName": _ZONES.get(store.timezone, "Eastern Time"),
        "url": shop_url(store),
        "availableSaleTypes": sale_types(store),
    }


def sale_types(store: SimStore) -> list[str]:
    """To whom it sells."""
    return [name for name, sold in (("Medical", store.medical), ("Recreational", store.recreational)) if sold]


def render_rows(state: ProductState, store: SimStore) -> bytes:
    """The rows of one product, each on a line: none where it is sold out."""
    return b"\n".join(_encode(row) for row in row_documents(state, store))


def row_documents(state: ProductState, store: SimStore) -> list[dict[str, Any]]:
    """The elements of `list`, their keys in the order of the recording."""
    product = state.product
    category, number, _, words = KINDS[product.category]
    subcategory, product_type = words.get(product.subcategory, words[None])
    strain = _PREVALENCE.get((product.strain or "").lower())
    return [
        {
            "id": int(product.id),
            "name": product.name,
            "description": product.description or None,
            "category": {"id": number, "name": category},
            "subcategory": {"id": number + 21, "name": subcategory},
            "images": _images(product),
            "brand": {"name": product.brand.label, "filter": None, "tagId": None}
            if product.brand is not None
            else None,
            "strain": _strain(product, strain) if strain is not None else None,
            "tags": [],
            "effects": [],
            "qualityLine": None if product.serial % 7 else {"name": "Reserve"},
            "productType": {"name": product_type},
            "variants": [_variant(state, store, place)],
            "customName": None,
        }
        for place in listed(state)
    ]


def listed(state: ProductState) -> list[int]:
    """Places of the options that are not sold out."""
    return [place for place, stock in enumerate(state.stock) if stock > 0] if state.active else []


def _images(product: SimProduct) -> list[str]:
    return [product.image] if product.image and "-stock-" not in product.image else []


def _strain(product: SimProduct, prevalence: str) -> dict[str, Any]:
    usual = Random(f"strain:{product.id}").sample(TERPENES, 4)
    return {
        "name": product.name.split(" - ")[0].strip(),
        "prevalence": {"name": prevalence},
        "flavors": [],
        "terpenes": [{"name": name} for name in usual],
    }


def _variant(state: ProductState, store: SimStore, place: int) -> dict[str, Any]:
    product = state.product
    option = product.options[place]
    price = state.prices[place]
    off = percent_off(state, store)
    size, unit, units = _unit_size(option)
    return {
        "id": int(product.id) * 10 + place,
        "name": option,
        "sku": f"{product.category[:3]}-{product.pos_number}",
        "images": [],
        "strengthLevel": None,
        "labTests": _lab_tests(state),
        "saleType": "Both" if store.recreational and store.medical else sale_types(store)[0],
        "availableQty": float(state.stock[place]),
        "unitSize": {"value": size, "unitAbbr": unit},
        "unitsInPackage": units,
        "price": price / 100,
        "promoPrice": (price if off is None else less(price, off)) / 100,
        "discount": 0,
        "tierPricePresetId": None,
        "tierPricing": [],
        "promos": [] if off is None else [{**_PROMO, "id": _promo_id(off), "shortName": f"{off}% Off"}],
        "reminderStatus": None,
        "isPacked": True,
        "qtyStepSize": 1.0,
        "stockType": "Default",
    }


def _unit_size(option: str) -> tuple[float, str, int]:
    """(size, unit, units) of a package; 100 mg are ten pieces of 10 mg."""
    if option == "100mg":
        return 10.0, "MG", 10
    if option.endswith("mg"):
        return float(option[:-2]), "MG", 1
    if option.endswith("g"):
        return float(option[:-1]), "G", 1
    return 1.0, "EA", 1


def _lab_tests(state: ProductState) -> dict[str, Any] | None:
    thc, cbd = _content(state.lab.thc), _content(state.lab.cbd)
    return None if thc is None else {"thc": thc, "cbd": cbd, "displayThc": None}


def _content(content: Content | None) -> dict[str, Any] | None:
    """One number or two; what was measured in milligrams per gram is said in percent."""
    if content is None or content.range is None:
        return None
    ends: Sequence[float] = content.range if content.range[0] != content.range[-1] else content.range[:1]
    by_gram = content.unit == "MILLIGRAMS_PER_GRAM"
    values = [round(value / 10, 6) if by_gram else float(value) for value in ends]
    return {"value": values, "unitAbbr": "MG" if content.unit == "MILLIGRAMS" else "%"}


def _promo_id(off: int) -> int:
    return 102_900 + off


def terms(off: int) -> dict[str, Any]:
    """A promotion of the answer, which the rows name by its id."""
    return {**_PROMO, "id": _promo_id(off), "name": f"{off}% Off Storewide", "shortName": f"{off}% Off", "productImages": [],
            "displayInDiscountMenu": True, "scheduleDisplayText": _SCHEDULE}  # fmt: skip


def less(cents: int, percent: int) -> int:
    return (cents * (100 - percent) + 50) // 100
