"""What an alert rule is, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from typing import Literal, NamedTuple

Condition = Literal[
    "price_below", "price_drops_by", "back_in_stock", "out_of_stock", "new_product", "circuit_opened", "proxies_down"
]
Price = Literal["effective", "rec", "special", "med", "med_special"]
Digest = Literal["immediately", "hourly", "daily"]
Phase = Literal["armed", "pending", "fired"]
Reach = Literal["product", "brand", "category", "search", "store", "operations"]

PRICE_CONDITIONS = frozenset({"price_below", "price_drops_by"})
OPERATIONS = frozenset({"circuit_opened", "proxies_down"})
"""Conditions about the work itself, which have no scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a rule waits for, apart from where."""

    condition: Condition
    amount: Decimal | None = None
    percent: Decimal | None = None
    option: str | None = None
    price: Price = "effective"
    hysteresis_percent: Decimal = Decimal(2)
    debounce_crawls: int = 1
    debounce_minutes: int = 0
    cooldown_minutes: int = 0
    on_existing: Literal["skip", "fire"] = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Terms):
    """A rule as it is stored."""

    id: int
    name: str
    reach: Reach
    product_id: int | None = None
    dispensary_id: int | None = None
    brand: str | None = None
    category: str | None = None
    search: str | None = None
    state: str | None = None
    platform: str | None = None
    digest: Digest = "immediately"
    digest_at: time | None = None
    timezone: str = "UTC"
    enabled: bool = True
    armed_at: datetime
    holds: bool = False
    created_at: datetime
    updated_at: datetime


class OptionPrices(NamedTuple):
    """One row of a state's `prices`."""

    option: str
    rec: Decimal | None
    special: Decimal | None
    med: Decimal | None
    med_special: Decimal | None


class OptionStock(NamedTuple):
    """One row of a state's `stock`."""

    option: str
    status: str
    quantity: int | None
    capped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A product in one of its states."""

    stock_status: str
    rec: Decimal | None = None
    special: Decimal | None = None
    med: Decimal | None = None
    med_special: Decimal | None = None
    prices: tuple[OptionPrices, ...] = ()
    stock: tuple[OptionStock, ...] = ()


class Facts(NamedTuple):
    """What a rule looks at: the price that it means, None where there is none, and `in_stock`, `oos` or `unknown`."""

    price: Decimal | None
    stock: str


def facts(terms: Terms, moment: Moment) -> Facts:
    """What the rule sees of a product. Of an option that the menu does not list nothing is known."""
    if terms.option is None:
        headline = OptionPrices("", moment.rec, moment.special, moment.med, moment.med_special)
        return Facts(_price(terms.price, headline), moment.stock_status)
    wanted = terms.option.casefold()
    row = next((one for one in moment.prices if one.option.casefold() == wanted), None)
    stock = next((one.status for one in moment.stock if one.option.casefold() == wanted), "unknown")
    if moment.stock_status == "oos":
        stock = "oos"
    return Facts(None if row is None else _price(terms.price, row), stock)


def _price(which: Price, row: OptionPrices) -> Decimal | None:
    if which != "effective":
        found: Decimal | None = getattr(row, which)
        return found
    # What a customer pays: the lower of the two; medical where that is all there is.
    for pair in ((row.rec, row.special), (row.med, row.med_special)):
        there = [one for one in pair if one is not None]
        if there:
            return min(there)
    return None
