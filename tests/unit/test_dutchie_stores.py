"""Store records that no recorded answer shows."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.dutchie.answers import found_store
from menuwatch.platforms.model import FoundStore
from menuwatch.platforms.store_records import iana_timezone, state_code


def found(record: Any) -> FoundStore:
    return found_store(msgspec.Raw(json.dumps(record).encode()), "https://dutchie.com")


def test_least_record() -> None:
    store = found({"id": "se4ekt2e7rH5pspyn"})
    assert (store.platform_dispensary_id, store.slug, store.name) == ("se4ekt2e7rH5pspyn",) * 3
    assert (store.latitude, store.longitude, store.timezone, store.is_medical) == (None, None, None, None)
    assert (store.problem, store.raw, store.category_counts) == (None, {}, {})


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"cName": "a", "name": "A"}, "the record has no id"),
        ({"id": "1", "status": "closed"}, "the store is not open: its status is 'closed'"),
        ({"id": "1", "status": "open"}, None),
        ({"id": "1", "status": None}, None),
        ([], "the record is not a JSON object"),
        (None, "the record is not a JSON object"),
    ],
)
def test_what_cannot_be_crawled_says_why(record: Any, problem: str | None) -> None:
    assert found(record).problem == problem


@pytest.mark.parametrize(
    ("coordinates", "expected"),
    [
        ([-79.02, 43.84], (43.84, -79.02)),
        ([-112, 33], (33.0, -112.0)),
        ([0, 0], (None, None)),
        ([43.84, -179.02], (None, None)),
        (["-79", "43"], (None, None)),
        ([-79.02], (None, None)),
        ([True, False], (None, None)),
        (None, (None, None)),
    ],
)
def test_coordinates_are_longitude_first(coordinates: Any, expected: tuple[float | None, float | None]) -> None:
    store = found({"id": "1", "location": {"geometry": {"coordinates": coordinates}}})
    assert (store.latitude, store.longitude) == expected


def test_odd_fields_do_no_harm() -> None:
    store = found(
        {
            "id": "1",
            "cName": "a",
            "name": "  Leaf\u00a0 & Co ",
            "location": "somewhere",
            "retailer": None,
            "productCategorySummary": [{"category": "Flower", "value": 3}, {"category": 5, "value": 1}, None, {}],
            "recDispensary": "yes",
            "phone": "",
        }
    )
    assert (store.name_raw, store.name) == ("  Leaf\u00a0 & Co ", "Leaf & Co")
    assert (store.city, store.phone, store.is_recreational) == (None, None, None)
    assert store.category_counts == {"Flower": 3}


def raw(text: str) -> FoundStore:
    return found_store(msgspec.Raw(text.encode()), "https://dutchie.com")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 20, "9" * 5000])
def test_numbers_that_no_database_takes_are_null(number: str) -> None:
    store = raw(f'{{"id":"1","taxConfig":{{"a":{number},"b":[0.5,{number}],"c":7}},"feeTiers":{number}}}')
    assert store.raw == {"taxConfig": {"a": None, "b": [0.5, None], "c": 7}}
    assert store.problem is None
    place = raw(f'{{"id":"1","location":{{"geometry":{{"coordinates":[{number},5]}}}}}}')
    assert (place.latitude, place.longitude) == (None, None)


def test_fields_that_are_nested_beyond_reason_are_not_kept() -> None:
    def nested(levels: int) -> str:
        return "[" * levels + "1" + "]" * levels

    store = raw(f'{{"id":"1","feeTiers":{nested(32)},"taxConfig":{{"a":{nested(32)}}},"pickupHours":{nested(900)}}}')
    assert list(store.raw) == ["feeTiers"]
    assert raw(f'{{"id":"1","x":{nested(5000)}}}').problem == "the record is not a JSON object"


def test_texts_that_no_index_takes_are_none() -> None:
    long = "x" * 3000
    store = raw(f'{{"id":"1","cName":"{long}","name":"{long}","location":{{"city":"{long}","state":"{long}"}}}}')
    assert (store.slug, store.city, store.state, store.problem) == ("1", None, None, None)
    assert store.name == long, "a name has no index"
    assert raw(f'{{"id":"{long}","cName":"a"}}').problem == "the record has no id"


@given(
    st.recursive(
        st.sampled_from(["1e400", "NaN", "0.1", "7", "9" * 30, "null", '"a\\u0000b"', '"\\ud83d"', '"é"']),
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
            | st.lists(inner, max_size=3).map(
                lambda parts: "{" + ",".join(f'"{i}":{part}' for i, part in enumerate(parts)) + "}"
            )
        ),
        max_leaves=10,
    )
)
def test_what_is_kept_is_json_that_any_database_takes(value: str) -> None:
    store = raw(f'{{"id":"1","taxConfig":{value}}}')
    text = json.dumps(store.raw, allow_nan=False, ensure_ascii=False)
    assert "\\u0000" not in text
    assert text.encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("America/Toronto", "America/Toronto"),
        ("US/Eastern", "America/New_York"),
        ("US/Arizona", "America/Phoenix"),
        ("Canada/Pacific", "America/Vancouver"),
        ("Mars/Olympus", None),
        ("EDT?", None),
        (None, None),
    ],
)
def test_zone(name: str | None, expected: str | None) -> None:
    assert iana_timezone(name) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [("New Mexico", "NM"), ("nm", "NM"), ("N.M.", "NM"), ("Ontario", "ON"), ("Bavaria", "Bavaria"), (None, None)],
)
def test_the_state_of_a_store_is_its_code_where_it_is_known(text: str | None, code: str | None) -> None:
    assert state_code(text) == code
    assert found({"id": "1", "location": {"state": text}}).state == code
