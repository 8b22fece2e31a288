"""What a recorded item of a live Weedmaps menu means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.recorded.plain import each, least, trimmed, without_nothing


def product(item: dict[str, Any]) -> dict[str, Any]:
    """Every column that this item should have. All recorded ones are flower of adults' menus, none on sale."""
    assert item["edge_category"]["name"] == "Flower"
    assert item["license_type"] == "recreational"
    brand = (item["brand_endorsement"] or {}).get("brand_name")
    options = sorted((option(offer) for offer in item["prices"]["ounce"]), key=lambda one: one["option"])
    contents = {row["code"]: Decimal(row["value"]) for row in item["metrics"]["cannabinoids"]}
    strain = item["genetics_tag"]["name"] if item["genetics_tag"] else item["category"]["name"]
    thc, cbd = (contents.get(code) or None for code in ("thc", "cbd"))
    picture = item["avatar_image"]["original_url"]
    return {
        "provider": "weedmaps",
        "name_raw": item["name"],
        "name": trimmed(item["name"]),
        "brand_name_raw": brand,
        "brand_name": brand,
        "category": "Flower",
        "subcategory": "Flower",
        "strain_type": strain,
        "status_raw": None,
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": None,
        "price_med": None,
        "price_med_special": None,
        "variants": options,
        "is_in_stock": None,
        "stock_status": "unknown",
        "quantity": None,
        "quantity_capped": False,
        "thc_lo": thc,
        "thc_hi": thc,
        "thc_unit": "%" if thc else None,
        "cbd_lo": cbd,
        "cbd_hi": cbd,
        "cbd_unit": "%" if cbd else None,
        "cannabinoids": [
            {"name": row["code"].upper(), "value": Decimal(row["value"]), "unit": "%"}
            for row in item["metrics"]["cannabinoids"]
        ]
        or None,
        "specials": None,
        "image_url": picture,
        "images": [picture],
        "description": None,
        "platform_created_at": datetime.strptime(item["created_at"], "%Y-%m-%dT%H:%M:%S.%f%z"),
        "platform_updated_at": None,
        "extra": extra(item),
        "category_canon": "flower",
        "subcategory_canon": None,
        "strain_canon": strain.lower(),
    }


def option(offer: dict[str, Any]) -> dict[str, Any]:
    assert not offer["on_sale"]
    assert offer["price"] == offer["original_price"]
    ounces = Fraction(offer["units"])
    assert float(ounces) == float(offer["weight"]["value"])
    price, grams = Decimal(str(offer["price"])), Decimal(float(ounces * 28))
    return {
        "option": f"{ounces} oz",
        "price_rec": price,
        "special_rec": None,
        "price_med": None,
        "special_med": None,
        "quantity": None,
        "capped": False,
        "stock_status": "unknown",
        "weight_g": grams,
        "price_per_g": each(price, grams),
        "pieces": None,
        "content_mg": None,
        "price_per_piece": None,
        "price_per_mg": None,
    }


def extra(item: dict[str, Any]) -> dict[str, Any]:
    endorsed = item["brand_endorsement"] or {}
    return without_nothing(
        {
            "menu_id": str(item["menu_id"]),
            "slug": item["slug"],
            "license_type": item["license_type"],
            "brand_id": str(endorsed["brand_id"]) if endorsed else None,
            "library_product_id": str(endorsed["product_id"]) if endorsed else None,
            "tags": [tag["group_name_and_name"] for tag in item["tags"]],
            "rating": item["rating"] if item["reviews_count"] else None,
            "reviews_count": item["reviews_count"] or None,
            "online_orderable": item["is_online_orderable"],
        }
    )
