"""Normalizes a Sweed row to a canonical product. Pure: bytes in, values out.

Rules for ambiguous payloads:

| matter     | rule |
|------------|------|
| identity   | `id`. A product with several options is in several rows; `rows.merge` puts them together |
| options    | `variants[]` by their names ("3.5g", "Black Cherry 10mg", "Each") |
| licence    | a variant's `saleType` Medical: its price is the medical one; else the recreational one, which was asked for |
| prices     | 0 means no price |
| specials   | `promoPrice` is the price after the running promotion, as it stands; one above `price` is left out with a warning |
| promotions | `promos[]` of a variant name them; terms that are missing there stand in `promos` of the answer (`answers`) |
| stock      | `availableQty` is exact and not capped; null is unknown; what is sold by weight is rounded up |
| weights    | `unitSize` times `unitsInPackage` in grams; of what is sold by content none |
| content    | of what is sold by content: `unitSize` in milligrams times `unitsInPackage`. "10mg" of ten pieces is one of them |
| conflict   | a name that says neither the package nor a piece of it ("180mg", size 45 mg) counts before the size |
| potency    | of the package; over all options where they differ. 0 is a result; negative numbers and more than 100 % are left out |
| terpenes   | those of `strain` are usual of the strain, not measured: `extra.strain_terpenes` |
| category   | `productType` says more than `subcategory` ("Live Badder" of "Dabs"), where it is a known word |

An item that cannot be a product (no object, no id, or an unreadable name, price or stock) gives a fatal warning and does not affect
others; any other bad value is left out of its product with a warning that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple, TypeVar

import msgspec

from menuwatch.catalog.model import Potency, Product, ProductWarning, Special, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, Kind, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL, bounded, is_in_range, shorten
from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, package, shortest
from menuwatch.catalog.taxonomy.text import label, plain
from menuwatch.catalog.taxonomy.unit_price import effective, per
from menuwatch.platforms.items import ItemReader, UnusableItem
from menuwatch.platforms.products import (
    check_price,
    grams,
    instant_field,
    make_product,
    make_variant,
    option_status,
    potency,
    required,
)
from menuwatch.platforms.sweed.payload import (
    MAX_QUANTITY,
    Content,
    Ids,
    Item,
    LabTests,
    MenuVariant,
    Named,
    Promo,
    UnitSize,
    id_text,
)

VERSION = 1
"""Raise it when the same item would give a different product."""

_IN_GRAMS = {"G": Decimal(1), "GR": Decimal(1), "KG": Decimal(1000), "MG": Decimal("0.001"), "OZ": GRAMS_PER_OUNCE}
_IN_MILLIGRAMS = {"MG": Decimal(1)}
_UNITS = {"MG": "MILLIGRAMS", "MG/G": "MILLIGRAMS_PER_GRAM", "%": "%"}
_lab = msgspec.json.Decoder(LabTests)
_content = msgspec.json.Decoder(Content)
_size = msgspec.json.Decoder(UnitSize)
_promo = msgspec.json.Decoder(Promo)
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_texts = msgspec.json.Decoder(list[str | None])
_decimal = msgspec.json.Decoder(Decimal)
T = TypeVar("T")

_MOST_PIECES = 10_000
_HUNDRED = Decimal(100)

_PERCENT = re.compile(r"(?<![\d.])(\d{1,2}(?:\.\d{1,2})?|100)\s*% *off", re.IGNORECASE)
_AMOUNT = re.compile(r"\$\s*(\d{1,5}(?:\.\d{1,2})?) *off", re.IGNORECASE)
_BUNDLE = re.compile(r"(?<!\d)(\d{1,2}) *(?:for|/) *\$\s*(\d{1,5}(?:\.\d{1,2})?)", re.IGNORECASE)


class _Package(NamedTuple):
    """A variant with those of its fields that are read one by one."""

    field: str
    variant: MenuVariant
    option: str
    images: list[str | None]
    size: UnitSize
    units: int | None
    contents: dict[str, Content]
    promos: list[Promo]
    step: Decimal | None


def _product(item: Item, warnings: list[ProductWarning]) -> Product:
    product_id, name = required(item.product_id(), item.name, "name")
    category, subcategory = _name(item.category), _name(item.subcategory)
    canonical = _kind(category, subcategory, _name(item.productType))
    packages = [
        _package(variant, f"variants[{i}]", product_id, warnings)
        for i, variant in enumerate(item.variants or ())
        if variant is not None
    ]
    variants = tuple(_variant(package, canonical, product_id, warnings) for package in packages if package.option)
    quantities = [variant.quantity for variant in variants if variant.quantity is not None]
    images = [*(item.images or ()), *(url for package in packages for url in package.images)]
    promos = _promos(packages, item.pagePromos or ())
    return make_product(
        product_id,
        name,
        brand=_name(item.brand),
        category=category,
        subcategory=subcategory,
        kind=canonical,
        strain_type=_name(item.strain.prevalence) if item.strain is not None else None,
        status_raw=None,
        variants=variants,
        quantity=min(sum(quantities), MAX_TOTAL) if quantities else None,
        thc=_potency(packages, "thc", product_id, warnings),
        cbd=_potency(packages, "cbd", product_id, warnings),
        cannabinoids=(),
        specials=tuple(_special(promo, product_id, warnings) for promo in promos),
        images=tuple(dict.fromkeys(url.strip() for url in images if url and url.strip())),
        description=plain(item.description) if item.description else None,
        extra=_extra(item, packages, promos),
    )


def _package(variant: MenuVariant, field: str, product_id: str, warnings: list[ProductWarning]) -> _Package:
    """Reads the fields that a product can do without; a bad one is left out with a warning."""

    def read(name: str, raw: msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
        text = bytes(raw)
        if not text or text == b"null":
            return None
        try:
            return decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message = str(error).partition(" - at")[0].replace("`", "")
            warnings.append(
                ProductWarning(product_id, f"{field}.{name}", f"{message[:1].lower()}{message[1:]}; left out")
            )
            return None

    option = label(variant.name or "")
    if not option:
        warnings.append(ProductWarning(product_id, f"{field}.name", "is empty; the option is left out"))
    lab = read("labTests", variant.labTests, _lab) or LabTests()
    contents = {name: read(f"labTests.{name}", getattr(lab, name), _content) for name in ("thc", "cbd")}
    named = read("promos", variant.promos, _raws) or []
    promos = [promo for i, raw in enumerate(named) if (promo := read(f"promos[{i}]", raw, _promo)) is not None]
    step = read("qtyStepSize", variant.qtyStepSize, _decimal)
    return _Package(
        field,
        variant,
        option,
        read("images", variant.images, _texts) or [],
        read("unitSize", variant.unitSize, _size) or UnitSize(),
        _pieces(read("unitsInPackage", variant.unitsInPackage, _decimal)),
        {name: content for name, content in contents.items() if content is not None},
        promos,
        step if step is not None and is_in_range(step) else None,
    )


def _name(named: Named | None) -> str | None:
    return named.name if named is not None else None


def _kind(category: str | None, subcategory: str | None, product_type: str | None) -> Kind:
    """By the product type where it is a known word, else by the subcategory."""
    broad = kind(category)
    if product_type:
        found = kind(category, product_type)
        if found.subcategory is not None and found != broad:
            return found
    found = kind(category, subcategory)
    # A category may be a narrow word itself: "Infused Flower", "All In One Cartridges".
    return kind(None, category) if found.category is None and category else found


def _variant(offer: _Package, canonical: Kind, product_id: str, warnings: list[ProductWarning]) -> Variant:
    variant, field = offer.variant, offer.field
    check_price(variant.price, f"{field}.price")
    check_price(variant.promoPrice, f"{field}.promoPrice")
    price, special = variant.price or None, variant.promoPrice or None
    if price is not None and special is not None and special > price:
        message = f"{shorten(special)} is above the price, {shorten(price)}; left out"
        warnings.append(ProductWarning(product_id, f"{field}.promoPrice", message))
    if price is None or special is None or special >= price:
        special = None
    medical = isinstance(variant.saleType, str) and variant.saleType.strip().lower() == "medical"
    quantity = _quantity(variant.availableQty, f"{field}.availableQty")
    dosed = canonical.category in DOSED
    named = package(offer.option)
    made = make_variant(
        offer.option,
        *((None, price, None, special) if medical else (price, None, special, None)),
        quantity=quantity,
        capped=False,
        status=option_status(quantity, withdrawn=False),
        weight=None if dosed else _amount(offer, named.grams, _IN_GRAMS),
        dosed=dosed,
    )
    pieces = offer.units if offer.units is not None and offer.units > 1 else made.pieces
    content = _amount(offer, named.milligrams, _IN_MILLIGRAMS) if dosed else None
    paid = effective(made.price_rec, made.special_rec, made.price_med, made.special_med)
    return msgspec.structs.replace(
        made, pieces=pieces, content_mg=content, price_per_piece=per(paid, pieces), price_per_mg=per(paid, content)
    )


def _quantity(amount: Decimal | None, field: str) -> int | None:
    """Packages in stock, at least 0; a remainder counts as one. Raises UnusableItem for what is no stock level."""
    if amount is None:
        return None
    if not is_in_range(amount) or abs(amount) > MAX_QUANTITY:
        raise UnusableItem(field, f"invalid quantity {shorten(amount)}")
    return max(0, ceil(amount))


def _pieces(units: Decimal | None) -> int | None:
    """Units in the package; None if that is no count."""
    if units is None or not is_in_range(units) or units != units.to_integral_value() or not 0 < units <= _MOST_PIECES:
        return None
    return int(units)


def _amount(offer: _Package, named: Decimal | None, units: dict[str, Decimal]) -> Decimal | None:
    """The amount in the whole package, None if its size is in none of `units`. `named` is the amount in its name, which is that of the
    package or of one piece; where it is neither, the name counts, which is what a shopper reads."""
    value, unit = offer.size.value, (offer.size.unitAbbr or "").strip().upper()
    one = grams(value, unit, units) if value is None or is_in_range(value) else None
    whole = None if one is None else shortest(one * (offer.units or 1))
    return whole if named is None or (whole is not None and named in (one, whole)) else named


def _potency(
    packages: Sequence[_Package], name: str, product_id: str, warnings: list[ProductWarning]
) -> Potency | None:
    """The content over all options in the unit of the first that has one."""
    found: list[Potency] = []
    for offer in packages:
        content = offer.contents.get(name)
        if content is None or content.value is None:
            continue
        field = f"{offer.field}.labTests.{name}"
        values = content.value if isinstance(content.value, list) else [content.value]
        unit = label(content.unitAbbr or "")
        try:
            measured = potency(values, _UNITS.get(unit.upper(), unit))
            if measured is not None and (measured.lo < 0 or (measured.unit == "%" and measured.hi > _HUNDRED)):
                raise ValueError(f"{shorten(measured.lo)} to {shorten(measured.hi)} {unit} is not a content")
        except (ValueError, ArithmeticError) as error:
            why = str(error) if isinstance(error, ValueError) else "the number is out of bounds"
            warnings.append(ProductWarning(product_id, field, f"{why}; left out"))
            continue
        if measured is not None:
            found.append(Potency(measured.lo, measured.hi, measured.unit, unit))
    alike = [potency for potency in found if potency.unit == found[0].unit]
    if not alike:
        return None
    return Potency(min(p.lo for p in alike), max(p.hi for p in alike), alike[0].unit, alike[0].raw_unit)


def _promos(packages: Sequence[_Package], page: Sequence[Promo | None]) -> list[Promo]:
    """The active promotions of all options by id, each with the terms of the answer where its own are missing."""
    terms = {promo_id: promo for promo in page if promo is not None and (promo_id := id_text(promo.id)) is not None}
    found: dict[str, Promo] = {}
    for offer in packages:
        for promo in offer.promos:
            promo_id = id_text(promo.id)
            if promo_id is None or promo.isActiveBySchedule is False:
                continue
            known = terms.get(promo_id)
            if known is None:
                found[promo_id] = promo
                continue
            own = {name: getattr(promo, name) for name in Promo.__struct_fields__}
            found[promo_id] = Promo(
                **{name: getattr(known, name) if value is None else value for name, value in own.items()}
            )
    return [found[promo_id] for promo_id in sorted(found, key=lambda text: (len(text), text))]


def _special(promo: Promo, product_id: str, warnings: list[ProductWarning]) -> Special:
    kind_, value, needs = _terms(promo)
    return Special(
        name=label(promo.name or promo.shortName or ""),
        kind=kind_,
        value=value,
        required_quantity=needs,
        special_id=id_text(promo.id),
        ends_at=instant_field(promo.endDate, product_id, "variants[].promos[].endDate", warnings),
    )


def _terms(promo: Promo) -> tuple[str, Decimal | None, int | None]:
    """(kind, value, items to buy), by its numbers, else by its texts: "30% Off", "$5 off", "2 for $45"."""
    if promo.isBogo:
        return "bogo", None, None
    if promo.discountPercent is not None and 0 < bounded(promo.discountPercent) <= _HUNDRED:
        percent = promo.discountPercent
        return "percent", shortest(percent * 100 if percent < 1 else percent), None
    if promo.discountAmount is not None and bounded(promo.discountAmount) > 0:
        return "amount", promo.discountAmount, None
    for text in (promo.shortName, promo.name):
        if not text:
            continue
        if (match := _BUNDLE.search(text)) is not None:
            return "bundle", Decimal(match[2]), int(match[1])
        if (match := _PERCENT.search(text)) is not None:
            return "percent", shortest(Decimal(match[1])), None
        if (match := _AMOUNT.search(text)) is not None:
            return "amount", Decimal(match[1]), None
    return "other", None, None


def _names(rows: Sequence[Named | None] | None) -> list[str]:
    return [name for row in rows or () if row is not None and row.name and (name := label(row.name))]


def _extra(item: Item, packages: Sequence[_Package], promos: Sequence[Promo]) -> dict[str, Any]:
    """Values without a column, only those present. What is of an option stands under the option's name."""
    strain = item.strain
    by_option = _by_option(packages)
    extra: dict[str, Any] = {
        "product_type": label(_name(item.productType) or ""),
        "custom_name": label(item.customName or ""),
        "strain": label(strain.name or "") if strain is not None else None,
        "flavors": _names(strain.flavors) if strain is not None else None,
        "strain_terpenes": _names(strain.terpenes) if strain is not None else None,
        "tags": _names(item.tags),
        "effects": _names(item.effects),
        "quality_line": label(_name(item.qualityLine) or ""),
        **by_option,
        "sold_by_weight": sorted({o.option for o in packages if o.option and o.variant.isPacked is False}),
        "promo_schedules": {
            str(id_text(p.id)): label(p.scheduleDisplayText.full)
            for p in promos
            if p.scheduleDisplayText is not None and p.scheduleDisplayText.full
        },
        "promo_terms": {str(id_text(p.id)): found for p in promos if (found := _conditions(p))},
    }
    return {name: value for name, value in extra.items() if value not in (None, "", [], {})}


def _by_option(packages: Sequence[_Package]) -> dict[str, dict[str, Any]]:
    """Values of each option, by their names in `extra` and the options' names."""
    found: dict[str, dict[str, Any]] = {}
    for offer in packages:
        variant = offer.variant
        for name, value in (
            ("variant_ids", id_text(variant.id)),
            ("skus", label(id_text(variant.sku) or "") if variant.sku is not None else None),
            ("strength_levels", variant.strengthLevel),
            ("tier_pricing", variant.tierPricing),
            ("stock_types", variant.stockType if variant.stockType != "Default" else None),
            ("quantity_steps", offer.step if offer.step != 1 else None),
        ):
            if offer.option and value is not None and value not in ("", [], {}):
                found.setdefault(name, {})[offer.option] = value
    return found


def _conditions(promo: Promo) -> dict[str, Any]:
    found = {
        "description": label(promo.description or "") or None,
        "starts_at": label(promo.startDate or "") or None,
        "conditional": promo.isConditional or None,
        "minimum": bounded(promo.minCartAmount) if promo.minCartAmount is not None else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _store(item: Item) -> str | None:
    """The store of a shop's page; lists name none."""
    for part in ("info", "config"):
        record = (item.pageStore or {}).get(part)
        if isinstance(record, dict) and (store_id := id_text(record.get("id"))) is not None:
            return store_id
    return None


ITEMS = ItemReader(
    Item,
    Ids,
    _product,
    essential=("name", "variants"),
    judged=("variants",),
    store_id=_store,
)
