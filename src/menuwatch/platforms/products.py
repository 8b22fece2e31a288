"""Rules shared by all normalizers: times, prices, stock, potency, and how options and products are put together. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from menuwatch.catalog.model import Batch, LabValue, Potency, Product, ProductWarning, Special, StockStatus, Variant
from menuwatch.catalog.taxonomy.categories import Kind
from menuwatch.catalog.taxonomy.limits import bounded, is_in_range, shorten
from menuwatch.catalog.taxonomy.package import shortest
from menuwatch.catalog.taxonomy.strains import strain
from menuwatch.catalog.taxonomy.text import clean, describes, enum, label
from menuwatch.catalog.taxonomy.unit_price import effective, unit_prices
from menuwatch.platforms.items import UnusableItem, usable_id

_MILLIGRAMS = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)\s*mg\b", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
HIGHEST_PRICE = Decimal(1_000_000)
_TEN = Decimal(10)


def parse_instant(value: str | int | None) -> datetime | None:
    """The instant in UTC; None for null and "". A time without a zone is taken as UTC; digits beyond microseconds are cut.

    Raises ValueError for an invalid time.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int) or value.isdecimal():
            return _EPOCH + int(value) * _MILLISECOND
        instant = datetime.fromisoformat(value)
        if instant.tzinfo is UTC:
            return instant
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid time {str(value)[:40]!r}") from error


def instant_field(
    value: str | int | None, product_id: str, field: str, warnings: list[ProductWarning]
) -> datetime | None:
    """The instant in a field; None with a warning if it is invalid."""
    try:
        return parse_instant(value)
    except ValueError as error:
        warnings.append(ProductWarning(product_id, field, f"{error}; left out"))
        return None


def check_price(value: Decimal | None, field: str) -> None:
    """Raises UnusableItem with the field's name for an invalid price; None means no price."""
    if value is not None and not (is_in_range(value) and 0 <= value <= HIGHEST_PRICE):
        raise UnusableItem(field, f"invalid price {shorten(value)}")


def potency(values: Sequence[Decimal | None] | None, unit: str | None) -> Potency | None:
    """The range of content, None without values.

    mg/g are converted to percent (divided by ten). Milligrams are those of the whole package and are never converted to percent,
    which would need its weight. An unknown unit passes through. Raises ValueError if the values have no unit,
    ArithmeticError if one is out of bounds.
    """
    amounts = [bounded(value) for value in values or () if value is not None]
    if not amounts:
        return None
    if not unit or not label(unit):
        raise ValueError("values without a unit")
    lo, hi = (amounts[0], amounts[0]) if len(amounts) == 1 else (min(amounts), max(amounts))
    if unit == "PERCENTAGE":
        return Potency(lo, hi, "%", unit)
    if unit == "MILLIGRAMS":
        return Potency(lo, hi, "mg", unit)
    if unit in ("MILLIGRAMS_PER_GRAM", "mg/g"):
        return Potency(lo / _TEN, hi / _TEN, "%", unit)
    return Potency(lo, hi, label(unit), label(unit))


def grams(value: Decimal | None, unit: str | None, in_grams: dict[str, Decimal]) -> Decimal | None:
    """A mass in grams; None for an unknown unit (`in_grams` has one unit's mass) or a value that is not positive."""
    factor = in_grams.get(unit or "")
    return None if value is None or bounded(value) <= 0 or factor is None else shortest(value * factor)


def agrees_with_name(milligrams: Decimal | None, name: str) -> bool:
    """Whether a product's name has this content, or none at all: it is unknown which of two different ones is right."""
    named = {Decimal(text.replace(",", "")) for text in _MILLIGRAMS.findall(name[:500])}
    return milligrams is None or not named or milligrams in named


def option_status(quantity: int | None, *, withdrawn: bool) -> StockStatus:
    """Stock status of one option. `withdrawn`: it is not for sale, whatever its quantity."""
    if withdrawn:
        return "oos"
    if quantity is None:
        return "unknown"
    return "in_stock" if quantity > 0 else "oos"


def product_status(variants: Sequence[StockStatus], *, active: bool = True) -> StockStatus:
    """In stock if any option is; out of stock if it has options and all are, or if it is not active; else unknown."""
    if "in_stock" in variants:
        return "in_stock"
    if variants:
        return "oos" if all(status == "oos" for status in variants) else "unknown"
    return "unknown" if active else "oos"


def make_variant(
    option: str,
    rec: Decimal | None,
    med: Decimal | None,
    special_rec: Decimal | None,
    special_med: Decimal | None,
    *,
    quantity: int | None,
    capped: bool,
    status: StockStatus,
    weight: Decimal | None,
    dosed: bool,
) -> Variant:
    """One option with its unit prices. `weight` in grams; `dosed`: milligrams in its text are content, not mass."""
    return Variant(
        label(option),
        rec,
        med,
        special_rec,
        special_med,
        quantity,
        capped,
        status,
        weight,
        *unit_prices(effective(rec, special_rec, med, special_med), weight, option, dosed=dosed),
    )


def _lowest(prices: Sequence[Decimal | None]) -> Decimal | None:
    return min((price for price in prices if price is not None), default=None)


def lowest_prices(variants: Sequence[Variant]) -> tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None]:
    """The lowest recreational price and special price, and medical price and special price."""
    if len(variants) == 1:
        only = variants[0]
        return only.price_rec, only.special_rec, only.price_med, only.special_med
    return (
        _lowest([variant.price_rec for variant in variants]),
        _lowest([variant.special_rec for variant in variants]),
        _lowest([variant.price_med for variant in variants]),
        _lowest([variant.special_med for variant in variants]),
    )


def required(product_id: str | None, name: str | None, name_field: str) -> tuple[str, str]:
    """A product's id and name; raises UnusableItem where one is missing."""
    product_id = usable_id(product_id)
    if not name or name.isspace():
        raise UnusableItem(name_field, "is missing")
    return product_id, name


def make_product(
    product_id: str,
    name: str,
    *,
    brand: str | None,
    category: str | None,
    subcategory: str | None,
    kind: Kind,
    strain_type: str | None,
    status_raw: str | None,
    variants: tuple[Variant, ...],
    active: bool = True,
    quantity: int | None,
    thc: Potency | None,
    cbd: Potency | None,
    cannabinoids: tuple[LabValue, ...],
    specials: tuple[Special, ...] = (),
    image: str | None = None,
    images: tuple[str, ...],
    description: str | None,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    extra: dict[str, Any],
    terpenes: tuple[LabValue, ...] = (),
    batch: Batch | None = None,
    quantity_sold: int | None = None,
) -> Product:
    """A product of the platform's own words and its options: cleaned names, headline prices, stock status, canonical terms. `image` is
    the one to show, by default the first."""
    status = product_status([variant.stock_status for variant in variants], active=active)
    price, price_special, med, med_special = lowest_prices(variants)
    return Product(
        provider_product_id=product_id,
        name_raw=name,
        name=clean(name),
        brand_name_raw=brand.replace("\0", "") if brand else None,
        brand_name=(label(brand) or None) if brand else None,
        category=enum(category) if category else None,
        subcategory=enum(subcategory) if subcategory else None,
        strain_type=enum(strain_type) if strain_type else None,
        status_raw=status_raw,
        variants=variants,
        price_rec=price,
        price_rec_special=price_special,
        price_med=med,
        price_med_special=med_special,
        stock_status=status,
        is_in_stock=None if status == "unknown" else status == "in_stock",
        quantity=quantity,
        quantity_capped=True in [variant.capped for variant in variants],
        thc=thc,
        cbd=cbd,
        cannabinoids=cannabinoids,
        specials=specials,
        image_url=(image or "").strip() or (images[0] if images else None),
        images=images,
        description=clean(description) if description and describes(description) else None,
        platform_created_at=created_at,
        platform_updated_at=updated_at,
        extra=extra,
        category_canon=kind.category,
        subcategory_canon=kind.subcategory,
        strain_canon=strain(strain_type),
        terpenes=terpenes,
        batch=batch if batch != Batch() else None,
        quantity_sold=quantity_sold,
    )
