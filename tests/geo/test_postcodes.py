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
        ("New York", "New York, NY", 40.7, -74.0),
        ("NYC, ny", "New York, NY", 40.7, -74.0),
        ("Phoenix", "Phoenix, AZ", 33.4, -112.1),
        ("Toronto", "Toronto, ON", 43.7, -79.4),
        ("Toronto, ON", "Toronto, ON", 43.7, -79.4),
        ("M5V 2T6", "Toronto, ON M5V", 43.6, -79.4),
        ("toronto on m5v2t6", "Toronto, ON M5V", 43.6, -79.4),
        ("L1S 1A1", "Ajax, ON L1S", 43.8, -79.0),
        ("Ajax, Ontario", "Ajax, ON", 43.9, -79.0),
        ("montreal", "Montréal, QC", 45.5, -73.6),
        ("Quebec City, Québec", "Quebec City, QC", 46.8, -71.2),
        ("St. John's Newfoundland and Labrador", "St. John's, NL", 47.6, -52.7),
        ("Iqaluit, NU", "Iqaluit, NU", 63.7, -68.5),
        ("V6B", "Vancouver, BC V6B", 49.3, -123.1),
        ("33.448, -112.074", "this location (Phoenix, AZ)", 33.4, -112.1),
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
        "Neverwhere",
        "Arizona",
        "California",  # a town in Maryland has that name
        "Phoenix, Canada",
        "Z9Z 9Z9",
        "H0H 0H0",  # Santa Claus, at the North Pole
        "91,0",
        "33.4",
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
    assert found is None or found.state in states.CODES or found.is_position


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("Portland", ["Portland, OR", "Portland, ME", "Portland, TX"]),
        ("springfield", ["Springfield, MO", "Springfield, MA", "Springfield, IL"]),
        ("Vancouver", ["Vancouver, BC", "Vancouver, WA"]),
        ("Vancouver, Canada", ["Vancouver, BC"]),
        ("Vancouver USA", ["Vancouver, WA"]),
        ("Kansas City", ["Kansas City, MO", "Kansas City, KS"]),
    ],
)
def test_a_name_of_several_cities_has_all_of_them_the_most_populous_first(text: str, labels: list[str]) -> None:
    """The order is that of the censuses of 2020 and 2021."""
    assert [place.label for place in postcodes.find_all(text)][: len(labels)] == labels


def test_a_position_is_rounded_to_a_hundredth_of_a_degree() -> None:
    found = postcodes.find("33.456789,-112.071234")
    assert found is not None
    assert (found.point, found.city, found.state) == ((33.46, -112.07), "Phoenix", "AZ")
    at_sea = postcodes.find("30,-45")
    assert at_sea is not None
    assert at_sea.label == "this location"


@given(st.sampled_from(sorted(postcodes._canadian_postcodes())))
def test_every_canadian_area_lies_in_canada_and_its_label_leads_back(code: str) -> None:
    found = postcodes.find(f"{code} 1A1")
    assert found is not None
    assert found.state in states.PROVINCES
    assert 41 < found.latitude < 84
    assert -142 < found.longitude < -52
    assert postcodes.find(found.label) == found


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
