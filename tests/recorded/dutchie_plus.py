"""What a recorded Dutchie Plus product means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, trimmed, without_nothing

KINDS = {("EDIBLES", "GUMMIES"): ("edible", "gummies"), ("EDIBLES", "CHEWS"): ("edible", "chews")}
STRAINS = {
    "INDICA": "indica",
    "SATIVA": "sativa",
    "HYBRID": "hybrid",
    "SATIVA_HYBRID": "sativa_hybrid",
    "THC": None,
}
# Options that were recorded: (pieces, milligrams). "1g" of gummies says neither.
PACKAGES = {"10pk/100mg": (10, 100), "20pk/100mg": (20, 100), "1g": (None, None)}


def product(item: dict[str, Any]) -> dict[str, Any]:
    category, subcategory = KINDS[item["category"], item["subcategory"]]
    options = [option(variant) for variant in item["variants"]]
    (thc_lo, thc_hi, thc_unit), (cbd_lo, cbd_hi, cbd_unit) = (content(item[k]) for k in ("potencyThc", "potencyCbd"))
    pictures = list(dict.fromkeys(image["url"] for image in item["images"]))
    assert item["terpenes"] == item["tags"] == []
    text = trimmed(item["description"])
    return {
        "provider": "dutchie_plus",
        "name_raw": item["name"],
        "name": trimmed(item["name"]),
        "brand_name_raw": item["brand"]["name"],
        "brand_name": trimmed(item["brand"]["name"]),
        "category": item["category"],
        "subcategory": item["subcategory"],
        "strain_type": item["strainType"],
        "status_raw": None,
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": least([one["price_med"] for one in options]),
        "price_med_special": least([one["special_med"] for one in options]),
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": any(one["quantity"] > 0 for one in options),
        "stock_status": "in_stock" if any(one["quantity"] > 0 for one in options) else "oos",
        "quantity": sum(one["quantity"] for one in options),
        "quantity_capped": any(one["capped"] for one in options),
        "thc_lo": thc_lo, "thc_hi": thc_hi, "thc_unit": thc_unit, "cbd_lo": cbd_lo, "cbd_hi": cbd_hi, "cbd_unit": cbd_unit,
        "cannabinoids": [
            {"name": trimmed(row["cannabinoid"]["name"]), "value": row["value"], "unit": row["unit"]}
            for row in item["cannabinoids"]
        ]
        or None,
        "specials": None,
        "batch": batch(item),
        "terpenes": terpenes(item) or None,
        "image_url": item["image"],
        "images": pictures or None,
        "description": text if re.search(r"\w", text) else None,
        "platform_created_at": None,
        "platform_updated_at": None,
        "extra": without_nothing(
            {
                "enterprise_product_id": item["enterpriseProductId"],
                "pos_id": item["posId"],
                "pos_category": item["posMetaData"]["category"],
                "sku": item["posMetaData"]["sku"],
                "brand_id": item["brand"]["id"],
                "brand_description": item["brand"]["description"].strip() or None,
                "slug": item["slug"],
                "menu_types": item["menuTypes"],
                "effects": [effect.lower() for effect in item["effects"]],
                "staff_pick": item["staffPick"] or None,
            }
        ),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[item["strainType"]],
    }  # fmt: skip


def option(variant: dict[str, Any]) -> dict[str, Any]:
    pieces, milligrams = PACKAGES[variant["option"]]
    assert not variant["specialConditionIds"]
    assert not variant["specialRewardIds"]
    paid = variant["specialPriceRec"] or variant["priceRec"]
    return {
        "option": variant["option"],
        "price_rec": variant["priceRec"],
        "price_med": variant["priceMed"],
        "special_rec": variant["specialPriceRec"],
        "special_med": variant["specialPriceMed"],
        "quantity": variant["quantity"],
        "capped": variant["quantity"] == 25,
        "stock_status": "in_stock" if variant["quantity"] > 0 else "oos",
        "weight_g": None,
        "price_per_g": None,
        "pieces": pieces,
        "content_mg": milligrams,
        "price_per_piece": each(Decimal(paid), pieces),
        "price_per_mg": each(Decimal(paid), milligrams),
    }


def content(potency: dict[str, Any]) -> tuple[Any, Any, Any]:
    told = potency["range"]
    if not told:
        return None, None, None
    assert potency["unit"] == "%"
    return min(told), max(told), "%"


def batch(item: dict[str, Any]) -> dict[str, Any] | None:
    """The batch on sale."""
    return (
        without_nothing({"batch_id": item["productBatchId"], "certificate_url": item["posMetaData"]["labResultUrl"]})
        or None
    )


def terpenes(item: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """None of the recorded products has any."""
    assert not item["terpenes"]
    return []
