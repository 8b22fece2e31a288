"""Texts as cells of CSV files: no formula, nothing lost, numbers as they were."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.core import csv_cells

OPENERS = ("=", "+", "-", "@", "\t", "\r", "\n")
TEXTS = st.text() | st.text(alphabet="'=+-@\t\r\n0.5eE\uff1d,\"a", max_size=8)


@settings(deadline=None, max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_every_text_comes_back_through_a_csv_reader_and_none_is_a_formula(texts: list[str]) -> None:
    made = io.StringIO(newline="")
    csv.writer(made).writerow([csv_cells.safe(text) for text in texts])
    cells = next(csv.reader(io.StringIO(made.getvalue(), newline="")))
    assert [csv_cells.original(cell) for cell in cells] == texts
    for cell in cells:
        if cell.startswith(OPENERS):
            float(cell)  # nothing but a number begins so


@pytest.mark.parametrize("text", ["-5.2", "+5", "-.5", "-1e-9", "0", "", "Blue Dream", "it's", "'quoted'", "a=b"])
def test_numbers_and_common_texts_stay(text: str) -> None:
    assert (csv_cells.safe(text), csv_cells.original(text)) == (text, text)


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\rx", "-5+2", "'=1", "\uff1d1", "-"]
)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert csv_cells.safe(text) == "'" + text
