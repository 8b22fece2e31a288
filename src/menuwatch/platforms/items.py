"""Reading items one by one: what is wrong with one of them is a warning and stops nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

import msgspec

from menuwatch.catalog.canon.bounds import MAX_ID_LENGTH, shown_id
from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.platforms import lenient
from menuwatch.platforms.base import Normalized
from menuwatch.platforms.instants import instant

T = TypeVar("T", bound=msgspec.Struct)

Read = Callable[[msgspec.Raw, list[ProductWarning]], Product | None]


class Unusable(Exception):
    """The item cannot be a product: (field, what is wrong)."""


def each(
    items: Iterable[msgspec.Raw],
    read: Read,
    identity: Callable[[msgspec.Raw], str | None],
) -> Normalized:
    """Products in the order of their items; of several items with one id the last wins and stands where the first did.

    `read` adds warnings to the list that it is given; it returns None where it said already why there is no product, and may raise
    Unusable, ArithmeticError and RecursionError for its one item.
    """
    products: dict[str, Product] = {}
    warnings: list[ProductWarning] = []
    for raw in items:
        known = len(warnings)
        try:
            product = read(raw, warnings)
        except (Unusable, ArithmeticError, RecursionError) as error:
            # What else was wrong with it is of no use to anyone.
            del warnings[known:]
            field, message = _told(error)
            warnings.append(ProductWarning(shown_id(identity(raw)), field, message, fatal=True))
        else:
            if product is not None:
                products[product.provider_product_id] = product
    return Normalized(products=tuple(products.values()), warnings=tuple(warnings))


def _told(error: Exception) -> tuple[str, str]:
    """(field, what is wrong)"""
    if isinstance(error, Unusable):
        return error.args[0], error.args[1]
    if isinstance(error, RecursionError):
        return "", "is nested too deeply to be read"
    return "", f"its numbers cannot be reckoned with: {type(error).__name__}"


def _escaped_nul(raw: msgspec.Raw, _: msgspec.Struct) -> bool:
    return b"\\u0000" in bytes(raw)


def reader(
    decoder: msgspec.json.Decoder[T],
    product: Callable[[T, list[ProductWarning]], Product],
    mend: Callable[[bytes], tuple[T | None, list[ProductWarning]]],
    *,
    has_nul: Callable[[msgspec.Raw, T], bool] = _escaped_nul,
) -> Read:
    """What `each` reads items with: an item that does not fit its types, has NUL in a text (which PostgreSQL refuses: one such product
    would stop its menu) or a number out of bounds is mended first, and is no product where nothing is left to use."""

    def read(raw: msgspec.Raw, warnings: list[ProductWarning]) -> Product | None:
        known = len(warnings)
        try:
            item = decoder.decode(raw)
            if not has_nul(raw, item):
                return product(item, warnings)
        except (msgspec.MsgspecError, UnicodeDecodeError, ArithmeticError):
            del warnings[known:]  # they come again
        mended, found = mend(bytes(raw))
        warnings.extend(found)
        return product(mended, warnings) if mended is not None else None

    return read


def named_by(
    decoder: msgspec.json.Decoder[T],
    chosen: Callable[[T], str | None],
    of_plain: Callable[[dict[str, object]], str | None],
) -> Callable[[msgspec.Raw], str | None]:
    """The product id of a raw item, None where it has none that can be read: by `chosen` from what the decoder reads, by `of_plain`
    where the decoder refuses the item."""

    def identity(item: msgspec.Raw) -> str | None:
        try:
            return chosen(decoder.decode(item))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        except RecursionError:
            return None
        try:
            plain = lenient.read(bytes(item))
        except (ValueError, RecursionError):
            return None
        return of_plain(plain) if isinstance(plain, dict) else None

    return identity


def usable_id(product_id: str | None) -> str:
    """The id, which raises Unusable where there is none or it is too long."""
    if not product_id:
        raise Unusable("id", "is missing")
    if len(product_id) > MAX_ID_LENGTH:
        raise Unusable("id", f"has {len(product_id):,} characters, more than {MAX_ID_LENGTH}")
    return product_id


def instant_of(value: str | int | None, product_id: str, field: str, warnings: list[ProductWarning]) -> datetime | None:
    """The instant in a field, None with a warning where it is none."""
    try:
        return instant(value)
    except ValueError as error:
        warnings.append(ProductWarning(product_id, field, f"{error}; left out"))
        return None
