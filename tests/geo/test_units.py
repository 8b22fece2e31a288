"""Units by the place. Expected: a mile is 1,609.344 m (international yard and pound agreement of 1959)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from menuwatch.core.format import money
from menuwatch.geo.units import approximate_distance, currency, distance, distance_of_miles, radius, state_of


@pytest.mark.parametrize(
    ("meters", "state", "text"),
    [
        (650, "AZ", "0.4 mi"),
        (650, "ON", "0.7 km"),
        (19_312, "AZ", "12 mi"),
        (19_312, "ON", "19 km"),
        (19_312, "", "12 mi"),
        (16_080, "CO", "10 mi"),  # not "10.0 mi"
        (2_000_000, "BC", "2,000 km"),
        (None, "ON", ""),
    ],
)
def test_distances(meters: float | None, state: str, text: str) -> None:
    assert distance(meters, state) == text


@pytest.mark.parametrize(
    ("meters", "state", "text"),
    [
        (0, "AZ", None),
        (1_600, "AZ", None),
        (1_610, "AZ", "about 1 mi"),
        (19_800, "IL", "about 12 mi"),
        (999, "ON", None),
        (1_600, "ON", "about 2 km"),
        (2_000_000, None, "about 1,243 mi"),
    ],
)
def test_an_approximate_distance_says_so(meters: float, state: str | None, text: str | None) -> None:
    assert approximate_distance(meters, state) == text


def test_a_length_in_miles_is_shown_in_the_unit_of_the_state() -> None:
    assert [distance_of_miles(Decimal("12.0"), state) for state in ("NM", "ON", None)] == ["12 mi", "19 km", "12 mi"]


def test_stores_in_canada_ask_canadian_dollars() -> None:
    assert [currency(state) for state in ("NM", "ON", "QC", "PR", None, "")] == [
        "USD",
        "CAD",
        "CAD",
        "USD",
        "USD",
        "USD",
    ]
    assert [money(Decimal("1234.5"), currency(state)) for state in ("CA", "BC")] == ["$1,234.50", "CA$1,234.50"]
    assert (money(None, "CAD"), money(3, "EUR")) == ("–", "EUR 3.00")


def test_a_radius_is_in_miles_or_kilometers() -> None:
    assert [radius(miles, "ON") for miles in (5, 10, 25, 50, 100)] == ["8 km", "16 km", "40 km", "80 km", "161 km"]
    assert [radius(25, state) for state in ("AZ", "", None)] == ["25 miles"] * 3


@pytest.mark.parametrize(
    ("label", "state"),
    [
        ("Toronto, ON", "ON"),
        ("Toronto, ON M5V", "ON"),
        ("this location (Ajax, ON)", "ON"),
        ("Phoenix, AZ 85001", "AZ"),
        ("this location", None),
    ],
)
def test_the_state_of_a_label(label: str, state: str | None) -> None:
    assert state_of(label) == state
