"""Rows of read models for templates: JSON that was passed through undecoded, with every digit of its prices."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.core.shapes import to_row
from menuwatch.db.query import Row

_DECODER = msgspec.json.Decoder(float_hook=Decimal)


def plain(value: Any) -> Any:
    """A column's value, decoded if it is JSON."""
    return _DECODER.decode(value) if isinstance(value, msgspec.Raw) else value


def decoded(rows: Iterable[msgspec.Struct]) -> list[Row]:
    """The rows as dictionaries, with their JSON columns as values."""
    return [{name: plain(value) for name, value in to_row(row).items()} for row in rows]
