"""What a watch says, in mails and in feeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from menuwatch.geo import states
from menuwatch.storefront.watches.model import Event, Watch


class Mail(NamedTuple):
    """A mail's subject and text."""

    subject: str
    text: str


def one_line(text: str, most: int = 120) -> str:
    """A name that a stranger wrote, fit for a subject: one line, and not too long."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def called(item: str, most: int = 120) -> str:
    """An item's name as people say it: menus put bars between its parts, and some say all of it twice."""
    half, _, again = one_line(item, 1_000).partition(" - ")
    name = half if half and half == again else one_line(item, 1_000)
    return one_line(", ".join(part.strip() for part in name.split("|") if part.strip()) or name, most)


def money(amount: Any, facts: Mapping[str, Any] | None = None) -> str:
    """`$12.50`; `CA$12.50` where the store of the facts is in Canada."""
    state = ((facts or {}).get("store") or {}).get("state")
    sign = "CA$" if state in states.PROVINCES else "$"
    return "no price" if amount is None else f"{sign}{Decimal(str(amount)):,.2f}"


def describe(watch: Watch, item: str, store: str | None) -> str:
    """The condition of the watch, as in `Blue Dream gets cheaper within 25 miles of Phoenix`."""
    what = {
        "price_below": f"costs less than {money(watch.amount)}",
        "any_drop": "gets cheaper",
        "back_in_stock": "is back in stock",
    }[watch.condition]
    size = f" ({one_line(watch.size, 40)})" if watch.size is not None else ""
    return f"{called(item)}{size} {what}{where(watch, store)}"


def where(watch: Watch, store: str | None) -> str:
    """` at …`, ` within 25 miles of …`, or nothing."""
    if watch.store_id is not None:
        return f" at {one_line(store or 'a store that is no longer listed')}"
    return f" within {watch.miles} miles of {one_line(watch.place)}" if watch.place is not None else ""


def headline(watch: Watch, item: str, facts: Mapping[str, Any]) -> str:
    """What happened, in a line."""
    name = called(item, 80) + (f" ({one_line(watch.size, 40)})" if watch.size is not None else "")
    if watch.condition == "back_in_stock":
        text = f"{name} is back in stock"
        return f"{text} at {money(facts['price'], facts)}" if facts["price"] is not None else text
    before = facts.get("before")
    was = f", down from {money(before, facts)}" if before is not None and before != facts["price"] else ""
    return f"{name} is {money(facts['price'], facts)}{was}"


def at(facts: Mapping[str, Any]) -> str:
    """`Green Lantern, Phoenix, AZ`; empty where no store has it any more."""
    store = facts.get("store")
    return ", ".join(one_line(part) for part in (store["name"], store["city"], store["state"]) if part) if store else ""


def confirmation(watch: Watch, item: str, store: str | None, *, confirm: str, stop: str) -> Mail:
    """The first mail: nothing is sent until its link was followed."""
    return Mail(
        "Confirm your alert",
        f"A price alert was requested for this address: you will be notified when\n\n    {describe(watch, item, store)}.\n\n"
        f"Confirm it here:\n{confirm}\n\n"
        "If you did not request this, do nothing: your address is deleted after two days. To delete it now:\n"
        f"{stop}\n",
    )


def digest(watch: Watch, item: str, events: Sequence[Event], *, page: str, stop: str) -> Mail:
    """What happened since the last mail, the latest first."""
    latest = events[-1]
    lines = []
    for event in reversed(events):
        store = at(event.facts)
        lines.append(
            f"{headline(watch, item, event.facts)}{f', at {store}' if store else ''} ({event.happened_at:%Y-%m-%d %H:%M} UTC)"
        )
    more = f" (and {len(events) - 1} more)" if len(events) > 1 else ""
    return Mail(
        headline(watch, item, latest.facts) + more,
        "\n".join(lines) + f"\n\nAll stores:\n{page}\n\n"
        "Prices and stock come from the store’s menu and may change.\n\n"
        f"--\nTo delete this alert and your address:\n{stop}\n",
    )
