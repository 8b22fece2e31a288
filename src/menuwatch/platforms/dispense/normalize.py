"""Normalizes a Dispense product to a canonical product. Pure: bytes in, values out.

Rules for ambiguous payloads:

| matter     | rule |
|------------|------|
| identity   | `id`, which `_id` repeats. The row of a group has the id of the group's first variant |
| category   | `cannabisComplianceType`, which is one of Dispense's own words; a shop's category may be "Specials" and has pictures |
| options    | `variants[]`, of which the first is the product itself; without any, the product. Deleted ones are none |
| option     | `weightFormatted`, else weight and unit, else `size`, else `each` |
| prices     | `price` and, where it is lower, `priceWithDiscounts`; 0 is no price. No item tells a licence: prices are recreational |
| content    | milligrams of goods sold by content; left out where the name has milligrams and none are these ("100mg", "10mg") |
| stock      | `quantity` is exact: what the point of sale has less open orders; of the product itself also `quantityTotal` |
| sold       | `quantitySold`, the highest of three counters in each recorded row (quantitySold >= totalQuantitySold >= totalSold): |
|            | nothing is taken off it, so it only grows. totalSold seems to count sales of several packages. Both are in `extra` |
| batch      | `leaflogix.batchName` is a METRC tag (1A4 and 21 more) or the number of the batch; with a tag, `batchId` is it |
| potency    | `thcMax` (of THC and THCA), else `thc`. 0 means not measured; a value without a unit (`thc`, `thcA`) is no potency |
| labs       | a key per substance: THC... and CB... are cannabinoids, others terpenes; those only named have no value |
| specials   | `discounts[]`, a percentage being a share of 1; without any, the discount in effect |
| texts      | `description` may be HTML: the description is its text |

An item that cannot be a product (no object, no id, or an unreadable name, price or stock) gives a fatal warning and does not affect
others; any other bad value is left out of its product with a warning that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.catalog.model import Batch, LabValue, Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, Kind, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL, bounded, shorten
from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, package, shortest
from menuwatch.catalog.taxonomy.text import label, plain
from menuwatch.platforms.dispense.payload import Brand, Discount, Ids, Item, Labs, Owner, PointOfSale, Sellable
from menuwatch.platforms.items import ItemReader, UnusableItem
from menuwatch.platforms.lab import lab_value, spelled
from menuwatch.platforms.numbers import Quantity, id_text, packages
from menuwatch.platforms.products import (
    agrees_with_name,
    check_price,
    grams,
    instant_field,
    make_product,
    make_variant,
    option_status,
    required,
)

VERSION = 1
"""Raise it when the same item would give a different product."""

EACH = "each"
"""The option of goods without a weight."""

_HUNDRED = Decimal(100)
_UNITS = {"MILLIGRAMS": "mg", "GRAMS": "g", "OUNCES": "oz", "POUNDS": "lb", "KILOGRAMS": "kg"}
_IN_GRAMS = {
    "MILLIGRAMS": Decimal("0.001"),
    "GRAMS": Decimal(1),
    "OUNCES": GRAMS_PER_OUNCE,
    "POUNDS": 16 * GRAMS_PER_OUNCE,
    "KILOGRAMS": Decimal(1000),
}
_TAG = re.compile(r"1A4[0-9A-Z]{21}")
_UNIT = "ContentUnit"
_NO_SUBSTANCE = frozenset({"terpenes", "potency", "thcMax", "cbdMax"})
_CANNABINOID = ("THC", "CB", "TAC", "TOTAL")
_NOTHING = frozenset({b"0", b"null", b'""', b"[]"})
_ZERO = re.compile(rb'"?\s*-?0*(?:\.0*)?\s*"?')
_decimal = msgspec.json.Decoder(Decimal)
_string = msgspec.json.Decoder(str)
_strings = msgspec.json.Decoder(list[str | None])
_labs_sent = msgspec.json.Decoder(Labs)
_KINDS = {"PERCENT": "percent", "FLAT": "amount", "AMOUNT": "amount"}


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    canonical = _kind(item)
    sold = _sold(item)
    variants = tuple(
        _variant(one, field, name, product_id, warnings, dosed=canonical.category in DOSED) for field, one in sold
    )
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    labs = _labs(item, product_id, warnings)
    cannabinoids, terpenes = _substances(item, labs, product_id, warnings)
    return make_product(
        product_id,
        name,
        brand=item.brand.name if isinstance(item.brand, Brand) else item.brand,
        category=item.productCategoryName or item.cannabisComplianceType,
        subcategory=item.subType,
        kind=canonical,
        strain_type=item.cannabisType,
        status_raw="deleted" if item.deleted else {True: "enabled", False: "disabled", None: None}[item.enable],
        variants=variants,
        active=item.enable is not False and not item.deleted,
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        thc=_potency(labs, "thc", product_id, warnings),
        cbd=_potency(labs, "cbd", product_id, warnings),
        cannabinoids=cannabinoids,
        terpenes=terpenes,
        specials=_specials(item),
        image=item.image,
        images=_images(item),
        description=plain(item.description) if item.description else None,
        created_at=instant_field(item.created, product_id, "created", warnings),
        updated_at=instant_field(item.modified, product_id, "modified", warnings),
        batch=_batch([one.leaflogix for _, one in sold]),
        quantity_sold=_total(one.quantitySold for _, one in sold),
        extra=_extra(item, sold, labs),
    )


def _kind(item: Item) -> Kind:
    found = kind(item.cannabisComplianceType, item.subType) if item.cannabisComplianceType else Kind(None, None)
    return found if found.category is not None else kind(item.productCategoryName, item.subType)


def _sold(item: Item) -> list[tuple[str, Sellable]]:
    """(path, what is sold) of every option: the product's own fields, then those of its other variants."""
    named = [(f"variants[{i}].", one) for i, one in enumerate(item.variants or ()) if one is not None]
    own = item.product_id()
    ids = [one.product_id() for _, one in named]
    # The first variant repeats the product, whose own fields are the ones to be read; one without an id may be anything.
    others = [pair for pair, found in zip(named, ids, strict=True) if found != own and not pair[1].deleted]
    listed = not named or own in ids or None not in ids
    return [*([("", item)] if listed else []), *others] or [("", item)]


def _variant(
    one: Sellable, path: str, name: str, product_id: str, warnings: list[ProductWarning], *, dosed: bool
) -> Variant:
    check_price(one.price, f"{path}price")
    check_price(one.priceWithDiscounts, f"{path}priceWithDiscounts")
    price, special = one.price or None, one.priceWithDiscounts or None
    if price is not None and special is not None and special > price:
        message = f"the special price {special:f} is above the regular price {price:f}; left out"
        warnings.append(ProductWarning(product_id, f"{path}priceWithDiscounts", message))
    if price is None:
        price, special = special, None
    elif special is not None and special >= price:
        special = None
    option = _option(one)
    read = package(option)
    quantity = packages(one.quantity, f"{path}quantity")
    if quantity is None and not path:
        quantity = packages(one.quantityTotal, "quantityTotal")
    weight = read.grams or grams(one.weight, one.weightUnit, _IN_GRAMS)
    return make_variant(
        option,
        price,
        None,
        special,
        None,
        quantity=quantity,
        capped=False,
        status=option_status(quantity, withdrawn=one.enable is False or one.deleted is True),
        weight=None if dosed else weight,
        dosed=dosed and agrees_with_name(read.milligrams, one.name or name),
    )


def _option(one: Sellable) -> str:
    text = label(one.weightFormatted or "")
    if not text and one.weight and bounded(one.weight) > 0:
        text = f"{shortest(one.weight):f}{_UNITS.get(one.weightUnit or '', label(one.weightUnit or ''))}"
    return text or label(one.size or "") or EACH


def _total(counts: Iterable[Quantity]) -> int | None:
    """The sum of a counter over the options, None without any. It is for information only, so an unreadable one counts for nothing."""
    known = [count for value in counts if (count := _count(value)) is not None]
    return min(sum(known), MAX_TOTAL) if known else None


def _count(value: Quantity) -> int | None:
    with suppress(UnusableItem):
        return packages(value)
    return None


def _batch(rows: Iterable[PointOfSale | None]) -> Batch | None:
    """The batch that all options are of, None where they differ."""
    found = set()
    for row in rows:
        name = label(row.batchName or "") if row is not None else ""
        number = id_text(row.batchId) if row is not None else None
        if number == "0":
            number = None  # of goods that are not in batches
        tag = name if _TAG.fullmatch(name) else None
        found.add(Batch(batch_id=number if tag or not name else name, package_tag=tag))
    return found.pop() if len(found) == 1 else None


def _labs(item: Item, product_id: str, warnings: list[ProductWarning]) -> Labs:
    """`labs`; where it has no value, what the point of sale has sent: JSON in a text, with keys such as `labs.thc`."""
    labs = item.labs or {}
    if item.posLastSyncData and not any(_number(raw) for name, raw in labs.items() if not name.endswith(_UNIT)):
        try:
            sent = _labs_sent.decode(item.posLastSyncData)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            warnings.append(ProductWarning(product_id, "posLastSyncData", "is no JSON object; left out"))
        else:
            labs = labs | {name[5:]: raw for name, raw in sent.items() if name.startswith("labs.")}
    return labs


def _number(raw: msgspec.Raw | None) -> Decimal | None:
    """A number or its text; None without one, and for 0, which is what is not measured."""
    if raw is None or bytes(raw) in _NOTHING:
        return None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        if memoryview(raw).nbytes <= 64:
            return _decimal.decode(raw) or None
    return None


def _text(raw: msgspec.Raw | None) -> str:
    if raw is None or bytes(raw) in _NOTHING:
        return ""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return label(_string.decode(raw))
    return ""


def _texts(raw: msgspec.Raw | None) -> list[str]:
    if raw is None or bytes(raw) in _NOTHING:
        return []
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return [text for text in _strings.decode(raw) if text]
    return []


def _substances(
    item: Item, labs: Labs, product_id: str, warnings: list[ProductWarning]
) -> tuple[tuple[LabValue, ...], tuple[LabValue, ...]]:
    """(cannabinoids, terpenes) as measured; terpenes that are only named come last."""
    cannabinoids: list[LabValue] = []
    terpenes: list[LabValue] = []
    names: dict[str, str] = {}
    for key, raw in sorted(labs.items()):
        if key in _NO_SUBSTANCE or key.endswith(_UNIT):
            continue
        name = spelled(key)
        names[key.lower()] = name
        if bytes(raw) in _NOTHING:
            continue
        value = _number(raw)
        if value is None:
            if not _ZERO.fullmatch(bytes(raw)):
                warnings.append(
                    ProductWarning(product_id, f"labs.{key}"[:80], f"invalid content {_shown(raw)}; left out")
                )
            continue
        row = lab_value(name, value, _text(labs.get(key + _UNIT)), product_id, f"labs.{key}", warnings)
        if row is not None:
            (cannabinoids if name.upper().startswith(_CANNABINOID) else terpenes).append(row)
    measured = {row.name for row in terpenes}
    for word in (*_texts(labs.get("terpenes")), *(text for text in item.terpenes or () if text)):
        name = names.get(word.lower()) or spelled(word)
        if name and name not in measured:
            measured.add(name)
            terpenes.append(LabValue(name, None, ""))
    return tuple(cannabinoids), tuple(terpenes)


def _shown(raw: msgspec.Raw) -> str:
    return shorten(bytes(raw)[:80].decode("utf-8", "replace"))


def _potency(labs: Labs, name: str, product_id: str, warnings: list[ProductWarning]) -> Potency | None:
    value = _number(labs.get(f"{name}Max")) or _number(labs.get(name))
    unit = _text(labs.get(name + _UNIT)) or _text(labs.get(f"{name}A{_UNIT}"))
    if value is None or not unit:
        return None
    row = lab_value(name, value, unit, product_id, f"labs.{name}", warnings)
    return Potency(value, value, unit, unit) if row is not None else None


def _specials(item: Item) -> tuple[Special, ...]:
    rows = [row for row in item.discounts or () if row is not None and row.value]
    if not rows and item.discountValueFinal and item.discountTypeFinal:
        rows = [Discount(value=item.discountValueFinal, type=item.discountTypeFinal)]
    return tuple(_special(row, bounded(row.value)) for row in rows if row.value is not None)


def _special(row: Discount, value: Decimal) -> Special:
    word = label(row.productOfferType or "")
    kind = _KINDS.get(label(row.type or ""), "other") if word in ("", "SALE") else "other"
    if kind == "percent" and 0 < value <= 1:
        value = shortest(value * _HUNDRED)
        name = f"{value:f}% off"
    elif kind == "amount" and value > 0:
        name = f"${shortest(value):f} off"
    else:
        kind, name = "other", word or label(row.type or "")
    return Special(name=name, kind=kind, value=value, special_id=id_text(row.productOffer))


def _images(item: Item) -> tuple[str, ...]:
    rows = sorted((row for row in item.images or () if row is not None), key=lambda row: row.order or 0)
    urls = [url.strip() for url in (item.image, *(row.fileUrl for row in rows)) if url]
    return tuple(dict.fromkeys(url for url in urls if url))


def _extra(item: Item, sold: Sequence[tuple[str, Sellable]], labs: Labs) -> dict[str, Any]:
    """Values without a column, only those present; flags only if true."""
    brand = item.brand if isinstance(item.brand, Brand) else Brand()
    pos = item.leaflogix or PointOfSale()
    reviews = item.reviewStats
    extra: dict[str, Any] = {
        "dispensary_id": id_text(item.venue),
        "organization_id": id_text(item.organization),
        "slug": item.slug,
        "menu_url": item.productUrl,
        "sku": id_text(item.sku),
        "pos_id": id_text(item.posProductId),
        "pos_category": pos.category,
        "pos_subcategory": pos.subCategory,
        "pos_quantity": _total(one.leaflogix.quantity for _, one in sold if one.leaflogix is not None),
        "group_id": id_text(item.groupId),
        "variant_ids": [found for _, one in sold if (found := one.product_id())] if len(sold) > 1 else None,
        "vendor": item.vendor,
        "brand_id": id_text(brand.id),
        "brand_description": brand.description,
        "brand_website": brand.website,
        "category_id": id_text(item.productCategory),
        "compliance_type": item.cannabisComplianceType,
        "strain": item.cannabisStrain,
        "flower_equivalent_g": _kept(item.flowerEquivalentInGrams),
        "effects": [text for text in item.effects or () if text],
        "effect_onset": item.effectOnset,
        "effect_duration": item.effectDuration,
        "tags": [text for text in item.tags or () if text],
        "potency": _text(labs.get("potency")),
        "price_type": item.priceType,
        "price_gross": _kept(item.priceGross),
        "price_net": _kept(item.priceNet),
        "order_type": item.productOrderType,
        "total_sold": _total(one.totalSold for _, one in sold),
        "total_quantity_sold": _total(one.totalQuantitySold for _, one in sold),
        "featured": item.featured or None,
        "is_new": item.new or None,
        "reviews": _count(reviews.total) or None if reviews is not None else None,
        "rating": _kept(reviews.averageRating) if reviews is not None else None,
        "weedmaps_id": id_text(item.weedmaps.productId) if item.weedmaps is not None else None,
    }
    return {name: value for name, value in extra.items() if value is not None and value != "" and value != []}


def _kept(value: Decimal | None) -> Decimal | None:
    """A number as it is stored, None for 0. Raises ArithmeticError for one out of bounds."""
    return bounded(value) or None if value is not None else None


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    essential=("name", "price", "priceWithDiscounts", "quantity", "enable", "deleted", "variants"),
    judged=("price", "priceWithDiscounts", "variants"),
    store_id=lambda item: id_text(item.venue),
    owner=Owner,
)
