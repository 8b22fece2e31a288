"""Sizes as they are shown and compared everywhere: "3.5 g", "100 mg", "10 pieces". Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, content_of, mass, shortest
from menuwatch.catalog.taxonomy.text import words

_NONE = frozenset({"", "n a", "na", "each", "ea", "none", "unit", "default"})


def sizes(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """A product's distinct sizes: by weight if known, else by content, by pieces, or as the menu says."""
    return list(dict.fromkeys(size for one in variants if (size := size_of(one)) is not None))


def size_of(variant: Mapping[str, Any]) -> str | None:
    """`3.5 g`, `100 mg`, `10 pieces`, or the menu's own word; None if it has none."""
    option = str(variant.get("option", "")).strip()
    return _size(variant.get("weight_g"), variant.get("content_mg"), variant.get("pieces"), option)


@lru_cache(maxsize=16_384, typed=True)
def _size(grams: Any, content: Any, pieces: Any, option: str) -> str | None:
    """Cached: all menus together have few packages."""
    if grams is not None and Decimal(str(grams)) > 0:
        return f"{shortest(by_ounces(Decimal(str(grams))))} g"
    if content is not None:
        return f"{shortest(Decimal(str(content)))} mg"
    if pieces is not None:
        return "1 piece" if pieces == 1 else f"{pieces} pieces"
    if (said := mass(option)) is not None:
        return f"{shortest(by_ounces(Decimal(str(said))))} g"
    if (content := content_of(option)) is not None:
        return f"{shortest(content)} mg"
    return None if " ".join(words(option)) in _NONE or len(option) > 30 else option


def size_order(size: str | None) -> tuple[int, float, str]:
    """Sort key: by weight, then by content, then other sizes; None last."""
    number, _, unit = (size or "").partition(" ")
    try:
        return {"g": 0, "mg": 1}.get(unit, 2), float(number), unit
    except ValueError:
        return (4 if size is None else 3), 0.0, size or ""


_OUNCE = Decimal("28.3495")
_CLOSE = Decimal("0.0025")
"""Share by which menus round the grams of an ounce: 28.3 and 28.4 for 28.3495."""


def by_ounces(grams: Decimal) -> Decimal:
    """The weight, or 28, 14, 7 or 3.5 g for an ounce or a fraction of it in exact grams, as menus call the same package both."""
    for part in (1, 2, 4, 8):
        if abs(grams * part / _OUNCE - 1) <= _CLOSE:
            return GRAMS_PER_OUNCE / part
    return grams
