"""Places of postcodes and cities, and how far apart they are. Expected places are those of the United States Census Bureau's
gazetteer, to a tenth of a degree; distances are worked out from the definition of the earth's radius, or published ones."""

from __future__ import annotations

from types import ModuleType

import pytest
import zipcodes
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.geo import postcodes, states

known: ModuleType = zipcodes


@pytest.mark.parametrize(
    ("text", "label", "latitude", "longitude"),
    [
        ("85001", "Phoenix, AZ 85001", 33.4, -112.1),
        (" 85001-1234 ", "Phoenix, AZ 85001", 33.4, -112.1),
        ("850011234", "Phoenix, AZ 85001", 33.4, -112.1),
        ("Phoenix, AZ 85001", "Phoenix, AZ 85001", 33.4, -112.1),
        ("02134", "Allston, MA 02134", 42.4, -71.1),
        ("Tucson, AZ", "Tucson, AZ", 32.2, -110.9),
        ("tucson   arizona", "Tucson, AZ", 32.2, -110.9),
        ("O’Fallon, IL", "O Fallon, IL", 38.6, -89.9),
        ("St. Louis, MO", "Saint Louis, MO", 38.6, -90.2),
        ("Charleston West Virginia", "Charleston, WV", 38.3, -81.6),
        ("NYC, ny", "New York, NY", 40.7, -74.0),
    ],
)
def test_a_place_is_found_as_people_write_it(text: str, label: str, latitude: float, longitude: float) -> None:
    found = postcodes.find(text)
    assert found is not None
    assert found.label == label
    # About 15 km.
    assert found.point == (pytest.approx(latitude, abs=0.13), pytest.approx(longitude, abs=0.16))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "85",
        "123456",
        "00000",
        "a85001",
        "85001x",
        "Phoenix",
        "Phoenix, ZZ",
        "Atlantis, AZ",
        ", AZ",
        "AZ",
        "'; --",
        "x" * 9999,
        "09001",  # a post office of the forces: the list has it at 0, 0, in the Atlantic
    ],
)
def test_what_is_no_place_is_none(text: str) -> None:
    assert postcodes.find(text) is None


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    found = postcodes.find(text)
    assert found is None or (found.state in states.NAMES or found.postcode)


def _areas() -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(
        known.filter_by(zip_code_type="STANDARD", state="AZ") + known.filter_by(zip_code_type="STANDARD", state="AK")
    )


@given(st.deferred(_areas))
def test_every_postcode_is_where_the_list_has_it_and_its_city_is_within_its_areas(row: dict[str, str]) -> None:
    found = postcodes.find(row["zip_code"])
    assert found is not None
    assert (found.postcode, found.city, found.state) == (row["zip_code"], row["city"], row["state"])
    assert found.point == (float(row["lat"]), float(row["long"]))
    if (town := postcodes.find(f"{row['city']}, {row['state']}")) is not None:
        areas = [
            r for r in known.filter_by(state=row["state"]) if postcodes._plain(r["city"]) == postcodes._plain(town.city)
        ]
        assert min(float(r["lat"]) for r in areas) - 1e-3 <= town.latitude <= max(float(r["lat"]) for r in areas) + 1e-3
        assert (
            min(float(r["long"]) for r in areas) - 1e-3 <= town.longitude <= max(float(r["long"]) for r in areas) + 1e-3
        )
