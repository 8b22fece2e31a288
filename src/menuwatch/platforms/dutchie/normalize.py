"""A Dutchie item as a canonical product. Pure: bytes in, values out.

What it decides, where the payload leaves a choice (the reasons are in the modules named):

| matter     | rule |
|------------|------|
| identity   | `id`, else `_id` (`identity`); a warning where they differ. Names repeat and slugs change: neither is a key |
| options    | the variants, in order; prices by place, stock by text (`stock`), weights (`options`) |
| prices     | `recPrices` and `medicalPrices`; `Prices` only for a list of these that is absent or empty |
| alignment  | a price list that is not as long as `Options` says nothing of any of them: ignored with a warning |
| specials   | the special price lists as they are, never computed; `specialData` only for showing (`specials`) |
| headline   | the lowest of the variants' prices; of the special prices the lowest there is |
| out of stock | option named in `optionsBelowThreshold`, product `isBelowThreshold`, `Status` not Active, or none available |
| `weight`   | is a rank in the menu's order, not grams: kept as `extra.weight_rank` |
| strain and other enums | as they come; unknown words pass through |

An item that cannot be a product (no object, no id, or a name, price or stock that cannot be read) is a fatal warning and stops
nothing else; any other bad value is left out of its product with a warning that names the field (`repair`). Bad is as well
what no database takes: numbers and ids out of bounds (`bounds`), and NUL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from menuwatch.catalog.canon.bounds import MAX_ID_LENGTH, bounded, shown
from menuwatch.catalog.canon.kinds import DOSED, kind
from menuwatch.catalog.canon.strains import strain
from menuwatch.catalog.canon.unit_price import effective, unit_prices
from menuwatch.catalog.model import Potency, Product, ProductWarning, Variant
from menuwatch.platforms.base import Normalized
from menuwatch.platforms.dutchie.identity import chosen, identity
from menuwatch.platforms.dutchie.options import weights
from menuwatch.platforms.dutchie.payload import Content, Item
from menuwatch.platforms.dutchie.potency import cannabinoids, potency, terpenes
from menuwatch.platforms.dutchie.repair import repair
from menuwatch.platforms.dutchie.specials import specials
from menuwatch.platforms.dutchie.stock import is_active, levels, option_status, total
from menuwatch.platforms.dutchie.text import clean, describes, effect_name, enum, label
from menuwatch.platforms.items import Unusable, each, instant_of, reader, usable_id
from menuwatch.platforms.prices import check, lowest
from menuwatch.platforms.stock import is_in_stock, product_status

VERSION = 3
"""Raised whenever another product would be made of the same item."""

_Value = TypeVar("_Value")

_decoder = msgspec.json.Decoder(Item)


def normalize(items: Iterable[msgspec.Raw]) -> Normalized:
    """Products in the order of their items; of several items with one id the last wins and stands where the first did."""
    return each(items, _READ, identity)


def store_of(items: Iterable[msgspec.Raw]) -> str | None:
    """The `DispensaryID` of the first item that names one."""
    for raw in items:
        try:
            item = _decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if item.DispensaryID:
            return item.DispensaryID
    return None


def _has_nul(_: msgspec.Raw, item: Item) -> bool:
    """Whether a text that goes through no cache holds NUL. (Where nobody reads it, it may stand.)"""
    text = (
        f"{item.Name}{item.id}{item._id}{item.description}{item.Image}{item.cName}{item.brandId}{item.DispensaryID}"
        f"{item.enterpriseProductId}{item.libraryProductId}{item.duplicatedProductId}"
    )
    if item.images:
        text += "".join([ref.url for ref in item.images if ref is not None and ref.url])
    if item.pastCNames:
        text += "".join([past for past in item.pastCNames if past])
    if item.rawOptions:
        text += "".join([option for option in item.rawOptions if option])
    return "\0" in text


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id = usable_id(chosen(item.id, item._id))
    if not item.Name or item.Name.isspace():
        raise Unusable("Name", "is missing")
    if item._id and item.id and item._id != item.id:
        said = f"is {shown(item._id, MAX_ID_LENGTH)!r}, while id is {item.id!r}; id is used"
        warnings.append(ProductWarning(product_id, "_id", said))

    category = enum(item.type) if item.type else None
    meant = kind(category, item.subcategory)
    active = is_active(item.Status)
    dosed = meant.category in DOSED
    variants, quantity, capped = _variants(item, product_id, category, active, warnings, dosed=dosed)
    status = product_status([variant.stock_status for variant in variants], active=active)
    price, price_special, med, med_special = _headline(variants)
    brand_raw = item.brandName or (item.brand.name if item.brand is not None else None)
    images = _images(item)
    description = item.description
    return Product(
        provider_product_id=product_id,
        name_raw=item.Name,
        name=clean(item.Name),
        brand_name_raw=brand_raw.replace("\0", "") if brand_raw else None,
        brand_name=(label(brand_raw) or None) if brand_raw else None,
        category=category,
        subcategory=enum(item.subcategory) if item.subcategory else None,
        strain_type=enum(item.strainType) if item.strainType else None,
        status_raw=enum(item.Status) if item.Status else None,
        variants=variants,
        price_rec=price,
        price_rec_special=price_special,
        price_med=med,
        price_med_special=med_special,
        stock_status=status,
        is_in_stock=is_in_stock(status),
        quantity=quantity,
        quantity_capped=capped,
        thc=_potency(item.THCContent, product_id, "THCContent", warnings),
        cbd=_potency(item.CBDContent, product_id, "CBDContent", warnings),
        cannabinoids=cannabinoids(item.cannabinoidsV2),
        specials=specials(item.specialData),
        image_url=(item.Image or "").strip() or (images[0] if images else None),
        images=images,
        description=clean(description) if description and describes(description) else None,
        platform_created_at=instant_of(item.createdAt, product_id, "createdAt", warnings),
        platform_updated_at=instant_of(item.updatedAt, product_id, "updatedAt", warnings),
        extra=_extra(item, brand_raw),
        category_canon=meant.category,
        subcategory_canon=meant.subcategory,
        strain_canon=strain(item.strainType),
    )


def _variants(
    item: Item, product_id: str, category: str | None, active: bool, warnings: list[ProductWarning], *, dosed: bool
) -> tuple[tuple[Variant, ...], int | None, bool]:
    """(variants, packages of all of them, whether any count is capped)."""
    named = item.Options or []
    count = len(named)
    rec = _prices(item.recPrices, "recPrices", count, product_id, warnings)
    med = _prices(item.medicalPrices, "medicalPrices", count, product_id, warnings)
    if rec is None or med is None:
        either = _prices(item.Prices, "Prices", count, product_id, warnings)
        rec = rec if rec is not None else either
        med = med if med is not None else either
    if not count:
        return (), None, False
    special_rec = _prices(item.recSpecialPrices, "recSpecialPrices", count, product_id, warnings)
    special_med = _prices(item.medicalSpecialPrices, "medicalSpecialPrices", count, product_id, warnings)

    options = [option or "" for option in named]
    measure = item.measurements.netWeight if item.measurements is not None else None
    grams = weights(
        category,
        options,
        item.rawOptions,
        measure.unit if measure is not None else None,
        measure.values if measure is not None else None,
    )
    pos = item.POSMetaData
    found = levels(options, pos.children if pos is not None else None, item.manualInventory)
    down = not active or item.isBelowThreshold is True
    below = item.optionsBelowThreshold or ()
    variants = []
    kept = []
    capped = False
    for i, option in enumerate(options):
        if not option:
            warnings.append(ProductWarning(product_id, f"Options[{i}]", "is empty; the option is left out"))
            continue
        level = found[i]
        special = special_rec[i] if special_rec is not None else None
        price = rec[i] if rec is not None else None
        medical = med[i] if med is not None else None
        medical_special = special_med[i] if special_med is not None else None
        paid = effective(price, special, medical, medical_special)
        kept.append(level)
        if level is not None and level.capped:
            capped = True
        variants.append(
            Variant(
                label(option),
                price,
                medical,
                special,
                medical_special,
                level.available if level is not None else None,
                level is not None and level.capped,
                option_status(level, below_threshold=down or option in below),
                grams[i],
                *unit_prices(paid, grams[i], option, dosed=dosed),
            )
        )
    return tuple(variants), total(kept), capped


def _prices(
    values: list[Decimal | None] | None, field: str, count: int, product_id: str, warnings: list[ProductWarning]
) -> list[Decimal | None] | None:
    """The list if it is aligned to the options, None where it is absent, empty or not aligned."""
    if not values:
        return None
    if len(values) != count:
        said = f"has {len(values)} values for {count} options; ignored"
        warnings.append(ProductWarning(product_id, field, said))
        return None
    for i, value in enumerate(values):
        check(value, f"{field}[{i}]")
    return values


def _headline(variants: Sequence[Variant]) -> tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None]:
    """The lowest recreational price and special price, and medical price and special price."""
    if len(variants) == 1:
        only = variants[0]
        return only.price_rec, only.special_rec, only.price_med, only.special_med
    return (
        lowest([variant.price_rec for variant in variants]),
        lowest([variant.special_rec for variant in variants]),
        lowest([variant.price_med for variant in variants]),
        lowest([variant.special_med for variant in variants]),
    )


def _potency(content: Content | None, product_id: str, field: str, warnings: list[ProductWarning]) -> Potency | None:
    if content is None or not content.range:
        return None
    try:
        return potency(content)
    except ValueError as error:
        warnings.append(ProductWarning(product_id, field, f"{error}; left out"))
        return None


def _images(item: Item) -> tuple[str, ...]:
    """Addresses of the images that are shown, in order, each once."""
    if not item.images:
        return ()
    urls = [ref.url.strip() for ref in item.images if ref is not None and ref.url and ref.active is not False]
    return tuple(urls) if len(urls) < 2 else tuple(dict.fromkeys(urls))


def _by_option(values: list[_Value], options: list[str | None] | None) -> list[_Value]:
    """A list that stands beside the options in the order of their texts, because menus list options in no fixed one."""
    if options is None or len(values) < 2 or len(values) != len(options):
        return values
    texts = [label(option or "") for option in options]
    return [values[i] for i in sorted(range(len(values)), key=texts.__getitem__)]


def _extra(item: Item, brand_raw: str | None) -> dict[str, Any]:
    """What has no column, only where there is something; flags only where they are true."""
    extra: dict[str, Any] = {}
    if item.DispensaryID:
        extra["dispensary_id"] = item.DispensaryID
    if item.libraryProductId:
        extra["library_product_id"] = item.libraryProductId
    if item.enterpriseProductId:
        extra["enterprise_product_id"] = item.enterpriseProductId
    if item.duplicatedProductId:
        extra["duplicated_product_id"] = item.duplicatedProductId
    brand = item.brand
    brand_id = item.brandId or (brand.id if brand is not None else None)
    if brand_id:
        extra["brand_id"] = label(brand_id)
    if brand is not None and brand.name and brand.name != brand_raw:
        extra["brand_record_name"] = label(brand.name)
    if item.cName:
        extra["slug"] = item.cName
    if item.pastCNames:
        aliases = [past for past in item.pastCNames if past and past != item.cName]
        if aliases:
            extra["aliases"] = aliases
    if item.rawOptions:
        extra["raw_options"] = _by_option(item.rawOptions, item.Options)
    if item.effects:
        extra["effects"] = {effect_name(name): level for name, level in item.effects.items() if level is not None}
    if item.terpenes:
        extra["terpenes"] = terpenes(item.terpenes)
    if item.weight is not None:
        extra["weight_rank"] = item.weight
    measure = item.measurements.netWeight if item.measurements is not None else None
    if measure is not None and measure.values:
        values = [bounded(value) if value is not None else None for value in measure.values]
        extra["net_weight"] = {"unit": label(measure.unit or ""), "values": _by_option(values, item.Options)}
    if item.special:
        extra["special"] = True
    if item.medicalOnly:
        extra["medical_only"] = True
    if item.recOnly:
        extra["rec_only"] = True
    return extra


_READ = reader(_decoder, _product, repair, has_nul=_has_nul)
