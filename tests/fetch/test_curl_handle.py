"""Heads of answers as they come from the wire."""

from __future__ import annotations

import pytest

from menuwatch.fetch.transport import parse_head


@pytest.mark.parametrize(
    ("head", "headers"),
    [
        (b"", {}),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", {"content-type": "text/html"}),
        (b"HTTP/2 200 \r\nset-cookie: a=1\r\nx: y\r\nSet-Cookie: b=2\r\n\r\n", {"set-cookie": "a=1, b=2", "x": "y"}),
        (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nx: 1\r\n\r\n", {"x": "1"}),
        (b"HTTP/1.1 200 OK\nlong: one\r\n  two\r\nempty:\r\nnone\r\n", {"long": "one two", "empty": ""}),
        ("HTTP/1.1 200 OK\r\nname: Grün\r\n".encode(), {"name": "Grün"}),
        ("HTTP/1.1 200 OK\r\nname: Grün\r\n".encode("latin-1"), {"name": "Grün"}),
        (b"HTTP/1.1 302 Found\r\nlocation: https://a.example/b:c\r\n", {"location": "https://a.example/b:c"}),
    ],
)
def test_the_last_head_counts_and_names_are_in_lower_case(head: bytes, headers: dict[str, str]) -> None:
    assert parse_head(head) == headers
