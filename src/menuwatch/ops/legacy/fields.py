"""Values of the former tables as texts say them, and rows as items of a menu. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import msgspec

from menuwatch.catalog.model import Potency, Product, ProductWarning, StockStatus, Variant
from menuwatch.catalog.taxonomy.categories import DOSED, kind
from menuwatch.catalog.taxonomy.limits import MAX_ID_LENGTH, MAX_TOTAL, is_in_range, shorten
from menuwatch.catalog.taxonomy.package import mass
from menuwatch.catalog.taxonomy.strains import strain
from menuwatch.catalog.taxonomy.text import clean
from menuwatch.catalog.taxonomy.unit_price import effective, unit_prices
from menuwatch.ops.legacy.columns import Record


class Bad(Exception):
    """A row cannot be taken: (reason, the value)."""


def text(record: Record, name: str, most: int = 10_000) -> str | None:
    """The text without white space at its ends, None where there is none. Raises Bad for one that is too long."""
    value = (record.get(name) or "").replace("\0", "\ufffd").strip()
    if len(value) > most:
        raise Bad(f"{name} is too long", f"{len(value):,} characters")
    return value or None


def product_id(record: Record) -> str | None:
    """The platform's id of a product."""
    return text(record, "product", MAX_ID_LENGTH)


_MONEY = re.compile(r"(?:USD|US\$|CAD|C\$|\$)?\s*(-?[\d.,]+)\s*(?:USD|CAD|\$)?", re.IGNORECASE)
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_HIGHEST = Decimal(1_000_000)


def money(record: Record, name: str) -> Decimal | None:
    """An amount, with or without the sign of its currency. Raises Bad for an invalid one: negative, or above a million."""
    value = text(record, name)
    if value is None:
        return None
    found = _MONEY.fullmatch(value)
    amount = number(found[1].replace(",", "") if _GROUPED.fullmatch(found[1]) else found[1]) if found else None
    if amount is None or not 0 <= amount <= _HIGHEST:
        raise Bad(f"{name} is not a price", shorten(value))
    return amount


def number(value: str | None) -> Decimal | None:
    """A decimal number within bounds; None where it is none."""
    try:
        found = Decimal(value or "")
    except InvalidOperation:
        return None
    return found if is_in_range(found) else None


def percent(record: Record, name: str) -> Decimal | None:
    """A share of mass, "22.5" or "22.5%"; None for more than all, which is milligrams of something. Raises Bad for an invalid one."""
    value = text(record, name)
    if value is None:
        return None
    found = number(value.removesuffix("%").strip())
    if found is None or found < 0:
        raise Bad(f"{name} is not a percentage", shorten(value))
    return found if found <= 100 else None


def quantity(record: Record) -> int | None:
    """How many there are. Raises Bad for an invalid one."""
    value = text(record, "quantity")
    if value is None:
        return None
    found = number(value)
    if found is None or not 0 <= found <= MAX_TOTAL:
        raise Bad("invalid quantity", shorten(value))
    return int(found)


_YES, _NO = frozenset({"t", "true", "1", "yes", "y"}), frozenset({"f", "false", "0", "no", "n"})


def flag(record: Record, name: str) -> bool | None:
    """Yes or no. Raises Bad for another word."""
    value = text(record, name)
    if value is None:
        return None
    if value.lower() in _YES:
        return True
    if value.lower() in _NO:
        return False
    raise Bad(f"{name} is neither true nor false", shorten(value))


_EPOCH = re.compile(r"\d{10}(?:\d{3})?")
_SHORT_ZONE = re.compile(r"([+-]\d{2})$")


def instant(record: Record, name: str) -> tuple[datetime, bool] | None:
    """A time, and whether it named its zone: without one it is UTC. Raises Bad for anything else."""
    value = text(record, name)
    if value is None:
        return None
    try:
        if _EPOCH.fullmatch(value):
            return datetime.fromtimestamp(int(value) / (1000 if len(value) == 13 else 1), UTC), True
        found = datetime.fromisoformat(_SHORT_ZONE.sub(r"\1:00", value) if ":" in value else value)
        zoned = found.tzinfo is not None
        return (found.astimezone(UTC) if zoned else found.replace(tzinfo=UTC)), zoned
    except (ValueError, OverflowError) as error:
        raise Bad(f"{name} is not a time", shorten(value)) from error


_IN = frozenset({"in_stock", "instock", "available", "low_stock", "limited"})
_OUT = frozenset({"oos", "out_of_stock", "outofstock", "sold_out", "unavailable"})
_GONE = frozenset({"missing_from_feed", "missing", "removed", "discontinued"})


def stock(record: Record) -> str | None:
    """`in_stock`, `oos` or `unknown`; None when the row says that the product was not on the menu."""
    word = (text(record, "stock_status") or "").lower().replace(" ", "_").replace("-", "_")
    if word in _GONE or flag(record, "present") is False:
        return None
    if word in _OUT:
        return "oos"
    if word in _IN:
        return "in_stock"
    there = flag(record, "is_in_stock")
    return "unknown" if there is None else "in_stock" if there else "oos"


NO_OPTION = "N/A"
"""What Dutchie calls the option of goods that have only one."""


class Item(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One product as the former system wrote it down. Without an id it is what a row says of a product that another row names."""

    id: str | None = None
    name: str | None = None
    brand: str | None = None
    category: str | None = None
    subcategory: str | None = None
    strain: str | None = None
    option: str | None = None
    rec: Decimal | None = None
    rec_special: Decimal | None = None
    med: Decimal | None = None
    med_special: Decimal | None = None
    stock: StockStatus = "unknown"
    quantity: int | None = None
    thc: Decimal | None = None
    cbd: Decimal | None = None
    image: str | None = None
    description: str | None = None


_decode = msgspec.json.Decoder(Item).decode
encode = msgspec.json.Encoder(decimal_format="number").encode
_TEXTS = ("name", "brand", "category", "subcategory", "strain", "option", "image", "description")


def item_of(record: Record, stock: str) -> Item:
    """A row as an item. Raises Bad where a value of it cannot be."""
    return msgspec.convert(
        {
            "name": text(record, "name"),
            "brand": text(record, "brand"),
            "category": text(record, "category"),
            "subcategory": text(record, "subcategory"),
            "strain": text(record, "strain"),
            "option": text(record, "option", 200),
            "rec": money(record, "price_rec"),
            "rec_special": money(record, "price_rec_special"),
            "med": money(record, "price_med"),
            "med_special": money(record, "price_med_special"),
            "stock": stock,
            "quantity": quantity(record),
            "thc": percent(record, "thc"),
            "cbd": percent(record, "cbd"),
            "image": text(record, "image_url"),
            "description": text(record, "description", 100_000),
        },
        Item,
    )


def whole(product_id: str, snapshot: str, product: str | None) -> msgspec.Raw:
    """A snapshot's item; the words that it does not have are those of its product's row."""
    seen = _decode(snapshot)
    known = _decode(product) if product is not None else None
    words = {name: getattr(seen, name) or (getattr(known, name) if known else None) for name in _TEXTS}
    return msgspec.Raw(encode(msgspec.structs.replace(seen, id=product_id, **words)))


class _Made(NamedTuple):
    products: list[Product]
    warnings: list[ProductWarning]


class FormerItems:
    """Reads such items for the catalog."""

    normalizer_version = 1

    def identity(self, raw: msgspec.Raw, /) -> str | None:
        """The platform's id of the product."""
        return _decode(raw).id

    def normalize(self, items: Iterable[msgspec.Raw], /) -> _Made:
        """A product of each."""
        return _Made([_product(_decode(raw)) for raw in items], [])


def _product(item: Item) -> Product:
    name = item.name or item.id or ""
    option = item.option or NO_OPTION
    kinds = kind(item.category, item.subcategory)
    dosed = kinds.category in DOSED
    grams = None if dosed else mass(option)
    paid = effective(item.rec, item.rec_special, item.med, item.med_special)
    variant = Variant(
        option,
        item.rec,
        item.med,
        item.rec_special,
        item.med_special,
        item.quantity,
        False,
        item.stock,
        grams,
        *unit_prices(paid, grams, option, dosed=dosed),
    )
    return Product(
        provider_product_id=item.id or "",
        name_raw=name,
        name=clean(name),
        brand_name_raw=item.brand,
        brand_name=clean(item.brand) if item.brand else None,
        category=item.category,
        subcategory=item.subcategory,
        strain_type=item.strain,
        status_raw=None,
        variants=(variant,),
        price_rec=item.rec,
        price_rec_special=item.rec_special,
        price_med=item.med,
        price_med_special=item.med_special,
        stock_status=item.stock,
        is_in_stock=None if item.stock == "unknown" else item.stock == "in_stock",
        quantity=item.quantity,
        quantity_capped=False,
        thc=_percent(item.thc),
        cbd=_percent(item.cbd),
        cannabinoids=(),
        specials=(),
        image_url=item.image,
        images=(),
        description=item.description,
        platform_created_at=None,
        platform_updated_at=None,
        extra={"former": True},
        category_canon=kinds.category,
        subcategory_canon=kinds.subcategory,
        strain_canon=strain(item.strain),
    )


def _percent(value: Decimal | None) -> Potency | None:
    return None if value is None else Potency(value, value, "%", "PERCENTAGE")
