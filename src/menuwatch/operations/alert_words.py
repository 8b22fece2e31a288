"""Alert rules and what they found, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from menuwatch.alerts import message
from menuwatch.alerts.model import OPERATIONS

CONDITIONS: Mapping[str, str] = {
    "price_below": "The price falls below an amount",
    "price_drops_by": "The price drops by an amount or a share",
    "back_in_stock": "It is in stock again",
    "out_of_stock": "It is out of stock",
    "new_product": "A product is new on a menu",
    "circuit_opened": "A host refuses everybody",
    "proxies_down": "No proxy works",
}
"""What a rule can wait for."""
PRICES: Mapping[str, str] = {
    "effective": "What a customer pays",
    "rec": "Recreational",
    "special": "Recreational, special",
    "med": "Medical",
    "med_special": "Medical, special",
}


def sentence(rule: Mapping[str, Any]) -> str:
    """What a rule does, as a sentence: its row as `alerts.page` gives it."""
    condition = rule["condition"]
    if condition == "circuit_opened":
        what = "Tells when a host refuses so many that nobody asks it for a while"
    elif condition == "proxies_down":
        what = "Tells when no proxy is active"
    else:
        what = f"Tells when {_event(rule)}"
    return ", ".join([what, *_patience(rule)]) + "; " + _told(rule) + "."


def _event(rule: Mapping[str, Any]) -> str:
    goods, option = _goods(rule), f" ({rule['option']})" if rule["option"] else ""
    price = "price" if rule["price"] == "effective" else f"{PRICES[rule['price']].lower()} price"
    match rule["condition"]:
        case "price_below":
            return f"the {price} of {goods}{option} falls below {_money(rule['amount'])}"
        case "price_drops_by":
            size = _money(rule["amount"]) if rule["amount"] is not None else f"{_plain(rule['percent'])} %"
            return f"the {price} of {goods}{option} drops by {size}"
        case "back_in_stock":
            return f"{goods}{option} is in stock again"
        case "out_of_stock":
            return f"{goods}{option} is out of stock"
        case _:
            return f"{goods} is new on a menu"


def _goods(rule: Mapping[str, Any]) -> str:
    if rule["product_id"] is not None:
        return f"product {rule['product_id']}"
    words = ["anything"]
    if rule["brand"]:
        words.append(f"of {rule['brand']}")
    if rule["category"]:
        words.append(f"in {rule['category']}")
    if rule["search"]:
        words.append(f"named “{rule['search']}”")
    if rule["store"]:
        words.append(f"at {rule['store']}")
    if rule["state"]:
        words.append(f"in the state {rule['state']}")
    if rule["platform"]:
        words.append(f"on {rule['platform']}")
    return " ".join(words)


def _patience(rule: Mapping[str, Any]) -> list[str]:
    if rule["condition"] in OPERATIONS:
        return []
    parts = []
    if rule["debounce_crawls"] > 1:
        parts.append(f"once {rule['debounce_crawls']} crawls in a row find it")
    if rule["debounce_minutes"]:
        parts.append(f"once it has been so for {rule['debounce_minutes']:,} min")
    if rule["cooldown_minutes"]:
        parts.append(f"about one product every {rule['cooldown_minutes']:,} min at most")
    return parts


def _told(rule: Mapping[str, Any]) -> str:
    if rule["digest"] == "hourly":
        return "told once an hour"
    if rule["digest"] == "daily":
        return f"told each day at {rule['digest_at']} ({rule['timezone']})"
    return "told at once"


def _money(value: Decimal | None) -> str:
    return "–" if value is None else f"${value:,.2f}"


def _plain(value: Decimal | None) -> str:
    return "–" if value is None else f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"


def found(event: Mapping[str, Any]) -> str:
    """What an event of a rule was, in a line: its row as `alerts.events` gives it."""
    facts = msgspec.json.decode(bytes(event["facts"]))
    rule = {"name": event["rule"], "condition": event["condition"]}
    try:
        return message.text({"kind": "alert", "rule": rule, "events": [facts]})[1]
    except (KeyError, TypeError):
        # An event of an older version may lack what a line is made of now.
        return str(facts)[:300]
