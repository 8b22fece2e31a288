"""Laboratory values as platforms write them: of cannabinoids and of terpenes. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from menuwatch.catalog.model import LabValue, ProductWarning
from menuwatch.catalog.taxonomy.limits import is_in_range, shorten
from menuwatch.catalog.taxonomy.text import label

_HUNDRED = Decimal(100)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def lab_value(
    name: str, value: Decimal | None, unit: str | None, product_id: str, field: str, warnings: list[ProductWarning]
) -> LabValue | None:
    """The value, whose unit may be missing and which may be a total of others; None with a warning for an impossible one: below 0,
    above 100 %, out of range."""
    unit = label(unit or "")
    if value is not None and not (is_in_range(value) and value >= 0 and (unit != "%" or value <= _HUNDRED)):
        warnings.append(
            ProductWarning(product_id, field, f"invalid content {shorten(value)} {unit}".rstrip() + "; left out")
        )
        return None
    name = label(name)
    return LabValue(name, value, unit, name.startswith(('"TAC"', "TAC")) or "Total" in name)


@lru_cache(maxsize=1024)
def spelled(name: str) -> str:
    """The name of a substance that is a key: `betaMyrcene` is Beta Myrcene, `thcA` is THCA."""
    name = label(name)
    if name.lower().startswith(("thc", "cb")):
        return name.upper()
    return " ".join(word[:1].upper() + word[1:] for word in _WORD.split(name))
