"""What a recorded Dutchie product means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, trimmed, without_nothing

# What was recorded, and what it means. (category, subcategory)
KINDS: dict[tuple[str, str | None], tuple[str, str | None]] = {
    ("Flower", "premium"): ("flower", None),
    ("Flower", "infused-buds"): ("flower", "infused"),
    ("Flower", "pre-ground"): ("flower", "ground"),
    ("Flower", ""): ("flower", None),
    ("Flower", None): ("flower", None),
    ("Vaporizers", "cured-resin-cartridge"): ("vaporizer", "cartridge"),
    ("Concentrate", "sugar"): ("concentrate", "sugar"),
    ("Oral", "sublingual"): ("oral", "sublingual"),
    ("Accessories", "batteries"): ("accessory", "battery"),
    ("Accessories", "grinders"): ("accessory", "grinder"),
    ("Accessories", "trays"): ("accessory", "trays"),
    ("Accessories", "dab-tools"): ("accessory", "dabbing"),
}
STRAINS = {"Hybrid": "hybrid", "Indica": "indica", "Sativa": "sativa", "High CBD": "cbd", "N/A": None}
GRAMS = {
    "1/8oz": Decimal("3.5"), "1/4oz": Decimal(7), ".5g": Decimal("0.5"), "1gC": Decimal(1), "N/A": None,
    "1g": Decimal(1), "3.5g": Decimal("3.5"), "7g": Decimal(7), "14g": Decimal(14), "28g": Decimal(28),
}  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def product(item: dict[str, Any]) -> dict[str, Any]:
    category, subcategory = KINDS[item["type"], item["subcategory"]]
    options = [option(item, place) for place in range(len(item["Options"]))]
    statuses = {one["stock_status"] for one in options}
    status = "in_stock" if "in_stock" in statuses else "oos"
    (thc_lo, thc_hi, thc_unit), (cbd_lo, cbd_hi, cbd_unit) = (content(item[k]) for k in ("THCContent", "CBDContent"))
    pictures = list(dict.fromkeys(ref["url"] for ref in item["images"] or [] if ref["active"] is not False))
    assert item["Status"] == "Active"
    assert "description" not in item
    assert not item.get("terpenes")
    return {
        "provider": "dutchie",
        "name_raw": item["Name"],
        "name": trimmed(item["Name"]),
        "brand_name_raw": item["brandName"],
        "brand_name": trimmed(item["brandName"]),
        "category": item["type"],
        "subcategory": item["subcategory"] or None,
        "strain_type": item["strainType"],
        "status_raw": "Active",
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": least([one["price_med"] for one in options]),
        "price_med_special": least([one["special_med"] for one in options]),
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": status == "in_stock",
        "stock_status": status,
        "quantity": sum(one["quantity"] for one in options),
        "quantity_capped": any(one["capped"] for one in options),
        "thc_lo": thc_lo, "thc_hi": thc_hi, "thc_unit": thc_unit, "cbd_lo": cbd_lo, "cbd_hi": cbd_hi, "cbd_unit": cbd_unit,
        "cannabinoids": [lab_row(row) for row in item["cannabinoidsV2"] or []] or None,
        "batch": batch(item),
        "terpenes": [{"name": n, "value": v, "unit": u} for n, v, u in terpenes(item)] or None,
        "specials": [sale(special) for special in (item["specialData"] or {}).get("saleSpecials") or []] or None,
        "image_url": item["Image"],
        "images": pictures or None,
        "description": None,
        "platform_created_at": EPOCH + timedelta(milliseconds=int(item["createdAt"])),
        "platform_updated_at": datetime.fromisoformat(item["updatedAt"]) if "updatedAt" in item else None,
        "extra": extra(item),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[item["strainType"]],
    }  # fmt: skip


def option(item: dict[str, Any], place: int) -> dict[str, Any]:
    name = item["Options"][place]
    count, shown = stock(item, name)
    rec, med = item["recPrices"][place], item["medicalPrices"][place]
    special_rec, special_med = (
        (item[key] or [None] * 9)[place] for key in ("recSpecialPrices", "medicalSpecialPrices")
    )
    below = name in (item["optionsBelowThreshold"] or []) or item["isBelowThreshold"] is True
    paid = special_rec if special_rec is not None else rec
    return {
        "option": name,
        "price_rec": rec,
        "price_med": med,
        "special_rec": special_rec,
        "special_med": special_med,
        "quantity": count,
        "capped": shown == 25,
        "stock_status": "oos" if below or count == 0 else "in_stock",
        "weight_g": GRAMS[name],
        "price_per_g": each(Decimal(paid), GRAMS[name]),
        "pieces": None,
        "content_mg": None,
        "price_per_piece": None,
        "price_per_mg": None,
    }


def stock(item: dict[str, Any], option: str) -> tuple[int, int | None]:
    """(available, what the capped counter shows)"""
    if item["POSMetaData"]:
        (child,) = [child for child in item["POSMetaData"]["children"] if child["option"] == option]
        return child["quantityAvailable"], child["quantity"]
    (entry,) = [entry for entry in item["manualInventory"] if entry["option"] == option]
    return entry["inventory"], None


def content(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    told = given["range"]
    if not told:
        return None, None, None
    per = {"PERCENTAGE": 1, "MILLIGRAMS_PER_GRAM": 10, "MILLIGRAMS": 1}[given["unit"]]
    unit = "mg" if given["unit"] == "MILLIGRAMS" else "%"
    return Decimal(min(told)) / per, Decimal(max(told)) / per, unit


def lab_row(row: dict[str, Any]) -> dict[str, Any]:
    name = trimmed(row["cannabinoid"]["name"])
    told = {"name": name, "value": row["value"], "unit": row["unit"]}
    return {**told, "is_total": True} if name.startswith('"TAC"') else told


def sale(special: dict[str, Any]) -> dict[str, Any]:
    assert special["percentDiscount"]
    return {
        "name": trimmed(special["specialName"]),
        "kind": "percent",
        "value": special["discount"],
        "special_id": special["specialId"],
        "menu_type": special["menuType"],
    }


def extra(item: dict[str, Any]) -> dict[str, Any]:
    aliases = [past for past in item["pastCNames"] or [] if past and past != item["cName"]]
    net = (item["measurements"] or {}).get("netWeight")
    effects: dict[str, Any] = {}
    for name, level in (item["effects"] or {}).items():
        effects[re.sub(r"\W", "_", name).lower()] = level
    return without_nothing(
        {
            "dispensary_id": item["DispensaryID"],
            "enterprise_product_id": item["enterpriseProductId"],
            "brand_id": item["brandId"],
            "brand_record_name": trimmed(item["brand"]["name"]) if item["brand"]["name"] != item["brandName"] else None,
            "brand_description": item["brand"]["description"].strip() or None,
            "kiosk_quantity": {
                child["option"]: child["kioskQuantityAvailable"]
                for child in (item["POSMetaData"] or {}).get("children") or ()
                if child["option"] in item["Options"]
            }
            or None,
            **point_of_sale(item["POSMetaData"] or {}),
            "kiosk_below_threshold": [
                name for name in sorted(item["optionsBelowKioskThreshold"] or []) if name in item["Options"]
            ],
            "purchase_limits": {limit["key"]: str(limit["value"]) for limit in item.get("limitsPerCustomer") or []}
            or None,
            "special_options": {
                sale["specialId"]: sorted(sale["eligibleProductOptions"])
                for sale in (item["specialData"] or {}).get("saleSpecials") or []
                if sale["eligibleProductOptions"]
            }
            or None,
            "special_ids_by_option": promotions(item.get("specialIdsPerOption") or []) or None,
            "provider": item.get("provider"),
            "slug": item["cName"],
            "aliases": aliases,
            "effects": effects or None,
            "weight_rank": item["weight"],
            "net_weight": {"unit": net["unit"], "values": net["values"]} if net else None,
            "special": True if item["special"] else None,
        }
    )


def point_of_sale(pos: dict[str, Any]) -> dict[str, Any]:
    return {
        "pos_id": pos.get("canonicalID"),
        "sku": pos.get("canonicalSKU"),
        "pos_category": trimmed(pos.get("canonicalCategory") or "") or None,
    }


def promotions(rows: list[dict[str, Any]]) -> dict[str, Any]:
    told = {
        row["option"]: {
            name: sorted(row[key])
            for name, key in (("conditions", "conditionIds"), ("rewards", "rewardIds"))
            if row[key]
        }
        for row in rows
    }
    return {option: ids for option, ids in told.items() if ids}


def batch(item: dict[str, Any]) -> dict[str, Any] | None:
    """The package on sale, where the point of sale names one."""
    pos = item["POSMetaData"] or {}
    sold = [child for child in pos.get("children") or [] if child["option"] in item["Options"]]
    found = {}
    for column, key in (("package_tag", "canonicalPackageId"), ("certificate_url", "canonicalLabResultUrl")):
        named = {child[key] for child in sold if child.get(key)} or {pos.get(key)}
        found[column] = named.pop() if len(named) == 1 else None
    return without_nothing(found) or None


def terpenes(item: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """(name, value, unit) of each that was measured."""
    return [
        (trimmed(row["libraryTerpene"]["name"]), row["value"], row["unit"])
        for row in item.get("terpenes") or []
        if row["value"] is not None
    ]
