"""Numbers as platforms write them: whole, as a fraction (`7.0`), or as a text (`"7"`). Pure.

A quantity that cannot be read makes its item unusable: the product would otherwise seem to have lost its stock.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from math import ceil
from typing import Annotated

import msgspec

from menuwatch.catalog.taxonomy.limits import shorten
from menuwatch.platforms.items import UnusableItem

MAX_QUANTITY = 10_000_000
"""A larger quantity is an error, not a stock level."""

Whole = Annotated[int, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Fraction = Annotated[float, msgspec.Meta(ge=-MAX_QUANTITY, le=MAX_QUANTITY)]
Quantity = Whole | Fraction | str | None
"""A number of packages in a payload, or a fraction for goods sold by weight; `packages` reads it."""

_NUMERAL = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{0,30})?", re.ASCII)


def packages(amount: int | float | str | None, field: str = "quantity") -> int | None:
    """Whole packages, at least 0 (stores oversell); fractions are rounded up, so that a remainder is not zero. None for null and an
    empty text. Raises UnusableItem with the field's name for anything else that is no number, and beyond MAX_QUANTITY."""
    if type(amount) is int:
        whole = amount
    elif isinstance(amount, str):
        text = amount.strip()
        if not text:
            return None
        if not _NUMERAL.fullmatch(text):
            raise UnusableItem(field, f"invalid quantity {shorten(amount)!r}")
        whole = int(Decimal(text).to_integral_value(ROUND_CEILING))
    elif amount is None:
        return None
    elif isinstance(amount, bool) or amount != amount or abs(amount) > MAX_QUANTITY:
        raise UnusableItem(field, f"invalid quantity {shorten(amount)}")
    else:
        whole = ceil(amount)
    if abs(whole) > MAX_QUANTITY:
        raise UnusableItem(field, f"invalid quantity {shorten(whole)}")
    return max(0, whole)


Identifier = int | str
"""An id in a payload: a number or a text."""


def id_text(value: object) -> str | None:
    """An id as text, without NUL (which no column accepts); None if it is empty, or neither a number nor a text."""
    if isinstance(value, str):
        return (value.replace("\0", "") if "\0" in value else value) or None
    # Python refuses to write an integer of more than 4,300 digits.
    return str(value) if type(value) is int and value.bit_length() < 4096 else None
