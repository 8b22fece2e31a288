"""Cursors, as values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.api import paging
from menuwatch.api.problems import BadCursor

MARK = paging.mark("things", "name", None)
ids = st.integers(1, 2**63 - 1)


@given(st.text(), ids)
def test_text_comes_back_as_it_was(key: str, number: int) -> None:
    if any(0xD800 <= ord(c) <= 0xDFFF for c in key):
        return
    assert paging.decode(paging.encode(MARK, key, number), MARK, tuple[str, int]) == (key, number)


@given(st.datetimes(timezones=st.just(UTC)), ids)
def test_times_come_back_to_the_microsecond(key: datetime, number: int) -> None:
    assert paging.decode(paging.encode(MARK, key, number), MARK, tuple[datetime, int]) == (key, number)


@given(st.decimals(allow_nan=False), ids)
def test_amounts_come_back_digit_by_digit(key: Decimal, number: int) -> None:
    found, same = paging.decode(paging.encode(MARK, key, number), MARK, tuple[Decimal, int])
    assert (str(found), same) == (str(key), number)


@given(st.one_of(st.text(), st.binary().map(lambda b: b.decode("latin-1"))))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadCursor):
        paging.decode(text, MARK, tuple[str, int])


def test_a_cursor_belongs_to_its_list() -> None:
    cursor = paging.encode(MARK, "a", 1)
    with pytest.raises(BadCursor, match="another list"):
        paging.decode(cursor, paging.mark("things", "price", None), tuple[str, int])
    with pytest.raises(BadCursor, match="not a valid cursor"):
        paging.decode(cursor, MARK, tuple[datetime, int])
    moment = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert paging.mark("things", [1, 2], moment) == paging.mark("things", [1, 2], moment)
