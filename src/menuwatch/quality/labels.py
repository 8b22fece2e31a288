"""Measures, values and causes as text for people. Pure."""

from __future__ import annotations

from menuwatch.core.format import percent, pluralize
from menuwatch.quality.measures import measure_of
from menuwatch.quality.service import Finding

_LABELS = {
    "products": "products on the menu",
    "lost": "products gone since the last menu",
    "new": "products never seen before",
    "changed.price": "products with a changed price",
    "changed.stock": "products with changed stock",
    "level.price": "level of regular prices",
    "level.thc": "level of THC",
    "stock.oos": "products out of stock",
    "special": "products on special",
}
_FAMILY_LABELS = {
    "null": "products without {}",
    "category": "products in {}",
    "unit": "THC values in {}",
    "word": "products with the status “{}”",
    "price": "median price of {}",
    "thc": "median THC of {}",
}


def measure_label(name: str) -> str:
    """What a measure is."""
    family, _, rest = name.partition(".")
    word = rest if family == "word" else rest.replace("_", " ")
    return _LABELS.get(name) or _FAMILY_LABELS.get(family, name).format(
        word.replace("thc", "THC").replace("cbd", "CBD")
    )


def value_text(name: str, value: float | None) -> str | None:
    """A value: a share in per cent, a count, a level, a price or THC as a number."""
    measure = measure_of(name)
    if value is None:
        return None
    if measure is not None and not measure.is_ratio:
        return percent(value, 1)
    return f"{value:,.0f}" if name == "products" else f"{value:,.2f}"


def band_text(name: str, low: float | None, high: float | None) -> str | None:
    """A band, as "10.0 % to 30.0 %"."""
    return None if low is None or high is None else f"{value_text(name, low)} to {value_text(name, high)}"


def cause_text(finding: Finding) -> str:
    """Cause of a finding, and how many of its stores show it."""
    if finding.scope == "store":
        return "this store"
    name = (finding.scope_key or "").split(":", 1)[-1] if finding.scope != "platform" else finding.scope_key
    shown = f"{finding.scope_affected} of {pluralize(finding.scope_stores, 'store')}"
    label = {
        "chain": f"chain {name}",
        "point_of_sale": f"point of sale {name}",
        "platform": f"platform {name}",
        "normalizer": f"a release of Menuwatch, on {name}",
    }[finding.scope]
    return f"{label}: {shown}"
