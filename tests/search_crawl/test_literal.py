"""Object literals: JSON is read as JSON reads it, what JavaScript adds is read, and nothing takes long or fails in another way."""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.search_crawl.sites import parsing
from menuwatch.search_crawl.sites.parsing import BadLiteral, read_literal

whole_text = st.text(st.characters(exclude_categories=["Cs"]))
leaves = st.none() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | whole_text
json_values = st.lists(
    st.dictionaries(
        whole_text,
        st.booleans()
        | st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(whole_text, inner), max_leaves=15),
    )
)


def as_json_reads(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


@settings(max_examples=40, deadline=None)
@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_as_json(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_literal(f"x = {text} ;rest", 4) == as_json_reads(text)


def test_quoted_constants_stay_text() -> None:
    assert read_literal('{"a": "undefined", "b": "true", "c": true}') == {"a": "undefined", "b": "true", "c": True}
    assert read_literal("{a: 'undefined', b: 1}") == {"a": "undefined", "b": 1}
    assert read_literal("{a: undefined, b: true}") == {"a": None, "b": True}


PIECES = "{ } [ ] , : \" ' ` \\ /* */ // a 0 -1.5e3 undefined \\u $ ${ !0 1_0n 0x ٣ é \\x4 . NaN void".split()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, " ", "\n", "\u2028", "\ud800"])).map("".join) | st.text())
def test_whatever_comes_it_is_a_value_or_a_bad_literal(text: str) -> None:
    for before in ("", "{a:", "["):
        with contextlib.suppress(BadLiteral):
            read_literal(before + text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, 'b-c': 2, \"d\": undefined,}", {"a": 1, "b-c": 2, "d": None}),
        ("{$x: NaN, _y: .5, größe: 2, 7: void 0}", {"$x": None, "_y": Decimal("0.5"), "größe": 2, "7": None}),
        ("[1,2,]", [1, 2]),
        ("[]", []),
        ("{/* } */ a: /* it's */ 1, // ]\n b: 2}", {"a": 1, "b": 2}),
        ("{a:{b:[{c:'}]'}]}}", {"a": {"b": [{"c": "}]"}]}}),
        (r"['it\'s <\/script> \u003c\x3e \u{1F600} \v\0.']", ["it's </script> <> 😀 \v\0."]),
        (r"['\ud83d\ude00 and \ud83d alone']", ["😀 and \ufffd alone"]),
        (r"['\\u0041 \\x41 \q']", [r"\u0041 \x41 q"]),
        ("['a\\\nb\\\r\nc']", ["abc"]),
        ("[`two\nlines $5`]", ["two\nlines $5"]),
        ("{a:!0,b:!1,c:true,d:false,e:null}", {"a": True, "b": False, "c": True, "d": False, "e": None}),
        ("[0x1F, 0b101, 0o17, 1_000, .5, 5., 1350.00, 1e3]",
         [31, 5, 15, 1000, Decimal("0.5"), Decimal(5), Decimal("1350.00"), Decimal(1000)]),
        ("[1e999, 1e-999]", [None, Decimal(0)]),
        ('{"a":1,"a":2,"__proto__":3}', {"a": 2, "__proto__": 3}),
        ("\ufeff {}", {}),
    ],
)  # fmt: skip
def test_what_javascript_adds(text: str, value: Any) -> None:
    assert read_literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{a:1",
        "{a 1}",
        "{a:1 b:2}",
        "{a}",
        "{...rest}",
        "{[key]: 1}",
        "alert(1)",
        "load(); x = {a: 1}",
        "null",
        "'text'",
        "[1 + 2]",
        "{a: 'x' + 'y'}",
        "['abc",
        r"['\u12']",
        r"['\u{1100000}']",
        "[1.2.3]",
        "[3px]",
        "/* never closed",
        "{a: 1 /* never closed",
        "[" + "9" * 401 + "]",
        "[0." + "9" * 401 + "]",
        "[" * 100_000 + "]" * 100_000,
        "{a:" * 100_000 + "1" + "}" * 100_000,
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadLiteral):
        read_literal(text)


def test_one_hundred_levels_are_read() -> None:
    value = read_literal("[" * 100 + "]" * 100)
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
        read_literal(text)
    assert time.process_time() - began < 3


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_CHARS", 20)
    monkeypatch.setattr(parsing, "MAX_VALUES", 5)
    assert read_literal("[1,2,3,4]") == [1, 2, 3, 4]
    with pytest.raises(BadLiteral, match="more than 5 values"):
        read_literal("[1,2,3,4,5,6]")
    with pytest.raises(BadLiteral, match="more than 5 values"):
        read_literal("[[],[],{}]")
    with pytest.raises(BadLiteral):
        read_literal("['" + "a" * 20 + "']")


def test_memory_is_bounded() -> None:
    tracemalloc.start()
    with pytest.raises(BadLiteral):
        read_literal("[" + "[]," * 1_600_000 + "]")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000
