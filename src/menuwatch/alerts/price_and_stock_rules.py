"""Decides when a rule about prices, stock or new products fires. Pure.

A product is `armed` under a rule until the condition holds, `pending` until it has held for long enough, then `fired` until the
condition has clearly ceased, when it is armed again. So a rule fires once for each crossing, and prices that fluctuate around a
threshold fire nothing. The initial state of a product follows from its values before the change.

- `price_below` holds below the amount and ceases above it by `hysteresis_percent`. A product out of stock is not evaluated: its price
  is only the last one seen.
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

from menuwatch.alerts.model import CONDITIONS, Facts, Phase, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchState:
    """The state of a product under a rule. While pending, `since` and `crawls` say for how long the condition has held."""

    phase: Phase
    since: datetime | None = None
    crawls: int = 0
    reference: Decimal | None = None
    fired_at: datetime | None = None


class Evaluation(NamedTuple):
    """The result of one crawl. `reference` is the price that it dropped from."""

    state: MatchState
    fires: bool
    reference: Decimal | None = None


class _Observation(Enum):
    HOLDS = auto()
    CEASED = auto()
    BETWEEN = auto()
    NOTHING = auto()


def initial(terms: Terms, before: Facts | None) -> MatchState:
    """The state of a product without a stored one, by what it was `before`; None: it was not on the menu."""
    if before is None:
        arms = terms.condition in ("new_product", "price_below", "price_drops_by")
        return MatchState(phase="armed" if arms else "fired")
    match terms.condition:
        case "price_drops_by":
            return MatchState(phase="armed", reference=before.price)
        case "price_below" | "out_of_stock":
            return MatchState(phase="fired" if _observe(terms, before, None) is _Observation.HOLDS else "armed")
        case "back_in_stock":
            return MatchState(phase="armed" if before.stock == "oos" else "fired")
        case _:
            return MatchState(phase="fired")


def initial_existing(terms: Terms, now: Facts) -> MatchState:
    """The state of a product that existed before the rule, by what it is `now` and by `on_existing`."""
    if terms.on_existing == "fire" and CONDITIONS[terms.condition].can_hold:
        return MatchState(phase="armed")
    return initial(terms, now)


def _observe(terms: Terms, now: Facts, state: MatchState | None) -> _Observation:
    match terms.condition:
        case "price_below":
            assert terms.amount is not None, "checked when the rule was created"
            if now.price is None or now.stock == "oos":
                return _Observation.NOTHING
            if now.price < terms.amount:
                return _Observation.HOLDS
            return (
                _Observation.CEASED
                if _clears(now.price, terms.amount, terms.hysteresis_percent)
                else _Observation.BETWEEN
            )
        case "price_drops_by":
            reference = state.reference if state else None
            if now.price is None or reference is None or now.stock == "oos":
                return _Observation.NOTHING
            return _Observation.HOLDS if _dropped(terms, reference, now.price) else _Observation.BETWEEN
        case "back_in_stock":
            return {"in_stock": _Observation.HOLDS, "oos": _Observation.CEASED}.get(now.stock, _Observation.NOTHING)
        case "out_of_stock":
            return {"oos": _Observation.HOLDS, "in_stock": _Observation.CEASED}.get(now.stock, _Observation.NOTHING)
        case _:
            return _Observation.HOLDS


def _clears(price: Decimal, level: Decimal, percent: Decimal) -> bool:
    """Whether a price is clearly above a level. Without hysteresis the level itself is enough."""
    return price > level * (1 + percent / 100) if percent else price >= level


def _dropped(terms: Terms, reference: Decimal, price: Decimal) -> bool:
    if price >= reference:
        return False
    if terms.percent is not None:
        return (reference - price) * 100 >= terms.percent * reference
    assert terms.amount is not None, "checked when the rule was created"
    return reference - price >= terms.amount


def evaluate(terms: Terms, state: MatchState, now: Facts, at: datetime) -> Evaluation:
    """Evaluates one more crawl, at `at`, that saw the product as it is `now`."""
    state = _with_reference(terms, state, now)
    seen = _observe(terms, now, state)
    match seen:
        case _Observation.NOTHING:
            return Evaluation(state, fires=False)
        case _Observation.HOLDS if state.phase != "fired" or terms.condition == "price_drops_by":
            return _on_holding(terms, state, now, at)
        case _Observation.HOLDS:
            return Evaluation(state, fires=False)
        case _ if state.phase == "pending":
            # It did not last.
            return Evaluation(replace(state, phase="armed", since=None, crawls=0), fires=False)
        case _Observation.CEASED if state.phase == "fired":
            return Evaluation(replace(state, phase="armed"), fires=False)
        case _:
            return Evaluation(state, fires=False)


def _with_reference(terms: Terms, state: MatchState, now: Facts) -> MatchState:
    """A drop counts from the highest price since the rule last fired."""
    if terms.condition != "price_drops_by" or now.price is None:
        return state
    level = state.reference
    if level is None:
        return replace(state, reference=now.price)
    if state.phase == "fired":
        clear = now.price > level and _clears(now.price, level, terms.hysteresis_percent)
        return replace(state, phase="armed", reference=now.price) if clear else state
    return replace(state, reference=max(level, now.price))


def _on_holding(terms: Terms, state: MatchState, now: Facts, at: datetime) -> Evaluation:
    crawls = state.crawls + 1 if state.phase == "pending" else 1
    since = state.since if state.phase == "pending" and state.since is not None else at
    rested = state.fired_at is None or at >= state.fired_at + timedelta(minutes=terms.cooldown_minutes)
    if (
        crawls < terms.debounce_crawls
        or at < since + timedelta(minutes=terms.debounce_minutes)
        or not rested
    ):  # fmt: skip
        return Evaluation(replace(state, phase="pending", since=since, crawls=crawls), fires=False)
    reference = now.price if terms.condition == "price_drops_by" else state.reference
    return Evaluation(
        MatchState(phase="fired", reference=reference, fired_at=at), fires=True, reference=state.reference
    )


def should_store(terms: Terms, state: MatchState, now: Facts) -> bool:
    """Whether the state does not follow from the present product alone."""
    if terms.condition == "new_product" and state.phase == "fired":
        return False
    return state != initial(terms, now)
