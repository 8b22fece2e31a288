"""Object literals: JSON is read as JSON reads it, what JavaScript adds is read, and nothing takes long or fails in another way."""

from __future__ import annotations

import contextlib
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.sites import literal
from menuwatch.sites.literal import BadLiteral, read

whole_text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | whole_text,
    lambda inner: st.lists(inner) | st.dictionaries(whole_text, inner),
    max_leaves=15,
)


def as_json_reads(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


@settings(max_examples=150, deadline=None)
@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_as_json(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read(text + " ;rest") == (as_json_reads(text), len(text))


PIECES = "{ } [ ] , : \" ' ` \\ /* */ // a 0 -1.5e3 undefined \\u $ ${ !0 1_0n 0x ٣ é \\x4 . NaN void".split()  # noqa: SIM905 - as a list it is forty lines


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, " ", "\n", "\u2028", "\ud800"])).map("".join) | st.text())
def test_whatever_comes_it_is_a_value_or_a_bad_literal(text: str) -> None:
    at = None
    try:
        _, end = read(text)
    except BadLiteral as error:
        at = error.at
    else:
        assert 0 < end <= len(text)
    assert at is None or 0 <= at <= len(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, 'b-c': 2, \"d\": undefined,}", {"a": 1, "b-c": 2, "d": None}),
        ("{$x: NaN, _y: -Infinity, größe: +2, 7: void 0}", {"$x": None, "_y": None, "größe": 2, "7": None}),
        ("[1,,2,]", [1, None, 2]),
        ("[,]", [None]),
        ("[]", []),
        ("{/* } */ a /* : */ : // ]\n 1 }", {"a": 1}),
        ("{a:{b:[{c:'}]'}]}}", {"a": {"b": [{"c": "}]"}]}}),
        (r"'it\'s <\/script> \u003c\x3e \u{1F600} \v\0.'", "it's </script> <> 😀 \v\0."),
        (r"'\ud83d\ude00 and \ud83d alone'", "😀 and \ufffd alone"),
        ("'a\\\nb\\\r\nc'", "abc"),
        ("`two\nlines $5`", "two\nlines $5"),
        ("[!0,!1,true,false,null]", [True, False, True, False, None]),
        ("[0x1F, 0b101, 0o17, 12n, 1_000, .5, 5., 1350.00, 1e3]",
         [31, 5, 15, 12, 1000, Decimal("0.5"), Decimal(5), Decimal("1350.00"), Decimal(1000)]),
        ("[1e999, 1e-999]", [None, Decimal(0)]),
        ('{"a":1,"a":2,"__proto__":3}', {"a": 2, "__proto__": 3}),
        ("\ufeff\u00a0\u2028{}", {}),
    ],
)  # fmt: skip
def test_what_javascript_adds(text: str, value: Any) -> None:
    assert read(text) == (value, len(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "breaks off"),
        ("{a:1", "breaks off"),
        ("{a 1}", "a colon"),
        ("{a:1 b:2}", "a comma or }"),
        ("[1 2]", "a comma or ]"),
        ("{,}", "a key"),
        ("{a}", "a colon"),
        ("{...rest}", "a number was expected"),
        ("{[key]: 1}", "a key"),
        ("alert(1)", "a name is no value"),
        ("{a: new Date()}", "a name is no value"),
        ("[1 + 2]", "a comma or ]"),
        ("'a\nb'", "at the end of its line"),
        ("'abc", "a string without an end"),
        ("`a${b}`", "would have to be run"),
        (r"'\u12'", "without a character's number"),
        (r"'\u{110000}'", "without a character's number"),
        (r"'\012'", "before a digit"),
        ("017", "begins with 0"),
        ("1.2.3", "ends in something else"),
        ("3px", "ends in something else"),
        ("1.5n", "a fraction"),
        ("/* never closed", "a comment without an end"),
        ("{a: /regex/}", "a value was expected"),
        ("9" * 401, "more than 400 characters"),
        ("[" * 101 + "]" * 101, "more than 100 levels"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, why: str) -> None:
    with pytest.raises(BadLiteral, match=why.replace("(", r"\(")):
        read(text)


def test_the_deepest_that_is_read() -> None:
    value, _ = read("[" * 100 + "]" * 100)
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{a:",
        "'",
        '"\\',
        "/*",
        "/",
        "//",
        "/**/",
        "9",
        "1_",
        "[[],",
        "\\u{",
        "`$",
        " ",
        "a",
        "-",
        "!",
        "{'a':1,",
        ",",
        "0x",
    ],
)
@pytest.mark.parametrize("prefix", ["", "[", "'", "{a:"])
def test_time_grows_with_the_text_and_no_faster(prefix: str, unit: str) -> None:
    text = prefix + unit * (1_000_000 // len(unit))
    began = time.process_time()
    with contextlib.suppress(BadLiteral):
        read(text)
    assert time.process_time() - began < 3


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literal, "MAX_CHARS", 20)
    monkeypatch.setattr(literal, "MAX_VALUES", 5)
    assert read("[1,2,3,4]")[0] == [1, 2, 3, 4]
    with pytest.raises(BadLiteral, match="more than 5 values"):
        read("[1,2,3,4,5]")
    with pytest.raises(BadLiteral, match="more than 5 values"):
        read("[,,,,,,]")
    with pytest.raises(BadLiteral, match="more than 20 characters"):
        read("'" + "a" * 20)
