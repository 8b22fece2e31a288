"""What a recorded Dovetail product means, worked out by hand from the raw file and its README. Shares no code with the product."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, text_of, trimmed, without_nothing

STORE = "cookiesflorida.co/tampa/medical"
KINDS = {("Premium Flower", "Default"): ("flower", None), ("Premium Flower", "Small Buds"): ("flower", "small_buds")}
STRAINS = {"Indica": "indica", "Hybrid": "hybrid", "Indica Hybrid": "indica_hybrid", "Sativa Hybrid": "sativa_hybrid"}
GRAMS = {"1/8oz": Decimal("3.5"), "1/4oz": Decimal(7)}


def product(item: dict[str, Any]) -> dict[str, Any]:
    """Every column of one product of the medical menu."""
    category, subcategory = KINDS[item["category"], item["subcategory"]]
    options = [option(variant) for variant in item["variants"]]
    (thc_lo, thc_hi, thc_unit), (cbd_lo, cbd_hi, cbd_unit) = (content(item[k]) for k in ("potency_thc", "potency_cbd"))
    pictures = list(dict.fromkeys(image["url"] for image in item["images"]))
    assert item["specials"] is item["sku"] is item["split_source"] is item["options"] is item["collections"] is None
    return {
        "provider": "dovetail",
        "name_raw": item["name"],
        "name": trimmed(item["name"]),
        "brand_name_raw": item["brand"]["name"],
        "brand_name": trimmed(item["brand"]["name"]),
        "category": item["category"],
        "subcategory": item["subcategory"],
        "strain_type": item["strain_type"],
        "status_raw": None,
        "price_rec": None,
        "price_rec_special": None,
        "price_med": least([one["price_med"] for one in options]),
        "price_med_special": least([one["special_med"] for one in options]),
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": any(one["quantity"] > 0 for one in options),
        "stock_status": "in_stock" if any(one["quantity"] > 0 for one in options) else "oos",
        "quantity": sum(one["quantity"] for one in options),
        "quantity_capped": any(one["capped"] for one in options),
        "thc_lo": thc_lo, "thc_hi": thc_hi, "thc_unit": thc_unit, "cbd_lo": cbd_lo, "cbd_hi": cbd_hi, "cbd_unit": cbd_unit,
        "cannabinoids": [
            {"name": trimmed(row["name"]), "value": row["value"], "unit": row["unit"]} for row in item["cannabinoids"]
        ],
        "specials": None,
        "batch": {**batch(item), "packaged_on": batch(item)["packaged_on"].isoformat()},
        "terpenes": [{"name": name, "value": value, "unit": unit} for name, value, unit in terpenes(item)] or None,
        "image_url": pictures[0],
        "images": pictures,
        "description": text_of(item["description"] or ""),
        "platform_created_at": None,
        "platform_updated_at": None,
        "extra": extra(item),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[item["strain_type"]],
    }  # fmt: skip


def option(variant: dict[str, Any]) -> dict[str, Any]:
    """`price` is what is paid, `regular_price` is crossed out beside it."""
    assert not variant["special_ids"]
    assert variant["option"] == variant["name"]
    paid, regular = variant["price"], variant["regular_price"]
    return {
        "option": variant["option"],
        "price_rec": None,
        "price_med": regular,
        "special_rec": None,
        "special_med": paid if paid < regular else None,
        "quantity": variant["quantity"],
        "capped": variant["quantity"] == 25,
        "stock_status": "in_stock" if variant["quantity"] > 0 else "oos",
        "weight_g": GRAMS[variant["option"]],
        "price_per_g": each(Decimal(paid), GRAMS[variant["option"]]),
        "pieces": None,
        "content_mg": None,
        "price_per_piece": None,
        "price_per_mg": None,
    }


def content(potency: dict[str, Any]) -> tuple[Any, Any, Any]:
    if not potency["range"]:
        return None, None, None
    assert potency["unit"] == "%"
    return min(potency["range"]), max(potency["range"]), "%"


def extra(item: dict[str, Any]) -> dict[str, Any]:
    meta = item["meta_data"]
    assert meta["alternate_name"] is None
    return without_nothing(
        {
            "dispensary_id": STORE,
            "slug": item["slug"],
            "menu_url": item["link"],
            "pos_id": meta["id"],
            "pos_category": meta["category"],
            "sku": meta["sku"],
            "batch_record_id": meta["batch_id"],
            "brand_id": item["brand"]["id"],
            "brand_description": item["brand"]["description"].strip(),
            "tags": item["tags"],
            "effects": [effect.lower().replace(" ", "_") for effect in item["effects"] or []],
            "informations": without_nothing(item["informations"] or {}) or None,
            "staff_pick": item["staff_pick"] or None,
        }
    )


def batch(item: dict[str, Any]) -> dict[str, Any]:
    """The package on sale. Packaging is at midnight in Florida, which is the same day in UTC."""
    meta = item["meta_data"]
    assert meta["packaged_date"][10:] in ("T04:00:00.000Z", "T05:00:00.000Z")
    link = meta["lab_result_url"].strip()
    return {
        "batch_id": meta["batch_name"],
        "packaged_on": date.fromisoformat(meta["packaged_date"][:10]),
        **({"certificate_url": link} if link.startswith("https://") else {}),
    }


def terpenes(item: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """(name, value, unit) of each that was measured."""
    return [(trimmed(row["name"]), row["value"], row["unit"]) for row in item["terpenes"] if row["value"] is not None]
