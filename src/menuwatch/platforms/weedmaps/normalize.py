"""Normalizes a Weedmaps item to a canonical product. Pure: bytes in, values out. Items of live menus: `live`.

Rules for ambiguous payloads:

| matter     | rule |
|------------|------|
| identity   | `id`. Names and slugs repeat within a menu |
| licence    | `license_type` medical: the price is the medical one; else the recreational one. One item has one of them |
| options    | `variants[]` by their labels ("1/8 oz"), and `each` at `prices.price_unit` if no variant has that price; an item without variants is one option, `each` |
| prices     | 0 means no price; `prices.price_gram` and similar fields repeat the variants and are used only without them |
| weights    | `variants[].weight`, an ounce being 28 g. `compliance_net_mg` contradicts it and the names, and is kept raw |
| specials   | `sale` is percent off: listed prices are regular (31.25 less 20 % is 25), the special one is computed to the cent |
| stock      | null is unknown, not zero; 9,999 means 9,999 or more; with `shared_inventory` all variants are taken from one stock |
| for sale   | unpublished items are out of stock; items that cannot be ordered online may still be sold in the store |
| potency    | 0 means "not measured" and gives no potency; milligrams for goods sold by content, percent for others |
| pictures   | a category's placeholder is not an image; it is kept as `extra.placeholder_image` |
| texts      | `body` is HTML: the description is its text |

An item that cannot be a product (no object, no id, or an unreadable name, price or stock) gives a fatal warning and does not affect
others; any other bad value is left out of its product with a warning that names the field.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from menuwatch.catalog.model import LabValue, Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL, bounded
from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, package, shortest
from menuwatch.catalog.taxonomy.text import label, plain
from menuwatch.platforms.items import ItemReader, UnusableItem, usable_id
from menuwatch.platforms.products import (
    check_price,
    grams,
    instant_field,
    make_product,
    make_variant,
    option_status,
    required,
)
from menuwatch.platforms.weedmaps.ids import Ids, id_text
from menuwatch.platforms.weedmaps.live import EACH, live_product
from menuwatch.platforms.weedmaps.payload import (
    Attributes,
    Item,
    Measurement,
    Relationships,
    Sale,
    ToMany,
    ToOne,
    Weight,
)

VERSION = 2
"""Raise it when the same item would give a different product."""

CAP = 9_999
"""Weedmaps shows no more than that: there are at least as many."""

_BY_WEIGHT = {
    "price_half_gram": "1/2 g",
    "price_gram": "1 g",
    "price_two_grams": "2 g",
    "price_eighth": "1/8 oz",
    "price_quarter": "1/4 oz",
    "price_half_ounce": "1/2 oz",
    "price_ounce": "1 oz",
}
"""Price fields by weight, with the labels of variants of that weight."""

_CENT = Decimal("0.01")
_HUNDRED = Decimal(100)
_IN_GRAMS = {"oz": GRAMS_PER_OUNCE, "g": Decimal(1)}


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    at = item.attributes
    if at is None:
        if item.is_live():
            return live_product(item, warnings)
        usable_id(item.product_id())
        raise UnusableItem("attributes", "is missing")
    product_id, name = required(item.product_id(), at.name, "attributes.name")
    subcategory = at.sub_category.name if at.sub_category is not None else None
    canonical = kind(at.category_name, subcategory)
    dosed = canonical.category in DOSED
    variants = _variants(at, product_id, warnings, dosed=dosed)
    images, placeholder = _images(at)
    return make_product(
        product_id,
        name,
        brand=at.brand_name,
        category=at.category_name,
        subcategory=subcategory,
        kind=canonical,
        strain_type=at.genetics,
        status_raw=None if at.is_published is None else "published" if at.is_published else "unpublished",
        variants=variants,
        quantity=_total([variant.quantity for variant in variants], shared=at.shared_inventory is True),
        thc=_potency(at.measurements, "THC", dosed=dosed),
        cbd=_potency(at.measurements, "CBD", dosed=dosed),
        cannabinoids=_cannabinoids(at.measurements),
        specials=_specials(at.sale),
        images=images,
        description=plain(at.body) if at.body else None,
        created_at=instant_field(at.created_at, product_id, "attributes.created_at", warnings),
        updated_at=instant_field(at.updated_at, product_id, "attributes.updated_at", warnings),
        extra=_extra(item, at, placeholder),
    )


def _offers(
    at: Attributes, product_id: str, warnings: list[ProductWarning]
) -> list[tuple[str, Decimal | None, Decimal | None, int | None]]:
    """(option, price, grams, quantity) of every option of the item."""
    offers: list[tuple[str, Decimal | None, Decimal | None, int | None]] = []
    for i, variant in enumerate(at.variants or ()):
        if variant is None:
            continue
        option = label(variant.label or variant.name or "")
        field = f"attributes.variants[{i}]"
        if not option:
            warnings.append(ProductWarning(product_id, field, "has neither label nor name; the option is left out"))
            continue
        amount = variant.price.amount if variant.price is not None else None
        price = _price(amount, f"{field}.price.amount")
        offers.append((option, price, _grams(variant.weight), variant.inventory_quantity))
    prices = at.prices
    unit = _price(prices.price_unit if prices is not None else None, "attributes.prices.price_unit")
    if offers:
        if unit is not None and not _repeats(unit, offers, _off(at.sale)):
            # The item's quantity is that of all options: of this one it says something only if nothing is left.
            offers.append((EACH, unit, None, 0 if at.inventory_quantity == 0 else None))
        return offers
    if unit is None and prices is not None:
        for name, option in _BY_WEIGHT.items():
            price = _price(getattr(prices, name), f"attributes.prices.{name}")
            if price is not None:
                offers.append((option, price, package(option).grams, at.inventory_quantity))
    return offers or [(EACH, unit, None, at.inventory_quantity)]


def _variants(at: Attributes, product_id: str, warnings: list[ProductWarning], *, dosed: bool) -> tuple[Variant, ...]:
    medical = at.license_type is not None and at.license_type.strip().lower() == "medical"
    off = _off(at.sale)
    variants = []
    for option, price, weight, quantity in _offers(at, product_id, warnings):
        special = None if price is None or off is None else _less(price, off)
        prices = (None, price, None, special) if medical else (price, None, special, None)
        variants.append(
            make_variant(
                option,
                *prices,
                quantity=None if quantity is None else max(0, quantity),
                capped=quantity is not None and quantity >= CAP,
                status=option_status(quantity, withdrawn=at.is_published is False),
                weight=None if dosed else weight,
                dosed=dosed,
            )
        )
    return tuple(variants)


def _repeats(
    price: Decimal, offers: Sequence[tuple[str, Decimal | None, Decimal | None, int | None]], off: Decimal | None
) -> bool:
    """Whether a price is that of one of the options, before or after the sale, or an option is called `each` already."""
    return any(
        option.lower() == EACH
        or price == listed
        or (off is not None and listed is not None and price == _less(listed, off))
        for option, listed, _, _ in offers
    )


def _price(value: Decimal | None, field: str) -> Decimal | None:
    check_price(value, field)
    return value or None


def _grams(weight: Weight | None) -> Decimal | None:
    if weight is None or weight.unit is None:
        return None
    return grams(weight.value, weight.unit.strip().lower(), _IN_GRAMS)


def _off(sale: Sale | None) -> Decimal | None:
    """Percent off; None without a sale of that kind."""
    if sale is None or sale.type != "percentage" or sale.amount is None:
        return None
    return sale.amount if 0 < bounded(sale.amount) < _HUNDRED else None


def _less(price: Decimal, percent: Decimal) -> Decimal:
    return (price * (_HUNDRED - percent) / _HUNDRED).quantize(_CENT, ROUND_HALF_UP)


def _specials(sale: Sale | None) -> tuple[Special, ...]:
    if sale is None or sale.amount is None:
        return ()
    if _off(sale) is not None:
        return (Special(name=f"{shortest(sale.amount):f}% off", kind="percent", value=sale.amount),)
    return (Special(name=label(sale.type or ""), kind="other", value=bounded(sale.amount)),)


def _images(at: Attributes) -> tuple[tuple[str, ...], str | None]:
    """(distinct image URLs, the placeholder if there is nothing else)."""
    urls = [url.strip() for url in (at.avatar_image_url, at.picture_url, at.original_picture_url) if url]
    images = tuple(dict.fromkeys(url for url in urls if url and "/placeholder" not in url))
    return images, next((url for url in urls if url), None) if not images else None


def _id_of(reference: ToOne | None) -> str | None:
    return id_text(reference.data.id) if reference is not None and reference.data is not None else None


def _ids_of(references: ToMany | None) -> list[str]:
    rows = references.data if references is not None else None
    return [name for row in rows or () if row is not None and (name := id_text(row.id)) is not None]


def _extra(item: Item, at: Attributes, placeholder: str | None) -> dict[str, Any]:
    """Values without a column, only those present."""
    to = item.relationships or Relationships()
    extra: dict[str, Any] = {
        "dispensary_id": _id_of(to.listing),
        "slug": at.slug,
        "menu_url": item.links.order if item.links is not None else None,
        "external_id": at.external_id,
        "pos_id": at.external_id.partition("|")[2].strip() if at.external_id else None,
        "license_type": at.license_type,
        "brand_id": _id_of(to.brand),
        "library_product_id": _id_of(to.product),
        "strain_id": _id_of(to.strain),
        "category_ids": _ids_of(to.categories),
        "tag_ids": _ids_of(to.tags),
        "compliance_net_mg": at.compliance_net_mg,
        "cart_quantity_multiplier": at.cart_quantity_multiplier,
        "options": _compliance(at),
        "shared_inventory": at.shared_inventory or None,
        "shared_quantity": at.inventory_quantity if at.variants else None,
        "online_orderable": at.online_orderable,
        "placeholder_image": placeholder,
    }
    return {name: value for name, value in extra.items() if value is not None and value not in ("", [], {})}


def _compliance(at: Attributes) -> dict[str, dict[str, Decimal]]:
    """The options' compliance weights and cart counts, by option, those that are given."""
    found: dict[str, dict[str, Decimal]] = {}
    for variant in at.variants or ():
        if variant is None or not (option := label(variant.label or variant.name or "")):
            continue
        values = {
            name: bounded(value)
            for name in ("compliance_net_mg", "cart_quantity_multiplier")
            if (value := getattr(variant, name)) is not None
        }
        if values:
            found.setdefault(option, values)
    return found


def _potency(rows: Sequence[Measurement | None] | None, name: str, *, dosed: bool) -> Potency | None:
    """The content with that name, None without one. Raises ArithmeticError for a value out of bounds."""
    values: dict[str, Decimal] = {}
    for row in rows or ():
        if (
            row is not None
            and row.name == name
            and label(row.unit or "")
            and row.value is not None
            and bounded(row.value) > 0
        ):
            values.setdefault(label(row.unit), row.value)
    for unit in ("mg", "%") if dosed else ("%", "mg"):
        if unit in values:
            return Potency(values[unit], values[unit], unit, unit)
    for unit, value in values.items():
        return Potency(value, value, unit, unit)
    return None


def _cannabinoids(rows: Sequence[Measurement | None] | None) -> tuple[LabValue, ...]:
    """Lab rows as given, including zeros, except rows without a name."""
    return tuple(
        LabValue(label(row.name), bounded(row.value) if row.value is not None else None, label(row.unit or ""))
        for row in rows or ()
        if row is not None and row.name
    )


def _total(quantities: Sequence[int | None], *, shared: bool) -> int | None:
    """Packages over all options. For shared stock (9 packages of 2 g are also 2 of 7 g) the maximum of any option. None if all are
    unknown.
    """
    known = [quantity for quantity in quantities if quantity is not None]
    if not known:
        return None
    return min(max(known) if shared else sum(known), MAX_TOTAL)


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    essential=("attributes.name", "attributes.prices", "attributes.variants", "attributes.inventory_quantity",
               "attributes.license_type", "attributes.is_published", "attributes.shared_inventory",
               "name", "license_type", "price", "prices"),
    judged=("attributes.prices", "attributes.variants", "price"),
    store_id=lambda item: _id_of(item.relationships.listing) if item.relationships is not None else None,
)  # fmt: skip
