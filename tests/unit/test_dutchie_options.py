"""What an option weighs, and what a gram of it costs."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.taxonomy.package import mass
from menuwatch.catalog.taxonomy.unit_price import per as price_per_gram
from menuwatch.platforms.dutchie.options import DOSED_TYPES, weights


@pytest.mark.parametrize(
    ("text", "grams"),
    [
        ("1/8oz", "3.5"),
        ("1/4oz", "7"),
        ("1/2oz", "14"),
        ("1oz", "28"),
        ("2oz", "56"),
        ("1/16oz", "1.75"),
        ("3/4oz", "21"),
        ("0.5oz", "14"),
        ("1g", "1"),
        (".5g", "0.5"),
        ("0.5g", "0.5"),
        ("3.5g", "3.5"),
        ("14.0g", "14"),
        ("28.3g", "28.3"),
        ("0.025g", "0.025"),
        ("1gC", "1"),
        ("3.5gC", "3.5"),
        (" 3.5 g ", "3.5"),
        ("100g", "100"),
        ("1 Gram", "1"),
        ("N/A", None),
        ("", None),
        ("10pk/100mg", None),
        ("100mg", None),
        ("2pk", None),
        ("5x0.5g", None),
        ("0g", None),
        ("1/0oz", None),
        ("0/8oz", None),
        ("g", None),
        (".g", None),
        ("-1g", None),
        ("1e3g", None),
        ("1/8", None),
        ("12 fl oz", None),
    ],
)
def test_mass(text: str, grams: str | None) -> None:
    found = mass(text)
    assert found == (None if grams is None else Decimal(grams))
    if found is not None:
        assert "E" not in str(found), "written out, as people write weights"


@given(st.text(max_size=40))
def test_any_text_is_a_positive_weight_or_none(text: str) -> None:
    found = mass(text)
    assert found is None or found > 0


@given(st.integers(1, 9999), st.integers(0, 999), st.sampled_from(["g", "gC", " g", "G"]))
def test_grams_are_taken_exactly(whole: int, thousandths: int, unit: str) -> None:
    assert mass(f"{whole}.{thousandths:03d}{unit}") == Decimal(whole * 1000 + thousandths) / 1000


@given(st.integers(1, 16), st.sampled_from([1, 2, 4, 8, 16]))
def test_fractions_of_an_ounce_are_fractions_of_28_grams(top: int, bottom: int) -> None:
    assert mass(f"{top}/{bottom}oz") * bottom == 28 * top


def net(*values: str) -> list[Decimal]:
    return [Decimal(value) for value in values]


def test_raw_options_help_where_the_text_does_not() -> None:
    assert weights("Flower", ["House size", "1oz"], ["3.5g", "29g"], None, None) == [Decimal("3.5"), Decimal(28)]
    assert weights("Flower", ["House size", "1oz"], ["3.5g"], None, None) == [None, Decimal(28)], "not aligned"


def test_net_weight_only_for_a_single_option_that_names_none() -> None:
    assert weights("Pre-Rolls", ["5pk"], None, "MILLIGRAMS", net("2500")) == [Decimal("2.5")]
    assert weights("Flower", ["28g"], None, "MILLIGRAMS", net("3500")) == [Decimal(28)], "the option wins"
    assert weights("Pre-Rolls", ["5pk", "2pk"], None, "MILLIGRAMS", net("2500")) == [None, None]
    assert weights("Pre-Rolls", ["5pk"], None, "MILLIGRAMS", net()) == [None]
    assert weights("Pre-Rolls", ["5pk"], None, "MILLIGRAMS", net("1", "2")) == [None]
    assert weights("Pre-Rolls", ["5pk"], None, "MILLIGRAMS", net("0")) == [None]
    assert weights("Pre-Rolls", ["5pk"], None, "FURLONGS", net("2500")) == [None]
    assert weights("Accessories", ["N/A"], None, "MILLIGRAMS", net("62000")) == [None]


@pytest.mark.parametrize("category", sorted(DOSED_TYPES))
def test_grams_of_something_dosed_are_its_thc(category: str) -> None:
    assert weights(category, ["0.025g"], ["0.025g"], "MILLIGRAMS", net("25")) == [None]
    assert weights(category, ["0.1g", "0.2g"], None, None, None) == [None, None]
    assert weights(category, ["N/A"], None, "MILLIGRAMS", net("40000")) == [Decimal(40)], (
        "the package, by its own field"
    )


def test_price_per_gram() -> None:
    assert price_per_gram(Decimal("127.78"), Decimal(28)) == Decimal("4.5636")
    assert price_per_gram(Decimal(10), None) is None
    assert price_per_gram(None, Decimal("3.5")) is None
