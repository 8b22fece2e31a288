"""What recorded Sweed rows mean, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, trimmed, without_nothing

# (category, subcategory, product type) → (category, subcategory) of all platforms, for every triple that was recorded.
KINDS: dict[tuple[str, str, str | None], tuple[str, str | None]] = {
    ("Flower", "Buds", "Buds"): ("flower", None),
    ("Flower", "Buds", "Ground Bud"): ("flower", "ground"),
    ("Pre-Rolls", "Pack", "Pre-Roll Pack"): ("preroll", "pack"),
    ("Pre-Rolls", "Single", "Single"): ("preroll", "single"),
    ("Pre-Rolls", "Single", "Pre-Roll"): ("preroll", "single"),
    ("Cartridges", "Specialty Cartridge", "Pod"): ("vaporizer", "pod"),
    ("Cartridges", "510 Thread", "BDT Distillate Cart"): ("vaporizer", "cartridge"),
    ("Cartridges", "510 Thread", "Distillate Blend Cart"): ("vaporizer", "cartridge"),
    ("Cartridges", "510 Thread", "Liquid Diamonds & Sauce Cart"): ("vaporizer", "cartridge"),
    ("Concentrates", "Syringe", "RSO"): ("concentrate", "rso"),
    ("Concentrates", "Syringe", "Terp Sap"): ("concentrate", "syringe"),
    ("Concentrates", "Dabs", "Live Sugar"): ("concentrate", "sugar"),
    ("Concentrates", "Dabs", "Cured Sugar"): ("concentrate", "sugar"),
    ("Concentrates", "Dabs", "Live Badder"): ("concentrate", "badder"),
    ("Concentrates", "Dabs", "Cured Badder"): ("concentrate", "badder"),
    ("Concentrates", "Dabs", "Bubble Hash"): ("concentrate", "hash"),
    ("Concentrates", "Dabs", "Shatter"): ("concentrate", "shatter"),
    ("Concentrates", "Dabs", "Kief"): ("concentrate", "kief"),
    ("Concentrates", "Dabs", "Isolate"): ("concentrate", None),
    ("Edibles", "Gummies", "Gummies"): ("edible", "gummies"),
    ("Edibles", "Confections", "Fruit Chews"): ("edible", "chews"),
    ("Edibles", "Other", "Tablets"): ("oral", "capsules"),
    ("Beverages", "Ready to Drink", "Cola"): ("edible", "beverage"),
    ("Beverages", "Ready to Drink", "Elixir"): ("edible", "beverage"),
    ("Beverages", "Ready to Drink", "Seltzer"): ("edible", "beverage"),
    ("Beverages", "Ready to Drink", "Beverage"): ("edible", "beverage"),
    ("Beverages", "Mixable", "Drink Mix"): ("edible", "beverage"),
    ("Topicals", "Transdermal", "Balm"): ("topical", "balm"),
    ("Topicals", "Transdermal", "Lotion"): ("topical", "lotion"),
    ("Topicals", "Topical", "Balm"): ("topical", "balm"),
    ("Topicals", "Topical", "Lotion"): ("topical", "lotion"),
    ("Accessories", "Batteries", "Battery"): ("accessory", "battery"),
    ("Accessories", "Vaporizer", "Vaporizer"): ("accessory", "device"),
    ("Accessories", "Glass", "Chillum"): ("accessory", "glass"),
    ("Accessories", "Spoons", "Pipe"): ("accessory", "glass"),
    ("Accessories", "Apparel", "Hat"): ("apparel", "hats"),
    ("Accessories", "Apparel", "Short Sleeve Tee"): ("apparel", "shirts"),
    ("Accessories", "Grinders", None): ("accessory", "grinder"),
    ("Accessories", "Paper, Wraps, & Tips", "Pre-Roll Tips"): ("accessory", "papers"),
    ("Accessories", "Paper, Wraps, & Tips", "Cones"): ("accessory", "papers"),
    ("Accessories", "Pipe & Glass Attachments, Filters, Tools, & Misc.", "Screens"): ("accessory", None),
    ("Accessories", "Gear", "Tool"): ("accessory", None),
    ("Accessories", "Bags", "Bag"): ("accessory", None),
}
STRAINS = {
    "Indica": "indica",
    "Sativa": "sativa",
    "Hybrid": "hybrid",
    "Indica Dominant": "indica_hybrid",
    "Sativa Dominant": "sativa_hybrid",
}
BY_CONTENT = {"edible", "oral", "topical"}
# Two labels name the whole content and contradict the size beside them; the content on the label is THC and CBD together.
LABELLED = {("180mg", Decimal("45.0")): 180, ("90mg", Decimal("95.0")): 90}
# What each recorded promotion gives, by its id: (kind, value).
PROMOS = {
    102928: ("percent", 30), 84095: ("percent", 20), 84087: ("percent", 25), 84084: ("percent", 25), 45484: ("percent", 40),
    84086: ("percent", 30), 84098: ("percent", 25), 45487: ("percent", 50), 103977: ("percent", 30),
    87850: ("bundle", 45),
}  # fmt: skip


def products(rows: list[dict[str, Any]], terms: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every column that the product of each id should have. `terms` are the promotions of the answer."""
    by_id: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        (variant,) = row["variants"]
        by_id.setdefault(str(row["id"]), {})[variant["id"]] = row
    known = {promo["id"]: promo for promo in terms}
    return {name: product([found[i] for i in sorted(found)], known) for name, found in by_id.items() if row_name(found)}


def row_name(found: dict[int, dict[str, Any]]) -> str:
    """Rows of one product have one name; one recorded product has none."""
    (name,) = {row["name"] for row in found.values()}
    return str(name)


def product(rows: list[dict[str, Any]], terms: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """The product of these rows, which differ in their variants alone."""
    row = rows[0]
    assert all({**other, "variants": 0} == {**row, "variants": 0} for other in rows)
    variants = [other["variants"][0] for other in rows]
    kind = row["productType"]["name"] if row["productType"] else None
    category, subcategory = KINDS[row["category"]["name"], row["subcategory"]["name"], kind]
    options = [option(variant, by_content=category in BY_CONTENT) for variant in variants]
    pictures = list(dict.fromkeys([*row["images"], *(url for variant in variants for url in variant["images"])]))
    prevalence = row["strain"]["prevalence"]["name"] if row["strain"] else None
    (thc_lo, thc_hi, thc_unit), (cbd_lo, cbd_hi, cbd_unit) = (content(variants, name) for name in ("thc", "cbd"))
    promos = {promo["id"]: {**promo} for variant in variants for promo in variant["promos"]}
    for promo in promos.values():
        for name, value in terms.get(promo["id"], {}).items():
            promo[name] = value if promo[name] is None else promo[name]
    about = trimmed(row["description"]) if row["description"] else None
    return {
        "provider": "sweed",
        "name_raw": row["name"],
        "name": trimmed(row["name"]),
        "brand_name_raw": row["brand"]["name"],
        "brand_name": trimmed(row["brand"]["name"]),
        "category": row["category"]["name"],
        "subcategory": row["subcategory"]["name"],
        "strain_type": prevalence,
        "status_raw": None,
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": None,
        "price_med_special": None,
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": True,
        "stock_status": "in_stock",
        "quantity": sum(one["quantity"] for one in options),
        "quantity_capped": False,
        "thc_lo": thc_lo, "thc_hi": thc_hi, "thc_unit": thc_unit, "cbd_lo": cbd_lo, "cbd_hi": cbd_hi, "cbd_unit": cbd_unit,
        "cannabinoids": None,
        "specials": [special(promos[i]) for i in sorted(promos)] or None,
        "image_url": pictures[0] if pictures else None,
        "images": pictures or None,
        "description": about,
        "platform_created_at": None,
        "platform_updated_at": None,
        "extra": extra(row, variants, promos),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[prevalence] if prevalence else None,
    }  # fmt: skip


def option(variant: dict[str, Any], *, by_content: bool) -> dict[str, Any]:
    size, unit, units = variant["unitSize"]["value"], variant["unitSize"]["unitAbbr"], variant["unitsInPackage"]
    assert variant["saleType"] == "Both"
    assert variant["promoPrice"] < variant["price"]
    count = int(variant["availableQty"])
    assert count == variant["availableQty"] > 0
    grams = Decimal(size) * units if unit == "G" and not by_content else None
    milligrams = (
        LABELLED.get((variant["name"], Decimal(size)), Decimal(size) * units) if by_content and unit == "MG" else None
    )
    pieces = units if units > 1 else None
    paid = Decimal(variant["promoPrice"])
    return {
        "option": trimmed(variant["name"]),
        "price_rec": variant["price"],
        "price_med": None,
        "special_rec": variant["promoPrice"],
        "special_med": None,
        "quantity": count,
        "capped": False,
        "stock_status": "in_stock",
        "weight_g": grams,
        "price_per_g": each(paid, grams),
        "pieces": pieces,
        "content_mg": milligrams,
        "price_per_piece": each(paid, pieces),
        "price_per_mg": each(paid, milligrams),
    }


def content(variants: list[dict[str, Any]], name: str) -> tuple[Any, Any, Any]:
    """(lowest, highest, unit) over all options; every recorded product has one unit."""
    told = [variant["labTests"][name] for variant in variants if variant["labTests"] and variant["labTests"][name]]
    if not told:
        return None, None, None
    (unit,) = {one["unitAbbr"] for one in told}
    values = [value for one in told for value in one["value"]]
    return min(values), max(values), {"%": "%", "MG": "mg"}[unit]


def special(promo: dict[str, Any]) -> dict[str, Any]:
    kind, value = PROMOS[promo["id"]]
    assert promo["endDate"] is None
    found = {"name": trimmed(promo["name"]), "special_id": str(promo["id"]), "kind": kind, "value": value}
    return {**found, "required_quantity": 2} if kind == "bundle" else found  # "2 for $45"


def extra(row: dict[str, Any], variants: list[dict[str, Any]], promos: dict[int, dict[str, Any]]) -> dict[str, Any]:
    def names(rows: list[dict[str, Any]]) -> list[str]:
        return [trimmed(one["name"]) for one in rows]

    strain = row["strain"] or {"name": None, "flavors": [], "terpenes": []}
    schedules = {
        str(i): trimmed(promo["scheduleDisplayText"]["full"])
        for i, promo in promos.items()
        if promo["scheduleDisplayText"]
    }
    terms = {
        str(i): without_nothing(
            {
                "description": trimmed(promo["description"]) if promo["description"] else None,
                "starts_at": promo["startDate"],
            }
        )
        for i, promo in promos.items()
    }
    found = without_nothing(
        {
            "product_type": row["productType"]["name"] if row["productType"] else None,
            "strain": trimmed(strain["name"]) if strain["name"] else None,
            "strain_terpenes": names(strain["terpenes"]),
            "tags": names(row["tags"]),
            "effects": names(row["effects"]),
            "quality_line": row["qualityLine"]["name"] if row["qualityLine"] else None,
            "variant_ids": {trimmed(variant["name"]): str(variant["id"]) for variant in variants},
            "skus": {trimmed(v["name"]): trimmed(v["sku"]) for v in variants if v["sku"]},
            "promo_schedules": schedules,
            "promo_terms": {i: found for i, found in terms.items() if found},
        }
    )
    return {name: value for name, value in found.items() if value != {}}
