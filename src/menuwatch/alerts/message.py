"""Alert messages: JSON for programs, text for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from menuwatch.alerts.model import CONDITIONS, Rule
from menuwatch.alerts.store import DueEvent
from menuwatch.core.format import money
from menuwatch.geo.units import currency

VERSION = 1
MOST_LINES = 20
"""Events that a text for people lists."""


def payload(rule: Rule, events: Sequence[DueEvent], now: datetime) -> dict[str, Any]:
    """A message about some events of one rule."""
    return {
        "version": VERSION,
        "kind": "alert",
        "sent_for": now.astimezone(UTC),
        "rule": {
            "id": rule.id,
            "name": rule.name,
            "condition": rule.condition,
            "amount": rule.amount,
            "percent": rule.percent,
        },
        "events": [{"id": f"event-{event.id}", "fired_at": event.fired_at, **_raw(event.facts)} for event in events],
    }


def _raw(facts: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(facts, type=dict[str, msgspec.Raw])


def sample(rule: Rule, now: datetime) -> dict[str, Any]:
    """A test message."""
    return {**payload(rule, (), now), "kind": "test"}


def text(body: Mapping[str, Any]) -> tuple[str, str]:
    """Title and text of a message for people."""
    rule, events = body["rule"], body["events"]
    if body["kind"] == "test":
        return f"{rule['name']}: a test", "Alerts of this rule arrive here."
    count = f" ({len(events)})" if len(events) > 1 else ""
    lines = [_line(event) for event in events[:MOST_LINES]]
    if len(events) > MOST_LINES:
        lines.append(f"and {len(events) - MOST_LINES} more")
    recovered = all(event.get("firing") is False for event in events)
    title = "recovered" if recovered else CONDITIONS[rule["condition"]].title
    return f"{rule['name']}: {title}{count}", "\n".join(lines)


def _line(event: Mapping[str, Any]) -> str:
    if "host" in event:
        return (
            f"{event['host']}: {event['reason']}" if event.get("firing", True) else f"{event['host']}: circuit closed"
        )
    if "product" not in event:
        detail = (
            event["detail"] if "detail" in event else f"none of {event['proxies']} proxies is active"
        )  # before 0.2.0
        return f"{detail}" if event.get("firing", True) else f"Recovered: {detail}"
    product, store = event["product"], event["store"]
    name = f"{product['brand']} {product['name']}" if product["brand"] else product["name"]
    option = f" ({event['option']})" if event["option"] else ""
    return f"{name}{option} at {store['name']}: {_change(event)}"


def _change(event: Mapping[str, Any]) -> str:
    before, after = event["before"], event["after"]
    paid = currency(event["store"].get("state"))
    price = "no price" if after["price"] is None else money(after["price"], paid)
    was = event["reference_price"] if event["reference_price"] is not None else before and before["price"]
    from_ = f", was {money(was, paid)}" if was is not None and was != after["price"] else ""
    stock = {"oos": ", out of stock", "in_stock": ""}.get(after["stock_status"], "")
    return f"{price}{from_}{stock}"
