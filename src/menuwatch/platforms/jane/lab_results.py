"""Laboratory values of a row: one list of compounds for each weight, cannabinoids and terpenes together. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from menuwatch.catalog.model import LabValue, Potency, ProductWarning
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.jane.payload import WEIGHTS, WeightLab
from menuwatch.platforms.lab import lab_value

_CANNABINOID = re.compile(
    r"(?:total |max |active )*(?:(?:delta|δ|d|∆)[\s-]?\d{1,2}[\s-]?)?(?:(?:o-?)?thc|cbd|cbg|cbn|cbc|cbl|cbt|cbe|hhc|tac)(?![a-z]{4})"
    r"|.*cannabi|total active",
    re.IGNORECASE,
)
"""THC, THCA, THCV, Δ9-THC, CBDa, "Total THC", "TAC", "Cannabigerol"; every other compound is a terpene."""

Labs = dict[str, tuple[LabValue, ...]]


@lru_cache(maxsize=1024)
def is_cannabinoid(name: str) -> bool:
    """Whether a compound is a cannabinoid, or a sum of cannabinoids."""
    return _CANNABINOID.match(name) is not None or name.lower().endswith(("gerol", "chromene", "cannabinol"))


@lru_cache(maxsize=1024)
def _is_total(name: str) -> bool:
    return "total" in name.lower() or name.upper().startswith("TAC")


def read_labs(rows: Sequence[WeightLab | None] | None, product_id: str, warnings: list[ProductWarning]) -> Labs:
    """The values of each weight, by its `price_id`, as given, zeros too, but those without a name. Of several lists of one weight the
    first that says something counts."""
    labs: Labs = {}
    for i, row in enumerate(rows or ()):
        if row is None or not row.price_id or labs.get(row.price_id):
            continue
        values = []
        for j, entry in enumerate(row.lab_results or ()):
            if entry is None or not entry.compound_name or not (name := label(entry.compound_name)):
                continue
            field = f"lab_results[{i}].lab_results[{j}].value"
            value = lab_value(name, entry.value, entry.unit, product_id, field, warnings)
            if value is not None:
                values.append(LabValue(name, value.value, value.unit, is_total=True) if _is_total(name) else value)
        labs[row.price_id] = tuple(values)
    return labs


def shown(labs: Labs, sold: Iterable[str]) -> tuple[LabValue, ...]:
    """The values to show of a product: those of the smallest weight sold that has any; of none sold, those of the smallest."""
    order = [*sold, *WEIGHTS, *labs]
    return next((labs[weight] for weight in order if labs.get(weight)), ())


def by_option(labs: Labs, sold: Sequence[str]) -> dict[str, Any]:
    """The values of each option sold, where they differ: weights may be of different batches."""
    values = {weight: labs[weight] for weight in sold if labs.get(weight)}
    if all(rows == shown(labs, sold) for rows in values.values()):
        return {}
    return {
        WEIGHTS[weight]: [{"name": row.name, "value": row.value, "unit": row.unit} for row in rows]
        for weight, rows in values.items()
    }


def content(labs: Labs, sold: Sequence[str], name: str) -> Potency | None:
    """The content of THC or CBD by the laboratory, over the weights sold, in the unit of the first; None without one above 0."""
    rows = [row for weight in sold for row in labs.get(weight, ()) if row.name.upper() in (name, f"TOTAL {name}")]
    known = [row for row in rows if row.value is not None and row.value > 0 and row.unit]
    values = [row.value for row in known if row.unit == known[0].unit and row.value is not None]
    return Potency(min(values), max(values), known[0].unit, known[0].unit) if values else None


def percentage(values: Mapping[str, Decimal | None], product_id: str, warnings: list[ProductWarning]) -> Potency | None:
    """The range of percentages by field; 0 says nothing. A value below 0 or above 100 is left out with a warning."""
    known = []
    for field, value in values.items():
        row = lab_value(field, value, "%", product_id, field, warnings)
        if row is not None and row.value is not None and row.value > 0:
            known.append(row.value)
    return Potency(min(known), max(known), "%", "%") if known else None
