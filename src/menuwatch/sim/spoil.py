"""Answers that are none: what a client gets in place of data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec

from menuwatch.sim.http import Answer

_HTML = "text/html; charset=UTF-8"

BLOCK_PAGE = (
    b'<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<title>Attention Required!</title>\n<meta name="robots" '
    b'content="noindex, nofollow">\n</head>\n<body>\n<h1>Sorry, you have been blocked</h1>\n<h2>You are unable to access '
    b"this site</h2>\n<p>This website is using a security service to protect itself from online attacks.</p>\n</body>\n</html>\n"
)
STOREFRONT_PAGE = (
    b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>Order online</title></head>'
    b'<body><div id="__next"></div><script src="/_next/static/chunks/main.js" async></script></body></html>\n'
)
"""The web site itself, as a gateway that lost its way gives it: no challenge, and no data."""
CHALLENGE_PAGE = (
    b'<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body><noscript>Enable JavaScript '
    b"and cookies to continue</noscript></body></html>\n"
)
_FORBIDDEN = msgspec.json.encode({"errors": [{"message": "Forbidden"}]})


def spoiled(kind: str, more: dict[str, Any], number: int) -> Answer | None:
    """The answer to request `number` that meets this kind, None where the kind spoils the data themselves."""
    if kind in ("forbidden", "tired", "refuse_all"):
        # Both forms of refusal are on record.
        return Answer(403, BLOCK_PAGE, _HTML) if number % 2 else Answer(403, _FORBIDDEN)
    if kind == "rate_limited":
        wait = more.get("retry_after", 1)
        if wait is not None and more.get("date"):
            wait = format_datetime(datetime.now(UTC) + timedelta(seconds=wait), usegmt=True)
        return Answer(
            429,
            b'{"errors":[{"message":"Too Many Requests"}]}',
            headers={"Retry-After": str(wait)} if wait is not None else {},
        )
    if kind == "server_error":
        status = int(more.get("status", (500, 502, 503)[number % 3]))
        return Answer(status, b"<html><body><h1>Server Error</h1></body></html>", _HTML)
    if kind == "html":
        return Answer(200, STOREFRONT_PAGE, _HTML)
    if kind == "challenge":
        return Answer(403, CHALLENGE_PAGE, _HTML, {"cf-mitigated": "challenge"})
    if kind == "errors":
        errors = [
            {"message": "Internal server error", "path": ["filteredProducts"], "locations": [{"line": 2, "column": 3}]}
        ]
        return Answer(200, msgspec.json.encode({"errors": errors, "data": None}))
    return None
