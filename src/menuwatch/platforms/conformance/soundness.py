"""What holds for every product that an adapter makes, whatever the item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.catalog.model import Potency, Product, ProductWarning, Variant
from menuwatch.catalog.taxonomy.categories import CATEGORIES, SUBCATEGORIES
from menuwatch.catalog.taxonomy.limits import MAX_ID_LENGTH, MAX_TOTAL, is_in_range
from menuwatch.catalog.taxonomy.strains import STRAINS
from menuwatch.platforms.products import HIGHEST_PRICE, lowest_prices, product_status

_PRICES = ("price_rec", "price_med", "special_rec", "special_med")
_ROUNDING = Decimal("0.0001")


def problems(product: Product, warnings: Sequence[ProductWarning]) -> Iterator[str]:
    """What is wrong with a product; `warnings` are those of its item."""
    if not 0 < len(product.provider_product_id) <= MAX_ID_LENGTH:
        yield f"the id has {len(product.provider_product_id)} characters"
    if not product.name_raw.strip() or not product.name:
        yield "the name is empty"
    try:
        msgspec.json.encode(product)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        yield f"it cannot be stored as JSON: {error}"
    for path, value in _values(product):
        if isinstance(value, str) and not _is_storable(value):
            yield f"{path} has NUL or half a character: {value!r:.60}"
        elif isinstance(value, Decimal) and not is_in_range(value):
            yield f"{path} is out of bounds: {value!s:.60}"
    yield from _stock(product)
    yield from _prices(product)
    if product.category_canon not in {*CATEGORIES, None}:
        yield f"unknown category {product.category_canon!r}"
    if product.subcategory_canon not in {*SUBCATEGORIES, None}:
        yield f"unknown subcategory {product.subcategory_canon!r}"
    if product.strain_canon not in {*STRAINS, None}:
        yield f"unknown strain type {product.strain_canon!r}"
    for name, content in (("thc", product.thc), ("cbd", product.cbd)):
        yield from _potency(name, content)
    for name in ("platform_created_at", "platform_updated_at"):
        instant = getattr(product, name)
        if instant is not None and instant.utcoffset() != timedelta(0):
            yield f"{name} is not in UTC"
    if any(warning.fatal for warning in warnings):
        yield "its item has a fatal warning, and gave a product"


def _values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _values(getattr(value, name), f"{path}.{name}".removeprefix("."))
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _values(name, f"{path} (a key)")
            yield from _values(entry, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            yield from _values(entry, f"{path}[{place}]")
    else:
        yield path, value


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _stock(product: Product) -> Iterator[str]:
    status = product.stock_status
    if product.is_in_stock is not (None if status == "unknown" else status == "in_stock"):
        yield f"is_in_stock is {product.is_in_stock}, stock_status {status}"
    of_variants = product_status([variant.stock_status for variant in product.variants])
    if product.variants and status != of_variants:
        yield f"stock_status is {status}, that of its options together {of_variants}"
    for quantity in (product.quantity, *(variant.quantity for variant in product.variants)):
        if quantity is not None and not 0 <= quantity <= MAX_TOTAL:
            yield f"a quantity is {quantity}"
    for place, variant in enumerate(product.variants):
        if variant.quantity == 0 and variant.stock_status == "in_stock":
            yield f"variants[{place}] is in stock with a quantity of 0"
        if variant.capped and variant.quantity is None:
            yield f"variants[{place}] is capped without a quantity"
    if product.quantity_capped != any(variant.capped for variant in product.variants):
        yield f"quantity_capped is {product.quantity_capped}, unlike its options"


def _prices(product: Product) -> Iterator[str]:
    headline = (product.price_rec, product.price_rec_special, product.price_med, product.price_med_special)
    if product.variants and headline != lowest_prices(product.variants):
        yield f"its prices {headline} are not the lowest of its options"
    for place, variant in enumerate(product.variants):
        where = f"variants[{place}]"
        if not variant.option:
            yield f"{where} has no text"
        for name in _PRICES:
            price = getattr(variant, name)
            if price is not None and not 0 <= price <= HIGHEST_PRICE:
                yield f"{where}.{name} is {price}"
        if variant.weight_g is not None and variant.weight_g <= 0:
            yield f"{where}.weight_g is {variant.weight_g}"
        yield from _per_gram(variant, where)


def _per_gram(variant: Variant, where: str) -> Iterator[str]:
    if variant.price_per_g is None or variant.weight_g is None:
        return
    prices = [price for name in _PRICES if (price := getattr(variant, name)) is not None]
    if not any(abs(price / variant.weight_g - variant.price_per_g) <= _ROUNDING for price in prices):
        yield f"{where}.price_per_g {variant.price_per_g} is none of its prices by its weight"


def _potency(name: str, content: Potency | None) -> Iterator[str]:
    if content is not None and content.lo > content.hi:
        yield f"{name} is a range from {content.lo} to {content.hi}"
    if content is not None and not content.unit:
        yield f"{name} has no unit"
