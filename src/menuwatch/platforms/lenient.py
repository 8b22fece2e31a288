"""Reading an item that the strict decoder refuses, as far as it can be read at all."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

_LONGEST_INTEGER = 400
"""Digits; Python refuses to read an integer of more than 4,300 of them."""


def read(raw: bytes) -> Any:
    """The JSON in it, numbers exact. What is no UTF-8 becomes U+FFFD, and a number that is none (NaN) its own text, so that
    no decoder takes it for one.

    Raises ValueError for what is no JSON, RecursionError for what is nested too deeply.
    """
    return json.loads(
        raw.decode("utf-8", "replace"), parse_float=_fraction, parse_int=_whole, parse_constant=lambda name: name
    )


def _fraction(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text  # an exponent of twenty digits


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INTEGER else Decimal(text)


def writable(value: Any) -> Any:
    """The same without what no text column takes: NUL, and halves of surrogate pairs (which become U+FFFD)."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [writable(entry) for entry in value]
    if isinstance(value, dict):
        return {writable(key): writable(entry) for key, entry in value.items()}
    return value
