"""Statistics worked out by hand, of plain numbers. Shares no code with the product."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest


def quantile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """Between the two neighbours of that place, in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[Fraction]) -> dict[str, Any]:
    """As the API tells it, to 4 places."""
    if not values:
        return {"n": 0, "p10": None, "median": None, "p90": None, "mean": None}
    return {
        "n": len(values),
        "p10": near(quantile(values, Fraction(1, 10))),
        "median": near(quantile(values, Fraction(1, 2))),
        "p90": near(quantile(values, Fraction(9, 10))),
        "mean": near(sum(values, Fraction()) / len(values)),
    }


def plausible(values: Sequence[Fraction]) -> Callable[[Fraction], bool]:
    """Whether a price per gram is within eight times the median of these and an eighth of it; of fewer than ten, any is."""
    if len(values) < 10:
        return lambda value: True
    median = quantile(values, Fraction(1, 2))
    return lambda value: median <= 8 * value and value <= 8 * median


def near(value: Fraction) -> Any:
    return pytest.approx(float(value), abs=0.000051)
