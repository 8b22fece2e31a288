"""Alert rules and events as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from menuwatch.alerts import message
from menuwatch.alerts.events import AlertEvent
from menuwatch.alerts.model import CONDITIONS, Condition
from menuwatch.alerts.service import AlertRule
from menuwatch.core.format import money, pluralize
from menuwatch.geo.units import currency

CONDITION_LABELS: Mapping[str, str] = {name: kind.label for name, kind in CONDITIONS.items()}
PRICES: Mapping[str, str] = {
    "effective": "What a customer pays",
    "rec": "Recreational",
    "special": "Recreational, special",
    "med": "Medical",
    "med_special": "Medical, special",
}


def sentence(rule: AlertRule) -> str:
    """What a rule does, as a sentence."""
    text = CONDITIONS[rule.condition].sentence.format(
        price="price" if rule.price == "effective" else f"{PRICES[rule.price].lower()} price",
        products=_products(rule) + (f" ({rule.option})" if rule.option else ""),
        size=size(rule),
    )
    return ", ".join([f"Fires when {text}", *_debounce(rule)]) + f"; {_schedule(rule)}."


def condition_sentence(condition: Condition) -> str:
    """What a condition is, for choosing one."""
    kind = CONDITIONS[condition]
    limit = f"N {kind.unit}"
    if kind.about_products:
        limit = "an amount or a percentage" if "percent" in kind.fields else "an amount"
    return f"Fires when {kind.sentence.format(price='price', products='a product', size=limit)}."


def _products(rule: AlertRule) -> str:
    if rule.product_id is not None:
        return f"product {rule.product_id}"
    near = None if rule.miles is None else f"{rule.miles:g} miles of {rule.latitude:g}, {rule.longitude:g}"
    parts = (
        ("of {}", rule.brand),
        ("in {}", rule.category),
        ("named “{}”", rule.search),
        ("at {}", rule.store),
        ("in the state {}", rule.state),
        ("on {}", rule.platform),
        ("within {}", near),
    )
    return " ".join([rule.canonical_product or "anything", *(text.format(value) for text, value in parts if value)])


def size(rule: AlertRule) -> str:
    """The amount or percentage of a rule with its unit; empty if it has none."""
    if rule.amount is None:
        return "" if rule.percent is None else f"{_plain(rule.percent)} %"
    unit = CONDITIONS[rule.condition].unit
    if unit == "$":
        return money(rule.amount, currency(rule.state))
    return f"{_plain(rule.amount)} {unit.removesuffix('s') if rule.amount == 1 and unit != 'proxies' else unit}"


def _debounce(rule: AlertRule) -> list[str]:
    if not CONDITIONS[rule.condition].about_products:
        return [f"for {pluralize(rule.debounce_minutes, 'minute')}"] if rule.debounce_minutes else []
    parts = []
    if rule.debounce_crawls > 1:
        parts.append(f"after {rule.debounce_crawls} consecutive crawls")
    if rule.debounce_minutes:
        parts.append(f"after {rule.debounce_minutes:,} min")
    if rule.cooldown_minutes:
        parts.append(f"at most once every {rule.cooldown_minutes:,} min per product")
    return parts


def _schedule(rule: AlertRule) -> str:
    if rule.digest == "hourly":
        return "sent hourly"
    if rule.digest == "daily":
        return f"sent daily at {rule.digest_at} ({rule.timezone})"
    return "sent immediately"


def _plain(value: Decimal | None) -> str:
    return "–" if value is None else f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"


def event_line(event: AlertEvent) -> str:
    facts = msgspec.json.decode(event.facts)
    rule = {"name": event.rule, "condition": event.condition}
    try:
        return message.text({"kind": "alert", "rule": rule, "events": [facts]})[1]
    except (KeyError, TypeError):
        # An event of an older version may lack what a line is made of now.
        return str(facts)[:300]
