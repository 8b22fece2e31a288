"""Numbers typed into forms: a comma separates thousands, and is never taken for a decimal point."""

from __future__ import annotations

from decimal import Decimal

import pytest

from menuwatch.web.forms import FormInput


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,024.50", "1024.50"), ("$1,024.50", "1024.50"), ("5 %", "5"), ("0.5", "0.5"), (" 12 ", "12"), ("-3", "-3"),
        ("0,5", None), ("1,5", None), ("1,0245", None), ("10,00", None), (",5", None), ("five", None), ("1e400", None), ("nan", None),
        ("1e3", None), ("1_000", None), ("٣", None), (".5", "0.5"), ("+2", "2"),
    ],
)  # fmt: skip
def test_a_decimal(text: str, number: str | None) -> None:
    form = FormInput({"rate": text})
    assert form.parse_decimal("rate", "a number") == (None if number is None else Decimal(number))
    assert form.ok == (number is not None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,024", 1024),
        ("12", 12),
        ("1,5", None),
        ("1,02", None),
        ("2.0", None),
        ("1e3", None),
        ("1_000", None),
        ("٣", None),
    ],
)
def test_a_whole_number(text: str, number: int | None) -> None:
    form = FormInput({"burst": text})
    assert form.parse_int("burst", low=1, high=10_000) == number
    assert form.ok == (number is not None)
