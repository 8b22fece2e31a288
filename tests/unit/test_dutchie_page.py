"""The envelope: a page, or what it is instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie import answers
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.json_repair import fix_escapes
from menuwatch.platforms.model import Page, PageInfo


def envelope(products: Any, info: Any = None) -> bytes:
    return json.dumps({"data": {"filteredProducts": {"products": products, "queryInfo": info}}}).encode()


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"", "truncated", "the response is empty (0 bytes)"),
        (b"  \n", "truncated", "the response is empty (0 bytes)"),
        (b'{"data":{"filteredProducts":{"pro', "truncated", "the response was truncated after 33 bytes"),
        (
            b"<!DOCTYPE html><html><head><title>Just a\n moment...</title>",
            "html",
            "the response is a web page titled “Just a moment...”, not JSON",
        ),
        (b"<html></html>", "html", "the response is a web page, not JSON"),
        (b"Proxy Error", "html", "the response is text, not JSON: “Proxy Error”"),
        (b'{"data":null,"errors":[{"message":"Forbidden"}]}', "errors", "GraphQL error: Forbidden"),
        (b'{"errors":[{"message":"One"},{"message":"Two"}],"data":{}}', "errors", "GraphQL error: One (and 1 more)"),
        (b'{"errors":["bare"]}', "errors", "GraphQL error: bare"),
        (b'{"data":null}', "no_data", "the response has neither data nor errors"),
        (b"{}", "no_data", "the response has neither data nor errors"),
        (b'{"data":{}}', "no_data", "the response has no menu: data.filteredProducts is missing or null"),
        (
            b'{"data":{"filteredProducts":{"products":null}}}',
            "no_data",
            "the response has no menu: data.filteredProducts.products is missing or null",
        ),
        (envelope([]), "empty", "the menu has no products: data.filteredProducts.products is []"),
    ],
)
def test_what_is_no_menu_page(body: bytes, kind: str, message: str) -> None:
    with pytest.raises(BadPayload) as caught:
        Dutchie().split(body)
    assert (caught.value.kind, str(caught.value), caught.value.body) == (kind, message, body)


@pytest.mark.parametrize(
    "body",
    [b'{"data":{"filteredProducts":{"products":5}}}', b"[]", b'"text"', b"null", b'{"data":[]}', b'{"data":{"a":1]}'],
)
def test_other_shapes_are_schema_changes(body: bytes) -> None:
    with pytest.raises(BadPayload) as caught:
        Dutchie().split(body)
    assert caught.value.kind == "schema"


@pytest.mark.parametrize(
    "errors",
    [
        [{"message": "PersistedQueryNotFound"}],
        [{"message": "PersistedQueryNotFound", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}],
        [{"message": "Bad request", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}],
        [{"message": "PersistedQueryNotSupported"}],
        [{"message": "Persisted query not found"}],
        [{"message": "persisted-query-not-found"}],
        "PersistedQueryNotFound",
    ],
)
def test_refused_hashes_in_every_spelling(errors: Any) -> None:
    with pytest.raises(BadPayload) as caught:
        answers.read(json.dumps({"errors": errors}).encode(), 400)
    assert caught.value.kind == "persisted_query"
    assert str(caught.value).endswith("(HTTP 400)")


def test_totals_are_numbers_or_nothing() -> None:
    for info, expected in [
        ({"totalCount": 138, "totalPages": 2}, (138, 2)),
        ({"totalCount": "138", "totalPages": 2.0}, (138, 2)),
        ({"totalCount": -1, "totalPages": True}, (None, None)),
        ({"totalCount": None}, (None, None)),
        (None, (None, None)),
    ]:
        found = answers.read(envelope([{"id": "a"}], info))
        assert (found.total_count, found.total_pages) == expected


def test_items_come_raw_and_in_order() -> None:
    body = b'{"data":{"filteredProducts":{"products":[{"id":"a", "x": 1.50},{"_id":"b"},7,null,{"id":5}]}},"errors":[]}'
    found = answers.read(body)
    assert [bytes(item) for item in found.items] == [
        b'{"id":"a", "x": 1.50}',
        b'{"_id":"b"}',
        b"7",
        b"null",
        b'{"id":5}',
    ]
    assert found.inspect(ITEMS.identity).ids == ("a", "b", None, None, "5")


def test_byte_order_mark_and_halved_emoji_are_no_faults() -> None:
    body = b'\xef\xbb\xbf{"data":{"filteredProducts":{"products":[{"id":"a","Name":"leaf \\ud83c"}]}}}'
    (item,) = Dutchie().split(body)
    assert json.loads(bytes(item)) == {"id": "a", "Name": "leaf �"}


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_words(body: bytes) -> None:
    with pytest.raises(BadPayload) as caught:
        Dutchie().split(body)
    assert str(caught.value)
    assert caught.value.body == body


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=4))
def test_mending_leaves_whole_text_alone(value: dict[str, str]) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        expected = (
            json.loads(text.replace("\\u0000", ""))
            if "\\u0000" in text and "\\\\u0000" not in text
            else json.loads(text)
        )
        if "\\\\u0000" not in text:
            assert json.loads(fix_escapes(text.encode())) == expected


def test_mending_knows_an_escaped_backslash() -> None:
    assert fix_escapes(rb'"\\u0000 \\ud83d \u0000 \ud83d\ude00 \ude00"') == rb'"\\u0000 \\ud83d  \ud83d\ude00 \uFFFD"'


_ids = st.none() | st.text(max_size=3) | st.integers(0, 9)
_items = st.lists(
    st.dictionaries(st.sampled_from(["id", "_id", "Name"]), _ids, max_size=3) | st.none() | st.integers(), max_size=4
)


@given(
    _items,
    st.booleans(),
    st.sampled_from([b"", b" ", b"\xef\xbb\xbf", b"\x0b"]),
    st.sampled_from([None, [], [{"message": "no"}]]),
)
def test_a_survey_says_what_reading_says(items: list[Any], plain: bool, before: bytes, errors: Any) -> None:
    info = {"totalCount": 4, "totalPages": "1"}
    answer = {"data": {"filteredProducts": {"products": items, "queryInfo": info}}, "errors": errors}
    body = before + json.dumps(answer, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    told = {read: _outcome(read, body) for read in (answers.read, answers.inspect)}
    expected, found = told[answers.read], told[answers.inspect]
    if not isinstance(expected, Page) or not isinstance(found, PageInfo):
        assert found == expected
        return
    assert (found.ids, found.total_count, found.total_pages) == (expected.inspect(ITEMS.identity).ids, 4, 1)
    if found.strict:
        assert json.loads(body.decode()) == answer


def _outcome(read: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return read(body)
    except BadPayload as error:
        return error.kind, str(error)
