"""How promising a product is for somebody who would sell it on, from 0 to 100: what its page tells, and no guess beyond it.

| part | points | why |
|---|---|---|
| demand | 40 | shops that list it are the one sign of demand on the page; on a scale of tens, full at 10,000 |
| lightness | 30 | what is light is cheap to ship: full up to 100 g, on a scale of tens, none from 10 kg on |
| one price | 15 | lowest by highest price: a wide range says little of what a customer would pay |
| completeness | 15 | share of its variants that have both a price and a weight |

What the page does not tell counts nothing. The score orders products of one job; it is no forecast.
"""

from __future__ import annotations

import math
from decimal import Decimal

from menuwatch.crawls.base import CrawledProduct

_DEMAND, _LIGHTNESS, _ONE_PRICE, _COMPLETENESS = 40.0, 30.0, 15.0, 15.0
_MOST_LISTED = 10_000
_LIGHT_G, _HEAVY_G = 100.0, 10_000.0


def score(product: CrawledProduct) -> Decimal:
    """The product's score, with one decimal place."""
    points = _DEMAND * _demand(product.listed) + _LIGHTNESS * _lightness(product.weight_g)
    points += _ONE_PRICE * _one_price(product.price_min, product.price_max)
    if product.variants:
        whole = sum(one.price is not None and one.weight_g is not None for one in product.variants)
        points += _COMPLETENESS * whole / len(product.variants)
    return Decimal(str(round(points, 1)))


def _demand(listed: int | None) -> float:
    return 0.0 if listed is None or listed <= 0 else min(1.0, math.log10(1 + listed) / math.log10(1 + _MOST_LISTED))


def _lightness(weight_g: Decimal | None) -> float:
    if weight_g is None or weight_g <= 0:
        return 0.0
    above = math.log10(max(float(weight_g), _LIGHT_G) / _LIGHT_G)
    return max(0.0, 1.0 - above / math.log10(_HEAVY_G / _LIGHT_G))


def _one_price(low: Decimal | None, high: Decimal | None) -> float:
    if low is None or high is None or low <= 0 or high < low:
        return 0.0
    return float(low / high)
