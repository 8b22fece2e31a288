"""Rows of a menu: hits of the search index.

They have the keys of the recorded merchandising answer, and those that the index adds; which keys exist, which are null and how
numbers and texts are written follows the recording; see there before changing anything. Only weights that can be bought have a price.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from menuwatch.sim.batches import batch_of
from menuwatch.sim.model import Content, ProductState, SimStore, percent_off
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.words import CANNABINOIDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The end of the names of a weight's fields, by the option's text.
_WEIGHTS = {
    "each": "each",
    "1/2 g": "half_gram",
    "1 g": "gram",
    "2 g": "two_gram",
    "1/8 oz": "eighth_ounce",
    "1/4 oz": "quarter_ounce",
    "1/2 oz": "half_ounce",
    "1 oz": "ounce",
}

# What the market calls so: its kind, and the subtype by the market's word; None is for all other words.
_KINDS: dict[str, tuple[str, dict[str | None, str | None]]] = {
    "Flower": ("flower", {"infused-buds": "Infused Flower", "pre-ground": "Ground Flower", "small-buds": "Smalls",
                          "premium": "Premium", None: None}),
    "Pre-Rolls": ("pre-roll", {"infused": "Infused Pre-Rolls", "packs": "Packs", "singles": "Singles", None: None}),
    "Vaporizers": ("vape", {"disposables": "Disposables", "live-resin-disposable": "Disposables", None: "Cartridges"}),
    "Concentrate": ("extract", {"sugar": "Sugar", "badder": "Badder", "budder": "Budder", "crumble": "Crumble", "rosin": "Rosin",
                                "live-resin": "Live Resin", None: None}),
    "Edible": ("edible", {"gummies": "Gummies", "chocolates": "Chocolates", "drinks": "Beverages", None: None}),
    "Tincture": ("tincture", {None: None}),
    "Topicals": ("topical", {"lotions": "Lotions", "bath-products": "Bath", "balms": "Balms", None: None}),
    "Oral": ("edible", {"sublingual": "Sublinguals", None: "Capsules"}),
    "Accessories": ("gear", {"batteries": "Batteries", "grinders": "Grinders", "trays": "Trays", None: None}),
}  # fmt: skip
DOSED = frozenset({"Edible", "Tincture", "Topicals", "Oral"})

_UNITS = {"PERCENTAGE": "%", "MILLIGRAMS": "mg", "MILLIGRAMS_PER_GRAM": "mg/g"}
_COMPOUNDS = {name: "THC" if short == "D9" else short for short, name in CANNABINOIDS.items()}
_encoder = msgspec.json.Encoder()


def render_row(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one hit."""
    return _encoder.encode(row_document(state, store))


def row_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One hit, its keys in the order of the recording, those that come and go only where they say something."""
    product = state.product
    kind, words = _KINDS[product.category]
    subtype = words.get(product.subcategory, words[None])
    sold = _sold(state)
    off = percent_off(state, store)
    brand = product.brand.label if product.brand is not None else None
    genetics = _genetics(product.strain) or kind
    photos = [picture.url for picture in product.images or () if picture.active] or [product.image] * bool(
        product.image
    )
    reduced = {weight: _reduced(cents, off) for weight, cents in sold.items()}
    special = max((o for o in state.offers if o.kind == "percent" and o.value == off), key=lambda o: o.id, default=None)
    offers = [int(offer.id[:6], 16) for offer in state.offers]
    slug = slug_of(f"{brand or ''} {product.name}")
    labs = _compounds(state)
    row: dict[str, Any] = {
        "_geoloc": {"lat": store.latitude, "lng": store.longitude},
        "_highlightResult": {"name": {"value": product.name, "matchLevel": "none", "matchedWords": []}},
        "activities": [],
        "aggregate_rating": product.serial % 11 / 2 if product.serial % 2 else 0,
        "allergens": [],
        "allow_multiple_flower_count": True,
        "applicable_brand_special_ids": [],
        "applicable_brand_specials_excluded_user_segments": -1,
        "applicable_brand_specials_included_user_segments": -1,
        "applicable_bundle_brand_special_ids": {"qualify": [], "discount": []},
        "applicable_bundle_special_ids": {"qualify": [], "discount": []},
        "applicable_cart_total_special_ids": [],
        "applicable_special_ids": offers,
        "applicable_special_types": ["product"] if special is not None else [],
        "at_visible_store": True,
        "available_for_delivery": False,
        "available_for_pickup": True,
        "available_weights": [weight.replace("_", " ") for weight in sold],
        "brand": brand,
        "brand_special_prices": {},
        "bucket_price": min(reduced.values(), default=0) // 100,
        "business_licenses": [],
        "cannabinoids": [],
        "category": genetics,
        "compound_names": [entry["compound_name"].lower() for entry in labs[-3:]],
        "custom_product_type": kind,
        "description": product.description,
        "effects": [],
        "feelings": [],
        "flavors": [],
        "has_brand_discount": False,
        "has_photos": False,
        "has_thc_potency": _share(state, state.lab.thc) > 0,
        "image_urls": photos,
        "indexed_at": _iso(state.updated_ms),
        "ingredients": [],
        "inventory_potencies": [
            {"price_id": weight, "cbd_potency": _share(state, state.lab.cbd), "tac_potency": 0.0,
             "thc_potency": _share(state, state.lab.thc)}
            for weight in sold
        ],
        "kind": kind,
        "lab_result_urls": [],
        "lab_results": [{"price_id": weight, "lab_results": labs} for weight in sold if labs],
        "max_cart_quantity": 3,
        **{f"max_cart_quantity_{weight}": 3 if weight in sold else 0 for weight in _WEIGHTS.values()},
        "name": product.name,
        "net_weight_grams": 0,
        "objectID": f"prod_{product.id}_store_{store.id}",
        "photo_weights": [],
        "photos": [],
        "pos_product_lookup": {},
        **{f"price_{weight}": _number(cents) for weight, cents in sold.items()},
        "product_brand_id": int(product.brand.id[:6], 16) if product.brand is not None else None,
        "product_id": int(product.id),
        "product_photos": [
            {"id": url, "urls": {"small": url, "medium": url, "original": url, "extraLarge": url}, "position": place}
            for place, url in enumerate(photos)
        ],
        "recommendation": {"ordinal": 2147483647},
        "review_count": product.serial % 7,
        "root_types": [kind],
        "roots_custom_rows": [],
        "searchable_slug": f"{slug}-{product.id}",
        **{f"special_price_{weight}": {} for weight in _WEIGHTS.values()},
        "store_id": int(store.id),
        "store_notes": product.description,
        "store_specific_product": False,
        "store_types": ["medical"] * store.medical + ["recreational"] * store.recreational,
        "strain": None,
        "terpenes": [],
        "type": genetics,
        "unique_slug": slug,
        "url_slug": slug,
        "version": 3,
        "visible": state.active,
    }  # fmt: skip
    if subtype is not None:
        row |= {
            "brand_subtype": subtype,
            "kind_subtype": subtype,
            "root_subtype": subtype,
            "custom_product_subtype": subtype,
        }
    for name, content in (("percent_thc", state.lab.thc), ("percent_cbd", state.lab.cbd)):
        if share := _share(state, content):
            row[name] = share
    if special is not None and off is not None:
        row |= {"special_amount": f"{off}% OFF", "special_id": int(special.id[:6], 16), "special_title": special.name}
        for weight, cents in sold.items():
            row[f"discounted_price_{weight}"] = _number(reduced[weight])
            row[f"special_price_{weight}"] = {
                "price": str(cents / 100),
                "special_id": row["special_id"],
                "discount_type": "percent",
                "discount_price": str(reduced[weight] / 100),
                "discount_amount": (cents - reduced[weight]) / 100,
                "discount_percent": str(float(off)),
            }
    return row


def _sold(state: ProductState) -> dict[str, int]:
    """Cents of every weight that can be bought."""
    return {
        _WEIGHTS[option]: cents
        for option, cents, stock in zip(state.product.options, state.prices, state.stock, strict=True)
        if stock > 0
    }


def _reduced(cents: int, off: int | None) -> int:
    return cents if off is None else (cents * (100 - off) + 50) // 100


def _number(cents: int) -> int | float:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _share(state: ProductState, content: Content | None) -> float:
    """Percent; 0 where nothing was measured, and of what is sold by content."""
    if content is None or content.range is None or content.unit != "PERCENTAGE" or state.product.category in DOSED:
        return 0.0
    return float(content.range[-1])


def _compounds(state: ProductState) -> list[dict[str, Any]]:
    """Cannabinoids, then terpenes; of what is sold by content its whole content."""
    rows: list[tuple[str, float, str]] = []
    if state.product.category in DOSED:
        for name, content in (("THC", state.lab.thc), ("CBD", state.lab.cbd)):
            if content is not None and content.range is not None:
                rows.append((name, float(content.range[-1]), _UNITS[content.unit]))
    else:
        rows += [(_COMPOUNDS[row.name], row.value, _UNITS[row.unit]) for row in state.lab.rows or ()]
    rows += [(name, value, "%") for name, value in terpenes(state)]
    return [{"unit": unit, "value": value, "unit_id": name, "compound_name": name} for name, value, unit in rows]


def terpenes(state: ProductState) -> tuple[tuple[str, float], ...]:
    batch = batch_of(state)
    return batch.terpenes if batch is not None else ()


def _genetics(strain: str | None) -> str | None:
    word = (strain or "").lower()
    return word if word in ("indica", "sativa", "hybrid") else "hybrid" if word.endswith("-hybrid") else None


def _iso(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="seconds").replace("+00:00", "Z")
