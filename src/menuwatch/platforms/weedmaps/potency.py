"""How strong it is: `measurements[]` of THC and CBD, each in `%` or `mg`, often both.

A value of 0 stands where nothing was measured as often as where there is nothing (an edible of 100 mg has `THC % 0.0` beside it),
so it makes no potency; the row stays among the lab results as it came. Of both units the one is taken that goods of the kind are
sold by: milligrams of what is sold by content, percent of the rest. `cannabinoids` repeats the percentages and is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from menuwatch.catalog.canon.bounds import bounded
from menuwatch.catalog.canon.text import label
from menuwatch.catalog.model import Cannabinoid, Potency
from menuwatch.platforms.weedmaps.payload import Measurement


def potency(rows: Sequence[Measurement | None] | None, name: str, *, dosed: bool) -> Potency | None:
    """The content of that name, None where none is given. Raises ArithmeticError for a value out of bounds."""
    found: dict[str, Decimal] = {}
    for row in rows or ():
        if row is not None and row.name == name and row.unit and row.value is not None and bounded(row.value) > 0:
            found.setdefault(label(row.unit), row.value)
    for unit in ("mg", "%") if dosed else ("%", "mg"):
        if unit in found:
            return Potency(found[unit], found[unit], unit, unit)
    for unit, value in found.items():
        return Potency(value, value, unit, unit)
    return None


def cannabinoids(rows: Sequence[Measurement | None] | None) -> tuple[Cannabinoid, ...]:
    """Lab rows as given, zeros too; a row without a name is left out."""
    return tuple(
        Cannabinoid(label(row.name), bounded(row.value) if row.value is not None else None, label(row.unit or ""))
        for row in rows or ()
        if row is not None and row.name
    )
