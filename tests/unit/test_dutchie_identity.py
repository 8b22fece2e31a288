"""The id of an item, as it is told apart and as it is stored: one and the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from menuwatch.platforms.dutchie.normalize import ITEMS

REST = '"Name":"A thing","Options":["1g"],"recPrices":[10]'


def raw(text: str | bytes) -> msgspec.Raw:
    return msgspec.Raw(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ('"id":"a","_id":"b"', "a"),
        ('"id":"","_id":"b"', "b"),
        ('"id":null,"_id":"b"', "b"),
        ('"_id":"b"', "b"),
        ('"id":"a","_id":7', "a"),
        ('"id":7,"_id":"b"', "7"),
        ('"id":7.5,"_id":"b"', "b"),
        ('"id":{"$oid":"x"},"_id":"b"', "b"),
        ('"id":"a","_id":1e400', "a"),
        ('"id":"ab\\u0000c"', "abc"),
        ('"id":"\\u0000","_id":"b"', "b"),
        ('"id":"\\u0000"', None),
        ('"id":"ab\\ud83dc"', "ab\ufffdc"),
        ('"id":"a","i\\u0000d":"b","weight":"heavy"', "a"),
        ('"id":"a","id":"b"', "b"),
        ('"\\u0069d":"a"', "a"),
        ('"id":" a "', " a "),
        ('"id":7', "7"),
        ('"id":true', None),
        ('"x":1', None),
    ],
)
def test_id(ids: str, expected: str | None) -> None:
    item = raw(f"{{{ids},{REST}}}")
    assert ITEMS.identity(item) == expected
    assert [p.provider_product_id for p in ITEMS.normalize([item]).products] == ([] if expected is None else [expected])


def test_no_utf8() -> None:
    item = raw(b'{"id":"a\xff","Name":"x"}')
    assert ITEMS.identity(item) == "a\ufffd"
    assert ITEMS.normalize([item]).products[0].provider_product_id == "a\ufffd"


@pytest.mark.parametrize("text", ["7", "null", "[]", '"a"', '{"id":"a"', "", "[" * 5000 + "]" * 5000])
def test_what_is_no_item_has_no_id(text: str) -> None:
    assert ITEMS.identity(raw(text)) is None


ID = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.sampled_from(["a", "b", "", "\0", "a\0", "\ud83d", "a\ud83d", "é", "e\u0301", " ", "x" * 200, "x" * 201]),
    st.integers(),
    st.just({"$oid": "x"}),
    st.just([["a"]]),
)
FIELDS = {
    "Name": st.sampled_from(["A thing", "nul\0", "cut \ud83d", "", 5, None]),
    "recPrices": st.sampled_from([[10], [-1], ["NaN"], "free", None, [10, 11]]),
    "THCContent": st.sampled_from(
        [None, "strong", {"unit": "mg\\", "range": [1]}, {"unit": "MILLIGRAMS", "range": ["NaN"]}]
    ),
    "weight": st.sampled_from([5, "heavy", 10**400]),
    "_Id": ID,
    "i\0d": ID,
}


@given(st.fixed_dictionaries({}, optional={"id": ID, "_id": ID, **FIELDS}), st.booleans())
@example({"id": "ab\0c", "Name": "x"}, True)
@example({"id": "good", "_id": 7, "Name": "x"}, True)
def test_it_is_the_id_that_the_product_gets(fields: dict[str, Any], escaped: bool) -> None:
    text = json.dumps({"Name": "A thing", "Options": ["1g"], **fields}, ensure_ascii=escaped)
    item = raw(text.encode("utf-8", "surrogatepass"))
    products = ITEMS.normalize([item]).products
    found = ITEMS.identity(item)
    if products:
        assert [p.provider_product_id for p in products] == [found]
    if found is None:
        assert products == ()


@given(st.binary(max_size=60))
def test_any_bytes_do_no_harm(body: bytes) -> None:
    item = raw(b'{"id":"' + body + b'"}')
    products = ITEMS.normalize([item]).products
    assert all(p.provider_product_id == ITEMS.identity(item) for p in products)
