"""A Weedmaps item as a canonical product. Pure: bytes in, values out.

What it decides, where the payload leaves a choice (the reasons are in the modules named):

| matter     | rule |
|------------|------|
| identity   | `id`. Names and slugs repeat within a menu |
| licence    | `license_type` medical: the price is the medical one; else the recreational one. One item has one of them |
| options    | `variants[]` by their labels ("1/8 oz"); an item without them is one option, `each`, at `prices.price_unit` |
| prices     | 0 means that there is none; `prices.price_gram` and its neighbours repeat the variants and only stand in for them |
| weights    | `variants[].weight`, an ounce being 28 g. `compliance_net_mg` contradicts it and the names, and is kept raw |
| specials   | `sale` is percent off: listed prices are regular (31.25 less 20 % is 25), the special one is worked out to the cent |
| stock      | `stock`; what is not published is out of stock, what cannot be ordered online may well be on the shelf |
| potency    | `potency` |
| pictures   | the placeholders of a category are none, and kept as `extra.placeholder_image` |
| texts      | `body` is HTML: the description is its text |

An item that cannot be a product (no object, no id, or a name, price or stock that cannot be read) is a fatal warning and stops nothing
else; any other bad value is left out of its product with a warning that names the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from menuwatch.catalog.canon.bounds import bounded
from menuwatch.catalog.canon.kinds import DOSED, kind
from menuwatch.catalog.canon.package import GRAMS_PER_OUNCE, package, shortest
from menuwatch.catalog.canon.strains import strain
from menuwatch.catalog.canon.text import clean, describes, enum, label, plain
from menuwatch.catalog.canon.unit_price import effective, unit_prices
from menuwatch.catalog.model import Product, ProductWarning, Special, Variant
from menuwatch.platforms.base import Normalized
from menuwatch.platforms.items import Unusable, each, instant_of, reader, usable_id
from menuwatch.platforms.mending import Mender
from menuwatch.platforms.prices import check, lowest
from menuwatch.platforms.stock import is_in_stock, product_status
from menuwatch.platforms.weedmaps import stock
from menuwatch.platforms.weedmaps.identity import identity, named, of_plain
from menuwatch.platforms.weedmaps.payload import Attributes, Item, Relationships, Sale, ToMany, ToOne, Weight
from menuwatch.platforms.weedmaps.potency import cannabinoids, potency

VERSION = 1
"""Raised whenever another product would be made of the same item."""

EACH = "each"
"""The option of what is sold by the package."""

_BY_WEIGHT = {
    "price_half_gram": "1/2 g",
    "price_gram": "1 g",
    "price_two_grams": "2 g",
    "price_eighth": "1/8 oz",
    "price_quarter": "1/4 oz",
    "price_half_ounce": "1/2 oz",
    "price_ounce": "1 oz",
}
"""Prices by weight and the labels that the variants of that weight have."""

_CENT = Decimal("0.01")
_HUNDRED = Decimal(100)

_decoder = msgspec.json.Decoder(Item)
_mender = Mender(
    Item,
    essential=("attributes.name", "attributes.prices", "attributes.variants", "attributes.inventory_quantity",
               "attributes.license_type", "attributes.is_published", "attributes.shared_inventory"),
    judged=("attributes.prices", "attributes.variants"),
    identity=of_plain,
)  # fmt: skip


def normalize(items: Iterable[msgspec.Raw]) -> Normalized:
    """Products in the order of their items; of several items with one id the last wins and stands where the first did."""
    return each(items, _READ, identity)


def item_of(raw: msgspec.Raw) -> Item | None:
    """The item, None where it does not fit its types."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id = usable_id(named(item.id))
    at = item.attributes
    if at is None:
        raise Unusable("attributes", "is missing")
    if not at.name or at.name.isspace():
        raise Unusable("attributes.name", "is missing")

    subcategory = at.sub_category.name if at.sub_category is not None else None
    meant = kind(at.category_name, subcategory)
    dosed = meant.category in DOSED
    off = _off(at.sale)
    variants = _variants(at, off, product_id, warnings, dosed=dosed)
    status = product_status([variant.stock_status for variant in variants])
    quantities = [variant.quantity for variant in variants]
    images, placeholder = _images(at)
    body = plain(at.body) if at.body else ""
    return Product(
        provider_product_id=product_id,
        name_raw=at.name,
        name=clean(at.name),
        brand_name_raw=at.brand_name or None,
        brand_name=(label(at.brand_name) or None) if at.brand_name else None,
        category=enum(at.category_name) if at.category_name else None,
        subcategory=enum(subcategory) if subcategory else None,
        strain_type=enum(at.genetics) if at.genetics else None,
        status_raw=None if at.is_published is None else "published" if at.is_published else "unpublished",
        variants=variants,
        price_rec=lowest([variant.price_rec for variant in variants]),
        price_rec_special=lowest([variant.special_rec for variant in variants]),
        price_med=lowest([variant.price_med for variant in variants]),
        price_med_special=lowest([variant.special_med for variant in variants]),
        stock_status=status,
        is_in_stock=is_in_stock(status),
        quantity=stock.total(quantities, shared=at.shared_inventory is True),
        quantity_capped=any(variant.capped for variant in variants),
        thc=potency(at.measurements, "THC", dosed=dosed),
        cbd=potency(at.measurements, "CBD", dosed=dosed),
        cannabinoids=cannabinoids(at.measurements),
        specials=_specials(at.sale),
        image_url=images[0] if images else None,
        images=images,
        description=body if describes(body) else None,
        platform_created_at=instant_of(at.created_at, product_id, "attributes.created_at", warnings),
        platform_updated_at=instant_of(at.updated_at, product_id, "attributes.updated_at", warnings),
        extra=_extra(item, at, placeholder),
        category_canon=meant.category,
        subcategory_canon=meant.subcategory,
        strain_canon=strain(at.genetics),
    )


def _offers(
    at: Attributes, product_id: str, warnings: list[ProductWarning]
) -> list[tuple[str, Decimal | None, Decimal | None, int | None]]:
    """(option, price, grams, quantity) of everything that the item is sold as."""
    found: list[tuple[str, Decimal | None, Decimal | None, int | None]] = []
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
        found.append((option, price, _grams(variant.weight), variant.inventory_quantity))
    if found:
        return found
    prices = at.prices
    unit = _price(prices.price_unit if prices is not None else None, "attributes.prices.price_unit")
    if unit is None and prices is not None:
        for name, option in _BY_WEIGHT.items():
            price = _price(getattr(prices, name), f"attributes.prices.{name}")
            if price is not None:
                found.append((option, price, package(option).grams, at.inventory_quantity))
    return found or [(EACH, unit, None, at.inventory_quantity)]


def _variants(
    at: Attributes, off: Decimal | None, product_id: str, warnings: list[ProductWarning], *, dosed: bool
) -> tuple[Variant, ...]:
    medical = at.license_type is not None and at.license_type.strip().lower() == "medical"
    made = []
    for option, price, grams, quantity in _offers(at, product_id, warnings):
        special = None if price is None or off is None else _less(price, off)
        rec, med = (None, price) if medical else (price, None)
        special_rec, special_med = (None, special) if medical else (special, None)
        weight = None if dosed else grams
        made.append(
            Variant(
                option,
                rec,
                med,
                special_rec,
                special_med,
                stock.packages(quantity),
                stock.is_capped(quantity),
                stock.status(quantity, published=at.is_published is not False),
                weight,
                *unit_prices(effective(rec, special_rec, med, special_med), weight, option, dosed=dosed),
            )
        )
    return tuple(made)


def _price(value: Decimal | None, field: str) -> Decimal | None:
    check(value, field)
    return value or None


def _grams(weight: Weight | None) -> Decimal | None:
    """Grams, None where the weight is none that is known."""
    if weight is None or weight.value is None or weight.unit is None or bounded(weight.value) <= 0:
        return None
    unit = weight.unit.strip().lower()
    if unit == "oz":
        return shortest(weight.value * GRAMS_PER_OUNCE)
    return shortest(weight.value) if unit == "g" else None


def _off(sale: Sale | None) -> Decimal | None:
    """Percent off, None where there is no sale or it is of another kind."""
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
    """(addresses of pictures, each once; the placeholder where that is all)."""
    urls = [url.strip() for url in (at.avatar_image_url, at.picture_url, at.original_picture_url) if url]
    found = tuple(dict.fromkeys(url for url in urls if url and "/placeholder" not in url))
    return found, next((url for url in urls if url), None) if not found else None


def _id_of(reference: ToOne | None) -> str | None:
    return named(reference.data.id) if reference is not None and reference.data is not None else None


def _ids_of(references: ToMany | None) -> list[str]:
    rows = references.data if references is not None else None
    return [found for row in rows or () if row is not None and (found := named(row.id)) is not None]


def _extra(item: Item, at: Attributes, placeholder: str | None) -> dict[str, Any]:
    """What has no column, only where there is something."""
    to = item.relationships or Relationships()
    found: dict[str, Any] = {
        "dispensary_id": _id_of(to.listing),
        "slug": at.slug,
        "menu_url": item.links.order if item.links is not None else None,
        "external_id": at.external_id,
        "license_type": at.license_type,
        "brand_id": _id_of(to.brand),
        "library_product_id": _id_of(to.product),
        "strain_id": _id_of(to.strain),
        "category_ids": _ids_of(to.categories),
        "tag_ids": _ids_of(to.tags),
        "compliance_net_mg": at.compliance_net_mg,
        "shared_inventory": at.shared_inventory or None,
        "shared_quantity": at.inventory_quantity if at.variants else None,
        "online_orderable": at.online_orderable,
        "placeholder_image": placeholder,
    }
    return {name: value for name, value in found.items() if value is not None and value != "" and value != []}


_READ = reader(_decoder, _product, _mender.mend)
