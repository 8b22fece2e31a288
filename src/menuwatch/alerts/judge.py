"""When a rule fires for a product. Pure.

A product is `armed` under a rule until the condition holds, `pending` until it has held for long enough, then `fired` until the
condition has clearly ceased to hold, when it is armed again. So a rule fires once for each crossing, and prices that tremble around a
threshold fire nothing. Where nothing is known of a product under a rule, what it was before its present change tells.

- `price_below` holds below the amount and ceases above it by `hysteresis_percent`. A product that is out of stock is not judged: its
  price is only the last one seen.
- `price_drops_by` counts from a reference: the highest price since it last fired, and the price at which it fired until the price is
  above that by `hysteresis_percent`. It fires again for each further drop of the whole size.
- `back_in_stock` holds in stock and ceases out of stock; `out_of_stock` the other way round. `unknown` says nothing.
- `new_product` fires once, for a product that came to a menu that was known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, auto
from typing import NamedTuple

from menuwatch.alerts.model import Facts, Phase, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a product stands under a rule. `since` and `crawls` count how long the condition has held, while pending."""

    phase: Phase
    since: datetime | None = None
    crawls: int = 0
    reference: Decimal | None = None
    fired_at: datetime | None = None


class Verdict(NamedTuple):
    """What one observation leads to. `reference` is what the price is told to have dropped from."""

    standing: Standing
    fires: bool
    reference: Decimal | None = None


class _Seen(Enum):
    HOLDS = auto()
    CEASED = auto()
    BETWEEN = auto()
    NOTHING = auto()


def initial(terms: Terms, before: Facts | None) -> Standing:
    """Where a product stands of which nothing is noted, by what it was `before`: None for one that was not there."""
    if before is None:
        arms = terms.condition in ("new_product", "price_below", "price_drops_by")
        return Standing(phase="armed" if arms else "fired")
    match terms.condition:
        case "price_drops_by":
            return Standing(phase="armed", reference=before.price)
        case "price_below" | "out_of_stock":
            return Standing(phase="fired" if _look(terms, before, None) is _Seen.HOLDS else "armed")
        case "back_in_stock":
            return Standing(phase="armed" if before.stock == "oos" else "fired")
        case _:
            return Standing(phase="fired")


def existing(terms: Terms, now: Facts) -> Standing:
    """Where a product stands that is older than what is known of it: as it is `now` says whether it fires, and `on_existing` does."""
    if terms.on_existing == "fire" and terms.condition in ("price_below", "out_of_stock"):
        return Standing(phase="armed")
    return initial(terms, now)


def _look(terms: Terms, now: Facts, standing: Standing | None) -> _Seen:
    match terms.condition:
        case "price_below":
            assert terms.amount is not None, "checked when the rule was made"
            if now.price is None or now.stock == "oos":
                return _Seen.NOTHING
            if now.price < terms.amount:
                return _Seen.HOLDS
            return _Seen.CEASED if _clears(now.price, terms.amount, terms.hysteresis_percent) else _Seen.BETWEEN
        case "price_drops_by":
            reference = standing.reference if standing else None
            if now.price is None or reference is None or now.stock == "oos":
                return _Seen.NOTHING
            return _Seen.HOLDS if _dropped(terms, reference, now.price) else _Seen.BETWEEN
        case "back_in_stock":
            return {"in_stock": _Seen.HOLDS, "oos": _Seen.CEASED}.get(now.stock, _Seen.NOTHING)
        case "out_of_stock":
            return {"oos": _Seen.HOLDS, "in_stock": _Seen.CEASED}.get(now.stock, _Seen.NOTHING)
        case _:
            return _Seen.HOLDS


def _clears(price: Decimal, level: Decimal, percent: Decimal) -> bool:
    """Whether a price is back above a level for certain. Without hysteresis the level itself is enough."""
    return price > level * (1 + percent / 100) if percent else price >= level


def _dropped(terms: Terms, reference: Decimal, price: Decimal) -> bool:
    if price >= reference:
        return False
    if terms.percent is not None:
        return (reference - price) * 100 >= terms.percent * reference
    assert terms.amount is not None, "checked when the rule was made"
    return reference - price >= terms.amount


def judge(terms: Terms, standing: Standing, now: Facts, at: datetime) -> Verdict:
    """One more crawl, at `at`, that saw the product as it is `now`."""
    standing = _referenced(terms, standing, now)
    seen = _look(terms, now, standing)
    match seen:
        case _Seen.NOTHING:
            return Verdict(standing, fires=False)
        case _Seen.HOLDS if standing.phase != "fired" or terms.condition == "price_drops_by":
            return _held(terms, standing, now, at)
        case _Seen.HOLDS:
            return Verdict(standing, fires=False)
        case _ if standing.phase == "pending":
            # It did not last.
            return Verdict(replace(standing, phase="armed", since=None, crawls=0), fires=False)
        case _Seen.CEASED if standing.phase == "fired":
            return Verdict(replace(standing, phase="armed"), fires=False)
        case _:
            return Verdict(standing, fires=False)


def _referenced(terms: Terms, standing: Standing, now: Facts) -> Standing:
    """A drop is counted from the highest price since the last one was told."""
    if terms.condition != "price_drops_by" or now.price is None:
        return standing
    level = standing.reference
    if level is None:
        return replace(standing, reference=now.price)
    if standing.phase == "fired":
        clear = now.price > level and _clears(now.price, level, terms.hysteresis_percent)
        return replace(standing, phase="armed", reference=now.price) if clear else standing
    return replace(standing, reference=max(level, now.price))


def _held(terms: Terms, standing: Standing, now: Facts, at: datetime) -> Verdict:
    crawls = standing.crawls + 1 if standing.phase == "pending" else 1
    since = standing.since if standing.phase == "pending" and standing.since is not None else at
    rested = standing.fired_at is None or at >= standing.fired_at + timedelta(minutes=terms.cooldown_minutes)
    if (
        crawls < terms.debounce_crawls
        or at < since + timedelta(minutes=terms.debounce_minutes)
        or not rested
    ):  # fmt: skip
        return Verdict(replace(standing, phase="pending", since=since, crawls=crawls), fires=False)
    told = now.price if terms.condition == "price_drops_by" else standing.reference
    return Verdict(Standing(phase="fired", reference=told, fired_at=at), fires=True, reference=standing.reference)


def worth_noting(terms: Terms, standing: Standing, now: Facts) -> bool:
    """Whether the product as it is now would not lead to the same standing by itself."""
    if terms.condition == "new_product" and standing.phase == "fired":
        return False
    return standing != initial(terms, now)
