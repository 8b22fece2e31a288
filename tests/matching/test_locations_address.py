"""Addresses, names, phones and zips as menus and registers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.matching.locations import address, names
from menuwatch.matching.locations.compare import ReasonCode, Record, compare
from menuwatch.matching.locations.link import link, scale_of

SAME = [
    ("5800 Gibson Blvd SE,", "5800 Gibson SE"),
    ("4840 Pan-american Freeway Northeast Suite H", "4840-H Pan American East Freeway"),
    ("2000 Carlisle Boulevard Northeast", "2000 Carlisle Blvd NE"),
    ("3841 E. Lohman Ave. Suite 2", "3841 East Lohman Ave"),
    ("460 S County Line Dr Suite F", "460 County Line Drive, Space F"),
    ("501 US-550", "501 US-550 S"),
    ("1660 NM 528 SE Ste 105", "1660 State Highway 528 Suite 105"),
    ("2320 Hwy 180 East", "2320 Highway 180 East"),
    ("3321 I-25", "3321 South Interstate 25"),
    ("1144 S. 2nd Street", "1144 S Second St"),
    ("507 Old Santa Fe Trail, Santa Fe, NM 87505", "507  Old Santa Fe Trail"),
    ("70 Broadway #50", "70 North Broadway, Suite 50"),
    ("104-15 Jamaica Ave", "10415 Jamaica Avenue"),
    ("900 St Francis Dr", "900 Saint Francis Drive"),
    ("7710 Menaul NE 7710 Menaul NE", "7710 Menaul Blvd NE"),
]
OTHER = [
    ("1302 S Main St", "1302 S Main Ave W, Taos"),
    ("3417 Central Ave SE", "3417 Central Ave NW"),
    ("1541 Appaloosa Dr", "1541 Palomino Dr"),
    ("100 Highway 64", "100 Highway 66"),
    ("24 Bisbee Ct", "42 Bisbee Ct"),
]


def _says(a: str, b: str) -> ReasonCode | None:
    records = [
        Record(("menu", at), address.parse(text, "Santa Fe", "NM", "87505"), address_text=text)
        for at, text in enumerate((a, b))
    ]
    reasons = [reason.code for reason in compare(*records, scale_of(records)).reasons]
    return next((code for code in reasons if code.endswith(("address", "number"))), None)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_spellings_of_one_address_are_equal(a: str, b: str) -> None:
    assert _says(a, b) is ReasonCode.SAME_ADDRESS == _says(b, a)


@pytest.mark.parametrize(("a", "b"), OTHER[1:])
def test_other_addresses_are_not_equal(a: str, b: str) -> None:
    assert _says(a, b) is not ReasonCode.SAME_ADDRESS


@pytest.mark.parametrize("text", ["", "   ", "PO Box 12", "123", "Mills Avenue", "🌿🌿", "x" * 2000, "N/A"])
def test_what_names_no_building_is_no_place(text: str) -> None:
    assert not address.parse(text).is_place


def test_city_state_and_zip_inside_one_string() -> None:
    parsed = address.parse("212 N 2nd St Suite 103, Minneapolis, MN 55401")
    assert (parsed.city, parsed.state, parsed.zipcode, parsed.units) == ("minneapolis", "MN", "55401", {"103"})
    parsed = address.parse("25 Liberty Rd. Sykesville Maryland 21784")
    assert (parsed.street, parsed.city, parsed.state, parsed.zipcode) == (("liberty",), "sykesville", "MD", "21784")


@pytest.mark.parametrize(
    ("text", "zipcode"),
    [
        ("1852.0", "01852"),
        ("01852-1234", "01852"),
        (" 87501 ", "87501"),
        ("420.", ""),
        ("K1A 0B1", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_zips(text: str | None, zipcode: str) -> None:
    assert address.parse_zip(text) == zipcode


@pytest.mark.parametrize(
    ("text", "phone"),
    [
        ("(505) 888-2699", "5058882699"), ("+1 505.888.2699", "5058882699"), ("505-888-2699 ext. 4", "5058882699"), ("888-2699", ""),
        ("000-000-0000", ""), ("", ""), (None, ""),
    ],
)  # fmt: skip
def test_phones(text: str | None, phone: str) -> None:
    assert address.parse_phone(text) == phone


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("R Greenleaf Cannabis Dispensary - Alamogordo", "R. GREENLEAF ORGANICS INC - WHITE SANDS BLVD RETAIL"),
        ("StarrCanna Dispensary", "STARR CANNA LLC/ RETAIL EAST BENDER"),
        ("Anicedream", "A NICE DREAM INC - EDITH RETAIL"),
        ("Green Mesa (REC)", "Green Mesa - Medical"),
        ("S&H Green Life", "S  H GREEN LIFE - PECAN DR RETAIL"),
    ],
)
def test_names_that_share_what_tells(a: str, b: str) -> None:
    parsed = [names.parse(text, town=("alamogordo",)) for text in (a, b)]
    assert names.likeness(*parsed, names.weights_of(parsed))[1] >= 0.4


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Albuquerque Cannabis Dispensary", "Harvest Foundation"),
        ("Old Gods Dispensary", "R Greenleaf Dispensary"),
        ("N/A", "N/A"),
        ("", ""),
    ],
)
def test_words_of_the_trade_say_nothing(a: str, b: str) -> None:
    parsed = [names.parse(text, town=("albuquerque",)) for text in (a, b)]
    assert names.likeness(*parsed, names.weights_of(parsed))[1] < 0.4


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_is_read(text: str, city: str) -> None:
    parsed = address.parse(text, city, "NM", text)
    names.parse(text, (city,))
    address.parse_phone(text)
    assert parsed == address.parse(text, city, "NM", text)


@given(st.permutations(range(6)))
def test_the_order_of_records_does_not_matter(order: list[int]) -> None:
    texts = ["12 Main St", "12 Main Street", "12 Main St Unit B", "40 Elm St", "40 Elm Street", "41 Elm Street"]
    records = [
        Record(
            ("menu", at), address.parse(text, "Taos", "NM", "87571"), (names.parse("Green Mesa"),), platform=f"p{at}"
        )
        for at, text in enumerate(texts)
    ]
    groups = {frozenset(number for _, number in group) for group in link([records[at] for at in order]).groups}
    assert groups == {frozenset({0, 1, 2}), frozenset({3, 4}), frozenset({5})}


def test_a_chain_with_one_phone_has_many_locations() -> None:
    records = [
        Record(
            ("menu", at),
            address.parse(f"{100 + at * 37} Oak St", "Denver", "CO", "80203"),
            (names.parse("Green Dragon"),),
            platform="dutchie",
            phone="3035550123",
        )
        for at in range(30)
    ]
    assert len(link(records).groups) == 30
