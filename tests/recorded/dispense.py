"""What a recorded Dispense product means, worked out by hand from the raw file. Shares no code with the product."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.recorded.plain import each, least, text_of, trimmed, without_nothing

# Dispense's own word → (category, subcategory) of all platforms, for every word that was recorded.
KINDS = {("EDIBLES", "Edibles"): ("edible", None)}
STRAINS = {
    "SATIVA": "sativa",
    "INDICA": "indica",
    "HYBRID": "hybrid",
    "HYBRID_SATIVA": "sativa_hybrid",
    "HYBRID_INDICA": "indica_hybrid",
    "NA": None,
}
CANNABINOIDS = ("cbd", "cbdA", "cbg", "cbn", "thc", "thcA")
TERPENES = {
    "alphaPinene": "Alpha Pinene",
    "betaCaryophyllene": "Beta Caryophyllene",
    "betaEudesmol": "Beta Eudesmol",
    "betaMyrcene": "Beta Myrcene",
    "betaPinene": "Beta Pinene",
    "bisabolol": "Bisabolol",
    "caryophylleneOxide": "Caryophyllene Oxide",
    "guaiol": "Guaiol",
    "humulene": "Humulene",
    "limonene": "Limonene",
    "linalool": "Linalool",
    "ocimene": "Ocimene",
    "terpinene": "Terpinene",
    "terpinolene": "Terpinolene",
    "threeCarene": "Three Carene",
    "transNerolidol": "Trans Nerolidol",
}
BY_CONTENT = {"edible", "tincture", "oral", "topical"}


def product(item: dict[str, Any]) -> dict[str, Any]:
    """Every column that this item should have."""
    category, subcategory = KINDS[item["cannabisComplianceType"], item["subType"]]
    options = [option(one, category in BY_CONTENT) for one in sold(item)]
    counts = [one["quantity"] for one in options]
    status = "in_stock" if any(one["stock_status"] == "in_stock" for one in options) else "oos"
    thc, cbd = content(item["labs"], "thc"), content(item["labs"], "cbd")
    pictures = list(dict.fromkeys([item["image"], *(image["fileUrl"] for image in item["images"])]))
    return {
        "provider": "dispense",
        "name_raw": item["name"],
        "name": trimmed(item["name"]),
        "brand_name_raw": item["brand"]["name"],
        "brand_name": trimmed(item["brand"]["name"]),
        "category": item["productCategoryName"],
        "subcategory": item["subType"],
        "strain_type": item["cannabisType"],
        "status_raw": {True: "enabled", False: "disabled"}[item["enable"]],
        "price_rec": least([one["price_rec"] for one in options]),
        "price_rec_special": least([one["special_rec"] for one in options]),
        "price_med": None,
        "price_med_special": None,
        "variants": sorted(options, key=lambda one: one["option"]),
        "is_in_stock": status == "in_stock",
        "stock_status": status,
        "quantity": sum(counts),
        "quantity_capped": False,
        "thc_lo": thc[0],
        "thc_hi": thc[0],
        "thc_unit": thc[1],
        "cbd_lo": cbd[0],
        "cbd_hi": cbd[0],
        "cbd_unit": cbd[1],
        "cannabinoids": cannabinoids(item["labs"]) or None,
        "terpenes": terpenes(item["labs"]) or None,
        "batch": batch(item["leaflogix"]),
        "quantity_sold": sum(one["quantitySold"] for one in sold(item)),
        "specials": [special(row) for row in item["discounts"]] or None,
        "image_url": item["image"],
        "images": pictures,
        "description": text_of(item["description"] or ""),
        "platform_created_at": instant(item["created"]),
        "platform_updated_at": instant(item["modified"]),
        "extra": extra(item),
        "category_canon": category,
        "subcategory_canon": subcategory,
        "strain_canon": STRAINS[item["cannabisType"]],
    }


def sold(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The README: the first variant is the product itself."""
    assert item["variants"][0]["id"] == item["id"]
    return list(item["variants"])


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def option(one: dict[str, Any], by_content: bool) -> dict[str, Any]:
    text = one["weightFormatted"]
    match = re.fullmatch(r"(\d+)mg", text)
    assert match, text
    assert by_content
    milligrams: int | None = int(match[1])
    named = {float(number) for number in re.findall(r"([\d.]+)\s*mg", one["name"], re.IGNORECASE)}
    if named and milligrams not in named:
        milligrams = None  # the two contradict one another, and nobody knows which is right
    price = one["price"]
    reduced = one["priceWithDiscounts"] if one["priceWithDiscounts"] < price else None
    paid = Decimal(price if reduced is None else reduced)
    return {
        "option": text,
        "price_rec": price,
        "special_rec": reduced,
        "price_med": None,
        "special_med": None,
        "quantity": one["quantity"],
        "capped": False,
        "stock_status": "in_stock" if one["quantity"] > 0 else "oos",
        "weight_g": None,
        "price_per_g": None,
        "pieces": None,
        "content_mg": milligrams,
        "price_per_piece": None,
        "price_per_mg": each(paid, milligrams),
    }


def content(labs: dict[str, Any], name: str) -> tuple[Any, str | None]:
    """(value, unit); zero says nothing, and a value without a unit neither."""
    value = labs[f"{name}Max"] or labs[name]
    unit = labs[f"{name}ContentUnit"] or labs[f"{name}AContentUnit"]
    return (value, unit) if value and unit else (None, None)


def cannabinoids(labs: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name.upper(), "value": labs[name], "unit": labs[f"{name}ContentUnit"] or ""}
        for name in CANNABINOIDS
        if labs[name]
    ]


def terpenes(labs: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        {"name": TERPENES[key], "value": labs[key], "unit": labs[f"{key}ContentUnit"] or ""}
        for key in sorted(labs)
        if key in TERPENES and labs[key]
    ]
    told = {row["name"] for row in rows}
    for word in labs.get("terpenes", []):
        (name,) = (name for key, name in TERPENES.items() if key.lower() == word)
        if name not in told:
            rows.append({"name": name, "value": None, "unit": ""})
    return rows


def batch(pos: dict[str, Any]) -> dict[str, str]:
    """The README: a METRC tag, which has 24 letters and digits; one row has a producer's number."""
    if len(pos["batchName"]) == 24:
        return {"batch_id": pos["batchId"], "package_tag": pos["batchName"]}
    return {"batch_id": pos["batchName"]}


def special(row: dict[str, Any]) -> dict[str, Any]:
    assert (row["type"], row["productOfferType"]) == ("PERCENT", "SALE")
    percent = int(row["value"] * 100)
    return {"name": f"{percent}% off", "kind": "percent", "value": percent, "special_id": row["productOffer"]}


def extra(item: dict[str, Any]) -> dict[str, Any]:
    assert json.loads(item["posLastSyncData"])["name"] == item["name"]
    return without_nothing(
        {
            "dispensary_id": item["venue"],
            "organization_id": item["organization"],
            "slug": item["slug"],
            "menu_url": item["productUrl"],
            "sku": item["sku"],
            "pos_id": item["posProductId"],
            "pos_category": item["leaflogix"]["category"],
            "pos_subcategory": item["leaflogix"]["subCategory"],
            "pos_quantity": item["leaflogix"]["quantity"],
            "vendor": item["vendor"],
            "brand_id": item["brand"].get("id"),
            "brand_description": item["brand"].get("description"),
            "brand_website": item["brand"].get("website"),
            "category_id": item["productCategory"],
            "compliance_type": item["cannabisComplianceType"],
            "strain": item["cannabisStrain"],
            "flower_equivalent_g": item["flowerEquivalentInGrams"],
            "potency": item["labs"]["potency"],
            "price_type": item["priceType"],
            "price_gross": item["priceGross"],
            "price_net": item["priceNet"],
            "order_type": item["productOrderType"],
            "total_sold": sum(one["totalSold"] for one in sold(item)),
            "total_quantity_sold": sum(one["totalQuantitySold"] for one in sold(item)),
            "featured": item["featured"] or None,
            "is_new": item["new"] or None,
            "weedmaps_id": item["weedmaps"]["productId"] if "weedmaps" in item else None,
        }
    )
