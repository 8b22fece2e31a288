"""PostgreSQL array literals for long batches: the driver's own dumping of lists costs several times as much per element.

The statement casts the literal: `%(ids)s::bigint[]`. Syntax: PostgreSQL manual, "Array Input and Output Syntax". Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime


def numbers(values: Iterable[int | float | bool | None]) -> str:
    """Of integers, floats or truth values; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    """Of any texts; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def times(values: Iterable[datetime | None]) -> str:
    """Of times with a zone; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else f'"{value.isoformat()}"' for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
