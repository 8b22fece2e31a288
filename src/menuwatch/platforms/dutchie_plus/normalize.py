"""A Dutchie Plus product as a canonical product. Pure: bytes in, values out.

| matter     | rule |
|------------|------|
| identity   | `id`, which is the one that the same product has in Dutchie's own menus |
| options    | `variants[]`; prices and special prices as they are, never computed |
| stock      | `quantity`, where 25 means 25 or more; null is unknown |
| weights    | from the option's text; of what is sold by content ("10pk/100mg", "1g" of gummies) none, but pieces and milligrams |
| potency    | `range` in its `unit`; "%" of an edible is of its mass (0.38 % beside 3.82 mg/g) |
| enums      | as they come; what they mean is in the canonical columns |
| repeated   | `descriptionHtml`, `formatted`, variants' `id` and `flowerEquivalent` say nothing more |

An item that cannot be a product is a fatal warning and stops nothing else; any other bad value is left out with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.catalog.canon.bounds import MAX_TOTAL, bounded
from menuwatch.catalog.canon.kinds import DOSED, WEIGHED, kind
from menuwatch.catalog.canon.package import package
from menuwatch.catalog.canon.strains import strain
from menuwatch.catalog.canon.text import clean, describes, enum, label
from menuwatch.catalog.canon.unit_price import effective, unit_prices
from menuwatch.catalog.model import Potency, Product, ProductWarning, StockStatus, Variant
from menuwatch.platforms.base import Normalized
from menuwatch.platforms.dutchie import identity as ids
from menuwatch.platforms.dutchie.potency import cannabinoids, terpenes
from menuwatch.platforms.dutchie.stock import POS_CAP, Level, option_status
from menuwatch.platforms.dutchie.text import effect_name
from menuwatch.platforms.dutchie_plus import payload
from menuwatch.platforms.dutchie_plus.payload import Item, PlusVariant
from menuwatch.platforms.items import Unusable, each, reader, usable_id
from menuwatch.platforms.mending import Mender
from menuwatch.platforms.prices import check, lowest
from menuwatch.platforms.stock import is_in_stock, product_status

VERSION = 1
"""Raised whenever another product would be made of the same item."""

_TEN = Decimal(10)

_decoder = msgspec.json.Decoder(Item)
_mender = Mender(Item, essential=("name", "variants"), judged=("variants",), identity=ids.of_plain)


def normalize(items: Iterable[msgspec.Raw]) -> Normalized:
    """Products in the order of their items; of several items with one id the last wins and stands where the first did."""
    return each(items, _READ, ids.identity)


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id = usable_id(item.id)
    if not item.name or item.name.isspace():
        raise Unusable("name", "is missing")
    meant = kind(item.category, item.subcategory)
    variants = _variants(item, product_id, meant.category, warnings)
    status = product_status([variant.stock_status for variant in variants])
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    images = tuple(dict.fromkeys(ref.url.strip() for ref in item.images or () if ref is not None and ref.url))
    brand = item.brand.name if item.brand is not None else None
    return Product(
        provider_product_id=product_id,
        name_raw=item.name,
        name=clean(item.name),
        brand_name_raw=brand or None,
        brand_name=(label(brand) or None) if brand else None,
        category=enum(item.category) if item.category else None,
        subcategory=enum(item.subcategory) if item.subcategory else None,
        strain_type=enum(item.strainType) if item.strainType else None,
        status_raw=None,
        variants=variants,
        price_rec=lowest([variant.price_rec for variant in variants]),
        price_rec_special=lowest([variant.special_rec for variant in variants]),
        price_med=lowest([variant.price_med for variant in variants]),
        price_med_special=lowest([variant.special_med for variant in variants]),
        stock_status=status,
        is_in_stock=is_in_stock(status),
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        quantity_capped=any(variant.capped for variant in variants),
        thc=_potency(item.potencyThc),
        cbd=_potency(item.potencyCbd),
        cannabinoids=cannabinoids(item.cannabinoids),
        specials=(),
        image_url=(item.image or "").strip() or (images[0] if images else None),
        images=images,
        description=clean(item.description) if item.description and describes(item.description) else None,
        platform_created_at=None,
        platform_updated_at=None,
        extra=_extra(item),
        category_canon=meant.category,
        subcategory_canon=meant.subcategory,
        strain_canon=strain(item.strainType),
    )


def _variants(item: Item, product_id: str, category: str | None, warnings: list[ProductWarning]) -> tuple[Variant, ...]:
    dosed = category in DOSED
    made = []
    for i, variant in enumerate(item.variants or ()):
        if variant is None:
            continue
        if not variant.option or not label(variant.option):
            warnings.append(ProductWarning(product_id, f"variants[{i}].option", "is empty; the option is left out"))
            continue
        rec, med, special_rec, special_med = _prices(variant, i)
        level = _level(variant)
        said = package(variant.option)
        grams = None if dosed or (said.milligrams is not None and category not in WEIGHED) else said.grams
        status: StockStatus = option_status(level, below_threshold=False)
        made.append(
            Variant(
                label(variant.option),
                rec,
                med,
                special_rec,
                special_med,
                level.available if level is not None else None,
                level is not None and level.capped,
                status,
                grams,
                *unit_prices(effective(rec, special_rec, med, special_med), grams, variant.option, dosed=dosed),
            )
        )
    return tuple(made)


def _prices(variant: PlusVariant, place: int) -> tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None]:
    for name in ("priceRec", "priceMed", "specialPriceRec", "specialPriceMed"):
        check(getattr(variant, name), f"variants[{place}].{name}")
    return variant.priceRec, variant.priceMed, variant.specialPriceRec, variant.specialPriceMed


def _level(variant: PlusVariant) -> Level | None:
    if variant.quantity is None:
        return None
    quantity = -int(-variant.quantity // 1)  # a fraction counts up: some is not none
    return Level(max(0, quantity), quantity >= POS_CAP, 0)


def _potency(content: payload.Potency | None) -> Potency | None:
    """The range, None where none is given or it has no unit. mg/g are a tenth of a percent."""
    values = [bounded(value) for value in (content.range or ()) if value is not None] if content is not None else []
    raw = label(content.unit) if content is not None and content.unit else ""
    if not values or not raw:
        return None
    if raw in {"mg/g", "MILLIGRAMS_PER_GRAM"}:
        return Potency(min(values) / _TEN, max(values) / _TEN, "%", raw)
    return Potency(min(values), max(values), {"PERCENTAGE": "%", "MILLIGRAMS": "mg"}.get(raw, raw), raw)


def _extra(item: Item) -> dict[str, Any]:
    """What has no column, only where there is something; flags only where they are true."""
    pos = item.posMetaData
    brand = item.brand
    promotions = {
        entry
        for variant in item.variants or ()
        if variant is not None
        for entry in (*(variant.specialConditionIds or ()), *(variant.specialRewardIds or ()))
        if entry
    }
    found: dict[str, Any] = {
        "enterprise_product_id": item.enterpriseProductId,
        "batch_id": item.productBatchId,
        "pos_id": item.posId,
        "pos_category": pos.category if pos is not None else None,
        "sku": pos.sku if pos is not None else None,
        "brand_id": brand.id if brand is not None else None,
        "slug": item.slug,
        "menu_types": [entry for entry in item.menuTypes or () if entry],
        "tags": [entry for entry in item.tags or () if entry],
        "effects": [effect_name(entry.lower()) for entry in item.effects or () if entry],
        "staff_pick": item.staffPick or None,
        "special_ids": sorted(promotions),
        "terpenes": terpenes(item.terpenes),
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


_READ = reader(_decoder, _product, _mender.mend)
