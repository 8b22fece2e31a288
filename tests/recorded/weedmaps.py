"""What a recorded Weedmaps item means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.recorded.plain import each, least, text_of, trimmed, without_nothing

# (Weedmaps' category, its subcategory) → (category, subcategory) of all platforms, for every pair that was recorded.
KINDS: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {
    (None, None): (None, None),
    ("Flower", "Flower"): ("flower", None),
    ("Flower", "Infused Flower"): ("flower", "infused"),
    ("Flower", "Shake"): ("flower", "shake"),
    ("Flower", "Pre Roll"): ("preroll", None),
    ("Flower", "Infused Pre Roll"): ("preroll", "infused"),
    ("Flower", "Blunt Wrap"): ("preroll", "blunt"),
    ("Vape Pens", "Vape Pens"): ("vaporizer", None),
    ("Vape Pens", "Cartridge"): ("vaporizer", "cartridge"),
    ("Vape Pens", "Disposable"): ("vaporizer", "disposable"),
    ("Vape Pens", "Pods"): ("vaporizer", "pod"),
    ("Vape Pens", "Batteries"): ("accessory", "battery"),
    ("Vape Pens", "Pull"): ("accessory", "battery"),
    ("Vape Pens", "Push Button"): ("accessory", "battery"),
    ("Concentrates", "Concentrates"): ("concentrate", None),
    ("Concentrates", "Distillate"): ("concentrate", "distillate"),
    ("Concentrates", "Rosin"): ("concentrate", "rosin"),
    ("Concentrates", "Budder"): ("concentrate", "badder"),
    ("Concentrates", "Live Resin"): ("concentrate", "live_resin"),
    ("Concentrates", "Sugar Leaf"): ("concentrate", "sugar"),
    ("Concentrates", "Dry Sift"): ("concentrate", "kief"),
    ("Concentrates", "Crystalline"): ("concentrate", "diamonds"),
    ("Concentrates", "Crumble"): ("concentrate", "crumble"),
    ("Concentrates", "Sauce"): ("concentrate", "sauce"),
    ("Concentrates", "Shatter"): ("concentrate", "shatter"),
    ("Concentrates", "Ice Hash"): ("concentrate", "hash"),
    ("Concentrates", "Syringe"): ("concentrate", "syringe"),
    ("Concentrates", "Nug Run"): ("concentrate", "nug_run"),
    ("Concentrates", "Taffy"): ("concentrate", "taffy"),
    ("Edibles", "Edibles"): ("edible", None),
    ("Edibles", "Gummies"): ("edible", "gummies"),
    ("Edibles", "Chocolates"): ("edible", "chocolate"),
    ("Edibles", "Candy"): ("edible", "candy"),
    ("Edibles", "Drinks"): ("edible", "beverage"),
    ("Edibles", "Beverages"): ("edible", "beverage"),
    ("Edibles", "Cookies"): ("edible", "baked"),
    ("Edibles", "Brownies"): ("edible", "baked"),
    ("Edibles", "Baked Goods"): ("edible", "baked"),
    ("Edibles", "Syrup"): ("edible", "syrup"),
    ("Edibles", "Powder"): ("edible", "powder"),
    ("Edibles", "Condiments"): ("edible", "cooking"),
    ("Edibles", "Cooking Ingredients"): ("edible", "cooking"),
    ("Edibles", "Edible Oils"): ("edible", "cooking"),
    ("Edibles", "Treats"): ("edible", "snacks"),
    ("Edibles", "Snacks"): ("edible", "snacks"),
    ("Edibles", "Ice Cream"): ("edible", "frozen"),
    ("Edibles", "Gluten Free"): ("edible", None),
    ("Edibles", "Vegan"): ("edible", None),
    ("Edibles", "Dairy Free"): ("edible", None),
    ("Edibles", "Sugar Free"): ("edible", None),
    ("Edibles", "Tincture"): ("tincture", None),
    ("Edibles", "Capsules"): ("oral", "capsules"),
    ("Topicals", "Topicals"): ("topical", None),
    ("Topicals", "Balms & Salves"): ("topical", "balm"),
    ("Topicals", "Lotions"): ("topical", "lotion"),
    ("Topicals", "Bombs"): ("topical", "bath"),
    ("Topicals", "Lubricants & Oils"): ("topical", "oil"),
    ("Topicals", "Patches"): ("topical", "patches"),
    ("Cultivation", "Seeds"): ("cultivation", "seeds"),
    ("Cultivation", "Clone"): ("cultivation", "clones"),
    ("Gear", "Gear"): ("accessory", None),
    ("Gear", "Accessories"): ("accessory", None),
    ("Gear", "Ash Catchers"): ("accessory", None),
    ("Gear", "Rolling Papers"): ("accessory", "papers"),
    ("Gear", "Pipes"): ("accessory", "glass"),
    ("Gear", "Bongs"): ("accessory", "glass"),
    ("Gear", "Bubblers"): ("accessory", "glass"),
    ("Gear", "Dab Rigs"): ("accessory", "dabbing"),
    ("Gear", "Dab Tools"): ("accessory", "dabbing"),
    ("Gear", "Banger & Nails"): ("accessory", "dabbing"),
    ("Gear", "Grinders"): ("accessory", "grinder"),
    ("Gear", "Storage"): ("accessory", "storage"),
    ("Gear", "Torches"): ("accessory", "lighter"),
    ("Gear", "Vaporizer"): ("accessory", "device"),
    ("Gear", "Apparel"): ("apparel", None),
    ("Gear", "Men's"): ("apparel", None),
    ("Gear", "Women's"): ("apparel", None),
    ("Gear", "Shirts"): ("apparel", "shirts"),
    ("Gear", "Hats"): ("apparel", "hats"),
    ("Gear", "Hoodies"): ("apparel", "hoodies"),
    ("Other", "Other"): ("other", None),
}
BY_CONTENT = {"edible", "tincture", "oral", "topical"}


def product(item: dict[str, Any]) -> dict[str, Any]:
    """Every column that this item should have."""
    at = item["attributes"]
    category, subcategory = KINDS[at["category_name"], at["sub_category"].get("name")]
    by_content = category in BY_CONTENT
    options = sorted((option(at, entry, by_content) for entry in offers(at)), key=lambda one: one["option"])
    counts = [one["quantity"] for one in options if one["quantity"] is not None]
    together = max if at["shared_inventory"] else sum
    statuses = {one["stock_status"] for one in options}
    status = "in_stock" if "in_stock" in statuses else "oos" if statuses == {"oos"} else "unknown"
    thc, cbd = (content(at["measurements"], name, by_content) for name in ("THC", "CBD"))
    pictures = []
    for name in ("avatar_image_url", "picture_url", "original_picture_url"):
        if "placeholder" not in at[name] and at[name] not in pictures:
            pictures.append(at[name])
    return {
        "provider": "weedmaps",
        "name_raw": at["name"],
        "name": trimmed(at["name"]),
        "brand_name_raw": at["brand_name"] or None,
        "brand_name": trimmed(at["brand_name"]) if at["brand_name"] else None,
        "category": at["category_name"],
        "subcategory": at["sub_category"].get("name"),
        "strain_type": at["genetics"],
        "status_raw": {True: "published", False: "unpublished"}[at["is_published"]],
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": least([one["price_med"] for one in options]),
        "price_med_special": least([one["special_med"] for one in options]),
        "variants": options,
        "is_in_stock": {"in_stock": True, "oos": False, "unknown": None}[status],
        "stock_status": status,
        "quantity": together(counts) if counts else None,
        "quantity_capped": any(one["capped"] for one in options),
        "thc_lo": thc[0],
        "thc_hi": thc[0],
        "thc_unit": thc[1],
        "cbd_lo": cbd[0],
        "cbd_hi": cbd[0],
        "cbd_unit": cbd[1],
        "cannabinoids": [
            {"name": row["name"], "value": Decimal(row["value"]), "unit": row["unit"]} for row in at["measurements"]
        ]
        or None,
        "specials": special(at["sale"]),
        "image_url": pictures[0] if pictures else None,
        "images": pictures or None,
        "description": text_of(at["body"]),
        "platform_created_at": instant(at["created_at"]),
        "platform_updated_at": instant(at["updated_at"]),
        "extra": extra(item, at, pictures),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": at["genetics"],
    }


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def offers(at: dict[str, Any]) -> list[tuple[str, Decimal | None, Decimal | None, int | None]]:
    """(option, listed price, grams, count)"""
    by_package = Decimal(str(at["prices"]["price_unit"])) or None
    if not at["variants"]:
        return [("each", by_package, None, at["inventory_quantity"])]
    found: list[tuple[str, Decimal | None, Decimal | None, int | None]] = []
    for variant in at["variants"]:
        per_unit = {"g": 1, "oz": 28}[variant["weight"]["unit"]]
        grams = Decimal(variant["weight"]["value"]) * per_unit
        price = Decimal(variant["price"]["amount"]) or None
        found.append((variant["label"], price, grams, variant["inventory_quantity"]))
    if by_package is not None and by_package not in {offer[1] for offer in found}:
        found.append(("each", by_package, None, 0 if at["inventory_quantity"] == 0 else None))
    return found


def option(
    at: dict[str, Any], offer: tuple[str, Decimal | None, Decimal | None, int | None], by_content: bool
) -> dict[str, Any]:
    name, price, grams, count = offer
    reduced = None
    if at["sale"] and price is not None:
        assert at["sale"]["type"] == "percentage"
        reduced = (price - price * at["sale"]["amount"] / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)
    kind = "med" if at["license_type"] == "medical" else "rec"
    other = "rec" if kind == "med" else "med"
    weight = None if by_content else grams
    return {
        "option": name,
        f"price_{kind}": price,
        f"special_{kind}": reduced,
        f"price_{other}": None,
        f"special_{other}": None,
        "quantity": count,
        "capped": count == 9999,
        "stock_status": "unknown" if count is None else "in_stock" if count > 0 else "oos",
        "weight_g": weight,
        "price_per_g": each(price if reduced is None else reduced, weight),
        # No recorded option names pieces or milligrams.
        "pieces": None,
        "content_mg": None,
        "price_per_piece": None,
        "price_per_mg": None,
    }


def content(rows: list[dict[str, Any]], name: str, by_content: bool) -> tuple[Decimal | None, str | None]:
    """(value, unit): milligrams first of what is sold by content, percent first of the rest; 0 says nothing."""
    told = {
        row["unit"]: Decimal(row["value"]) for row in reversed(rows) if row["name"] == name and Decimal(row["value"])
    }
    for unit in sorted(told, key=lambda unit: (unit == "mg") != by_content):
        return told[unit], unit
    return None, None


def special(sale: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    return [{"name": f"{sale['amount']}% off", "kind": "percent", "value": sale["amount"]}] if sale else None


def extra(item: dict[str, Any], at: dict[str, Any], pictures: list[str]) -> dict[str, Any]:
    def to_one(name: str) -> str | None:
        found = item["relationships"][name]
        return str(found["data"]["id"]) if found and found["data"] else None

    return without_nothing(
        {
            "dispensary_id": to_one("listing"),
            "slug": at["slug"],
            "menu_url": item["links"]["order"],
            "external_id": at["external_id"],
            "pos_id": at["external_id"].split("|")[1] if "|" in (at["external_id"] or "") else None,
            "cart_quantity_multiplier": at["cart_quantity_multiplier"],
            "options": {
                variant["label"]: without_nothing(
                    {name: variant[name] for name in ("compliance_net_mg", "cart_quantity_multiplier")}
                )
                for variant in at["variants"]
                if variant["compliance_net_mg"] is not None or variant["cart_quantity_multiplier"] is not None
            }
            or None,
            "license_type": at["license_type"],
            "brand_id": to_one("brand"),
            "library_product_id": to_one("product"),
            "strain_id": to_one("strain"),
            "category_ids": [str(row["id"]) for row in item["relationships"]["categories"]["data"]],
            "tag_ids": [row["id"] for row in item["relationships"]["tags"]["data"]],
            "compliance_net_mg": at["compliance_net_mg"],
            "shared_inventory": True if at["shared_inventory"] else None,
            "shared_quantity": at["inventory_quantity"] if at["variants"] else None,
            "online_orderable": at["online_orderable"],
            "placeholder_image": None if pictures else at["avatar_image_url"],
        }
    )
