"""What a recorded row of a Jane menu means, worked out by hand from the raw file and its README. Shares no code with the product."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, trimmed, without_nothing

# Jane's kind → category of all platforms.
CATEGORIES = {
    "flower": "flower", "pre-roll": "preroll", "vape": "vaporizer", "extract": "concentrate", "edible": "edible",
    "tincture": "tincture", "topical": "topical", "gear": "accessory", "merch": "apparel", "grow": "cultivation",
}  # fmt: skip
# (kind, its subtype) → subcategory, for every subtype that was recorded; the first of a row's words that has one counts.
SUBCATEGORIES = {
    ("flower", "Premium Flower"): None,
    ("flower", "Premium"): None,
    ("flower", "Mini Buds"): "small_buds",
    ("flower", "Smalls"): "small_buds",
    ("flower", "Popcorn"): "small_buds",
    ("flower", "Ground Flower"): "ground",
    ("flower", "Pre-Ground"): "ground",
    ("flower", "Infused Flower"): "infused",
    ("flower", "Ground Flower + Sand"): None,
    ("flower", "Select Grind"): None,
    ("flower", "Mixed Buds"): None,
    ("flower", "Bud"): None,
    ("flower", "Flower"): None,
}
GRAMS = {
    "each": None, "half gram": "0.5", "gram": "1", "two gram": "2", "eighth ounce": "3.5", "quarter ounce": "7", "half ounce": "14",
    "ounce": "28",
}  # fmt: skip
NAMES = {
    "each": "each", "half gram": "1/2 g", "gram": "1 g", "two gram": "2 g", "eighth ounce": "1/8 oz", "quarter ounce": "1/4 oz",
    "half ounce": "1/2 oz", "ounce": "1 oz",
}  # fmt: skip
BY_CONTENT = {"edible", "tincture", "topical"}
CANNABINOIDS = {"THC", "THCA", "CBD", "CBDA", "CBG", "CBGA", "CBN", "CBC", "THCV", "TAC"}
STRAINS = {"indica", "sativa", "hybrid"}


def product(row: dict[str, Any]) -> dict[str, Any]:
    """Every column that this row should have; `row` is a hit, or the search attributes of a merchandised row."""
    by_content = row["kind"] in BY_CONTENT
    # Weights from the lightest to the heaviest.
    sold = [weight for weight in GRAMS if weight in row["available_weights"]]
    options = sorted((option(row, weight, by_content) for weight in sold), key=lambda one: one["option"])
    words = [trimmed(row[name]) for name in ("kind_subtype", "root_subtype", "custom_product_subtype", "brand_subtype")
             if row.get(name)]  # fmt: skip
    status = "in_stock" if row["visible"] and sold else "oos"
    thc, cbd = (content(row, name, sold) for name in ("thc", "cbd"))
    lab = next((values for weight in sold if (values := compounds(row, weight))), None)
    if lab is None:
        lab = next((values for weight in GRAMS if (values := compounds(row, weight))), [])
    pictures = list(dict.fromkeys(row["image_urls"]))
    strain = next((row[name] for name in ("category", "type") if row[name] in STRAINS), None)
    return {
        "provider": "jane",
        "name_raw": row["name"],
        "name": trimmed(row["name"]),
        "brand_name_raw": row["brand"],
        "brand_name": trimmed(row["brand"]) if row["brand"] else None,
        "category": row["kind"],
        "subcategory": words[0] if words else None,
        "strain_type": strain,
        "status_raw": "visible" if row["visible"] else "hidden",
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": least([one["price_med"] for one in options]),
        "price_med_special": least([one["special_med"] for one in options]),
        "variants": options,
        "is_in_stock": status == "in_stock",
        "stock_status": status,
        "quantity": None,
        "quantity_capped": False,
        "thc_lo": min(thc) if thc else None,
        "thc_hi": max(thc) if thc else None,
        "thc_unit": "%" if thc else None,
        "cbd_lo": min(cbd) if cbd else None,
        "cbd_hi": max(cbd) if cbd else None,
        "cbd_unit": "%" if cbd else None,
        "cannabinoids": [one for one in lab if one["name"] in CANNABINOIDS] or None,
        "terpenes": [one for one in lab if one["name"] not in CANNABINOIDS] or None,
        "specials": specials(row, sold) or None,
        "image_url": pictures[0] if pictures else None,
        "images": pictures or None,
        "description": trimmed(row["description"]) if re.search(r"\w", row["description"]) else None,
        "platform_created_at": None,
        "platform_updated_at": datetime.fromisoformat(row["indexed_at"]).astimezone(UTC)
        if "indexed_at" in row
        else None,
        "extra": extra(row, sold),
        "category_canon": CATEGORIES[row["kind"]],
        "subcategory_canon": next((known for word in words if (known := SUBCATEGORIES[row["kind"], word])), None),
        "strain_canon": strain,
    }


def field(weight: str) -> str:
    return weight.replace(" ", "_")


def option(row: dict[str, Any], weight: str, by_content: bool) -> dict[str, Any]:
    price = money(row.get(f"price_{field(weight)}"))
    given = row.get(f"special_price_{field(weight)}") or {}
    reduced = [money(given.get("discount_price")), money(row.get(f"discounted_price_{field(weight)}"))]
    special = min(
        (value for value in reduced if value is not None and price is not None and value < price), default=None
    )
    patients, adults = (
        "medical" in row["store_types"],
        "medical" not in row["store_types"] or "recreational" in row["store_types"],
    )
    grams = None if by_content or GRAMS[weight] is None else Decimal(str(GRAMS[weight]))
    return {
        "option": NAMES[weight],
        "price_rec": price if adults else None,
        "special_rec": special if adults else None,
        "price_med": price if patients else None,
        "special_med": special if patients else None,
        "quantity": None,
        "capped": False,
        "stock_status": "in_stock" if row["visible"] else "oos",
        "weight_g": grams,
        "price_per_g": each(price if special is None else special, grams),
        "pieces": None,
        "content_mg": None,
        "price_per_piece": None,
        "price_per_mg": None,
    }


def money(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def content(row: dict[str, Any], name: str, sold: list[str]) -> list[Decimal]:
    """Percentages of the weights on sale, else of the product; 0 says nothing."""
    fields = {field(weight) for weight in sold}
    told = [Decimal(str(one[f"{name}_potency"])) for one in row["inventory_potencies"] if one["price_id"] in fields]
    whole = money(row.get(f"percent_{name}"))
    return [value for value in told if value] or ([whole] if whole else [])


def compounds(row: dict[str, Any], weight: str) -> list[dict[str, Any]]:
    for one in row["lab_results"]:
        if one["price_id"] == field(weight):
            return [{"name": trimmed(entry["compound_name"]), "value": money(entry["value"]), "unit": entry["unit"]}
                    for entry in one["lab_results"]]  # fmt: skip
    return []


def specials(row: dict[str, Any], sold: list[str]) -> list[dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for weight in sold:
        given = row.get(f"special_price_{field(weight)}")
        if given:
            assert given["special_id"] == row["special_id"], "a row has one promotion that changes prices"
            kind, amount = {
                "percent": ("percent", given["discount_percent"]), "dollar_amount": ("amount", given["discount_amount"])
            }[given["discount_type"]]  # fmt: skip
            value = {"value": Decimal(amount)} if Decimal(amount) else {}
            found[given["special_id"]] = {
                "name": trimmed(row["special_title"]), "kind": kind, "special_id": str(given["special_id"]), **value,
            }  # fmt: skip
    for offer in row["brand_special_prices"].values():
        refund = {"name": trimmed(offer["title"]), "kind": "other", "special_id": str(offer["brand_special_id"])}
        found.setdefault(("brand", offer["brand_special_id"]), refund)
    return list(found.values())


def extra(row: dict[str, Any], sold: list[str]) -> dict[str, Any]:
    shown = {one["special_id"] for one in specials(row, sold)}
    told = [str(one) for name in ("applicable_special_ids", "applicable_brand_special_ids", "applicable_cart_total_special_ids")
            for one in row.get(name) or ()]  # fmt: skip
    bundles = [str(one) for name in ("applicable_bundle_special_ids", "applicable_bundle_brand_special_ids")
               for side in ("qualify", "discount") for one in row[name][side]]  # fmt: skip
    labs = {weight: compounds(row, weight) for weight in sold if compounds(row, weight)}
    differ = any(values != next(iter(labs.values())) for values in labs.values())
    found: dict[str, Any] = {
        "dispensary_id": str(row["store_id"]),
        "offer_id": str(row["objectID"]),
        "brand_id": str(row["product_brand_id"]),
        "slug": row["url_slug"],
        "store_types": row["store_types"],
        "custom_product_type": None if row["custom_product_type"] == row["kind"] else row["custom_product_type"],
        "store_notes": None if row["store_notes"] == row["description"] else trimmed(row["store_notes"]),
        "max_cart_quantity": {NAMES[weight]: row[f"max_cart_quantity_{field(weight)}"] for weight in sold},
        "special_badge": row.get("special_custom_badge"),
        "special_ids": [one for one in dict.fromkeys(told) if one not in shown],
        "bundle_special_ids": list(dict.fromkeys(bundles)),
        "percent_cbda": money(row.get("percent_cbda")),
        "lab_results_by_option": {NAMES[weight]: values for weight, values in labs.items()} if differ else None,
        "quantity_units": row.get("quantity_units"),
        "pos_ids": row["pos_product_lookup"] or None,
        "store_specific": True if row["store_specific_product"] else None,
        "pickup": row["available_for_pickup"],
        "delivery": row["available_for_delivery"],
        "rating": money(row["aggregate_rating"]) or None,
        "review_count": row["review_count"] or None,
    }
    for name in ("compound_names", "effects", "feelings", "activities", "flavors", "allergens", "ingredients", "root_types",
                 "collections", "terpenes"):  # fmt: skip
        found[name] = list(dict.fromkeys(trimmed(text) for text in row.get(name) or ()))
    return without_nothing(found)
