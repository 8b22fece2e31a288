"""Menu items of Weedmaps as in the recorded live menu of 2021 (`data.menu_items`): the same keys, in their order, and the same nulls.

The recording has flower by parts of an ounce alone, all at its regular price. That other units have a key of their own in `prices`,
one offer where goods are sold by the package, and that a sale shows as `on_sale` beside `original_price`, is what public callers read.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from menuwatch.sim.model import Content, ProductState, SimStore, percent_off
from menuwatch.sim.platforms.weedmaps.items import KINDS, WEIGHTS, genetics, image_of, iso, slug_text

SOLD_BY_MASS = frozenset({"Flower", "Pre-Rolls", "Vaporizers", "Concentrate"})
"""Categories of the market whose potency is percent."""

_STRAINS = {"sativa": 2, "hybrid": 3, "indica": 1}
_NO_LOGO = {
    "small_url": "https://images.weedmaps.com/square_fill/image_missing.jpg",
    "original_url": "https://images.weedmaps.com/original/image_missing.jpg",
}
_encoder = msgspec.json.Encoder()


def render_live_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `data.menu_items`."""
    return _encoder.encode(live_document(state, store))


def live_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `data.menu_items`."""
    product = state.product
    category, _, words = KINDS[product.category]
    name = words.get(product.subcategory, words[None])
    strain = genetics(product.strain)
    image = image_of(product)
    offers = [_offer(state, store, place) for place in range(len(product.options))]
    license_type = "recreational" if store.recreational else "medical"
    tags = [_tag("Product", license_type.title())]
    if strain is not None:
        tags.insert(0, _tag("Genetics", strain.title()))
    return {
        "id": int(product.id),
        "name": product.name,
        "slug": product.slug,
        "catalog_slug": f"{product.slug}-{store.id}",
        "avatar_image": {"large_url": image, "original_url": image},
        "category": _older_category(strain, category),
        "edge_category": {
            **_named(name),
            "slug": slug_text(name),
            "ancestors": [] if name == category else [{**_named(category), "slug": slug_text(category)}],
        },
        "genetics_tag": _named(strain.title()) if strain is not None and product.serial % 3 else None,
        "tags": tags,
        "reviews_count": product.serial % 4 * 7,
        "rating": 4.5 if product.serial % 4 else 0,
        "is_endorsed": product.library_id is not None,
        "is_badged": product.library_id is not None,
        "created_at": iso(product.created_ms).replace("Z", ".000Z"),
        "brand_endorsement": _endorsement(state),
        "metrics": _metrics(state),
        "is_online_orderable": state.active,
        "price": _price(offers[0]),
        "prices": _prices(state, offers),
        "position": None,
        "price_stats": {"min": None, "max": None},
        "test_result_created_at": None,
        "test_result_expired": None,
        "test_result_expires_in": None,
        "lab_name": None,
        "lab_avatar_image": _NO_LOGO,
        "lab_website": None,
        "menu_id": 100_000_000 + int(store.id),
        "license_type": license_type,
        "deal_ids": [],
    }


def _uuid(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, text))


def _named(name: str) -> dict[str, Any]:
    return {"uuid": _uuid(name), "name": name}


def _tag(group: str, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "group_name_and_name": f"{group}/{name}",
        "tag_group": {"name": group, "uuid": _uuid(group)},
        "source": None,
        "group_uuid_and_uuid": f"{_uuid(group)}/{_uuid(name)}",
        "uuid": _uuid(name),
    }


def _older_category(strain: str | None, category: str) -> dict[str, Any]:
    """Of what has a strain type, that; its number is the recorded one."""
    name = strain.title() if strain is not None else category
    return {"id": _STRAINS.get(strain or "", 20), "name": name, "slug": slug_text(name)}


def _endorsement(state: ProductState) -> dict[str, Any] | None:
    product = state.product
    if product.brand is None:
        return None
    brand = product.brand.label
    return {
        "brand_id": int(product.brand.id[:6], 16),
        "brand_name": brand,
        "brand_slug": slug_text(brand),
        "brand_avatar_image_url": f"https://images.weedmaps.com/brands/{slug_text(brand)}.png",
        "product_id": int(product.pos_number),
        "product_name": product.name,
        "product_slug": f"{slug_text(brand)}-{product.slug}",
    }


def _metrics(state: ProductState) -> dict[str, Any]:
    thc, cbd = _amount(state, state.lab.thc), _amount(state, state.lab.cbd)
    known = [("thc", thc), ("cbd", cbd)] if state.lab.thc is not None or state.lab.cbd is not None else []
    return {
        "cannabinoids": [{"code": code, "value": value} for code, value in known],
        "terpenes": [],
        "aggregates": {"thc": thc, "cbd": cbd, "cbn": 0, "cbg": 0, "terpenes": 0},
    }


def _amount(state: ProductState, content: Content | None) -> float:
    """Percent of what is sold by its mass, milligrams of the rest; 0 where it was not measured so."""
    if content is None or content.range is None:
        return 0
    by_mass = state.product.category in SOLD_BY_MASS
    return content.range[-1] if (content.unit == "PERCENTAGE") == by_mass else 0


def _dollars(cents: int) -> int | float:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _offer(state: ProductState, store: SimStore, place: int) -> dict[str, Any]:
    option, cents = state.product.options[place], state.prices[place]
    off = percent_off(state, store)
    now = cents if off is None else (cents * (100 - off) + 50) // 100
    offer = {
        "price": _dollars(now),
        "label": option,
        "on_sale": now < cents,
        "original_price": _dollars(cents),
    }
    if option not in WEIGHTS:
        return offer | {"units": "1"}
    _, value, unit, _ = WEIGHTS[option]
    return offer | {
        "units": option.split()[0],
        "gram_unit_price": round(now / 100 / (value * (28 if unit == "oz" else 1)), 2),
        "weight": {"value": value, "unit": unit},
    }


def _unit(offer: dict[str, Any]) -> str:
    return {"oz": "ounce", "g": "gram"}[offer["weight"]["unit"]] if "weight" in offer else "unit"


def _price(offer: dict[str, Any]) -> dict[str, Any]:
    """The first offer again, in other words."""
    return {
        "unit": _unit(offer),
        "quantity": offer["units"],
        "price": offer["price"],
        "label": offer["label"],
        "on_sale": offer["on_sale"],
        "original_price": offer["original_price"],
    }


def _prices(state: ProductState, offers: list[dict[str, Any]]) -> dict[str, Any]:
    """By unit: a list, or the offer itself where it is sold by the package."""
    prices: dict[str, Any] = {"grams_per_eighth": 3.5}
    for offer in offers:
        unit = _unit(offer)
        if unit == "unit":
            prices[unit] = offer
        else:
            prices.setdefault(unit, []).append(offer)
    return prices
