"""Formats products for PostgreSQL: new ones as lines of COPY's text format, changed ones as JSON. Pure.

Lines are built by hand because adapting thirty values per row individually costs more than everything else a crawl does to a
product (bench/refresh.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

import msgspec

from menuwatch.catalog.brand_descriptions import split_extra
from menuwatch.catalog.diff import prices_of, stock_of
from menuwatch.catalog.model import Potency, Product, Variant

_SPECIAL = re.compile(r"[\\\t\n\r\x00]")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x00": "\ufffd"})
_NUL = re.compile(r"\\u0000|\\.")
_json = msgspec.json.Encoder(decimal_format="number").encode
_option = attrgetter("option")
_EMPTY_IS_NULL = ("cannabinoids", "specials", "terpenes")

PRODUCT_COLUMNS = (
    "id, content_hash, name_raw, name, brand_name_raw, brand_name, category, subcategory, strain_type, status_raw, "
    "price_rec, price_rec_special, price_med, price_med_special, stock_status, is_in_stock, quantity, quantity_capped, "
    "thc_lo, thc_hi, thc_unit, cbd_lo, cbd_hi, cbd_unit, variants, cannabinoids, specials, image_url, images, description, "
    "platform_created_at, platform_updated_at, extra, category_canon, subcategory_canon, strain_canon, terpenes, batch, "
    "quantity_sold, brand_description_hash"
)
"""The columns of `product_line`, in order."""

IDENTITY_COLUMNS = "dispensary_id, provider, provider_product_id, first_seen_at, state_from, changed_at"
"""Additional columns of a new product, in the order of `identity_line`."""


def text(value: str | None) -> str:
    """One text field. A NUL, which PostgreSQL cannot hold, becomes U+FFFD."""
    if value is None:
        return "\\N"
    if _SPECIAL.search(value) is None:
        return value
    return value.translate(_ESCAPES)


def json(value: Any) -> str:
    """One jsonb field; numbers stay exact, because Decimals are written as JSON numbers."""
    encoded = _json(value).decode()
    if "\\" not in encoded:
        return encoded
    return _without_nul(encoded).replace("\\", "\\\\")


def dump(value: Any) -> str:
    """JSON for a query parameter (not for COPY), numbers exact."""
    return _without_nul(_json(value).decode())


def _without_nul(encoded: str) -> str:
    """The same JSON with U+FFFD for NUL, which jsonb refuses. (The u0000 behind an escaped backslash is no NUL.)"""
    if "\\u0000" not in encoded:
        return encoded
    return _NUL.sub(lambda escape: "\\ufffd" if escape[0] == "\\u0000" else escape[0], encoded)


def _number(value: Decimal | int | None) -> str:
    return "\\N" if value is None else str(value)


def _flag(value: bool | None) -> str:
    return "\\N" if value is None else ("t" if value else "f")


def _time(value: datetime | None) -> str:
    return "\\N" if value is None else value.isoformat()


def _potency(value: Potency | None) -> tuple[str, str, str]:
    if value is None:
        return ("\\N", "\\N", "\\N")
    return (str(value.lo), str(value.hi), text(value.unit))


def _by_option(variants: tuple[Variant, ...]) -> Sequence[Variant]:
    """Sorts options, which menus list in no fixed order: another order alone must give the same line, or it looks like a change."""
    return variants if len(variants) < 2 else sorted(variants, key=_option)


def _json_or_null(value: tuple[Any, ...]) -> str:
    return json(value) if value else "\\N"


def _images(product: Product) -> tuple[str, ...] | None:
    """None where they follow from the image's URL, as on most menus."""
    usual = () if product.image_url is None else (product.image_url,)
    return None if product.images == usual else product.images


def product_line(product_id: int, content_hash: bytes, product: Product) -> str:
    """The fields of PRODUCT_COLUMNS, tab-separated, without the newline."""
    p = product
    extra, description_hash = split_extra(p)
    return "\t".join(
        (
            str(product_id),
            "\\\\x" + content_hash.hex(),
            text(p.name_raw),
            text(p.name),
            text(p.brand_name_raw),
            text(p.brand_name),
            text(p.category),
            text(p.subcategory),
            text(p.strain_type),
            text(p.status_raw),
            _number(p.price_rec),
            _number(p.price_rec_special),
            _number(p.price_med),
            _number(p.price_med_special),
            p.stock_status,
            _flag(p.is_in_stock),
            _number(p.quantity),
            "t" if p.quantity_capped else "f",
            *_potency(p.thc),
            *_potency(p.cbd),
            json(_by_option(p.variants)),
            _json_or_null(p.cannabinoids),
            _json_or_null(p.specials),
            text(p.image_url),
            "\\N" if (images := _images(p)) is None else json(images),
            text(p.description),
            _time(p.platform_created_at),
            _time(p.platform_updated_at),
            json(extra),
            text(p.category_canon),
            text(p.subcategory_canon),
            text(p.strain_canon),
            _json_or_null(p.terpenes),
            "\\N" if p.batch is None else json(p.batch),
            _number(p.quantity_sold),
            description_hash or "\\N",
        )
    )


def identity_line(dispensary_id: int, provider: str, product: Product, crawled_at: str) -> str:
    """The fields of IDENTITY_COLUMNS, tab-separated; `crawled_at` in ISO 8601."""
    return f"{dispensary_id}\t{provider}\t{text(product.provider_product_id)}\t{crawled_at}\t{crawled_at}\t{crawled_at}"


_SAME = tuple(name for name in PRODUCT_COLUMNS.split(", ") if name in Product.__struct_fields__)
"""The columns that have the name and the value of a field."""


def changed_row(product_id: int, content_hash: bytes, product: Product) -> dict[str, Any]:
    """A record of `merge_changed`, for `dump`: the fields of PRODUCT_COLUMNS with the values that `product_line` gives, and the
    `prices` and `stock` that `option_prices` and `option_stock` make of the product's variants."""
    row: dict[str, Any] = {name: getattr(product, name) for name in _SAME}
    for name in _EMPTY_IS_NULL:
        row[name] = row[name] or None
    row["images"] = _images(product)
    row["id"] = product_id
    row["content_hash"] = "\\x" + content_hash.hex()
    row["extra"], row["brand_description_hash"] = split_extra(product)
    row["variants"] = _by_option(product.variants)
    for name, potency in (("thc", product.thc), ("cbd", product.cbd)):
        if potency is not None:
            row |= {f"{name}_lo": potency.lo, f"{name}_hi": potency.hi, f"{name}_unit": potency.unit}
    row["prices"] = prices_of(product)
    row["stock"] = stock_of(product)
    return row
