"""What a recorded Joint product means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.recorded.plain import each, least, text_of, trimmed, without_nothing

# (Joint's category, its subcategory) → (category, subcategory) of all platforms, for every pair that was recorded.
KINDS = {
    ("FLOWER", "DEFAULT"): ("flower", None),
    ("FLOWER", "SHAKE_TRIM"): ("flower", "shake"),
    ("PRE_ROLLS", "SINGLES"): ("preroll", "single"),
    ("PRE_ROLLS", "PACKS"): ("preroll", "pack"),
    ("PRE_ROLLS", "INFUSED"): ("preroll", "infused"),
    ("VAPORIZERS", "CARTRIDGES"): ("vaporizer", "cartridge"),
    ("VAPORIZERS", "DISPOSABLES"): ("vaporizer", "disposable"),
    ("CONCENTRATES", "RSO"): ("concentrate", "rso"),
    ("CONCENTRATES", "LIVE_RESIN"): ("concentrate", "live_resin"),
    ("EDIBLES", "GUMMIES"): ("edible", "gummies"),
    ("EDIBLES", "DEFAULT"): ("edible", None),
    ("TINCTURES", "FLAVORED"): ("tincture", None),
    ("TOPICALS", "LOTIONS"): ("topical", "lotion"),
    ("TOPICALS", "BALMS"): ("topical", "balm"),
}
STRAINS = {
    "INDICA": "indica",
    "SATIVA": "sativa",
    "HYBRID": "hybrid",
    "INDICA_HYBRID": "indica_hybrid",
    "SATIVA_HYBRID": "sativa_hybrid",
    "ONE_TO_ONE": None,
    "NOT_APPLICABLE": None,
}
BY_CONTENT = {"edible", "tincture", "oral", "topical"}


def product(item: dict[str, Any]) -> dict[str, Any]:
    """Every column that this item should have."""
    category, subcategory = KINDS[item["category"], item["subCategory"]]
    options = [option(one, item["name"], category in BY_CONTENT) for one in item["variants"]]
    status = "in_stock" if any(one["stock_status"] == "in_stock" for one in options) else "oos"
    thc, cbd = content(item, "THC"), content(item, "CBD")
    pictures = list(dict.fromkeys([item["primaryImage"], *item["images"]]))
    return {
        "provider": "joint",
        "name_raw": item["name"],
        "name": trimmed(item["name"]),
        "brand_name_raw": item["brandName"],
        "brand_name": trimmed(item["brandName"]),
        "category": item["category"],
        "subcategory": item["subCategory"],
        "strain_type": item["strainType"],
        "status_raw": None,
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": None,
        "price_med_special": None,
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": status == "in_stock",
        "stock_status": status,
        "quantity": sum(one["quantity"] for one in options),
        "quantity_capped": any(one["capped"] for one in options),
        "thc_lo": thc[0],
        "thc_hi": thc[1],
        "thc_unit": thc[2],
        "cbd_lo": cbd[0],
        "cbd_hi": cbd[1],
        "cbd_unit": cbd[2],
        "cannabinoids": lab(item["cannabinoids"]),
        "terpenes": lab(item["terpenes"]),
        "batch": None,
        "quantity_sold": None,
        "specials": specials(item),
        "image_url": item["primaryImage"],
        "images": pictures,
        "description": text_of(item["description"]),
        "platform_created_at": min(instant(one["createdAt"]) for one in item["variants"]),
        "platform_updated_at": max(instant(one["updatedAt"]) for one in item["variants"]),
        "extra": extra(item),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[item["strainType"]],
    }


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def option(one: dict[str, Any], name: str, by_content: bool) -> dict[str, Any]:
    assert one["menuType"] == "RECREATIONAL"
    price = Decimal(one["price"])
    special = Decimal(str(one["specialPrice"]))
    assert 0 < special < price
    grams = weight(one["option"])
    milligrams = grams * 1000 if by_content else None
    named = {Decimal(number) for number in re.findall(r"([\d.]+) ?mg", name)}
    if named and milligrams not in named:
        milligrams = None
    quantity = int(one["quantity"])
    return {
        "option": one["option"],
        "price_rec": price,
        "special_rec": special,
        "price_med": None,
        "special_med": None,
        "quantity": quantity,
        "capped": quantity == 25,
        "stock_status": "in_stock" if quantity > 0 else "oos",
        "weight_g": None if by_content else grams,
        "price_per_g": None if by_content else each(special, grams),
        "pieces": None,
        "content_mg": milligrams,
        "price_per_piece": None,
        "price_per_mg": each(special, milligrams),
    }


def weight(text: str) -> Decimal:
    match = re.fullmatch(r"([\d./]+)(g|oz)", text)
    assert match, text
    amount = Fraction(match[1]) * (28 if match[2] == "oz" else 1)
    return Decimal(amount.numerator) / amount.denominator


def content(item: dict[str, Any], name: str) -> tuple[Any, Any, Any]:
    rows = [row for row in item["potencies"] if row["type"] == name]
    if not rows:
        return None, None, None
    (row,) = rows
    assert (row["unit"], row["displayValue"]) == ("%", f"{row['rangeHigh']}%")
    return Decimal(row["rangeLow"]), Decimal(row["rangeHigh"]), "%"


def lab(rows: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    return [{"name": row["name"], "value": row["value"], "unit": row["unit"]} for row in rows] or None


def specials(item: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The README: amounts and kinds tell nothing."""
    applied = {row["specialId"] for one in item["variants"] for row in one["appliedSpecials"]}
    assert applied <= {row["specialId"] for row in item["applicableSpecials"]}
    return [
        {"name": trimmed(row["specialName"]), "kind": "other", "special_id": row["specialId"]}
        for row in item["applicableSpecials"]
    ] or None


def extra(item: dict[str, Any]) -> dict[str, Any]:
    return without_nothing(
        {
            "dispensary_id": str(item["businessId"]),
            "provider_business_id": item["providerBusinessId"],
            "pos_id": item["posId"],
            "global_product_id": item["globalProductId"],
            "slug": item["urlFragment"],
            "brand_id": item["brandId"],
            "variant_ids": [one["jointId"] for one in item["variants"]],
            "menu_types": item["menuType"],
            "effects": [word.lower() for word in item["effects"]],
            "tags": item["tagList"],
            "collections": item["collections"],
            "staff_pick": item["staffPick"] or None,
            "pos_special_ids": [row["posSpecialId"] for row in item["applicableSpecials"] if "posSpecialId" in row],
        }
    )
