"""Cannabinoids (with totals listed among the parts), terpenes and effects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from menuwatch.catalog.model import LabValue
from menuwatch.catalog.taxonomy.limits import bounded
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.dutchie.payload import CannabinoidRow, TerpeneRow


@lru_cache(maxsize=4096)
def effect_name(text: str) -> str:
    """Normalizes the spelling of an effect: `Pain-Relief`, `painRelief` → `pain_relief`; `Clear_Mind` → `clear_mind`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.replace("\0", "").strip())
    return re.sub(r"[\s\-_]+", "_", spaced).lower()


@lru_cache(maxsize=1024)
def _named(text: str) -> tuple[str, bool]:
    name = label(text)
    return name, name.startswith(('"TAC"', "TAC")) or "Total" in name


def cannabinoids(rows: Sequence[CannabinoidRow | None] | None) -> tuple[LabValue, ...]:
    """Lab rows as given, except rows without a name. Sums such as `"TAC" - Total Active Cannabinoids` are marked, because
    adding them to the others would count everything twice. Raises ArithmeticError for a value out of bounds.
    """
    if not rows:
        return ()
    results = []
    for row in rows:
        if row is None or row.cannabinoid is None or not row.cannabinoid.name:
            continue
        name, is_total = _named(row.cannabinoid.name)
        value = bounded(row.value) if row.value is not None else None
        results.append(LabValue(name, value, label(row.unit) if row.unit else "", is_total))
    return tuple(results)


def terpenes(rows: Sequence[TerpeneRow | None] | None) -> tuple[LabValue, ...]:
    """Terpenes as given, except rows without a name or a value. Raises ArithmeticError for a value out of bounds."""
    if not rows:
        return ()
    return tuple(
        LabValue(label(row.libraryTerpene.name), bounded(row.value), label(row.unit or ""))
        for row in rows
        if row is not None and row.value is not None and row.libraryTerpene is not None and row.libraryTerpene.name
    )
