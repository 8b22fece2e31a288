"""A product of CJ Dropshipping, from the object that its page holds.

The object was filled by several generations of their software: the same thing has several names, numbers are numbers or texts
("1350.00", "2.09 -- 7.46"), lists are lists or texts that hold JSON. What cannot be used is left out; only what has no name is no
product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from menuwatch.crawls.base import CrawledProduct, Unreadable, Variant
from menuwatch.sites.literal import BadLiteral, read

_NAMES = ("nameEn", "productNameEn", "entryNameEn", "name", "productName", "entryName")
_VARIANTS = ("variants", "variantList", "stanProducts")
_VARIANT_IDS = ("vid", "variantId", "id", "sku", "variantSku")
_VARIANT_SKUS = ("sku", "variantSku")
_VARIANT_NAMES = ("nameEn", "variantNameEn", "variantKeyEn", "variantKey", "variantName", "name")
_VARIANT_PRICES = ("sellPrice", "variantSellPrice")
_VARIANT_WEIGHTS = ("packWeight", "weight", "variantWeight")
_PRICES = ("sellPrice", "nowPrice")
_WEIGHTS = ("packWeight", "packingWeight", "weight", "productWeight")
_LISTED = ("listedNum", "listCount", "listingCount")
_IMAGES = ("bigImage", "productImage", "imageUrl", "mainImage", "productImageSet", "images", "newImgList")

MOST_VARIANTS = 1000
MOST_IMAGES = 30
_LONGEST_NAME = 500
_LONGEST_ID = 100
_LONGEST_URL = 1000
_LARGEST = Decimal(10_000_000)
"""Dollars or grams beyond which a figure is a mistake."""
_MOST_LISTED = 2_000_000_000
_PLACES = Decimal("0.0001")
_AMOUNT = r"([0-9]{1,9}(?:\.[0-9]{0,12})?|[0-9]{1,3}(?:,[0-9]{3}){1,2}(?:\.[0-9]{0,12})?)"
_RANGE = re.compile(
    rf"(?:US)?\$?\s?{_AMOUNT}\s?(?:USD|g)?(?:\s?(?:-{{1,2}}|~|–|—)\s?(?:US)?\$?\s?{_AMOUNT}\s?(?:USD|g)?)?", re.ASCII
)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")


def product(data: Mapping[str, Any], product_id: str, url: str) -> CrawledProduct:
    """The product. `product_id` and `url` are what it was found by. Prices in US dollars, weights in grams; of a weight that is a
    range the heavier end, for postage is paid for what is sent. Raises Unreadable where it has no name."""
    name = _first_text(data, _NAMES, _LONGEST_NAME)
    if name is None:
        raise Unreadable(f"a product without a name: none of {', '.join(_NAMES)} holds a text")
    variants = tuple(_variants(data))
    low, high = _price_range(data, variants)
    weights = _first_amounts(data, _WEIGHTS) or [v.weight_g for v in variants if v.weight_g is not None]
    return CrawledProduct(
        site_product_id=product_id,
        name=name,
        url=url,
        price_min=low,
        price_max=high,
        currency="USD",
        weight_g=max(weights, default=None),
        listed=_listed(data),
        variants=variants,
        images=tuple(_images(data)),
    )


def _price_range(data: Mapping[str, Any], variants: Iterable[Variant]) -> tuple[Decimal | None, Decimal | None]:
    """What the product says of its prices; else what its variants cost."""
    said = [*_amounts(data.get("sellPriceMin")), *_amounts(data.get("sellPriceMax"))]
    found = said or _first_amounts(data, _PRICES) or [v.price for v in variants if v.price is not None]
    return min(found, default=None), max(found, default=None)


def _variants(data: Mapping[str, Any]) -> Iterator[Variant]:
    seen: set[str] = set()
    rows = next((rows for key in _VARIANTS if isinstance(rows := data.get(key), list) and rows), [])
    for row in rows[:MOST_VARIANTS]:
        if not isinstance(row, dict):
            continue
        variant_id = _first_text(row, _VARIANT_IDS, _LONGEST_ID)
        if variant_id is None or variant_id in seen:
            continue
        seen.add(variant_id)
        yield Variant(
            variant_id=variant_id,
            sku=_first_text(row, _VARIANT_SKUS, _LONGEST_ID),
            name=_first_text(row, _VARIANT_NAMES, _LONGEST_NAME),
            price=min(_first_amounts(row, _VARIANT_PRICES), default=None),
            weight_g=max(_first_amounts(row, _VARIANT_WEIGHTS), default=None),
        )


def _listed(data: Mapping[str, Any]) -> int | None:
    for key in _LISTED:
        value = data.get(key)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value.strip(), re.ASCII):
            value = int(value)
        if isinstance(value, Decimal) and abs(value) <= _MOST_LISTED and value == value.to_integral_value():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_LISTED:
            return value
    return None


def _images(data: Mapping[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for key in _IMAGES:
        for address in _addresses(data.get(key)):
            if address not in seen and len(seen) < MOST_IMAGES:
                seen.add(address)
                yield address


def _addresses(value: Any) -> Iterator[str]:
    """The addresses of pictures in a text, a list of texts, or a text that holds such a list as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value, _ = read(value)
        except BadLiteral:
            return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and (address := _address(item.strip())) is not None:
            yield address


def _address(text: str) -> str | None:
    if text.startswith("//"):
        text = f"https:{text}"
    if len(text) > _LONGEST_URL or not text.isprintable() or any(c in text for c in " <>\"'\\"):
        return None
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and host and "@" not in parts.netloc else None


def _first_text(data: Mapping[str, Any], keys: Iterable[str], longest: int) -> str | None:
    """The first of them that says something, on one line. Identifiers may be written as numbers."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str):
            # Names in Chinese come as a list in a text: what a person could read is elsewhere, or nowhere.
            plain = printable(value[: 10 * longest])
            if plain and not plain.startswith('["'):
                return plain[:longest].rstrip()
    return None


def printable(text: str) -> str:
    """The text on one line, without what would turn or hide what stands beside it."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _first_amounts(data: Mapping[str, Any], keys: Iterable[str]) -> list[Decimal]:
    return next((found for key in keys if (found := _amounts(data.get(key)))), [])


def _amounts(value: Any) -> list[Decimal]:
    """The one or two amounts above zero that a value says; none where it says something else."""
    if isinstance(value, str):
        match = _RANGE.fullmatch(value[:100].strip())
        found = [] if match is None else [Decimal(part.replace(",", "")) for part in match.groups() if part]
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        # Compared before it is made a Decimal: an int of 400 digits is cheap to compare only.
        found = [Decimal(value)] if 0 < value <= _LARGEST else []
    else:
        return []
    return [round_ for amount in found if 0 < (round_ := _rounded(amount)) <= _LARGEST]


def _rounded(amount: Decimal) -> Decimal:
    """To four places, if it is written with more."""
    exponent = amount.as_tuple().exponent
    assert isinstance(exponent, int), "an amount is finite"
    return amount.quantize(_PLACES) if exponent < -4 else amount
