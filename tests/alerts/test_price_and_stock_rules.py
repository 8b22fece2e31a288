"""When a rule fires for a product: the rule as it is written, by hand and at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.alerts.model import Facts, OptionPrices, OptionStock, ProductState, Terms, facts
from menuwatch.alerts.price_and_stock_rules import evaluate, initial, initial_existing, should_store

START = datetime(2026, 3, 1, tzinfo=UTC)


def below(amount: str = "25", **more: Any) -> Terms:
    return Terms(condition="price_below", amount=Decimal(amount), **more)


def drops(**more: Any) -> Terms:
    return Terms(condition="price_drops_by", **more)


def run(terms: Terms, seen: list[Any], *, existing: bool = False, hours: float = 1, first: bool = False) -> list[int]:
    """Which crawls fire. Each of `seen` is a price, a stock status or both; the first is what was there before, unless `first`."""
    observed = [_facts(one) for one in seen]
    before, rest = (None, observed) if first else (observed[0], observed[1:])
    state = initial_existing(terms, rest[0]) if existing else initial(terms, before)
    fired = []
    for number, now in enumerate(rest, start=0 if first else 1):
        result = evaluate(terms, state, now, START + timedelta(hours=hours * number))
        # What is not noted has to come out the same from what the product is.
        state = result.state if should_store(terms, result.state, now) else initial(terms, now)
        if result.fires:
            fired.append(number)
    return fired


def _facts(one: Any) -> Facts:
    if isinstance(one, Facts):
        return one
    if isinstance(one, tuple):
        return Facts(Decimal(str(one[0])), one[1])
    if isinstance(one, str):
        return Facts(Decimal(30), one)
    return Facts(None if one is None else Decimal(str(one)), "in_stock")


@pytest.mark.parametrize(
    ("seen", "fired"),
    [
        ([30, 24], [1]),
        ([30, 25], []),  # below, not at
        ([30, 24, 23, 24, 20], [1]),  # once for each crossing
        ([30, 24, 25.5, 24], [1]),  # 25.5 is within two percent: not armed again
        ([30, 24, 25.51, 24], [1, 3]),
        ([24, 23, 22], []),  # it held before anybody changed anything
        ([24, 30, 24], [2]),
        ([30, None, 24], [2]),
        ([30, 24, None, 24], [1]),
        ([30, (20, "oos"), (20, "in_stock")], [2]),  # nobody can buy it; then somebody can
        ([30, 24, (24, "oos"), 24], [1]),
        ([30, (24, "unknown")], [1]),
    ],
)
def test_price_below(seen: list[Any], fired: list[int]) -> None:
    assert run(below(), seen) == fired


def test_without_hysteresis_the_threshold_itself_arms_again() -> None:
    assert run(below(hysteresis_percent=Decimal(0)), [30, 24, 25, 24]) == [1, 3]
    assert run(below(hysteresis_percent=Decimal(20)), [30, 24, 30, 24, 30.01, 24]) == [1, 5]


def test_a_product_that_nobody_had_looked_at() -> None:
    assert run(below(), [24], first=True) == [0], "it came to a menu that was known"
    assert run(below(), [24, 23], first=True, existing=True) == [], "it may have been there for long"
    assert run(below(on_existing="fire"), [24, 23], first=True, existing=True) == [0]
    assert run(below(), [24, 30, 24], first=True, existing=True) == [2]
    assert run(below(), [25.1, 24], first=True, existing=True) == [1], "it was not below when it was first seen"
    new = Terms(condition="new_product")
    assert run(new, [24, 23], first=True) == [0]
    assert run(new, [24, 23], first=True, existing=True) == []
    assert run(Terms(condition="new_product", on_existing="fire"), [24], first=True, existing=True) == []
    assert run(new, [24, 23, "oos", "in_stock"]) == []


@pytest.mark.parametrize(
    ("terms", "seen", "fired"),
    [
        (drops(percent=Decimal(20)), [10, 8], [1]),
        (drops(percent=Decimal(20)), [10, 8.01], []),
        (drops(percent=Decimal(20)), [10, 9.5, 9, 8.5, 8], [4]),  # slowly, but by as much
        (drops(percent=Decimal(20)), [10, 8, 7, 6.4], [1, 3]),  # and again from there
        (drops(percent=Decimal(20)), [10, 12, 9.6], [2]),
        (drops(percent=Decimal(20)), [10, 8, 8.1, 6.45, 6.4], [1, 4]),  # 8.1 is within two percent of 8
        (drops(percent=Decimal(20)), [10, 8, 10, 8], [1, 3]),
        (drops(amount=Decimal(3)), [10, 7.01, 7], [2]),
        (drops(amount=Decimal(3)), [10, None, 7], [2]),
        (drops(percent=Decimal(100)), [10, 0.01, 0], [2]),
    ],
)
def test_price_drops(terms: Terms, seen: list[Any], fired: list[int]) -> None:
    assert run(terms, seen) == fired


@pytest.mark.parametrize(
    ("seen", "back", "out"),
    [
        (["in_stock", "oos", "in_stock", "oos"], [2], [1, 3]),
        (["oos", "unknown", "in_stock"], [2], []),
        (["unknown", "in_stock", "oos"], [], [2]),
        (["in_stock", "unknown", "in_stock"], [], []),
        (["in_stock", "oos", "unknown", "oos"], [], [1]),
        (["unknown", "oos"], [], [1]),
    ],
)
def test_stock(seen: list[Any], back: list[int], out: list[int]) -> None:
    assert run(Terms(condition="back_in_stock"), seen) == back
    assert run(Terms(condition="out_of_stock"), seen) == out


def test_debounce_waits_until_it_has_held() -> None:
    assert run(below(debounce_crawls=3), [30, 24, 24, 24]) == [3]
    assert run(below(debounce_crawls=3), [30, 24, 24, 30, 24, 24]) == []
    assert run(below(debounce_minutes=90), [30, 24, 24, 24]) == [3], "an hour apart: 0, 60, 120 minutes"
    assert run(below(debounce_crawls=2), [30, 24, 25.2, 24, 24]) == [4], "25.2 is not below: it begins anew"
    assert run(below(debounce_crawls=2), [30, 24, None, 24]) == [3], "not known is not ceased"
    assert run(Terms(condition="out_of_stock", debounce_crawls=2), ["in_stock", "oos", "in_stock", "oos", "oos"]) == [4]


def test_cooldown_puts_off_and_loses_nothing() -> None:
    # Fired at hour 1; the next crossing is at 3, the cooldown ends at 1 + 4 = 5.
    assert run(below(cooldown_minutes=240), [30, 24, 30, 24, 24, 24, 24]) == [1, 5]
    assert run(below(cooldown_minutes=240), [30, 24, 30, 24, 30, 30, 30]) == [1]


_price = st.one_of(st.none(), st.decimals(min_value=0, max_value=60, places=2))
_seen = st.builds(Facts, _price, st.sampled_from(["in_stock", "oos", "unknown"]))
_story = st.lists(_seen, min_size=2, max_size=40)


@given(_story, st.sampled_from([Decimal(0), Decimal(2), Decimal(25)]))
def test_between_two_alerts_the_price_was_clearly_above(story: list[Facts], percent: Decimal) -> None:
    terms = below(hysteresis_percent=percent)
    fired = run(terms, story)
    level = Decimal(25) * (1 + percent / 100)
    for number in fired:
        assert story[number].price is not None
        assert story[number].price < 25  # type: ignore[operator]
        assert story[number].stock != "oos"
    for one, other in pairwise(fired):
        between = [s.price for s in story[one:other] if s.price is not None and s.stock != "oos"]
        assert any(price > level or (not percent and price == level) for price in between)


@given(_story, st.integers(1, 4))
def test_debounce_fires_no_more_often_and_only_what_held(story: list[Facts], crawls: int) -> None:
    for condition in ("price_below", "out_of_stock", "back_in_stock"):
        amount = Decimal(25) if condition == "price_below" else None
        plain = run(Terms(condition=condition, amount=amount), story)
        patient = run(Terms(condition=condition, amount=amount, debounce_crawls=crawls), story)
        assert len(patient) <= len(plain)
        assert crawls > 1 or patient == plain


@given(_story, st.integers(1, 600))
def test_two_alerts_are_never_closer_than_the_cooldown(story: list[Facts], minutes: int) -> None:
    for terms in (
        below(cooldown_minutes=minutes),
        drops(percent=Decimal(10), cooldown_minutes=minutes),
        Terms(condition="back_in_stock", cooldown_minutes=minutes),
    ):
        fired = run(terms, story)
        assert all((other - one) * 60 >= minutes for one, other in pairwise(fired))


@given(_story)
def test_stock_alerts_alternate_with_their_opposite(story: list[Facts]) -> None:
    known = [s.stock for s in story]
    for condition, wanted, other in (("back_in_stock", "in_stock", "oos"), ("out_of_stock", "oos", "in_stock")):
        fired = run(Terms(condition=condition), story)  # type: ignore[arg-type]
        last = 0
        for number in fired:
            assert known[number] == wanted
            if condition == "back_in_stock" or last:
                assert other in known[last:number]
            last = number


@given(_story, st.decimals(min_value=1, max_value=90, places=0))
def test_a_drop_is_from_a_price_that_was_seen(story: list[Facts], percent: Decimal) -> None:
    for number in run(drops(percent=percent), story):
        price = story[number].price
        assert price is not None
        seen = [s.price for s in story[:number] if s.price is not None]
        assert price <= max(seen) * (1 - percent / 100)


def test_what_a_rule_sees_of_a_product() -> None:
    moment = ProductState(
        stock_status="in_stock",
        rec=Decimal(10),
        special=Decimal(8),
        med=Decimal(7),
        prices=(
            OptionPrices("1g", Decimal(10), Decimal(8), Decimal(7), None),
            OptionPrices("1/8oz", Decimal(30), None, None, None),
        ),
        stock=(OptionStock("1g", "in_stock", 3, False), OptionStock("1/8oz", "oos", 0, False)),
    )
    one = {"condition": "price_below", "amount": Decimal(1)}
    assert facts(Terms(**one), moment) == (8, "in_stock")
    assert facts(Terms(**one, price="rec"), moment) == (10, "in_stock")
    assert facts(Terms(**one, price="med"), moment) == (7, "in_stock")
    assert facts(Terms(**one, price="med_special"), moment) == (None, "in_stock")
    assert facts(Terms(**one, option="1/8OZ"), moment) == (30, "oos")
    assert facts(Terms(**one, option="1oz"), moment) == (None, "unknown")
    assert facts(Terms(**one), ProductState(stock_status="oos", med=Decimal(5))) == (5, "oos"), (
        "medical where that is all"
    )
