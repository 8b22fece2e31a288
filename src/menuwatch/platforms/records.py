"""Reading a platform's record of a store, whatever its fields are called. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from menuwatch.catalog.canon.text import clean

LONGEST_TEXT = 500
"""Characters of a field that has a column: several have an index, which takes 2,700 bytes."""


def text_of(holder: Mapping[str, Any], key: str) -> str | None:
    """The text in a field, without blanks around it; None where it is none, empty or too long for a column."""
    value = holder.get(key)
    return (clean(value) or None) if isinstance(value, str) and len(value) <= LONGEST_TEXT else None


def on_earth(latitude: float, longitude: float) -> tuple[float | None, float | None]:
    """(latitude, longitude) in degrees; (None, None) for what is not on this planet, and for the filler 0, 0."""
    if not (isfinite(latitude) and isfinite(longitude) and abs(latitude) <= 90 and abs(longitude) <= 180):
        return None, None
    return (float(latitude), float(longitude)) if latitude or longitude else (None, None)
