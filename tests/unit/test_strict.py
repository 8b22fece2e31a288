"""What may stand inside another JSON text as it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core import strict_json as strict


class _Thing(msgspec.Struct):
    name: str


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(_values.filter(_encodable), st.booleans(), st.text(" \t\r\n", max_size=3))
def test_what_is_valid_json_is_strict(value: Any, plain: bool, space: str) -> None:
    text = f"{space}{json.dumps(value, ensure_ascii=plain)}{space}".encode()
    assert strict.is_strict(text)


@given(st.binary())
def test_what_is_strict_can_be_read_by_others_wherever_it_stands(text: bytes) -> None:
    if strict.is_strict(text):
        assert json.loads(b'{"pages":[%b,1]}' % text)["pages"][1:] == [1]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"1,2",
        b"1 2",
        b"1],[2",
        b"],[",
        b"]",
        b"[",
        b"1]",
        b"[1",
        b"\x0b1",
        b"\xef\xbb\xbf1",
        b"NaN",
        b'{"a":1,}',
    ],
)
def test_what_only_fits_where_it_stands_is_not(text: bytes) -> None:
    assert not strict.is_strict(text)


@pytest.mark.parametrize("text", [b'"\xff"', b'"\xc3"', b'{"\xed\xa0\x80":1}', b'"\\ud83d"', b'"\\ud83d\\u0041"'])
def test_text_that_no_encoding_has_is_not(text: bytes) -> None:
    assert not strict.is_strict(text)


@pytest.mark.parametrize("before", range(8180, 8200))
@pytest.mark.parametrize("letter", ["é", "™", "🌿"])
def test_letters_may_lie_across_what_is_looked_at_in_one_go(before: int, letter: str) -> None:
    text = f'"{"a" * before}{letter * 3}"'.encode()
    assert strict.is_strict(text)
    assert not strict.is_strict(text[:-2] + b'"'), "its last letter lacks a byte"


def test_deep_nesting_is_strict_only_as_far_as_it_can_be_read_inside_something_else() -> None:
    assert strict.is_strict(b"[" * 300 + b"]" * 300)
    assert not strict.is_strict(b"[" * 5000 + b"]" * 5000)


def test_it_decodes_what_was_asked_for() -> None:
    decoder = strict.Decoder(_Thing)
    assert decoder.decode(b' {"name":"leaf"}') == _Thing("leaf")
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(b'{"name":1}')
    with pytest.raises(msgspec.DecodeError):
        decoder.decode(b'{"name":"a"}],[{"name":"b"}')
