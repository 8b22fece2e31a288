"""Rows of read models for templates: JSON that was passed through undecoded, with every digit of its prices."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.operations.reading import Row

_DECODER = msgspec.json.Decoder(float_hook=Decimal)


def plain(value: Any) -> Any:
    """A column's value, decoded where it is JSON."""
    return _DECODER.decode(value) if isinstance(value, msgspec.Raw) else value


def decoded(rows: Iterable[Row]) -> list[Row]:
    """The rows with their JSON columns as values."""
    return [{name: plain(value) for name, value in row.items()} for row in rows]
