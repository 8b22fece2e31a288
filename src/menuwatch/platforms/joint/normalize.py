"""Normalizes a Joint product to a canonical product. Pure: bytes in, values out.

Rules for ambiguous payloads:

| matter     | rule |
|------------|------|
| identity   | `jointId`, which the product's page has in its address and its potencies and variants refer to (`productId`); it stays |
|            | while they are updated. `posId` is an id of another system, and `globalProductId` the same in several stores |
| options    | `variants[]` by `option`; one option on the recreational and the medical menu is one variant with both prices |
| prices     | `price` and, where it is lower, `specialPrice`, as texts or numbers; 0 and "" are no price |
| weights    | "1/8oz" is 3.5 g. Of goods sold by content up to 5 g are the content (".1g" is 100 mg), not mass; it is left out where |
|            | the name has milligrams and none are these |
| stock      | `quantity` is 25 for 25 and more; null is unknown |
| potency    | `potencies[]`, else `potencyThc...`; mg/g are converted to percent |
| specials   | `applicableSpecials[]` and those applied: an amount of 0 tells nothing ("35 % off" has 0), so only the name is kept |
| times      | the product has none: its oldest variant's creation, its latest variant's change |
| texts      | `description` may be HTML: the description is its text |

An item that cannot be a product (no object, no id, or an unreadable name, price or stock) gives a fatal warning and does not affect
others; any other bad value is left out of its product with a warning that names the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from menuwatch.catalog.model import LabValue, Potency, Product, ProductWarning, Variant
from menuwatch.catalog.model import Special as CanonicalSpecial
from menuwatch.catalog.taxonomy.categories import DOSED, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL
from menuwatch.catalog.taxonomy.package import package, shortest
from menuwatch.catalog.taxonomy.text import label, plain
from menuwatch.catalog.taxonomy.unit_price import effective, per
from menuwatch.platforms.items import ItemReader, UnusableItem
from menuwatch.platforms.joint.payload import Content, Ids, Item, LabRow, MenuVariant, Owner, Special, amount
from menuwatch.platforms.lab import lab_value
from menuwatch.platforms.numbers import id_text, packages
from menuwatch.platforms.products import (
    agrees_with_name,
    check_price,
    instant_field,
    make_product,
    make_variant,
    option_status,
    potency,
    required,
)

VERSION = 1
"""Raise it when the same item would give a different product."""

CAP = 25
"""The highest quantity that is shown."""

MEDICAL = "MEDICAL"
_MOST_CONTENT = Decimal(5)
"""Grams of an option that are content; "2oz" of a lotion is its mass."""
_THOUSAND = Decimal(1000)
_KINDS = {"DOLLAR_AMOUNT": "amount", "TARGET_PRICE": "target_price"}
_PERCENT = frozenset({"PERCENT", "PERCENTAGE", "PERCENT_DISCOUNT"})


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    canonical = kind(item.category, item.subCategory)
    variants = _variants(item, product_id, name, warnings, dosed=canonical.category in DOSED)
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    html = item.description or item.descriptionHtml
    urls = [url.strip() for url in (item.primaryImage, *(item.images or ())) if url]
    created, updated = _times(item, product_id, warnings)
    return make_product(
        product_id,
        name,
        brand=item.brandName,
        category=item.category,
        subcategory=item.subCategory,
        kind=canonical,
        strain_type=item.strainType,
        status_raw=None,
        variants=variants,
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        thc=_potency(item, "THC", product_id, warnings),
        cbd=_potency(item, "CBD", product_id, warnings),
        cannabinoids=_lab_values(item.cannabinoids, "cannabinoids", product_id, warnings),
        terpenes=_lab_values(item.terpenes, "terpenes", product_id, warnings),
        specials=_specials(item, product_id, warnings),
        images=tuple(dict.fromkeys(url for url in urls if url)),
        description=plain(html) if html else None,
        created_at=created,
        updated_at=updated,
        extra=_extra(item),
    )


def _variants(
    item: Item, product_id: str, name: str, warnings: list[ProductWarning], *, dosed: bool
) -> tuple[Variant, ...]:
    variants: list[Variant] = []
    menus: list[set[bool]] = []
    for i, one in enumerate(item.variants or ()):
        if one is None:
            continue
        option = label(one.option or "")
        if not option:
            warnings.append(ProductWarning(product_id, f"variants[{i}].option", "is missing; the option is left out"))
            continue
        medical = _is_medical(one, item)
        made = _variant(one, option, f"variants[{i}]", name, product_id, warnings, medical=medical, dosed=dosed)
        twin = next(
            (at for at, known in enumerate(variants) if known.option == option and medical not in menus[at]), None
        )
        if twin is None:
            variants.append(made)
            menus.append({medical})
        else:
            variants[twin] = _of_both_menus(variants[twin], made)
            menus[twin].add(medical)
    return tuple(variants)


def _is_medical(one: MenuVariant, item: Item) -> bool:
    """A variant that names no menu is on the recreational one, unless its product is on the medical one alone."""
    word = (one.menuType or "").strip().upper()
    return word == MEDICAL if word else _menu_types(item) == [MEDICAL]


def _menu_types(item: Item) -> list[str]:
    types = [item.menuType] if isinstance(item.menuType, str) else item.menuType or []
    return [text.strip().upper() for text in types if text]


def _variant(
    one: MenuVariant,
    option: str,
    path: str,
    name: str,
    product_id: str,
    warnings: list[ProductWarning],
    *,
    medical: bool,
    dosed: bool,
) -> Variant:
    price, special = amount(one.price, f"{path}.price"), amount(one.specialPrice, f"{path}.specialPrice")
    check_price(price, f"{path}.price")
    check_price(special, f"{path}.specialPrice")
    price, special = price or None, special or None
    if price is not None and special is not None and special > price:
        message = f"the special price {special:f} is above the regular price {price:f}; left out"
        warnings.append(ProductWarning(product_id, f"{path}.specialPrice", message))
    if price is not None and special is not None and special >= price:
        special = None
    prices = (None, price, None, special) if medical else (price, None, special, None)
    quantity = packages(one.quantity, f"{path}.quantity")
    read = package(option)
    variant = make_variant(
        option,
        *prices,
        quantity=quantity,
        capped=quantity is not None and quantity >= CAP,
        status=option_status(quantity, withdrawn=False),
        weight=None if dosed else read.grams,
        dosed=dosed and agrees_with_name(read.milligrams, name),
    )
    content = _content(option, read.grams) if dosed and read.milligrams is None else None
    if content is None or not agrees_with_name(content, name):
        return variant
    return replace(variant, content_mg=content, price_per_mg=per(special or price, content))


def _content(option: str, grams: Decimal | None) -> Decimal | None:
    """Milligrams of an option of goods sold by content, which is written in grams."""
    if grams is None or grams > _MOST_CONTENT or "oz" in option.lower() or "ounce" in option.lower():
        return None
    return shortest(grams * _THOUSAND)


def _of_both_menus(one: Variant, other: Variant) -> Variant:
    """One option that is sold on both menus, from one stock."""
    rec, med = (one, other) if one.price_med is None and other.price_rec is None else (other, one)
    price = effective(rec.price_rec, rec.special_rec, med.price_med, med.special_med)
    return replace(
        one,
        price_rec=rec.price_rec,
        special_rec=rec.special_rec,
        price_med=med.price_med,
        special_med=med.special_med,
        quantity=one.quantity if other.quantity is None else max(one.quantity or 0, other.quantity),
        capped=one.capped or other.capped,
        stock_status="in_stock" if "in_stock" in (one.stock_status, other.stock_status) else one.stock_status,
        price_per_g=per(price, one.weight_g),
        price_per_piece=per(price, one.pieces),
        price_per_mg=per(price, one.content_mg),
    )


def _times(item: Item, product_id: str, warnings: list[ProductWarning]) -> tuple[datetime | None, datetime | None]:
    rows = [(i, one) for i, one in enumerate(item.variants or ()) if one is not None]
    created = [instant_field(one.createdAt, product_id, f"variants[{i}].createdAt", warnings) for i, one in rows]
    updated = [instant_field(one.updatedAt, product_id, f"variants[{i}].updatedAt", warnings) for i, one in rows]
    return (
        min((at for at in created if at is not None), default=None),
        max((at for at in updated if at is not None), default=None),
    )


def _potency(item: Item, name: str, product_id: str, warnings: list[ProductWarning]) -> Potency | None:
    found = next(
        (
            (f"potencies[{i}]", row)
            for i, row in enumerate(item.potencies or ())
            if row is not None and row.type == name
        ),
        None,
    )
    if found is None:
        if name == "THC":
            row = Content(name, item.potencyThcRangeLow, item.potencyThcRangeHigh, item.potencyThcUnit)
        else:
            row = Content(name, item.potencyCbdRangeLow, item.potencyCbdRangeHigh, item.potencyCbdUnit)
        found = (f"potency{name.title()}", row)
    field, row = found
    unit = label(row.unit or "")
    try:
        values = [value for value in (amount(row.rangeLow, field), amount(row.rangeHigh, field)) if value is not None]
        content = potency(values, unit) if unit else None
    except (UnusableItem, ArithmeticError) as error:
        what = error.args[1] if isinstance(error, UnusableItem) else "is out of bounds"
        warnings.append(ProductWarning(product_id, field, f"{what}; left out"))
        return None
    if content is not None and (content.lo < 0 or (content.unit == "%" and content.hi > 100)):
        warnings.append(
            ProductWarning(product_id, field, f"invalid content {content.lo:f} to {content.hi:f} {unit}; left out")
        )
        return None
    return content


def _lab_values(
    rows: Sequence[LabRow | None] | None, field: str, product_id: str, warnings: list[ProductWarning]
) -> tuple[LabValue, ...]:
    found = []
    for i, row in enumerate(rows or ()):
        if row is None or not row.name or not label(row.name):
            continue
        try:
            value = amount(row.value, f"{field}[{i}].value")
        except UnusableItem as error:
            warnings.append(ProductWarning(product_id, error.args[0], f"{error.args[1]}; left out"))
            continue
        made = lab_value(row.name, value, row.unit, product_id, f"{field}[{i}].value", warnings)
        if made is not None:
            found.append(made)
    return tuple(found)


def _all_specials(item: Item) -> list[Special]:
    """Those of the product and those applied to its variants, each once."""
    rows = [*(item.applicableSpecials or ())]
    for variant in item.variants or ():
        rows.extend(variant.appliedSpecials or () if variant is not None else ())
    found: dict[object, Special] = {}
    for row in rows:
        if row is not None and (row.specialName or row.specialId is not None):
            found.setdefault(id_text(row.specialId) or (row.specialName,), row)
    return list(found.values())


def _specials(item: Item, product_id: str, warnings: list[ProductWarning]) -> tuple[CanonicalSpecial, ...]:
    found = []
    for row in _all_specials(item):
        try:
            value = amount(row.discountAmount, "applicableSpecials.discountAmount") or None
        except UnusableItem as error:
            warnings.append(ProductWarning(product_id, error.args[0], f"{error.args[1]}; left out"))
            value = None
        word = (row.discountType or "").strip().upper()
        kind = "percent" if word in _PERCENT else _KINDS.get(word, "other")
        if value is None or value < 0:
            kind, value = "other", None
        found.append(
            CanonicalSpecial(
                name=label(row.specialName or "") or label(row.discountType or ""),
                kind=kind,
                value=value,
                special_id=id_text(row.specialId),
            )
        )
    return tuple(found)


def _extra(item: Item) -> dict[str, Any]:
    """Values without a column, only those present; flags only if true."""
    extra: dict[str, Any] = {
        "dispensary_id": id_text(item.businessId),
        "provider_business_id": id_text(item.providerBusinessId),
        "pos_id": id_text(item.posId),
        "global_product_id": id_text(item.globalProductId),
        "slug": item.urlFragment,
        "brand_id": id_text(item.brandId),
        "variant_ids": [found for one in item.variants or () if one is not None and (found := id_text(one.jointId))],
        "menu_types": _menu_types(item),
        "effects": [text.strip().lower() for text in item.effects or () if text],
        "tags": [text for text in item.tagList or () if text],
        "collections": [text for text in item.collections or () if text],
        "staff_pick": item.staffPick or None,
        "pos_special_ids": [found for row in _all_specials(item) if (found := id_text(row.posSpecialId))],
    }
    return {name: value for name, value in extra.items() if value is not None and value != "" and value != []}


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    essential=("name", "variants"),
    judged=("variants",),
    store_id=lambda item: id_text(item.businessId),
    owner=Owner,
)
