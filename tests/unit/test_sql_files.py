"""How a file of SQL is cut into its statements."""

from __future__ import annotations

import pytest

from menuwatch.db.sql import parse


def test_what_statements_share_is_put_in_where_they_say_so() -> None:
    found = parse(
        "-- piece: wanted\nAND a = 1\n\n-- name: one\nSELECT '{}' FROM t WHERE true\n {wanted};\n"
        "-- name: two\nSELECT '{wanted_too}' FROM u WHERE b {wanted}",
        "file",
    )
    assert dict(found) == {
        "one": "SELECT '{}' FROM t WHERE true\n AND a = 1",
        "two": "SELECT '{wanted_too}' FROM u WHERE b AND a = 1",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-- name: a\nSELECT 1\n-- name: a\nSELECT 2", "two statements are named 'a'"),
        ("-- piece: p\nx\n-- piece: p\ny\n-- name: a\n{p}", "two pieces are named 'p'"),
        ("-- piece: p\nx\n-- name: a\nSELECT 1", "no statement says {p}"),
        ("SELECT 1\n-- name: a\nSELECT 2", "without a `-- name:` line"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match="file: ") as refused:
        parse(text, "file")
    assert says in str(refused.value)
