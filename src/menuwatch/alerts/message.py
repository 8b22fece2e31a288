"""What an alert says: as JSON for programs, as text for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from menuwatch.alerts.model import Rule
from menuwatch.alerts.store import DueEvent

VERSION = 1
MOST_LINES = 20
"""Events that a text for people lists."""

_WHAT = {
    "price_below": "price below",
    "price_drops_by": "price dropped",
    "back_in_stock": "back in stock",
    "out_of_stock": "out of stock",
    "new_product": "new product",
    "circuit_opened": "a host is left alone",
    "proxies_down": "all proxies are down",
}


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
        "events": [{"id": f"event-{one.id}", "fired_at": one.fired_at, **_raw(one.facts)} for one in events],
    }


def _raw(facts: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(facts, type=dict[str, msgspec.Raw])


def sample(rule: Rule, now: datetime) -> dict[str, Any]:
    """A message that tells nothing but that it arrives."""
    return {**payload(rule, (), now), "kind": "test"}


def text(body: Mapping[str, Any]) -> tuple[str, str]:
    """Title and text of a message for people."""
    rule, events = body["rule"], body["events"]
    if body["kind"] == "test":
        return f"{rule['name']}: a test", "Alerts of this rule arrive here."
    count = f" ({len(events)})" if len(events) > 1 else ""
    lines = [_line(one) for one in events[:MOST_LINES]]
    if len(events) > MOST_LINES:
        lines.append(f"and {len(events) - MOST_LINES} more")
    return f"{rule['name']}: {_WHAT[rule['condition']]}{count}", "\n".join(lines)


def _line(event: Mapping[str, Any]) -> str:
    if "host" in event:
        return f"{event['host']}: {event['reason']}"
    if "product" not in event:
        return f"None of {event['proxies']} proxies works. Crawls wait until one does."
    product, store = event["product"], event["store"]
    name = f"{product['brand']} {product['name']}" if product["brand"] else product["name"]
    option = f" ({event['option']})" if event["option"] else ""
    return f"{name}{option} at {store['name']}: {_change(event)}"


def _change(event: Mapping[str, Any]) -> str:
    before, after = event["before"], event["after"]
    price = "no price" if after["price"] is None else f"{after['price']}"
    was = event["reference_price"] if event["reference_price"] is not None else before and before["price"]
    from_ = f", was {was}" if was is not None and was != after["price"] else ""
    stock = {"oos": ", out of stock", "in_stock": ""}.get(after["stock_status"], "")
    return f"{price}{from_}{stock}"
