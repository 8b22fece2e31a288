"""What a watch says, in messages and in feeds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from menuwatch.core import format as text_format
from menuwatch.core.format import pluralize
from menuwatch.geo import units
from menuwatch.storefront.search_text import without_sign
from menuwatch.storefront.watches.model import CONDITIONS, Event, Named, Watch

_MOST_LINES = 40


class Message(NamedTuple):
    """The subject and text of a mail, or of another message."""

    subject: str
    text: str


def one_line(text: str, most: int = 120) -> str:
    """A name that a stranger wrote, fit for a subject: one line, and not too long."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def clipped(text: str, most: int) -> str:
    """The text in at most this many bytes."""
    return text if len(text.encode()) <= most else text.encode()[: most - 3].decode(errors="ignore") + "…"


def called(item: str, most: int = 120) -> str:
    """An item's name as people say it: menus put bars between its parts, and some say all of it twice."""
    half, _, again = one_line(item, 1_000).partition(" - ")
    name = half if half and half == again else one_line(item, 1_000)
    return one_line(", ".join(part.strip() for part in name.split("|") if part.strip()) or name, most)


def money(amount: Any, facts: Mapping[str, Any], watch: Watch) -> str:
    """`$12.50`; `CA$12.50` where the store of the facts is in Canada. Without a store the currency is the watch's."""
    store = facts.get("store")
    paid = units.currency(store["state"]) if store else watch.currency
    return "no price" if amount is None else text_format.money(Decimal(str(amount)), paid)


def describe(watch: Watch, named: Named) -> str:
    """The condition of the watch, as in `Blue Dream gets cheaper within 25 miles of Phoenix`, `a product of Wyld is on special`."""
    amount = text_format.money(watch.amount, watch.currency)
    verb = CONDITIONS[watch.condition].verb.format(amount=amount)
    return f"{what(watch, named)} {verb}{where(watch, named)}"


def what(watch: Watch, named: Named) -> str:
    """`Blue Dream (3.5 g)`, `a product of Wyld`, `a product matching “blue dream”`, `a product`."""
    size = f" ({one_line(watch.size, 40)})" if watch.size is not None else ""
    if watch.subject == "item":
        return f"{called(named.item or 'a product that is no longer listed')}{size}"
    if watch.subject == "brand":
        return f"a product of {one_line(named.brand or 'a brand that is no longer listed')}"
    if watch.subject == "search":
        return f"a product matching {searched(watch.query or '', watch.currency)}"
    return "a product"


def searched(query: str, currency: str) -> str:
    """A search by its words and filters, with amounts in that currency: `“blue dream” (flower, 3.5 g, up to $30)`."""
    text, said, sign = "", [], text_format.currency_sign(currency)
    for name, value in parse_qsl(query.partition("?")[2] or query):
        plain = one_line(value, 60)
        if name == "q":
            text = f"“{plain}”"
        else:
            shown = without_sign(plain) if name in ("min", "max", "gram") else plain
            said.append(_FILTERS.get(name, "{}").format(shown, sign=sign))
    filters = ", ".join(said)
    return f"{text} ({filters})" if text and filters else text or filters or "all products"


_FILTERS = {
    "stock": "in stock",
    "special": "on special",
    "min": "from {sign}{}",
    "max": "up to {sign}{}",
    "gram": "up to {sign}{} per gram",
    "thc_min": "THC from {}%",
    "thc_max": "THC up to {}%",
}


def where(watch: Watch, named: Named) -> str:
    """` at …`, ` within 25 miles of …`, in Canada ` within 40 km of …`, or nothing."""
    if watch.store_id is not None:
        return f" at {one_line(named.store or 'a store that is no longer listed')}"
    if watch.place is None or watch.miles is None:
        return ""
    return f" within {units.radius(watch.miles, units.state_of(watch.place))} of {one_line(watch.place)}"


def headline(watch: Watch, named: Named, facts: Mapping[str, Any]) -> str:
    """What happened, in a line."""
    products = facts.get("products")
    if products is None:
        name = called(named.item or "", 80) + (f" ({one_line(watch.size, 40)})" if watch.size is not None else "")
        return _of_one(watch, name, facts)
    if facts["count"] == 1:
        return _of_one(watch, _name(products[0]), products[0])
    limit = text_format.money(watch.amount, watch.currency)
    kinds = {
        "any_drop": ("price drop", "price drops"),
        "price_below": (f"product below {limit}", f"products below {limit}"),
        "back_in_stock": ("product back in stock", "products back in stock"),
        "new_deal": ("new deal", "new deals"),
        "new_product": ("new product", "new products"),
    }[watch.condition]
    names = ", ".join(_name(one) for one in products[:2])
    return f"{pluralize(facts['count'], *kinds)}: {names}{' …' if facts['count'] > 2 else ''}"


def lines(watch: Watch, named: Named, facts: Mapping[str, Any]) -> Iterator[tuple[str, int | None, str]]:
    """What happened: a line for each product, its number, and the store."""
    for one in facts.get("products", ()):
        yield _of_one(watch, _name(one), one), one["item_id"], at(one)
    if "products" not in facts:
        yield headline(watch, named, facts), watch.item_id, at(facts)
    elif (more := facts["count"] - len(facts["products"])) > 0:
        yield f"and {more} more", None, ""


def _name(product: Mapping[str, Any]) -> str:
    return called(product["name"], 80) + (f" ({one_line(product['size'], 40)})" if product["size"] else "")


def _of_one(watch: Watch, name: str, facts: Mapping[str, Any]) -> str:
    price, before = facts["price"], facts.get("before")
    if watch.condition == "back_in_stock":
        return f"{name} is back in stock" + (f" at {money(price, facts, watch)}" if price is not None else "")
    if watch.condition == "new_product":
        return f"{name} is new" + (f" at {money(price, facts, watch)}" if price is not None else "")
    if watch.condition == "new_deal":
        return f"{name} is on special at {money(price, facts, watch)}"
    was = f", down from {money(before, facts, watch)}" if before is not None and before != price else ""
    return f"{name} is {money(price, facts, watch)}{was}"


def at(facts: Mapping[str, Any]) -> str:
    """`Green Lantern, Phoenix, AZ`; empty if no store has it now."""
    store = facts.get("store")
    return ", ".join(one_line(part) for part in (store["name"], store["city"], store["state"]) if part) if store else ""


def confirmation(watch: Watch, named: Named, *, confirm: str, stop: str) -> Message:
    """The first message: nothing else is sent until its link was followed."""
    return Message(
        "Confirm your alert",
        f"A price alert was requested for this address: you will be notified when\n\n    {describe(watch, named)}.\n\n"
        f"Confirm it here:\n{confirm}\n\n"
        "If you did not request this, do nothing: your address is deleted after two days. To delete it now:\n"
        f"{stop}\n",
    )


def digest(watch: Watch, named: Named, events: Sequence[Event], *, page: str, stop: str) -> Message:
    """What happened since the last mail, the latest first."""
    text = "\n".join(_lines_of(watch, named, events))
    return Message(
        _subject(watch, named, events),
        f"{text}\n\n{'All stores' if watch.item_id is not None else 'This alert'}:\n{page}\n\n"
        "Prices and stock come from the store’s menu and may change.\n\n"
        f"--\nTo delete this alert and your address:\n{stop}\n",
    )


def notification(watch: Watch, named: Named, events: Sequence[Event]) -> Message:
    """The same for a screen that shows a few lines."""
    return Message(_subject(watch, named, events), "\n".join(_lines_of(watch, named, events, most=5, dated=False)))


def _subject(watch: Watch, named: Named, events: Sequence[Event]) -> str:
    more = f" (and {len(events) - 1} more)" if len(events) > 1 else ""
    return headline(watch, named, events[-1].facts) + more


def _lines_of(
    watch: Watch, named: Named, events: Sequence[Event], *, most: int = _MOST_LINES, dated: bool = True
) -> list[str]:
    found = [
        f"{line}{f', at {store}' if store else ''}{f' ({event.happened_at:%Y-%m-%d %H:%M} UTC)' if dated else ''}"
        for event in reversed(events)
        for line, _, store in lines(watch, named, event.facts)
    ]
    return found[:most]
