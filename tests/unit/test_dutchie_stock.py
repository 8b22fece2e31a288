"""The stock rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.dutchie.options import is_active, kiosk_levels, stock_levels, total
from menuwatch.platforms.dutchie.payload import Child, ManualInventory
from menuwatch.platforms.products import option_status, product_status

STATUSES = st.sampled_from(["in_stock", "oos", "unknown"])


def child(option: str, quantity: Any = None, available: Any = None) -> Child:
    return Child(option, quantity, available)


def found(options: list[str], children: Any = None, manual: Any = None) -> list[tuple[int, bool] | None]:
    return [
        None if level is None else (level.available, level.capped) for level in stock_levels(options, children, manual)
    ]


def test_by_option_text_never_by_place() -> None:
    children = [child("3.5g", 0, 0), child("7g", 11, 8), child("28g", 1, 0)]
    assert found(["7g", "28g"], children) == [(8, False), (0, False)]


def test_kiosk_quantity_by_option() -> None:
    """Ontario's record (3.5g 0,0,0)(7g 11,8,11)(28g 1,0,1) under the options 7g and 28g; what is no quantity is left out."""
    counts = [Child("3.5g", 0, 0, 0), Child("7g", 11, 8, 11), Child("28g", 1, 0, 1)]
    assert kiosk_levels(["7g", "28g"], counts) == {"7g": 11, "28g": 1}
    odd: list[Any] = [None, True, "some", [], 1e9, {}]
    assert [kiosk_levels(["7g"], [Child("7g", 1, 1, value)]) for value in odd] == [{}] * 6
    assert (
        kiosk_levels(None, counts)
        == kiosk_levels(["7g"], None)
        == kiosk_levels(["7g"], [None, Child(None, 1, 1, 1)])
        == {}
    )
    assert kiosk_levels(["7g"], [Child("7g", 0, 0, -2)]) == {"7g": 0}


def test_hand_counts_where_the_point_of_sale_says_nothing() -> None:
    manual = [ManualInventory("1g", 169), ManualInventory("2g", 4)]
    assert found(["1g", "2g", "3g"], None, manual) == [(169, False), (4, False), None]
    assert found(["1g", "2g"], [child("2g", 9, 6)], manual) == [(169, False), (6, False)]
    assert found(["1g"], [child("1g", None, None)], manual) == [(169, False)]
    assert found(["1g"], [], []) == [None]
    assert found(["1g"], [None], [None]) == [None]


@pytest.mark.parametrize(
    ("quantity", "available", "expected"),
    [
        (25, 25, (25, True)),
        (25, 22, (22, True)),
        (24, 21, (21, False)),
        (None, 25, (25, True)),
        (7, None, (7, False)),
        (1, 0, (0, False)),
        (-2, -5, (0, False)),
        (2.5, 0.25, (1, False)),
        (7.0, "7", (7, False)),
        ("25", "22.0", (22, True)),
        ("", 4, (4, False)),
    ],
)
def test_cap_and_reserve(quantity: Any, available: Any, expected: tuple[int, bool]) -> None:
    assert found(["1g"], [child("1g", quantity, available)]) == [expected]


def test_one_text_for_several_options() -> None:
    children = [child("1/8oz", 5, 5), child("1/8oz", 9, 9)]
    assert found(["1/8oz", "1/8oz", "1/8oz"], children) == [(5, False), (9, False), (9, False)]
    assert found(["1/8oz", "1/8oz"], children[:1]) == [(5, False), (5, False)]
    assert total(stock_levels(["1/8oz", "1/8oz"], children[:1], None)) == 5, "one entry is counted once"
    assert total(stock_levels(["1/8oz", "1/8oz"], children, None)) == 14


QUANTITIES = st.one_of(st.none(), st.integers(-5, 200))
OPTIONS = st.sampled_from(["1g", "3.5g", "7g", "28g", "N/A"])


@given(
    st.lists(OPTIONS, max_size=5),
    st.lists(st.builds(child, OPTIONS, QUANTITIES, QUANTITIES), max_size=6),
    st.lists(st.builds(ManualInventory, OPTIONS, QUANTITIES), max_size=6),
    st.data(),
)
def test_stock_of_single_options_does_not_depend_on_order(options: Any, children: Any, manual: Any, data: Any) -> None:
    by_text = {c.option: c for c in children}
    by_hand = {m.option: m for m in manual}
    names = list(dict.fromkeys(options))
    straight = stock_levels(names, list(by_text.values()), list(by_hand.values()))
    shuffled = stock_levels(
        names,
        data.draw(st.permutations(list(by_text.values()))),
        data.draw(st.permutations(list(by_hand.values()))),
    )
    assert [x and (x.available, x.capped) for x in straight] == [x and (x.available, x.capped) for x in shuffled]
    for name, level in zip(names, straight, strict=True):
        pos = by_text.get(name)
        told = pos is not None and (pos.quantity is not None or pos.quantityAvailable is not None)
        counted = by_hand.get(name) is not None and by_hand[name].inventory is not None
        assert (level is not None) == (told or counted)
        if level is not None:
            assert level.available >= 0
            assert not (level.capped and not told), "counts by hand are not capped"
    known = [level.available for level in straight if level is not None]
    assert total(straight) == (sum(known) if known else None)


@given(st.integers(0, 50) | st.none(), st.booleans())
def test_option_rule(available: int | None, below: bool) -> None:
    (level,) = stock_levels(["1g"], None, [ManualInventory("1g", available)])
    status = option_status(level.available if level is not None else None, withdrawn=below)
    assert (status == "unknown") == (available is None and not below)
    assert (status == "in_stock") == (not below and available is not None and available > 0)


@given(st.lists(STATUSES, max_size=6), st.booleans())
def test_product_rule(variants: Any, active: bool) -> None:
    status = product_status(variants, active=active)
    if "in_stock" in variants:
        assert status == "in_stock"
    elif variants:
        assert (status == "oos") == (set(variants) == {"oos"})
    else:
        assert status == ("unknown" if active else "oos")


def test_active() -> None:
    assert is_active("Active")
    assert is_active("ACTIVE")
    assert is_active(None)
    assert not is_active("Inactive")
    assert not is_active("Archived")
