"""Normalizes a Dutchie item to a canonical product. Pure: bytes in, values out.

Rules for ambiguous payloads (the modules named give the reasons):

| matter     | rule |
|------------|------|
| identity   | `id`, else `_id` (`Ids`); a warning where they differ. Names repeat and slugs change: neither is a key |
| options    | the variants, in order; prices by position, stock by text, weights by `weights` (`options`) |
| prices     | `recPrices` and `medicalPrices`; `Prices` only for a list of these that is absent or empty |
| alignment  | a price list that is not as long as `Options` is ignored with a warning |
| specials   | the special price lists unchanged, never computed; `specialData` only for display (`specials`) |
| headline   | the lowest of the variants' prices; of the special prices the lowest there is |
| out of stock | option named in `optionsBelowThreshold`, product `isBelowThreshold`, `Status` not Active, or none available |
| `weight`   | is a rank in the menu's order, not grams: kept as `extra.weight_rank` |
| strain and other enums | unchanged; unknown words pass through |

An item that cannot be a product (no object, no id, or an unreadable name, price or stock) gives a fatal warning and does not
affect others; any other bad value is left out of its product with a warning that names the field (`json_repair`). Values that the
database refuses are bad too: numbers and ids out of bounds (`taxonomy.limits`), and NUL.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeVar

from menuwatch.catalog.model import Batch, Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, kind
from menuwatch.catalog.taxonomy.limits import MAX_ID_LENGTH, bounded, shorten
from menuwatch.catalog.taxonomy.text import enum, label
from menuwatch.platforms.dutchie.extra import add_pos_extra, add_special_extra, small_value
from menuwatch.platforms.dutchie.lab_results import cannabinoids, effect_name, terpenes
from menuwatch.platforms.dutchie.options import Packages, is_active, packages_on_sale, stock_levels, total, weights
from menuwatch.platforms.dutchie.payload import (
    BogoCondition,
    BogoReward,
    BogoSpecial,
    Content,
    Ids,
    Item,
    SaleSpecial,
    SpecialData,
    StoreId,
    TotalQuantity,
)
from menuwatch.platforms.items import ItemReader, UnusableItem
from menuwatch.platforms.numbers import id_text, packages
from menuwatch.platforms.products import (
    check_price,
    instant_field,
    make_product,
    make_variant,
    option_status,
    parse_instant,
    potency,
    required,
)

VERSION = 5
"""Raise it when the same item would give a different product."""

_Value = TypeVar("_Value")


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.Name, "Name")
    other = id_text(item._id)
    if other and id_text(item.id) and other != product_id:
        message = f"is {shorten(other, MAX_ID_LENGTH)!r}, while id is {product_id!r}; id is used"
        warnings.append(ProductWarning(product_id, "_id", message))

    category = enum(item.type) if item.type else None
    canonical = kind(category, item.subcategory)
    active = is_active(item.Status)
    variants, quantity = _variants(item, product_id, category, active, warnings, dosed=canonical.category in DOSED)
    brand = item.brandName or (item.brand.name if item.brand is not None else None)
    on_sale = packages_on_sale(item.Options, item.POSMetaData)
    return make_product(
        product_id,
        name,
        brand=brand,
        category=category,
        subcategory=item.subcategory,
        kind=canonical,
        strain_type=item.strainType,
        status_raw=enum(item.Status) if item.Status else None,
        variants=variants,
        active=active,
        quantity=quantity,
        thc=_potency(item.THCContent, product_id, "THCContent", warnings),
        cbd=_potency(item.CBDContent, product_id, "CBDContent", warnings),
        cannabinoids=cannabinoids(item.cannabinoidsV2),
        specials=specials(item.specialData),
        image=item.Image,
        images=_images(item),
        description=item.description,
        created_at=instant_field(item.createdAt, product_id, "createdAt", warnings),
        updated_at=instant_field(item.updatedAt, product_id, "updatedAt", warnings),
        extra=_extra(item, brand, on_sale),
        terpenes=terpenes(item.terpenes),
        batch=Batch(package_tag=on_sale.tag, certificate_url=on_sale.certificate),
    )


def _variants(
    item: Item, product_id: str, category: str | None, active: bool, warnings: list[ProductWarning], *, dosed: bool
) -> tuple[tuple[Variant, ...], int | None]:
    """(variants, packages of all of them)."""
    options = [option or "" for option in item.Options or ()]
    count = len(options)
    rec = _prices(item.recPrices, "recPrices", count, product_id, warnings)
    med = _prices(item.medicalPrices, "medicalPrices", count, product_id, warnings)
    if rec is None or med is None:
        either = _prices(item.Prices, "Prices", count, product_id, warnings)
        rec = rec if rec is not None else either
        med = med if med is not None else either
    if not count:
        return (), None
    special_rec = _prices(item.recSpecialPrices, "recSpecialPrices", count, product_id, warnings)
    special_med = _prices(item.medicalSpecialPrices, "medicalSpecialPrices", count, product_id, warnings)
    measure = item.measurements.netWeight if item.measurements is not None else None
    masses = weights(
        category,
        options,
        item.rawOptions,
        measure.unit if measure is not None else None,
        measure.values if measure is not None else None,
    )
    pos = item.POSMetaData
    levels = stock_levels(options, pos.children if pos is not None else None, item.manualInventory)
    withdrawn = not active or item.isBelowThreshold is True
    below = item.optionsBelowThreshold or ()
    variants = []
    kept = []
    for i, option in enumerate(options):
        if not option:
            warnings.append(ProductWarning(product_id, f"Options[{i}]", "is empty; the option is left out"))
            continue
        level = levels[i]
        kept.append(level)
        quantity = level.available if level is not None else None
        variants.append(
            make_variant(
                option,
                rec[i] if rec is not None else None,
                med[i] if med is not None else None,
                special_rec[i] if special_rec is not None else None,
                special_med[i] if special_med is not None else None,
                quantity=quantity,
                capped=level is not None and level.capped,
                status=option_status(quantity, withdrawn=withdrawn or option in below),
                weight=masses[i],
                dosed=dosed,
            )
        )
    return tuple(variants), total(kept)


def _prices(
    values: list[Decimal | None] | None, field: str, count: int, product_id: str, warnings: list[ProductWarning]
) -> list[Decimal | None] | None:
    """The list if it is aligned to the options, None if it is absent, empty or not aligned."""
    if not values:
        return None
    if len(values) != count:
        warnings.append(ProductWarning(product_id, field, f"has {len(values)} values for {count} options; ignored"))
        return None
    for i, value in enumerate(values):
        check_price(value, f"{field}[{i}]")
    return values


def _potency(content: Content | None, product_id: str, field: str, warnings: list[ProductWarning]) -> Potency | None:
    if content is None or not content.range:
        return None
    try:
        return potency(content.range, content.unit)
    except ValueError as error:
        warnings.append(ProductWarning(product_id, field, f"{error}; left out"))
        return None


def _images(item: Item) -> tuple[str, ...]:
    """Distinct URLs of the displayed images, in order."""
    if not item.images:
        return ()
    urls = [ref.url.strip() for ref in item.images if ref is not None and ref.url and ref.active is not False]
    return tuple(urls) if len(urls) < 2 else tuple(dict.fromkeys(urls))


def _by_option(values: list[_Value], options: list[str | None] | None) -> list[_Value]:
    """A list parallel to the options, sorted by option text, because menus list options in no fixed order."""
    if options is None or len(values) < 2 or len(values) != len(options):
        return values
    texts = [label(option or "") for option in options]
    return [values[i] for i in sorted(range(len(values)), key=texts.__getitem__)]


def _extra(item: Item, brand_raw: str | None, on_sale: Packages) -> dict[str, Any]:
    """Values without a column, only those present; flags only if true."""
    extra: dict[str, Any] = {}
    for name, identifier in (
        ("dispensary_id", item.DispensaryID),
        ("library_product_id", item.libraryProductId),
        ("enterprise_product_id", item.enterpriseProductId),
        ("duplicated_product_id", item.duplicatedProductId),
    ):
        if text := id_text(identifier):
            extra[name] = text
    brand = item.brand
    brand_id = id_text(item.brandId) or (id_text(brand.id) if brand is not None else None)
    if brand_id:
        extra["brand_id"] = label(brand_id)
    if brand is not None and brand.name and brand.name != brand_raw:
        extra["brand_record_name"] = label(brand.name)
    if brand is not None and brand.description and (about := brand.description.strip()):
        extra["brand_description"] = about
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
    if item.provider:
        extra["provider"] = label(item.provider)
    for name, value in (("subcategories", item.subcategories), ("total_terpenes", item.totalTerpenes)):
        if (small := small_value(value)) is not None:
            extra[name] = small
    add_pos_extra(extra, item, on_sale)
    add_special_extra(extra, item)
    return extra


_KIND_OF_TYPE = {"percentDiscount": "percent", "dollarDiscount": "amount", "targetPrice": "target_price"}


def specials(data: SpecialData | None) -> tuple[Special, ...]:
    """All promotions that name the product, sales first, in the order of the payload. Raises ArithmeticError for a value out
    of bounds."""
    if data is None:
        return ()
    sales = [_sale(special) for special in data.saleSpecials or () if special is not None]
    return (*sales, *(_bogo(special) for special in data.bogoSpecials or () if special is not None))


def _special(
    special: SaleSpecial | BogoSpecial,
    kind: str,
    value: Decimal | None,
    *,
    needed: int | None = None,
    reward: int | None = None,
) -> Special:
    try:
        ends_at = parse_instant(special.endStamp)
    except ValueError:
        ends_at = None  # harmless: the special price ends with the special
    return Special(
        name=label(special.specialName or ""),
        kind=kind,
        value=bounded(value) if value is not None else None,
        required_quantity=needed,
        reward_quantity=reward,
        special_id=label(id_text(special.specialId) or "") or None,
        menu_type=enum(special.menuType or ""),
        ends_at=ends_at,
    )


def _sale(special: SaleSpecial) -> Special:
    """`discount` is percent, money off or the price reached; three booleans say which, `saleDiscounts` repeats it as a word."""
    first = next((d for d in special.saleDiscounts or () if d is not None), None)
    value = special.discount
    if special.percentDiscount:
        kind = "percent"
    elif special.dollarDiscount:
        kind = "amount"
    elif special.targetPrice:
        kind = "target_price"
    else:
        kind = _KIND_OF_TYPE.get(first.discountType or "", "other") if first is not None else "other"
    if value is None and first is not None:
        value = first.discountAmount
    return _special(special, kind, value)


def _bogo(special: BogoSpecial) -> Special:
    """Buy some, get some. "5 for $75" is a bundle: its price is `discountBundle.value` and its number stands in the conditions.
    "$40 for two" is one as well: its price is `itemsForAPrice.value`, and its number that of the rewards, which are all that is
    bought. Else the value is the percentage off what is rewarded; a reward in money has none here, because nothing would tell it
    from a percentage.
    """
    needed = _quantity(special.bogoConditions)
    bundle, items = special.discountBundle, special.itemsForAPrice
    kind = "bogo"
    value: Decimal | None = None
    if bundle is not None and bundle.value is not None:
        kind, value = "bundle", bundle.value
    elif items is not None and items.enabled is not False and items.value is not None:
        needed = _count(items.quantity) or _quantity(special.bogoRewards) or needed
        return _special(special, "bundle", items.value, needed=needed)
    else:
        value = next((v for v in map(_percent_off, special.bogoRewards or ()) if v is not None), None)
    return _special(special, kind, value, needed=needed, reward=_quantity(special.bogoRewards))


def _percent_off(reward: BogoReward | None) -> Decimal | None:
    if reward is None:
        return None
    if isinstance(reward.percentDiscount, Decimal):
        return reward.percentDiscount
    return reward.discountAmount if reward.discountType == "percentDiscount" or reward.percentDiscount else None


def _count(value: float | str | None) -> int | None:
    try:
        return packages(value) or None
    except UnusableItem:
        return None  # it is for display only


def _quantity(parts: Sequence[BogoCondition | None] | Sequence[BogoReward | None] | None) -> int | None:
    """The first number of items that a condition or reward names."""
    for part in parts or ():
        if part is None:
            continue
        whole: TotalQuantity | None = part.totalQuantity
        count = _count(whole.quantity if whole is not None else None) or _count(part.quantity)
        if count is not None:
            return count
    return None


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    # Of its two ids, one will do; `Prices` only stands in for others.
    essential=("Name", "Options", "recPrices", "medicalPrices", "recSpecialPrices", "medicalSpecialPrices", "POSMetaData",
               "manualInventory", "isBelowThreshold", "optionsBelowThreshold", "Status"),
    # A list that is not aligned is ignored, whatever it contains.
    judged=("Prices", "recPrices", "medicalPrices", "recSpecialPrices", "medicalSpecialPrices"),
    store_id=lambda item: id_text(item.DispensaryID),
    owner=StoreId,
)  # fmt: skip
