"""What numbers, quantities and ids a product may have: what PostgreSQL and JSON can hold, and no reader stumbles over.

JSON's grammar allows 1e400 and 1e-20000, and a text that is read as a number may be "NaN" or "Infinity". One of them in one
product would have the whole menu refused by the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow, Rounded, Subnormal
from typing import Any

import msgspec

MAX_ID_LENGTH = 200
"""Characters. Real ids have 24 or 17; PostgreSQL indexes no more than 2,700 bytes."""

MAX_TOTAL = 2_147_483_647
"""The largest number of packages that the column of a product's sum takes."""

_DIGITS = 100
"""Floats that were written out in full ("2.79999999999999982236431605997495353221893310546875", seen) have some 60."""

_exactly = Context(
    prec=_DIGITS, Emin=-6, Emax=8, traps=[Clamped, Inexact, InvalidOperation, Overflow, Rounded, Subnormal]
).plus


class Unfit(ArithmeticError):
    """A number out of bounds."""


def bounded(value: Decimal) -> Decimal:
    """The same number if it is finite, below 1,000,000,000 and, unless it is zero, not below 0.000001, signs aside, with
    at most 100 digits. Raises ArithmeticError for any other."""
    if not _exactly(value).is_finite():
        raise Unfit
    return value


def fits(value: Decimal) -> bool:
    """Whether `bounded` takes it."""
    try:
        return _exactly(value).is_finite()
    except ArithmeticError:
        return False


def unfit(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Decimal]]:
    """Every number out of bounds anywhere in a decoded struct, with the fields and places that lead to it."""
    if isinstance(value, Decimal):
        if not fits(value):
            yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from unfit(getattr(value, name), (*path, name))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from unfit(entry, (*path, place))


def shown(value: object, whole: int = 40) -> str:
    """A value as a message tells it: its first 40 characters where it has more than `whole`."""
    text = str(value)
    return text if len(text) <= whole else f"{text[:40]}…"


def shown_id(product_id: str | None) -> str | None:
    """A product id as a warning names it: in full if it is one that products may have."""
    return None if product_id is None else shown(product_id, MAX_ID_LENGTH)
