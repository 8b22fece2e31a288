"""What a store really charged for one size of a product, as observed, and what that means for a special. The rule of all screens that
say whether a struck price is a saving: it counts if the store charged it, or more, within WINDOW. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from menuwatch.catalog.history import PriceSpan, Unobserved
from menuwatch.catalog.taxonomy.sizes import size_of

WINDOW = timedelta(days=90)
"""How long a price that was asked counts."""


class Asked(NamedTuple):
    """What a size cost in a time, in cents; `special` below a struck price."""

    start: datetime
    end: datetime
    price: int
    special: bool


def asked_prices(spans: Iterable[PriceSpan], sizes: Mapping[str, str], size: str) -> Iterator[Asked]:
    """The times in which a size could be bought, oldest first. `sizes` are those of the options that the product has now; the size of
    another option is that of its name. Options without a size have an empty one."""
    for span in spans:
        options = [
            one
            for one in (span.options() if span.present else ())
            if one.price is not None
            and one.in_stock is not False
            and (sizes[one.option] if one.option in sizes else size_of({"option": one.option}) or "") == size
        ]
        best = min(options, key=lambda one: one.price or 0, default=None)
        if best is not None and best.price is not None:
            yield Asked(span.from_, span.until, round(best.price * 100), best.regular is not None)


def while_observed(
    asked: Iterable[Asked], gaps: Sequence[Unobserved], since: datetime, now: datetime
) -> Iterator[Asked]:
    """The parts from `since` on in which the store was observed; `gaps` are the times in which it was not, oldest first."""
    for one in asked:
        at = max(one.start, since)
        for gap in gaps:
            if gap.from_ >= one.end:
                break
            if gap.from_ > at:
                yield one._replace(start=at, end=gap.from_)
            at = max(at, gap.to or now)
        if at < one.end:
            yield one._replace(start=at)


class SpecialPast(Struct, frozen=True, kw_only=True):
    """Since when a size has been on special, since when its price is known (None: it is not), and when the struck price, or more, and
    less than the price of the special were asked for the last time (None: never)."""

    began: datetime
    observed_from: datetime | None
    regular_until: datetime | None
    lower_until: datetime | None


def past_of_special(asked: Sequence[Asked], price: int, regular: int, now: datetime) -> SpecialPast:
    """What was asked before, and while, a size costs `price` instead of `regular`, both in cents."""
    began = now
    for one in reversed(asked):
        if not one.special:
            break
        began = one.start
    return SpecialPast(
        began=began,
        observed_from=asked[0].start if asked else None,
        regular_until=max((one.end for one in asked if one.price >= regular), default=None),
        lower_until=max((one.end for one in asked if one.price < price), default=None),
    )


def usual_price(asked: Iterable[Asked]) -> tuple[int | None, timedelta]:
    """The price at which, or below which, a size cost for half of the time, in cents; and the time."""
    times: dict[int, timedelta] = {}
    for one in asked:
        times[one.price] = times.get(one.price, timedelta()) + (one.end - one.start)
    whole, passed = sum(times.values(), timedelta()), timedelta()
    for price in sorted(times):
        passed += times[price]
        if 2 * passed >= whole and whole:
            return price, whole
    return None, whole
