"""Rules of search crawls: when a job submits its next page, when a failed attempt is retried, and how products are scored. Pure: the
clock and randomness are passed in.

A job is handled by one submitter at a time, on any server, and all state is in rows: the submitter checks a job when it is due, and
either submits one page or sets the next check. Other code that changes something (a page was processed, a user retried) makes the
job due as soon as its pace allows; only the submitter schedules pages.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from menuwatch.search_crawl.protocols import CrawledProduct

LONGEST_PAUSE = timedelta(hours=1)
"""Limit of the pause that a provider may request."""


_DEMAND, _LIGHTNESS, _ONE_PRICE, _COMPLETENESS = 40.0, 30.0, 15.0, 15.0
_MOST_LISTED = 10_000
_LIGHT_G, _HEAVY_G = 100.0, 10_000.0
"""Points of a product score, and the bounds of its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """When a job submits pages and retries failed ones; stored with the job. The defaults are those of SPEC section 12."""

    gap_min_seconds: float = 5.0
    gap_max_seconds: float = 15.0
    """Between two submissions: a random time from the first to the second."""
    mixing_threshold: int = 15
    """Pages that must be ready before submissions are no longer throttled, so that the next one is a random one of many."""
    max_retries: int = 3
    """Retries after the first attempt."""
    retry_base_minutes: float = 15.0
    """Wait before the first retry; doubles with each, plus up to a third of it at random."""


PACING_BOUNDS: dict[str, tuple[int, int]] = {
    "gap_min_seconds": (1, 3600),
    "gap_max_seconds": (1, 3600),
    "mixing_threshold": (1, 1000),
    "max_retries": (0, 10),
    "retry_base_minutes": (0, 1440),
}
"""Lowest and highest value of each field of `Pacing`."""


def gap(pacing: Pacing, rng: random.Random) -> timedelta:
    """The time until the next submission."""
    return timedelta(seconds=rng.uniform(pacing.gap_min_seconds, pacing.gap_max_seconds))


def retry_wait(pacing: Pacing, failures: int, rng: random.Random) -> timedelta | None:
    """Delay after the n-th failure (from 1); None when it is not retried."""
    if failures < 1:
        raise ValueError(f"failures are counted from 1, got {failures}")
    if failures > pacing.max_retries:
        return None
    doubled: int = 2 ** (failures - 1)
    return timedelta(minutes=pacing.retry_base_minutes * (doubled + rng.random() / 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Progress of a job. `ready` counts pages that may be submitted now, by priority; `waiting` those whose retry is not due, the
    first of them at `retry_at`; `under_way` those submitted before their deadline, of which `funnel` are searches and further pages
    of results; the first of their deadlines is `deadline_at`."""

    begun: bool
    mixing: bool
    mixing_threshold: int
    next_submit_after: datetime
    ready: tuple[int, int]
    waiting: int
    retry_at: datetime | None
    under_way: int
    funnel: int
    deadline_at: datetime | None


@dataclass(frozen=True, slots=True)
class Submit:
    """One page of that priority (1 is best), at random."""

    priority: int


class Wait(Struct, frozen=True):
    """Nothing to do before `until`, unless something changes."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Over:
    """The job is complete."""


def is_mixing(standing: Standing) -> bool:
    """Whether pages are submitted without waiting for more to choose from.

    The first search is submitted at once. Then the job waits for the pages it leads to, so that searches do not follow each other in a
    burst; unless there are enough to choose from, or nothing is under way that could add any. Once true, it stays true.
    """
    return (
        standing.mixing or sum(standing.ready) >= standing.mixing_threshold or (standing.begun and standing.funnel == 0)
    )


def decide(standing: Standing, now: datetime) -> Submit | Wait | Over:
    """Decides the job's next action."""
    ready = sum(standing.ready)
    if not ready and not standing.waiting and not standing.under_way:
        return Over()
    if not ready or (standing.begun and not is_mixing(standing)):
        soonest = [moment for moment in (standing.retry_at, standing.deadline_at) if moment is not None]
        return Wait(min(soonest))
    if now < standing.next_submit_after:
        return Wait(standing.next_submit_after)
    return Submit(1 if standing.ready[0] else 2)


def score(product: CrawledProduct) -> Decimal:
    """Score from 0 to 100 with one decimal place, which orders the products of one crawl; it is not a forecast. Missing values score
    nothing.

    | part | points | why |
    |---|---|---|
    | demand | 40 | number of shops that list it, the only sign of demand on the page; log10 scale, full at 10,000 |
    | lightness | 30 | light products are cheap to ship: full up to 100 g, log10 scale, none from 10 kg on |
    | one price | 15 | lowest by highest price: a wide range makes the customer's price uncertain |
    | completeness | 15 | share of its variants that have both a price and a weight |
    """
    points = _DEMAND * _demand(product.listed) + _LIGHTNESS * _lightness(product.weight_g)
    points += _ONE_PRICE * _one_price(product.price_min, product.price_max)
    if product.variants:
        complete = sum(variant.price is not None and variant.weight_g is not None for variant in product.variants)
        points += _COMPLETENESS * complete / len(product.variants)
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
