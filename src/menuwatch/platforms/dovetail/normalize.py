"""Normalizes a Dovetail item to a canonical product. Pure.

| matter     | rule |
|------------|------|
| identity   | `id`, which is the one that the same product has in Dutchie's own menus |
| prices     | `price` is what is paid; if it is below `regular_price`, it is the special price and that the regular one; 0 is none |
| menu type  | of a medical menu they are medical prices, else recreational ones: the requested menu decides, items do not say it |
| stock      | `quantity`, where 25 means 25 or more; null is unknown |
| weights    | from the option's text; of what is sold by content none, but pieces and milligrams |
| specials   | as data where the menu names them; the special price never depends on them |
| batch      | its name, else its number; its certificate and the day of packaging |
| terpenes   | those with a value |

An item that cannot be a product is a fatal warning and stops nothing else; any other bad value is left out with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.catalog.model import Batch, LabValue, Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, WEIGHED, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL, bounded
from menuwatch.catalog.taxonomy.package import package
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.dovetail.menu_id import of_item
from menuwatch.platforms.dovetail.payload import Ids, Item, LabRow, MenuVariant, MetaData
from menuwatch.platforms.dutchie.extra import small_value
from menuwatch.platforms.dutchie.lab_results import effect_name, is_total
from menuwatch.platforms.dutchie.options import POS_CAP
from menuwatch.platforms.dutchie.payload import Content
from menuwatch.platforms.items import ItemReader
from menuwatch.platforms.numbers import id_text, packages
from menuwatch.platforms.products import (
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


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    canonical = kind(item.category, item.subcategory)
    menu = of_item(item.menu_of, item.link)
    medical = menu is not None and menu.menu_type == "medical"
    variants = _variants(item, product_id, canonical.category, warnings, medical=medical)
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    return make_product(
        product_id,
        name,
        brand=item.brand.name if item.brand is not None else None,
        category=item.category,
        subcategory=item.subcategory,
        kind=canonical,
        strain_type=item.strain_type,
        status_raw=None,
        variants=variants,
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        thc=_potency(item.potency_thc, product_id, "potency_thc", warnings),
        cbd=_potency(item.potency_cbd, product_id, "potency_cbd", warnings),
        cannabinoids=_lab_values(item.cannabinoids, measured=False),
        specials=_specials(item.specials),
        images=_images(item),
        description=item.description,
        extra=_extra(item, str(menu) if menu is not None else None),
        terpenes=_lab_values(item.terpenes, measured=True),
        batch=_batch(item.meta_data, product_id, warnings),
    )


def _variants(
    item: Item, product_id: str, category: str | None, warnings: list[ProductWarning], *, medical: bool
) -> tuple[Variant, ...]:
    dosed = category in DOSED
    variants = []
    for i, variant in enumerate(item.variants or ()):
        if variant is None:
            continue
        field = f"variants[{i}]"
        option = variant.option or variant.name
        if not option or not label(option):
            warnings.append(ProductWarning(product_id, f"{field}.option", "is empty; the option is left out"))
            continue
        regular, special = _prices(variant, product_id, field, warnings)
        content = package(option)
        by_content = dosed or (content.milligrams is not None and category not in WEIGHED)
        quantity = packages(variant.quantity, f"{field}.quantity")
        variants.append(
            make_variant(
                option,
                *((None, regular, None, special) if medical else (regular, None, special, None)),
                quantity=quantity,
                capped=quantity is not None and quantity >= POS_CAP,
                status=option_status(quantity, withdrawn=False),
                weight=None if by_content else content.grams,
                dosed=dosed,
            )
        )
    return tuple(variants)


def _prices(
    variant: MenuVariant, product_id: str, field: str, warnings: list[ProductWarning]
) -> tuple[Decimal | None, Decimal | None]:
    """(regular price, special price)."""
    paid, regular = variant.price, variant.regular_price
    for name, value in (("price", paid), ("regular_price", regular)):
        check_price(value, f"{field}.{name}")
        if value == 0:
            warnings.append(ProductWarning(product_id, f"{field}.{name}", "is 0; left out"))
    paid, regular = paid or None, regular or None
    if paid is None or regular is None:
        return paid or regular, None
    if regular < paid:
        message = f"{regular:f} is below the price {paid:f}; left out"
        warnings.append(ProductWarning(product_id, f"{field}.regular_price", message))
        return paid, None
    return regular, paid if paid < regular else None


def _potency(content: Content | None, product_id: str, field: str, warnings: list[ProductWarning]) -> Potency | None:
    if content is None or not content.range:
        return None
    try:
        return potency(content.range, label(content.unit or ""))
    except ValueError as error:
        warnings.append(ProductWarning(product_id, field, f"{error}; left out"))
        return None


def _lab_values(rows: Sequence[LabRow | None] | None, *, measured: bool) -> tuple[LabValue, ...]:
    """Rows as given, except those without a name, and, where only `measured` ones count, without a value. Raises ArithmeticError for
    a value out of bounds."""
    return tuple(
        LabValue(
            name,
            bounded(row.value) if row.value is not None else None,
            label(row.unit or ""),
            is_total=is_total(name),
        )
        for row in rows or ()
        if row is not None and row.name and (name := label(row.name)) and (row.value is not None or not measured)
    )


def _specials(value: Any) -> tuple[Special, ...]:
    """Promotions that have a name. The recordings have none, so that nothing else of them is known."""
    found = []
    for entry in value if isinstance(value, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and label(name):
            special_id = id_text(entry.get("id"))
            found.append(Special(name=label(name), kind="other", special_id=label(special_id) if special_id else None))
    return tuple(found[:100])


def _images(item: Item) -> tuple[str, ...]:
    urls = (ref.url.strip() for ref in item.images or () if ref is not None and ref.url)
    return tuple(dict.fromkeys(url for url in urls if url))


def _batch(meta: MetaData | None, product_id: str, warnings: list[ProductWarning]) -> Batch:
    if meta is None:
        return Batch()
    name = label(id_text(meta.batch_name) or "") or label(id_text(meta.batch_id) or "")
    return Batch(
        batch_id=name or None,
        packaged_on=_day(meta.packaged_date, product_id, warnings),
        certificate_url=(meta.lab_result_url or "").strip() or None,
    )


def _day(value: str | int | None, product_id: str, warnings: list[ProductWarning]) -> date | None:
    """The day in the shop's time zone, at whose midnight the instant is (05:00 UTC in Florida's winter)."""
    instant = instant_field(value, product_id, "meta_data.packaged_date", warnings)
    return instant.date() if instant is not None else None


def _extra(item: Item, menu: str | None) -> dict[str, Any]:
    """Values without a column, only those present; flags only if true."""
    meta = item.meta_data or MetaData()
    brand = item.brand
    specials = {
        text
        for variant in item.variants or ()
        if variant is not None
        for one in variant.special_ids or ()
        if (text := id_text(one))
    }
    extra: dict[str, Any] = {
        "dispensary_id": menu,
        "slug": item.slug,
        "menu_url": item.link,
        "pos_id": id_text(meta.id),
        "pos_category": label(meta.category or ""),
        "sku": id_text(meta.sku) or id_text(item.sku),
        "batch_record_id": id_text(meta.batch_id) if meta.batch_name else None,
        "alternate_name": label(meta.alternate_name or ""),
        "brand_id": id_text(brand.id) if brand is not None else None,
        "brand_description": brand.description.strip() if brand is not None and brand.description else None,
        "tags": [entry for entry in item.tags or () if entry],
        "effects": [effect_name(entry) for entry in item.effects or () if entry],
        "informations": small_value(item.informations),
        "staff_pick": item.staff_pick or None,
        "special_ids": sorted(specials),
    }
    return {name: value for name, value in extra.items() if value not in (None, "", [])}


class StoreId(msgspec.Struct, gc=False):
    """The fields of an item that name its store."""

    menu_of: str | None = None
    link: str | None = None

    def store_id(self) -> str | None:
        """The id of the menu."""
        menu = of_item(self.menu_of, self.link)
        return str(menu) if menu is not None else None


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    essential=("name", "variants"),
    judged=("variants",),
    store_id=lambda item: StoreId(item.menu_of, item.link).store_id(),
    owner=StoreId,
)
