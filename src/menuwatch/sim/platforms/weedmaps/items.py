"""Menu items of Weedmaps as in the recorded menus of 2024 (JSON:API): the same keys, in their order, and the same nulls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.sim.model import ProductState, SimProduct, SimStore, percent_off

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The label of a weight: its long name, weight, unit, and where it stands among the prices.
WEIGHTS = {
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
KINDS: dict[str, tuple[str, int, dict[str | None, str]]] = {
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


def render_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `data`."""
    return _encoder.encode(item_document(state, store))


def item_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `data`, its keys in the order of the recordings."""
    product = state.product
    category, category_id, words = KINDS[product.category]
    subcategory = words.get(product.subcategory, words[None])
    off = percent_off(state, store)
    image_url = image_of(product)
    by_weight = [i for i, option in enumerate(product.options) if option in WEIGHTS]
    path = f"/dispensaries/{store.slug}/menu/{product.slug}"
    return {
        "id": int(product.id),
        "type": "menu_item",
        "attributes": {
            "name": product.name,
            "slug": product.slug,
            "category_name": category,
            "body": f"<p>{product.description}</p>" if product.description else "",
            "is_published": state.active,
            "license_type": "recreational" if store.recreational else "medical",
            "online_orderable": True if product.serial % 6 else None,
            "picture_url": image_url,
            "position": None,
            "original_picture_url": image_url,
            "avatar_image_url": image_url,
            "is_badged": product.library_id is not None,
            "brand_name": product.brand.label if product.brand is not None else None,
            "cannabinoids": _percentages(state),
            "genetics": genetics(product.strain),
            "prices": {**dict.fromkeys(_PRICES, 0), **_prices(state), "prices_other": {}},
            "grams_per_eighth": "3.5 grams",
            "created_at": iso(product.created_ms),
            "updated_at": iso(state.updated_ms),
            "parent_category": {"id": category_id, "name": category, "slug": slug_text(category)},
            "sub_category": {"id": 100 + len(subcategory), "name": subcategory, "slug": slug_text(subcategory)},
            "measurements": _measurements(state),
            "variants": [_variant(state, i) for i in by_weight],
            "external_id": product.enterprise_id,
            "sale": None if off is None else {"amount": off, "type": "percentage"},
            "sku": None,
            "compliance_net_mg": None if by_weight else 5000,
            "compliance_net_precalc": None if by_weight else False,
            "cart_quantity_multiplier": None,
            "inventory_quantity": None if product.counting == "none" else sum(state.stock),
            "shared_inventory": None if product.counting == "none" else not by_weight and product.serial % 2 == 0,
        },
        "links": {"self": path, "order": f"https://weedmaps.com{path}"},
        "relationships": {
            "brand": None if product.brand is None else {"data": {"id": int(product.brand.id[:6], 16), "type": "brand"}},
            "listing": {"data": {"id": int(store.id), "type": "dispensary"}},
            "product": {"data": {"id": int(product.pos_number), "type": "product"}} if product.library_id else None,
            "strain": {"data": None},
            "categories": {"meta": {"total": 1}, "data": [{"id": category_id, "type": "category"}]},
            "tags": {"meta": {"total": 0}, "data": []},
            "menu_parent": {"data": {"id": 900_000_000 + int(store.id), "type": "listing"}},
        },
    }  # fmt: skip


def _prices(state: ProductState) -> dict[str, int | float]:
    """By the weights that there are; else by the package."""
    prices = {}
    for option, cents in zip(state.product.options, state.prices, strict=True):
        name = WEIGHTS[option][3] if option in WEIGHTS else "price_unit"
        prices[name] = cents // 100 if cents % 100 == 0 else cents / 100
    return prices


def _variant(state: ProductState, place: int) -> dict[str, Any]:
    product = state.product
    name, value, unit, _ = WEIGHTS[product.options[place]]
    return {
        "name": name,
        "label": product.options[place],
        "price": {"amount": f"{state.prices[place] / 100:.2f}", "currency": "USD"},
        "weight": {"value": value, "unit": unit},
        "sku": None,
        "compliance_net_mg": None,
        "compliance_net_precalc": False,
        "cart_quantity_multiplier": None,
        "inventory_quantity": None if product.counting == "none" else state.stock[place],
    }


def _measurements(state: ProductState) -> list[dict[str, Any]]:
    """Rows of THC and CBD in the unit that they were measured in; what is measured in milligrams has a percentage of 0 beside it."""
    rows: list[dict[str, Any]] = []
    for name, content in (("THC", state.lab.thc), ("CBD", state.lab.cbd)):
        if content is None or content.range is None:
            continue
        unit = "mg" if content.unit == "MILLIGRAMS" else "%"
        rows.append(_measurement(state, name, unit, content.range[-1]))
        if unit == "mg":
            rows.append(_measurement(state, name, "%", 0.0))
    return rows


def _measurement(state: ProductState, name: str, unit: str, value: float) -> dict[str, Any]:
    return {
        "id": int(state.product.pos_number) * 10 + ("THC", "CBD").index(name) * 2 + ("%", "mg").index(unit),
        "name": name,
        "classification": "cannabinoid",
        "full_name": {"THC": "Tetrahydrocannabinol", "CBD": "Cannabidiol"}[name],
        "unit": unit,
        "value": str(value),
    }


def _percentages(state: ProductState) -> dict[str, str]:
    rows = (("thc", state.lab.thc), ("cbd", state.lab.cbd))
    return {
        name: str(content.range[-1])
        for name, content in rows
        if content is not None and content.range is not None and content.unit == "PERCENTAGE"
    }


def genetics(strain: str | None) -> str | None:
    word = (strain or "").lower()
    return word if word in ("indica", "sativa", "hybrid") else "hybrid" if word.endswith("-hybrid") else None


def image_of(product: SimProduct) -> str:
    """The category's image where the shop has none of its own."""
    if product.image and "-stock-" not in product.image:
        return product.image
    return f"https://images.weedmaps.com/placeholder/{slug_text(product.category)}.jpg"


def slug_text(text: str) -> str:
    return "-".join(text.lower().replace("&", " ").split())


def iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="seconds").replace("+00:00", "Z")
