"""What is measured of each menu, by name, and how much a measure may move before it is outside its band. Pure.

| measure | value | scale | stated size |
|---------|-------|-------|-------------|
| `products` | products on the menu | ratio | a fifth fewer or a quarter more |
| `lost` | share of the former menu that is not on this one | share | 10 points |
| `new` | share of products that were never seen before | share | 15 points |
| `changed.price`, `changed.stock` | share of products with such a change | share | 20 points |
| `null.FIELD` | share of products without a value | share | 10 points |
| `stock.oos` | share of products out of stock | share | 20 points |
| `special` | share of products on special | share | 20 points |
| `category.NAME` | share of products of that canonical category | share | 10 points |
| `unit.NAME` | share of that unit among THC values | share | 10 points |
| `word.NAME` | share of that stock or status word of the platform | share | 10 points |
| `level.price`, `level.thc` | regular prices, THC of the same products, 1 on the first measured menu | ratio | 15 %, 20 % |
| `price.NAME` | median price of that category | ratio | 50 % |
| `thc.NAME` | median THC in per cent of that category | ratio | 50 % |

A measure that moves by more than its stated size is a finding, unless the store or its platform usually varies as much.

- A share must also move by MIN_PRODUCTS of the products that it is based on.
- A level is chained: from menu to menu it moves by the mean logarithm of what the same products changed by, each by a factor of 4
  at most. What is new or gone does not move it. It must move by as much as two products that change by a factor of 4.
- A median is of ten products or more, and moves with what comes and goes. Its stated size is that of MEDIAN_PRODUCTS products; of n it
  is the square root of MEDIAN_PRODUCTS / n times as much, on the logarithmic scale.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Severity = Literal["critical", "warning", "info"]
Direction = Literal["up", "down"]

MIN_PRODUCTS = 4
"""Products that a share has to move by."""
MEDIAN_PRODUCTS = 40
"""Products of a median of the stated size."""


class Measure(NamedTuple):
    """How one measure is compared.

    `size` is the stated size on the measure's scale: a share, or a natural logarithm. `is_flow`: it counts what happened since the
    crawl before, so that more is usual after a longer time. `is_open`: a name that the menu does not have is a share of 0. `weight`
    divided by the products that it is based on is what it must move by at least.
    """

    size: float
    is_ratio: bool = False
    is_flow: bool = False
    is_open: bool = False
    is_median: bool = False
    weight: float = MIN_PRODUCTS
    up: Severity = "warning"
    down: Severity = "warning"


_NULL = Measure(0.10, up="warning", down="info")
_VITAL = _NULL._replace(up="critical")
_MEASURES = {
    "products": Measure(math.log(1.25), is_ratio=True, weight=0.0, up="info", down="critical"),
    "lost": Measure(0.10, is_flow=True, up="critical", down="info"),
    "new": Measure(0.15, is_flow=True, up="info", down="info"),
    "changed.price": Measure(0.20, is_flow=True, down="info"),
    "changed.stock": Measure(0.20, is_flow=True, down="info"),
    "null.price": _VITAL,
    "null.stock": _VITAL,
    "null.category": _VITAL,
    "stock.oos": Measure(0.20),
    "level.price": Measure(math.log(1.15), is_ratio=True, weight=2 * math.log(4), up="critical", down="critical"),
    "level.thc": Measure(math.log(1.20), is_ratio=True, weight=2 * math.log(4)),
    "special": Measure(0.20),
}
_FAMILIES = {
    "null": _NULL,
    "category": Measure(0.10, is_open=True, up="info", down="info"),
    "unit": Measure(0.10, is_open=True),
    "word": Measure(0.10, is_open=True),
    "price": Measure(math.log(1.50), is_ratio=True, is_median=True, up="info", down="info"),
    "thc": Measure(math.log(1.50), is_ratio=True, is_median=True, up="info", down="info"),
}
FAMILIES = tuple(_FAMILIES)
NAMES = (*_MEASURES, *(f"{family}.…" for family in _FAMILIES))


def measure_of(name: str) -> Measure | None:
    """How the measure of that name is compared; None if there is none such."""
    known = _MEASURES.get(name)
    if known is not None:
        return known
    family, _, rest = name.partition(".")
    return _FAMILIES.get(family) if rest else None


def scaled(measure: Measure, value: float) -> float:
    """The value on the scale on which it is compared. A count of 0 is a tenth of a product."""
    return math.log(max(value, 0.1)) if measure.is_ratio else value


def unscaled(measure: Measure, value: float) -> float:
    """A value of that scale as it is stated; a share lies between 0 and 1."""
    return math.exp(value) if measure.is_ratio else min(max(value, 0.0), 1.0)
