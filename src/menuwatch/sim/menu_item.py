"""A product as an item of a Weedmaps menu, with the keys of the recorded menus of 2024.

Which keys exist, which are null and what they are called follows the recordings; see there before changing anything.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.sim.model import Good, Shelf, SimStore, percent_off

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The label of a weight: its long name, weight, unit, and where it stands among the prices.
_WEIGHTS = {
    "1/2 g": ("1/2 gram", 0.5, "g", "price_half_gram"),
    "1 g": ("1 gram", 1, "g", "price_gram"),
    "1/8 oz": ("1/8 ounce", 0.125, "oz", "price_eighth"),
    "1/4 oz": ("1/4 ounce", 0.25, "oz", "price_quarter"),
    "1/2 oz": ("1/2 ounce", 0.5, "oz", "price_half_ounce"),
    "1 oz": ("1 ounce", 1, "oz", "price_ounce"),
}
_PRICES = (
    "price_unit", "price_half_gram", "price_gram", "price_two_grams", "price_eighth", "price_quarter", "price_half_ounce",
    "price_ounce",
)  # fmt: skip

# (category, its id) of what the market calls so, and the subcategory by the market's word; None is for all other words.
_KINDS: dict[str, tuple[str, int, dict[str | None, str]]] = {
    "Flower": ("Flower", 2, {"infused-buds": "Infused Flower", None: "Flower"}),
    "Pre-Rolls": ("Flower", 2, {"infused": "Infused Pre Roll", None: "Pre Roll"}),
    "Vaporizers": ("Vape Pens", 5, {"disposables": "Disposable", "live-resin-disposable": "Disposable", None: "Cartridge"}),
    "Concentrate": ("Concentrates", 3, {"badder": "Budder", "budder": "Budder", "crumble": "Crumble", "rosin": "Rosin",
                                        "live-resin": "Live Resin", None: "Concentrates"}),
    "Edible": ("Edibles", 4, {"gummies": "Gummies", "chocolates": "Chocolates", "drinks": "Drinks", None: "Edibles"}),
    "Tincture": ("Edibles", 4, {None: "Tincture"}),
    "Topicals": ("Topicals", 6, {"lotions": "Lotions", "bath-products": "Bombs", None: "Balms & Salves"}),
    "Oral": ("Edibles", 4, {None: "Capsules"}),
    "Accessories": ("Gear", 7, {"batteries": "Batteries", "grinders": "Grinders", "dab-tools": "Dab Tools", None: "Accessories"}),
}  # fmt: skip

_encoder = msgspec.json.Encoder()


def render(shelf: Shelf, store: SimStore) -> bytes:
    """The bytes of one element of `data`."""
    return _encoder.encode(document(shelf, store))


def document(shelf: Shelf, store: SimStore) -> dict[str, Any]:
    """One element of `data`, its keys in the order of the recordings."""
    good = shelf.good
    category, category_id, words = _KINDS[good.category]
    subcategory = words.get(good.subcategory, words[None])
    off = percent_off(shelf, store)
    picture = _picture(good)
    by_weight = [i for i, option in enumerate(good.options) if option in _WEIGHTS]
    path = f"/dispensaries/{store.slug}/menu/{good.slug}"
    return {
        "id": int(good.id),
        "type": "menu_item",
        "attributes": {
            "name": good.name,
            "slug": good.slug,
            "category_name": category,
            "body": f"<p>{good.description}</p>" if good.description else "",
            "is_published": shelf.active,
            "license_type": "recreational" if store.recreational else "medical",
            "online_orderable": True if good.serial % 6 else None,
            "picture_url": picture,
            "position": None,
            "original_picture_url": picture,
            "avatar_image_url": picture,
            "is_badged": good.library_id is not None,
            "brand_name": good.brand.label if good.brand is not None else None,
            "cannabinoids": _percentages(shelf),
            "genetics": _genetics(good.strain),
            "prices": {**dict.fromkeys(_PRICES, 0), **_prices(shelf), "prices_other": {}},
            "grams_per_eighth": "3.5 grams",
            "created_at": _iso(good.created_ms),
            "updated_at": _iso(shelf.updated_ms),
            "parent_category": {"id": category_id, "name": category, "slug": _slug(category)},
            "sub_category": {"id": 100 + len(subcategory), "name": subcategory, "slug": _slug(subcategory)},
            "measurements": _measurements(shelf),
            "variants": [_variant(shelf, i) for i in by_weight],
            "external_id": good.enterprise_id,
            "sale": None if off is None else {"amount": off, "type": "percentage"},
            "sku": None,
            "compliance_net_mg": None if by_weight else 5000,
            "compliance_net_precalc": None if by_weight else False,
            "cart_quantity_multiplier": None,
            "inventory_quantity": None if good.counting == "none" else sum(shelf.stock),
            "shared_inventory": None if good.counting == "none" else not by_weight and good.serial % 2 == 0,
        },
        "links": {"self": path, "order": f"https://weedmaps.com{path}"},
        "relationships": {
            "brand": None if good.brand is None else {"data": {"id": int(good.brand.id[:6], 16), "type": "brand"}},
            "listing": {"data": {"id": int(store.id), "type": "dispensary"}},
            "product": {"data": {"id": int(good.pos_number), "type": "product"}} if good.library_id else None,
            "strain": {"data": None},
            "categories": {"meta": {"total": 1}, "data": [{"id": category_id, "type": "category"}]},
            "tags": {"meta": {"total": 0}, "data": []},
            "menu_parent": {"data": {"id": 900_000_000 + int(store.id), "type": "listing"}},
        },
    }  # fmt: skip


def _prices(shelf: Shelf) -> dict[str, int | float]:
    """By the weights that there are; else by the package."""
    found = {}
    for option, cents in zip(shelf.good.options, shelf.prices, strict=True):
        name = _WEIGHTS[option][3] if option in _WEIGHTS else "price_unit"
        found[name] = cents // 100 if cents % 100 == 0 else cents / 100
    return found


def _variant(shelf: Shelf, place: int) -> dict[str, Any]:
    good = shelf.good
    name, value, unit, _ = _WEIGHTS[good.options[place]]
    return {
        "name": name,
        "label": good.options[place],
        "price": {"amount": f"{shelf.prices[place] / 100:.2f}", "currency": "USD"},
        "weight": {"value": value, "unit": unit},
        "sku": None,
        "compliance_net_mg": None,
        "compliance_net_precalc": False,
        "cart_quantity_multiplier": None,
        "inventory_quantity": None if good.counting == "none" else shelf.stock[place],
    }


def _measurements(shelf: Shelf) -> list[dict[str, Any]]:
    """Rows of THC and CBD in the unit that they were measured in; what is measured in milligrams has a percentage of 0 beside it."""
    rows: list[dict[str, Any]] = []
    for name, content in (("THC", shelf.lab.thc), ("CBD", shelf.lab.cbd)):
        if content is None or content.range is None:
            continue
        unit = "mg" if content.unit == "MILLIGRAMS" else "%"
        rows.append(_measurement(shelf, name, unit, content.range[-1]))
        if unit == "mg":
            rows.append(_measurement(shelf, name, "%", 0.0))
    return rows


def _measurement(shelf: Shelf, name: str, unit: str, value: float) -> dict[str, Any]:
    return {
        "id": int(shelf.good.pos_number) * 10 + ("THC", "CBD").index(name) * 2 + ("%", "mg").index(unit),
        "name": name,
        "classification": "cannabinoid",
        "full_name": {"THC": "Tetrahydrocannabinol", "CBD": "Cannabidiol"}[name],
        "unit": unit,
        "value": str(value),
    }


def _percentages(shelf: Shelf) -> dict[str, str]:
    rows = (("thc", shelf.lab.thc), ("cbd", shelf.lab.cbd))
    return {
        name: str(content.range[-1])
        for name, content in rows
        if content is not None and content.range is not None and content.unit == "PERCENTAGE"
    }


def _genetics(strain: str | None) -> str | None:
    word = (strain or "").lower()
    return word if word in ("indica", "sativa", "hybrid") else "hybrid" if word.endswith("-hybrid") else None


def _picture(good: Good) -> str:
    """A picture of the category stands where the shop has none of its own."""
    if good.image and "-stock-" not in good.image:
        return good.image
    return f"https://images.weedmaps.com/placeholder/{_slug(good.category)}.jpg"


def _slug(text: str) -> str:
    return "-".join(text.lower().replace("&", " ").split())


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="seconds").replace("+00:00", "Z")
