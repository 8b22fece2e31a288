"""How values become answers: JSON with exact numbers, an ETag, and `304` for who has it already.

Amounts are JSON numbers written digit by digit as they are stored (`43.10` stays `43.10`), never through binary floating point.
A client that cares reads them as decimals. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from fastapi import Request, Response

_encode = msgspec.json.Encoder(decimal_format="number").encode


def etag_of(body: bytes) -> str:
    """A strong entity tag of those bytes."""
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def tag_of(value: Any) -> str:
    """The entity tag that `answer` would give this value."""
    return etag_of(_encode(value))


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match or If-Match header names this entity tag (weak comparison, as RFC 9110 section 13.1.2 has it)."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    return etag in {part.strip().removeprefix("W/") for part in header.split(",")}


_PLACES = frozenset({"Location", "Content-Location"})


def _at(request: Request, path: str) -> str:
    """The path below the prefix of PUBLIC_URL, where there is one."""
    root: str = request.scope.get("root_path", "")
    return root + path


def answer(request: Request, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The value as JSON."""
    body = _encode(value)
    more = {name: _at(request, text) if name in _PLACES else text for name, text in (headers or {}).items()}
    if request.method == "GET" and status == 200:
        etag = etag_of(body)
        more |= {"ETag": etag, "Cache-Control": "private, no-cache"}
        if matches(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers=more)
    return Response(body, status_code=status, headers=more, media_type="application/json")


def page(request: Request, items: Sequence[Any], cursor: str | None, **more: Any) -> Response:
    """One page of a list: `items`, and `next` to ask for the page behind it; the same as a Link header."""
    headers = {}
    if cursor is not None:
        query = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "cursor"]
        headers["Link"] = f'<{request.url.path}?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'
    return answer(request, {"items": items, "next": cursor, **more}, headers=headers)
