"""What is usual for one measure of one store: the expected value and a band around it, learned from its past. Pure.

- **Expected.** The median of the last RECENT values; of values that count what happened since the crawl before, of all of them. Where
  the day of the week explains enough (`weekday_pays`), it is the median of the same weekday.
- **Scale.** How far values usually are from what their past led to expect: the larger of 1.4826 times the median of these distances
  and their 90th percentile over 1.645, which are the standard deviation if they are normally distributed. Both withstand single
  faults.
- **Pooling.** A store with few crawls has seen little of how it varies. Its scale is mixed with the median of its platform's
  stores, which counts as POOL_CRAWLS crawls.
- **Band.** Expected ± the larger of the measure's stated size and WIDTH times the scale. After a longer time than usual between two
  crawls it is wider, and what happened meanwhile is expected to be more.
- **Too little past.** Without a value of the store there is no band. With fewer than LEAST_CRAWLS and no stores to pool with there
  is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import NamedTuple

from menuwatch.quality.measures import MEDIAN_PRODUCTS, Direction, Measure, scaled, unscaled

RECENT = 7
WIDTH = 6.0
POOL_CRAWLS = 10
LEAST_CRAWLS = 5
"""Crawls from which a band needs no other stores, and a store's scale is one to pool."""
LONGEST_GAP = 8.0
"""Times the usual interval after which a longer gap widens the band no more."""
_WEEKS = 3
_PAYS = 0.6
"""Part of the scale that must be left with weekdays for these to be used."""


class Observation(NamedTuple):
    """The value of one menu. `weekday` is that at the store, 0 is Monday; `gap` are the hours since the crawl before."""

    value: float
    weekday: int
    gap: float
    at: datetime


class Band(NamedTuple):
    """`expected`, `low` and `high` are stated as values are; `scale` is on the scale of the measure, None of too little past."""

    expected: float
    low: float
    high: float
    scale: float | None
    crawls: int
    weekday: bool = False

    def direction(self, value: float) -> Direction | None:
        """On which side of the band the value is; None inside."""
        return "up" if value > self.high else "down" if value < self.low else None

    def lean(self, value: float) -> Direction | None:
        """On which side the value is more than half way out; None if it is not."""
        if value > (self.expected + self.high) / 2:
            return "up"
        return "down" if value < (self.expected + self.low) / 2 else None


def band(
    measure: Measure, past: Sequence[Observation], now: Observation, *, products: float, pool: float | None
) -> Band | None:
    """The band for the value of `now`, which itself has no influence on it.

    `past` are the store's values, oldest first, without those of findings; `products` is how many the measure is usually based on,
    `pool` the usual scale of the platform's stores. None if too little is known.
    """
    if not past or (len(past) < LEAST_CRAWLS and pool is None):
        return None
    usual_gap = median(one.gap for one in past)
    stretch = min(max(now.gap / usual_gap, 1.0), LONGEST_GAP) if usual_gap > 0 else 1.0
    values = [scaled(measure, one.value) for one in past]
    own = own_scale(measure, past)
    weekday = weekday_pays(past, values)
    if weekday:
        same = [value for one, value in zip(past, values, strict=True) if one.weekday == now.weekday]
        expected = median(same)
        own = _spread(_weekday_residuals(past, values))
    elif measure.is_flow:
        expected = median(values) * stretch
    else:
        expected = median(values[-RECENT:])
    scale = own if pool is None else _pooled(own, len(past), pool)
    assert scale is not None, "a store with a few crawls has a scale of its own"
    least = least_width(measure, products)
    width = max(least, WIDTH * scale * (stretch if measure.is_flow else math.sqrt(stretch)))
    return Band(
        expected=unscaled(measure, expected),
        low=unscaled(measure, expected - width),
        high=unscaled(measure, expected + width),
        scale=own,
        crawls=len(past),
        weekday=weekday,
    )


def least_width(measure: Measure, products: float) -> float:
    """The stated size of a measure that is based on this many products, on its scale."""
    if measure.is_median:
        return measure.size * max(1.0, math.sqrt(MEDIAN_PRODUCTS / max(products, 1.0)))
    return max(measure.size, measure.weight / max(products, 1.0))


def own_scale(measure: Measure, past: Sequence[Observation]) -> float | None:
    """How much the store's values usually vary; None of fewer than LEAST_CRAWLS."""
    if len(past) < LEAST_CRAWLS:
        return None
    values = [scaled(measure, one.value) for one in past]
    if measure.is_flow:
        middle = median(values)
        return _spread([value - middle for value in values])
    return _spread([value - median(values[max(0, n - RECENT) : n]) for n, value in enumerate(values) if n >= 2])


def weekday_pays(past: Sequence[Observation], values: Sequence[float]) -> bool:
    """Whether the day of the week explains enough of how values vary, of at least three values for each."""
    days: dict[int, int] = {}
    for one in past:
        days[one.weekday] = days.get(one.weekday, 0) + 1
    if len(days) < 7 or min(days.values()) < _WEEKS:
        return False
    middle = median(values)
    plain = _spread([value - middle for value in values])
    return plain > 0 and _spread(_weekday_residuals(past, values)) < _PAYS * plain


def _weekday_residuals(past: Sequence[Observation], values: Sequence[float]) -> list[float]:
    """Of each value from the median of the others of its weekday."""
    days: dict[int, list[float]] = {}
    for one, value in zip(past, values, strict=True):
        days.setdefault(one.weekday, []).append(value)
    residuals = []
    for same in days.values():
        residuals += [value - median(same[:n] + same[n + 1 :]) for n, value in enumerate(same)]
    return residuals


def _spread(residuals: Sequence[float]) -> float:
    distances = sorted(map(abs, residuals))
    if not distances:
        return 0.0
    high = distances[min(len(distances) - 1, math.ceil(0.9 * len(distances)) - 1)]
    return max(1.4826 * median(distances), high / 1.645)


def _pooled(own: float | None, crawls: int, pool: float) -> float:
    if own is None:
        return pool
    return math.sqrt((crawls * own**2 + POOL_CRAWLS * pool**2) / (crawls + POOL_CRAWLS))
