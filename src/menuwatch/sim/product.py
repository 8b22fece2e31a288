"""A product in Dutchie's own JSON, with the keys of the recorded page of 2025, or of 2023 for old stores.

Which keys exist, which are null and which are missing follows the recordings; see there before changing anything.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.sim.model import (
    POS_CAP,
    Brand,
    Content,
    Good,
    Shelf,
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
_encoder = msgspec.json.Encoder()


def render(shelf: Shelf, store: SimStore) -> bytes:
    """The bytes of one element of `products`."""
    return _encoder.encode(document(shelf, store))


def document(shelf: Shelf, store: SimStore) -> dict[str, Any]:
    """One element of `products`, its keys in the order of the recordings."""
    good = shelf.good
    old = store.old
    prices = [_money(p) for p in shelf.prices]
    special_rec = _special(shelf, shelf.prices, "recreational")
    special_med = _special(shelf, medical_prices(shelf, store), "medical")
    item: dict[str, Any] = {"_id": good.id, "id": good.id, "AdditionalOptions": []}
    if not old:
        item |= {
            "duplicatedProductId": good.duplicated_id,
            "libraryProductId": good.library_id,
            "libraryProductScore": good.serial % 900 / 10 + 2.2875848 if good.library_id else None,
            "brand": _brand(good.brand, old=False),
        }
    item |= {
        "brandId": good.brand.id if good.brand else None,
        "brandName": good.brand.label if good.brand else None,
        "CBD": None,
        "CBDContent": _content(shelf.lab.cbd),
    }
    if not old:
        item |= {"certificateOfAnalysisEnabled": False, "collectionCardBadge": None}
    item |= {"comingSoon": None, "createdAt": str(good.created_ms)}
    if not old:
        item["updatedAt"] = _iso(shelf.updated_ms)
    item |= {
        "DispensaryID": store.id,
        "enterpriseProductId": good.enterprise_id,
        "Image": good.image,
        "images": None if good.images is None else [
            {"url": p.url, "description": p.description, "active": p.active, "__typename": "Products_Images"}
            for p in good.images
        ],
    }  # fmt: skip
    if old:
        item["imgixSettings"] = {
            "productCard": _NO_BORDER, "productModal": _NO_BORDER, "__typename": "Products_imgixSettings",
        }  # fmt: skip
    item |= {
        "measurements": _measurements(good),
        "medicalOnly": False,
        "medicalPrices": [_money(p) for p in medical_prices(shelf, store)],
        "medicalSpecialPrices": special_med,
        "wholesalePrices": None,
        "Name": good.name,
        "nonArmsLength": None,
        "Options": list(good.options),
        "limitsPerCustomer": None,
        "manualInventory": _manual(shelf),
        "POSMetaData": _pos(shelf, store),
        "Prices": prices,
        "pricingTierData": None,
    }
    if not old:
        item |= {
            "specialIdsPerOption": [
                {"option": o, "conditionIds": [], "rewardIds": [], "__typename": "Products_specialIdsPerOption"}
                for o in good.options
            ],
            "rawOptions": None if good.raw_options is None else list(good.raw_options),
        }
    below = [good.options[i] for i in below_threshold(shelf, store)]
    strays = list(good.strays) if good.counting == "pos" else []
    item |= {
        "recOnly": False,
        "recPrices": prices,
        "recSpecialPrices": special_rec,
        "special": True if special_rec or special_med else None,
        "specialData": special_data(shelf),
        "Status": "Active" if shelf.active else "Inactive",
        "strainType": good.strain,
        "subcategory": good.subcategory,
        "THC": None,
        "THCContent": _content(shelf.lab.thc),
        "type": good.category,
        "vapeTaxApplicable": None,
        "weight": good.rank,
        "featured": None if good.featured_ms is None else {
            "current": True, "startTime": str(good.featured_ms), "endTime": None, "__typename": "Products_featured",
        },
        "isBelowThreshold": False if good.counting == "pos" else None,
        "isBelowKioskThreshold": False if good.counting == "pos" else None,
        "optionsBelowThreshold": strays + below,
        "optionsBelowKioskThreshold": strays + [
            good.options[i] for i, raw in enumerate(shelf.stock) if raw == 0 and good.options[i] in below
        ],
        "cName": good.slug,
        "pastCNames": list(good.past_slugs),
        "brandLogo": good.brand.logo if good.brand else None,
        "bottleDepositTaxCents": None,
    }  # fmt: skip
    if not old:
        item["useBetterPotencyTaxes"] = None
    item["__typename"] = "Products"
    if old:
        item["brand"] = _brand(good.brand, old=True)
    item |= {"effects": dict(good.effects), "cannabinoidsV2": _cannabinoids(shelf)}
    if not old:
        item["provider"] = "dutchie"
        if good.description:
            # Only queries of later front ends ask for it: the recorded page has none, the statistics do.
            item |= {"description": good.description, "descriptionHtml": f"<p>{good.description}</p>"}
    return item


def _money(cents: int) -> int | float:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _special(shelf: Shelf, regular: tuple[int, ...], menu: Any) -> list[int | float]:
    prices = [_money(p) for p in special_prices(shelf, regular, menu)]
    return prices[:-1] if shelf.good.crooked else prices


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


def _cannabinoids(shelf: Shelf) -> list[dict[str, Any]] | None:
    if shelf.lab.rows is None:
        return None
    return [
        {
            "value": row.value,
            "unit": row.unit,
            "cannabinoid": {"name": row.name, "__typename": "Cannabinoid"},
            "__typename": "Products_CannabinoidV2",
        }
        for row in shelf.lab.rows
    ]


def _measurements(good: Good) -> dict[str, Any] | None:
    if good.counting != "pos":
        return None
    weight = {"unit": "MILLIGRAMS", "values": list(good.net_weight), "__typename": "Products_measurement"}
    return {"netWeight": weight, "volume": None, "__typename": "Products_measurements"}


def _manual(shelf: Shelf) -> list[dict[str, Any]] | None:
    if shelf.good.counting != "manual":
        return None
    return [
        {"option": option, "inventory": raw, "__typename": "Products_manualInventory"}
        for option, raw in zip(shelf.good.options, shelf.stock, strict=True)
    ]


def _pos(shelf: Shelf, store: SimStore) -> dict[str, Any] | None:
    good = shelf.good
    if store.counting != "pos":
        return None
    rows = [(option, 0, 0) for option in good.strays]
    if good.counting == "pos":
        rows += [
            (option, raw, place)
            for place, (option, raw) in enumerate(zip(good.options, shelf.stock, strict=True))
            if place not in good.childless
        ]
    children = [_child(shelf, store, option, raw, place) for option, raw, place in rows]
    if store.old:
        return {
            "canonicalID": good.pos_number,
            "canonicalBrandName": good.brand.label if good.brand else "",
            "canonicalBrandId": None,
            "canonicalCategoryId": None,
            "children": children or None,
            "__typename": "Products_POSMetaData",
        }
    return {
        "activeBatchTags": [],
        **_canonical(good),
        "canonicalBrandName": good.brand.label if good.brand else None,
        "integrationID": f"{store.index:024x}",
        # A point of sale that has lost count of a product names no children at all.
        "children": children if good.counting == "pos" else (None if good.serial % 2 else []),
        "__typename": "Products_POSMetaData",
    }


def _canonical(good: Good) -> dict[str, Any]:
    return {
        "canonicalBrandId": good.pos_number[:4],
        "canonicalBrandName": None,
        "canonicalCategory": good.category,
        "canonicalCategoryId": "1821438",
        "canonicalID": good.pos_number,
        "canonicalImgUrl": good.image,
        "canonicalLabResultUrl": None,
        "canonicalName": good.name,
        "canonicalPackageId": f"DSXH{good.pos_number}",
        "canonicalProductTags": [],
        "canonicalSKU": good.pos_number.zfill(8),
        "canonicalStrainId": None,
        "canonicalVendorId": None,
    }


def _child(shelf: Shelf, store: SimStore, option: str, raw: int, place: int) -> dict[str, Any]:
    counted = min(POS_CAP, raw)
    head: dict[str, Any] = {
        "option": option,
        "quantity": counted,
        "quantityAvailable": available(raw, store.reserve),
        "kioskQuantityAvailable": counted,
    }
    if store.old:
        return {
            "canonicalID": shelf.good.pos_number,
            "canonicalEffectivePotencyMg": None,
            **head,
            "standardEquivalent": {
                "value": 3.5, "unit": "g", "__typename": "Products_POSMetaData_children_equivalent",
            },
            "recEquivalent": None,
            "__typename": "Products_POSMetaData_children",
        }  # fmt: skip
    price = _money(shelf.prices[place])
    return {
        "activeBatchTags": [],
        **_canonical(shelf.good),
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
