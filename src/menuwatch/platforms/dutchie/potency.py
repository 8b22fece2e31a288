"""How strong it is: three units, ranges of none, one or two values, and totals among the parts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from menuwatch.catalog.canon.bounds import bounded
from menuwatch.catalog.model import Cannabinoid, Potency
from menuwatch.platforms.dutchie.payload import CannabinoidRow, Content, TerpeneRow
from menuwatch.platforms.dutchie.text import label

_TEN = Decimal(10)


def potency(content: Content | None) -> Potency | None:
    """The range of content, None where none is given.

    mg/g are a tenth of a percent. Milligrams are those of the whole package and are never made into percent: what the
    package weighs is another matter. A unit never seen passes through. Raises ValueError where the values have no unit,
    ArithmeticError where one is out of bounds.
    """
    if content is None or not content.range:
        return None
    values = [bounded(value) for value in content.range if value is not None]
    if not values:
        return None
    lo, hi = (values[0], values[0]) if len(values) == 1 else (min(values), max(values))
    raw = content.unit
    if raw == "PERCENTAGE":
        return Potency(lo, hi, "%", raw)
    if raw == "MILLIGRAMS":
        return Potency(lo, hi, "mg", raw)
    if raw == "MILLIGRAMS_PER_GRAM":
        return Potency(lo / _TEN, hi / _TEN, "%", raw)
    if not raw:
        raise ValueError("values without a unit")
    return Potency(lo, hi, label(raw), label(raw))


@lru_cache(maxsize=1024)
def _named(text: str) -> tuple[str, bool]:
    name = label(text)
    return name, name.startswith(('"TAC"', "TAC")) or "Total" in name


def cannabinoids(rows: Sequence[CannabinoidRow | None] | None) -> tuple[Cannabinoid, ...]:
    """Lab rows as given; a row without a name is left out. Sums such as `"TAC" - Total Active Cannabinoids` are marked, because
    adding them to the others counts everything twice. Raises ArithmeticError for a value out of bounds."""
    if not rows:
        return ()
    found = []
    for row in rows:
        if row is None or row.cannabinoid is None or not row.cannabinoid.name:
            continue
        name, is_total = _named(row.cannabinoid.name)
        value = bounded(row.value) if row.value is not None else None
        found.append(Cannabinoid(name, value, label(row.unit) if row.unit else "", is_total))
    return tuple(found)


def terpenes(rows: Sequence[TerpeneRow | None] | None) -> list[dict[str, Any]]:
    """Terpenes as given; a row without a name or a value is left out. Raises ArithmeticError for a value out of bounds."""
    return [
        {"name": label(row.libraryTerpene.name), "value": bounded(row.value), "unit": label(row.unit or "")}
        for row in rows or ()
        if row is not None and row.value is not None and row.libraryTerpene is not None and row.libraryTerpene.name
    ]
