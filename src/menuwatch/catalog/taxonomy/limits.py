"""Limits of numbers, quantities and ids of products: what PostgreSQL, JSON and common readers can hold.

JSON's grammar allows 1e400 and 1e-20000, and a text that is read as a number may be "NaN" or "Infinity". A single one
would make the database refuse the whole menu.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow, Rounded, Subnormal
from typing import Any

import msgspec

MAX_ID_LENGTH = 200
"""Characters. Real ids have 24 or 17; PostgreSQL indexes no more than 2,700 bytes."""

MAX_TOTAL = 2_147_483_647
"""The largest number of packages that fits the column of a product's sum."""

_DIGITS = 100
"""Floats that were written out in full ("2.79999999999999982236431605997495353221893310546875", seen) have some 60."""

_exactly = Context(
    prec=_DIGITS, Emin=-6, Emax=8, traps=[Clamped, Inexact, InvalidOperation, Overflow, Rounded, Subnormal]
).plus


class OutOfRange(ArithmeticError):
    """A number out of bounds."""


def bounded(value: Decimal) -> Decimal:
    """Returns the number if it is finite, below 1,000,000,000 and, unless it is zero, not below 0.000001 (absolute), with
    at most 100 digits. Raises ArithmeticError for any other.
    """
    if not _exactly(value).is_finite():
        raise OutOfRange
    return value


def is_in_range(value: Decimal) -> bool:
    """Whether `bounded` accepts it."""
    try:
        return _exactly(value).is_finite()
    except ArithmeticError:
        return False


def find_out_of_range(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Decimal]]:
    """Every out-of-bounds number in a decoded struct, with its path."""
    if isinstance(value, Decimal):
        if not is_in_range(value):
            yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from find_out_of_range(getattr(value, name), (*path, name))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from find_out_of_range(entry, (*path, place))


def shorten(value: object, whole: int = 40) -> str:
    """A value for messages: truncated to 40 characters if it has more than `whole`."""
    text = str(value)
    return text if len(text) <= whole else f"{text[:40]}…"


def shorten_id(product_id: str | None) -> str | None:
    """A product id for warnings: in full if it is within the limit."""
    return None if product_id is None else shorten(product_id, MAX_ID_LENGTH)
