"""Circles around places. Expected positions are those of the United States Census Bureau's gazetteer and of Statistics Canada."""

from __future__ import annotations

import pytest

from menuwatch.core.errors import Refused
from menuwatch.geo.circle import parse_area


@pytest.mark.parametrize(
    ("near", "latitude", "longitude", "place"),
    [
        ("Santa Fe, NM", 35.66, -105.98, "Santa Fe, NM"),
        ("santa fe new mexico", 35.66, -105.98, "Santa Fe, NM"),
        ("87501", 35.70, -105.98, "Santa Fe, NM 87501"),
        (" 87501-1234 ", 35.70, -105.98, "Santa Fe, NM 87501"),
        ("M5V 2T6", 43.64, -79.39, "Toronto, ON M5V"),
    ],
)
def test_the_middle_of_a_city_or_postcode(near: str, latitude: float, longitude: float, place: str) -> None:
    area = parse_area(near, 25)
    assert area.place == place
    # About 5 km.
    assert list(area.circle[:2]) == pytest.approx([latitude, longitude], abs=0.05)
    assert area.circle.meters == pytest.approx(40_233.6), "a mile is 1,609.344 m"


@pytest.mark.parametrize("near", ["35.084386,-106.650422", " 35.084386, -106.650422 ", "35.084386 ,-106.650422"])
def test_a_position_is_exact(near: str) -> None:
    assert parse_area(near, 1) == ((35.084386, -106.650422, 1609.344), "35.084386,-106.650422")


@pytest.mark.parametrize(
    "near", ["", "Nowhere", "Nowhere, NM", "NM", "00000", "90.1,0", "0,180.1", "35.08", "35.08,", "1,2,3", "x" * 101]
)
def test_what_is_no_place_is_named_with_what_would_be_one(near: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_area(near, 25)
    assert str(refused.value) == (
        f"unknown place {near[:40]!r}: give a city with its state (Santa Fe, NM), a ZIP or postal code, or latitude and longitude "
        "(35.08,-106.65)"
    )
