"""What a watch says, in mails and in feeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from menuwatch.geo import states
from menuwatch.shoppers.model import Event, Watch


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


def wish(watch: Watch, item: str, store: str | None) -> str:
    """What it waits for, as a sentence."""
    what = {
        "price_below": f"costs less than {money(watch.amount)}",
        "any_drop": "gets cheaper",
        "back_in_stock": "is back in stock",
    }[watch.condition]
    return f"{called(item)} {what}{where(watch, store)}"


def where(watch: Watch, store: str | None) -> str:
    """` at …`, ` within 25 miles of …`, or nothing."""
    if watch.store_id is not None:
        return f" at {one_line(store or 'a store that is not watched any more')}"
    return f" within {watch.miles} miles of {one_line(watch.place)}" if watch.place is not None else ""


def headline(watch: Watch, item: str, facts: Mapping[str, Any]) -> str:
    """What happened, in a line."""
    name = called(item, 80)
    if watch.condition == "back_in_stock":
        said = f"{name} is back in stock"
        return f"{said} at {money(facts['price'], facts)}" if facts["price"] is not None else said
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
        f"Somebody, we hope you, asked to be told when\n\n    {wish(watch, item, store)}.\n\n"
        f"Confirm it here, and we will tell you:\n{confirm}\n\n"
        "If it was not you, do nothing: in two days we forget your address. To have it forgotten at once:\n"
        f"{stop}\n",
    )


def digest(watch: Watch, item: str, events: Sequence[Event], *, page: str, stop: str) -> Mail:
    """What happened since the last mail, the latest first."""
    latest = events[-1]
    lines = []
    for one in reversed(events):
        place = at(one.facts)
        lines.append(
            f"{headline(watch, item, one.facts)}{f', at {place}' if place else ''} ({one.happened_at:%Y-%m-%d %H:%M} UTC)"
        )
    more = f" (and {len(events) - 1} more)" if len(events) > 1 else ""
    return Mail(
        headline(watch, item, latest.facts) + more,
        "\n".join(lines) + f"\n\nEvery store that carries it:\n{page}\n\n"
        "Prices and stock are as the store’s menu last said them.\n\n"
        f"--\nTo end this alert and have your address forgotten:\n{stop}\n",
    )
