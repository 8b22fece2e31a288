"""What alerts say of a brand, a search or a store: their condition, what happened, and the messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from menuwatch.storefront.watches import messages
from menuwatch.storefront.watches.model import CONDITIONS, Condition, Event, Named, Subject, Watch

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NAMED = Named(item="Blue Dream", brand="Wyld", store="Alpha")


def watch(subject: Subject, condition: Condition, **more: Any) -> Watch:
    ids = {"item": {"item_id": 1}, "brand": {"brand_id": 2}, "store": {"store_id": 3}}.get(subject, {})
    given: dict[str, Any] = {
        **dict.fromkeys(Watch.__dataclass_fields__, None),
        "id": 1,
        "channel": "mail",
        "subject": subject,
        "condition": condition,
        "phase": "armed",
        "currency": "USD",
        "attempts": 0,
        "created_at": NOW,
        **ids,
        **more,
    }
    return Watch(**given)


def product(n: int, price: float, before: float | None = None) -> dict[str, Any]:
    store = {"id": 3, "name": "Alpha", "city": "Phoenix", "state": "AZ"}
    return {"item_id": n, "name": f"Thing {n}", "size": "3.5 g", "price": price, "before": before, "store": store}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (watch("item", "any_drop", size="3.5 g"), "Blue Dream (3.5 g) gets cheaper"),
        (watch("item", "new_deal", store_id=3), "Blue Dream is on special at Alpha"),
        (watch("brand", "new_product", place="Phoenix, AZ", miles=25), "a product of Wyld is new within 25 miles of Phoenix, AZ"),
        (watch("brand", "new_product", place="Toronto, ON", miles=25), "a product of Wyld is new within 40 km of Toronto, ON"),
        (watch("store", "price_below", amount=Decimal(20)), "a product costs less than $20.00 at Alpha"),
        (
            watch("brand", "price_below", amount=Decimal(20), currency="CAD", place="Toronto, ON", miles=25),
            "a product of Wyld costs less than CA$20.00 within 40 km of Toronto, ON",
        ),
        (
            watch("search", "back_in_stock", query="/search?q=blue+dream&category=flower&size=3.5+g&max=%2430&special=1"),
            "a product matching “blue dream” (flower, 3.5 g, up to $30, on special) is back in stock",
        ),
        (watch("search", "any_drop", query="/search?category=edible"), "a product matching edible gets cheaper"),
    ],
)  # fmt: skip
def test_a_condition_in_words(given: Watch, said: str) -> None:
    assert messages.describe(given, NAMED) == said


@pytest.mark.parametrize(
    ("condition", "one", "several"),
    [
        ("any_drop", "Thing 1 (3.5 g) is $8.00, down from $10.00", "3 price drops"),
        ("price_below", "Thing 1 (3.5 g) is $8.00, down from $10.00", "3 products below $9.00"),
        ("back_in_stock", "Thing 1 (3.5 g) is back in stock at $8.00", "3 products back in stock"),
        ("new_deal", "Thing 1 (3.5 g) is on special at $8.00", "3 new deals"),
        ("new_product", "Thing 1 (3.5 g) is new at $8.00", "3 new products"),
    ],
)
def test_what_happened_in_a_line(condition: Condition, one: str, several: str) -> None:
    given = watch("brand", condition, amount=Decimal(9) if condition == "price_below" else None)
    products = [product(n, 8, 10) for n in (1, 2)]
    assert messages.headline(given, NAMED, {"products": products[:1], "count": 1}) == one
    said = messages.headline(given, NAMED, {"products": products, "count": 3})
    assert said == f"{several}: Thing 1 (3.5 g), Thing 2 (3.5 g) …"
    found = list(messages.lines(given, NAMED, {"products": products, "count": 3}))
    assert found == [
        (one, 1, "Alpha, Phoenix, AZ"),
        (one.replace("1", "2", 1), 2, "Alpha, Phoenix, AZ"),
        ("and 1 more", None, ""),
    ]


def test_a_limit_has_the_currency_of_the_watch() -> None:
    toronto = {"id": 4, "name": "Tower", "city": "Toronto", "state": "ON"}
    products = [{**product(n, 8, 10), "store": toronto} for n in (1, 2)]
    said = messages.headline(
        watch("brand", "price_below", amount=Decimal(9), currency="CAD"), NAMED, {"products": products, "count": 2}
    )
    assert said == "2 products below CA$9.00: Thing 1 (3.5 g), Thing 2 (3.5 g)"


def test_every_condition_has_its_words() -> None:
    assert set(CONDITIONS) == {"any_drop", "price_below", "back_in_stock", "new_deal", "new_product"}


def test_a_mail_names_every_product_and_leads_to_the_alert() -> None:
    facts = {"products": [product(1, 8, 10), product(2, 7, 9)], "count": 2}
    event = Event(id=1, watch_id=1, happened_at=NOW, facts=facts)
    later = replace(event, id=2, facts={"products": [product(3, 5, 6)], "count": 1})
    mail = messages.digest(
        watch("brand", "any_drop"), NAMED, [event, later], page="https://x/alerts/t", stop="https://x/stop"
    )
    assert mail.subject == "Thing 3 (3.5 g) is $5.00, down from $6.00 (and 1 more)"
    assert mail.text.splitlines()[:3] == [
        "Thing 3 (3.5 g) is $5.00, down from $6.00, at Alpha, Phoenix, AZ (2026-06-01 12:00 UTC)",
        "Thing 1 (3.5 g) is $8.00, down from $10.00, at Alpha, Phoenix, AZ (2026-06-01 12:00 UTC)",
        "Thing 2 (3.5 g) is $7.00, down from $9.00, at Alpha, Phoenix, AZ (2026-06-01 12:00 UTC)",
    ]
    assert "This alert:\nhttps://x/alerts/t" in mail.text
    assert "https://x/stop" in mail.text


def test_a_notification_is_short() -> None:
    facts = {"products": [product(n, 8, 10) for n in range(9)], "count": 20}
    event = Event(id=1, watch_id=1, happened_at=NOW, facts=facts)
    note = messages.notification(watch("store", "any_drop"), NAMED, [event])
    assert note.subject == "20 price drops: Thing 0 (3.5 g), Thing 1 (3.5 g) …"
    assert len(note.text.splitlines()) == 5
    assert len(messages.clipped("é" * 300, 250).encode()) <= 250
