"""Distances by the unit of the place. Expected: a mile is 1,609.344 m (international yard and pound agreement of 1959)."""

from __future__ import annotations

import pytest

from menuwatch.geo.units import distance, radius, state_of


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
