"""Products and stores in Dutchie's own JSON: products with the keys of the recorded page of 2025, or of 2023 for old stores.

Which keys exist, which are null and which are missing follows the recordings; see there before changing anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.sim.model import (
    POS_CAP,
    Brand,
    Content,
    ProductState,
    SimProduct,
    SimStore,
    available,
    below_threshold,
    medical_prices,
    special_prices,
)
from menuwatch.sim.promotions import special_data

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_BORDER = {
    "border": None, "mark": None, "markscale": None, "markpad": None, "fit": None, "__typename": "ImgixSettings",
}  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_encoder = msgspec.json.Encoder()


def render_product(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `products`."""
    return _encoder.encode(product_document(state, store))


def product_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `products`, its keys in the order of the recordings."""
    product = state.product
    old = store.old
    prices = [_money(p) for p in state.prices]
    special_rec = _special(state, state.prices, "recreational")
    special_med = _special(state, medical_prices(state, store), "medical")
    item: dict[str, Any] = {"_id": product.id, "id": product.id, "AdditionalOptions": []}
    if not old:
        item |= {
            "duplicatedProductId": product.duplicated_id,
            "libraryProductId": product.library_id,
            "libraryProductScore": product.serial % 900 / 10 + 2.2875848 if product.library_id else None,
            "brand": _brand(product.brand, old=False),
        }
    item |= {
        "brandId": product.brand.id if product.brand else None,
        "brandName": product.brand.label if product.brand else None,
        "CBD": None,
        "CBDContent": _content(state.lab.cbd),
    }
    if not old:
        item |= {"certificateOfAnalysisEnabled": False, "collectionCardBadge": None}
    item |= {"comingSoon": None, "createdAt": str(product.created_ms)}
    if not old:
        item["updatedAt"] = _iso(state.updated_ms)
    item |= {
        "DispensaryID": store.id,
        "enterpriseProductId": product.enterprise_id,
        "Image": product.image,
        "images": None if product.images is None else [
            {"url": p.url, "description": p.description, "active": p.active, "__typename": "Products_Images"}
            for p in product.images
        ],
    }  # fmt: skip
    if old:
        item["imgixSettings"] = {
            "productCard": _NO_BORDER, "productModal": _NO_BORDER, "__typename": "Products_imgixSettings",
        }  # fmt: skip
    item |= {
        "measurements": _measurements(product),
        "medicalOnly": False,
        "medicalPrices": [_money(p) for p in medical_prices(state, store)],
        "medicalSpecialPrices": special_med,
        "wholesalePrices": None,
        "Name": product.name,
        "nonArmsLength": None,
        "Options": list(product.options),
        "limitsPerCustomer": None,
        "manualInventory": _manual(state),
        "POSMetaData": _pos(state, store),
        "Prices": prices,
        "pricingTierData": None,
    }
    if not old:
        item |= {
            "specialIdsPerOption": [
                {"option": o, "conditionIds": [], "rewardIds": [], "__typename": "Products_specialIdsPerOption"}
                for o in product.options
            ],
            "rawOptions": None if product.raw_options is None else list(product.raw_options),
        }
    below = [product.options[i] for i in below_threshold(state, store)]
    strays = list(product.strays) if product.counting == "pos" else []
    item |= {
        "recOnly": False,
        "recPrices": prices,
        "recSpecialPrices": special_rec,
        "special": True if special_rec or special_med else None,
        "specialData": special_data(state),
        "Status": "Active" if state.active else "Inactive",
        "strainType": product.strain,
        "subcategory": product.subcategory,
        "THC": None,
        "THCContent": _content(state.lab.thc),
        "type": product.category,
        "vapeTaxApplicable": None,
        "weight": product.rank,
        "featured": None if product.featured_ms is None else {
            "current": True, "startTime": str(product.featured_ms), "endTime": None, "__typename": "Products_featured",
        },
        "isBelowThreshold": False if product.counting == "pos" else None,
        "isBelowKioskThreshold": False if product.counting == "pos" else None,
        "optionsBelowThreshold": strays + below,
        "optionsBelowKioskThreshold": strays + [
            product.options[i] for i, raw in enumerate(state.stock) if raw == 0 and product.options[i] in below
        ],
        "cName": product.slug,
        "pastCNames": list(product.past_slugs),
        "brandLogo": product.brand.logo if product.brand else None,
        "bottleDepositTaxCents": None,
    }  # fmt: skip
    if not old:
        item["useBetterPotencyTaxes"] = None
    item["__typename"] = "Products"
    if old:
        item["brand"] = _brand(product.brand, old=True)
    item |= {"effects": dict(product.effects), "cannabinoidsV2": _cannabinoids(state)}
    if not old:
        item["provider"] = "dutchie"
        if product.description:
            # Only queries of later front ends ask for it: the recorded page has none, the statistics do.
            item |= {"description": product.description, "descriptionHtml": f"<p>{product.description}</p>"}
    return item


def _money(cents: int) -> int | float:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _special(state: ProductState, regular: tuple[int, ...], menu: Any) -> list[int | float]:
    prices = [_money(p) for p in special_prices(state, regular, menu)]
    return prices[:-1] if state.product.crooked else prices


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _brand(brand: Brand | None, *, old: bool) -> dict[str, Any] | None:
    if brand is None:
        return None
    if old:
        return {
            "id": brand.id, "_id": brand.id, "description": brand.description, "imageUrl": brand.logo,
            "name": brand.name, "__typename": "Brand",
        }  # fmt: skip
    return {
        "id": brand.id, "name": brand.name, "parentBrandId": brand.parent_id, "imageUrl": brand.logo,
        "__typename": "Brand", "_id": brand.id, "description": brand.description,
    }  # fmt: skip


def _content(content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    shown = None if content.range is None else list(content.range)
    return {"unit": content.unit, "range": shown, "__typename": "ProductPotency"}


def _cannabinoids(state: ProductState) -> list[dict[str, Any]] | None:
    if state.lab.rows is None:
        return None
    return [
        {
            "value": row.value,
            "unit": row.unit,
            "cannabinoid": {"name": row.name, "__typename": "Cannabinoid"},
            "__typename": "Products_CannabinoidV2",
        }
        for row in state.lab.rows
    ]


def _measurements(product: SimProduct) -> dict[str, Any] | None:
    if product.counting != "pos":
        return None
    weight = {"unit": "MILLIGRAMS", "values": list(product.net_weight), "__typename": "Products_measurement"}
    return {"netWeight": weight, "volume": None, "__typename": "Products_measurements"}


def _manual(state: ProductState) -> list[dict[str, Any]] | None:
    if state.product.counting != "manual":
        return None
    return [
        {"option": option, "inventory": raw, "__typename": "Products_manualInventory"}
        for option, raw in zip(state.product.options, state.stock, strict=True)
    ]


def _pos(state: ProductState, store: SimStore) -> dict[str, Any] | None:
    product = state.product
    if store.counting != "pos":
        return None
    rows = [(option, 0, 0) for option in product.strays]
    if product.counting == "pos":
        rows += [
            (option, raw, place)
            for place, (option, raw) in enumerate(zip(product.options, state.stock, strict=True))
            if place not in product.childless
        ]
    children = [_child(state, store, option, raw, place) for option, raw, place in rows]
    if store.old:
        return {
            "canonicalID": product.pos_number,
            "canonicalBrandName": product.brand.label if product.brand else "",
            "canonicalBrandId": None,
            "canonicalCategoryId": None,
            "children": children or None,
            "__typename": "Products_POSMetaData",
        }
    return {
        "activeBatchTags": [],
        **_canonical(product),
        "canonicalBrandName": product.brand.label if product.brand else None,
        "integrationID": f"{store.index:024x}",
        # A point of sale that has lost count of a product names no children at all.
        "children": children if product.counting == "pos" else (None if product.serial % 2 else []),
        "__typename": "Products_POSMetaData",
    }


def package_tag(product: SimProduct) -> str:
    """The point of sale's tag of the package on sale."""
    return f"DSXH{product.pos_number}"


def _canonical(product: SimProduct) -> dict[str, Any]:
    return {
        "canonicalBrandId": product.pos_number[:4],
        "canonicalBrandName": None,
        "canonicalCategory": product.category,
        "canonicalCategoryId": "1821438",
        "canonicalID": product.pos_number,
        "canonicalImgUrl": product.image,
        "canonicalLabResultUrl": None,
        "canonicalName": product.name,
        "canonicalPackageId": package_tag(product),
        "canonicalProductTags": [],
        "canonicalSKU": product.pos_number.zfill(8),
        "canonicalStrainId": None,
        "canonicalVendorId": None,
    }


def _child(state: ProductState, store: SimStore, option: str, raw: int, place: int) -> dict[str, Any]:
    counted = min(POS_CAP, raw)
    head: dict[str, Any] = {
        "option": option,
        "quantity": counted,
        "quantityAvailable": available(raw, store.reserve),
        "kioskQuantityAvailable": counted,
    }
    if store.old:
        return {
            "canonicalID": state.product.pos_number,
            "canonicalEffectivePotencyMg": None,
            **head,
            "standardEquivalent": {
                "value": 3.5, "unit": "g", "__typename": "Products_POSMetaData_children_equivalent",
            },
            "recEquivalent": None,
            "__typename": "Products_POSMetaData_children",
        }  # fmt: skip
    price = _money(state.prices[place])
    return {
        "activeBatchTags": [],
        **_canonical(state.product),
        "canonicalEffectivePotencyMg": 0,
        **head,
        "medPrice": None,
        "packageQuantity": None,
        "price": price,
        "recPrice": price,
        "recEquivalent": None,
        "standardEquivalent": None,
        "__typename": "Products_POSMetaData_children",
    }


def render_dispensary(store: SimStore, menu: Iterable[ProductState], image_base: str) -> dict[str, Any]:
    """One element of `filteredDispensaries`: the keys that say something about the store, and some that say nothing."""
    categories = Counter(state.product.category for state in menu)
    hours: dict[str, Any] = {
        day: {"active": True, "start": "9:00 AM", "end": "9:00 PM", "__typename": "dayBounds"} for day in _DAYS
    }
    hours["__typename"] = "Dispensaries_profile_hours"
    address = f"{store.street}, {store.city}, {store.state} {store.zipcode}, {store.country}"
    return {
        "__typename": "Dispensaries",
        "id": store.id,
        "cName": store.slug,
        "name": store.name,
        "chain": store.chain,
        "status": store.status,
        "address": address,
        "location": {
            "ln1": store.street,
            "ln2": "1" if store.old else "",
            "city": store.city,
            "state": store.state,
            "country": store.country,
            "zipcode": store.zipcode,
            "geometry": {"coordinates": [store.longitude, store.latitude], "__typename": "Geometry"},
            "__typename": "Location",
        },
        "timezone": store.timezone,
        "phone": store.phone,
        "email": None,
        "recDispensary": store.recreational,
        "medicalDispensary": store.medical,
        "enabledOrderTypes": {
            "curbsidePickup": False, "delivery": store.old, "driveThruPickup": False, "inStorePickup": True, "kiosk": True,
            "pickup": True, "__typename": "EnabledOrderTypes",
        },
        "pickupHours": hours,
        "deliveryHours": hours if store.old else None,
        "specialHours": [
            {
                "name": "Good Friday", "startDate": "2021-04-02T12:00:00-04:00", "endDate": "2021-04-02T12:00:00-04:00",
                "hoursPerDay": [
                    {
                        "date": "2021-04-02T12:00:00-04:00",
                        "pickupHours": {"active": None, "start": "00:00 AM", "end": "00:00 AM", "__typename": "dayBounds"},
                    }
                ],
            }
        ],
        "productCategorySummary": [
            {"category": category, "value": count, "__typename": "CategorySummary"}
            for category, count in sorted(categories.items())
        ],
        "activeCategories": sorted(categories),
        "taxConfig": {"calculationMethod": "cumulative", "discountTaxOrder": "discountsFirst", "taxes": []},
        "feeTiers": [{"fee": "4.20", "feeType": "flat", "max": "19.99", "min": "0.00", "percentFee": 0}],
        "retailer": {"enterpriseId": store.enterprise_id, "__typename": "Retailer"},
        "menuUrl": None if store.index % 3 else f"https://{store.chain}.invalid/{store.slug}/",
        "embeddedMenuUrl": f"https://{store.chain}.invalid/menu" if store.index % 2 else None,
        "embedBackUrl": f"https://dutchie.invalid/stores/{store.slug}",
        "customDomainSettings": {"domain": None, "__typename": "Dispensaries_profile_customDomain_settings"},
        "logoImage": f"{image_base}/logo/{store.id}",
        "listImage": f"{image_base}/list/{store.id}",
        "description": "Your visit starts here.\n\nWe go above and beyond – come and see.",
        "hasMenuIntegration": store.counting == "pos",
        "offerPickup": True,
        "offerDelivery": store.old,
        "maxDeliveryDistance": 6.2 if store.old else None,
        "creditCardAtDoor": False,
        "debitOnly": True,
        "distance": None,
        "ordersArePaused": False,
        "stealthMode": None,
        "terminals": [],
        "updatedAt": None,
        "updatedAtISO": None,
        "updatedBy": None,
    }  # fmt: skip
