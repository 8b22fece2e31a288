"""Quantities and ids as platforms write them."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.items import UnusableItem
from menuwatch.platforms.numbers import MAX_QUANTITY, Identifier, Quantity, id_text, packages


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("null", None), ("7", 7), ("7.0", 7), ('"7"', 7), ('" 7 "', 7), ('"7.0"', 7), ('"+7"', 7), ('"007"', 7), ('"7."', 7),
        ("0", 0), ('"0"', 0), ("-3", 0), ('"-3.5"', 0), ("0.25", 1), ('"0.25"', 1), ('""', None), ('"  "', None),
        ('"10000000"', MAX_QUANTITY), ("-0.5", 0),
    ],
)  # fmt: skip
def test_a_quantity_is_read_however_it_is_written(written: str, expected: int | None) -> None:
    assert packages(msgspec.json.decode(written, type=Quantity)) == expected


@pytest.mark.parametrize(
    "written",
    [
        '"seven"',
        '"7,000"',
        '"1e3"',
        '"NaN"',
        '"25+"',
        '"7 7"',
        '"٧"',
        '"10000001"',
        '"99999999999999"',
        '"-"',
        '"7\\u0000"',
    ],
)
def test_a_text_that_is_no_quantity_is_refused(written: str) -> None:
    with pytest.raises(UnusableItem) as refused:
        packages(msgspec.json.decode(written, type=Quantity), "variants[2].quantity")
    assert refused.value.args[0] == "variants[2].quantity"


@pytest.mark.parametrize("value", [True, inf, -inf, nan, 1e9, 10_000_001])
def test_a_number_that_is_no_quantity_is_refused(value: Any) -> None:
    with pytest.raises(UnusableItem):
        packages(value)


@given(st.integers(-MAX_QUANTITY, MAX_QUANTITY))
def test_number_and_text_mean_the_same(count: int) -> None:
    assert packages(count) == packages(f"{count}") == packages(f"{count}.0") == packages(float(count)) == max(0, count)


@given(st.decimals(-1000, 1000, places=3))
def test_a_remainder_is_not_zero(amount: Decimal) -> None:
    whole = packages(f"{amount:f}")
    assert whole is not None
    assert max(Decimal(0), amount) <= whole < max(Decimal(0), amount) + 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", "a"), (7, "7"), (0, "0"), (10**30, "1" + "0" * 30), ("", None), ("\0", None), ("a\0b", "ab"), (None, None), (True, None),
     (7.0, None), ([], None)],
)  # fmt: skip
def test_ids(value: Any, expected: str | None) -> None:
    assert id_text(value) == expected


def test_an_integer_that_cannot_be_written_is_no_id() -> None:
    assert id_text(10**5000) is None


def test_an_identifier_is_a_number_or_a_text() -> None:
    assert [msgspec.json.decode(written, type=Identifier) for written in ("7", '"7"')] == [7, "7"]
