"""What SerpWatch posts to a webhook: `{"status": "ok", "results": [...]}`, a bare list of results, or one result by itself.

A result is `{"success", "url", "html", "post_id", "request_id", "error"}`. `html` is the page, or the address where it lies for a
while (plain or compressed, which is found out by whoever reads it).
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Any

from menuwatch.crawls.base import BadWebhook, Delivery

MOST_RESULTS = 1000
_MOST_ERROR = 300
_MOST_ID = 200
_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,1990}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]{8,}={0,2}\s*")


def read(body: object) -> list[Delivery]:
    """The results, in order. Raises BadWebhook where it is no webhook of theirs: one result that is none spoils the whole, so that
    it is sent again or looked into, and not half forgotten."""
    if isinstance(body, dict) and "results" in body:
        body = body["results"]
        if not isinstance(body, list):
            raise BadWebhook('"results" is no list')
    results = body if isinstance(body, list) else [body]
    if len(results) > MOST_RESULTS:
        raise BadWebhook(f"it holds {len(results)} results, and {MOST_RESULTS} at most are taken")
    return [_delivery(result, place) for place, result in enumerate(results, 1)]


def _delivery(result: Any, place: int) -> Delivery:
    if not isinstance(result, dict):
        raise BadWebhook(f"result {place} is no object")
    reference = result.get("post_id")
    if not isinstance(reference, str) or not reference or len(reference) > _MOST_ID:
        raise BadWebhook(f'result {place}: "post_id" is no text of 1 to {_MOST_ID} characters')
    html = result.get("html")
    if html is not None and not isinstance(html, str):
        raise BadWebhook(f'result {place}: "html" is neither a text nor null')
    success = result.get("success", not result.get("error") and bool(html))
    if not isinstance(success, bool):
        raise BadWebhook(f'result {place}: "success" is neither true nor false')
    request_id = _text(result.get("request_id"), _MOST_ID)
    if not success or not html or not html.strip():
        reason = _text(result.get("error"), _MOST_ERROR) or ("it brought no page" if success else "it named no reason")
        return Delivery(reference=reference, ok=False, error=reason, request_id=request_id)
    if _ADDRESS.fullmatch(html.strip()) is not None:
        return Delivery(reference=reference, ok=True, html_url=html.strip(), request_id=request_id)
    return Delivery(reference=reference, ok=True, html=_page(html), request_id=request_id)


def _page(html: str) -> bytes:
    """The bytes of a page that came as text. What is compressed cannot, so it comes as base64."""
    if _BASE64.fullmatch(html) is not None:
        try:
            return b64decode(html.strip().replace("\r", "").replace("\n", ""), validate=True)
        except binascii.Error:
            pass  # a text after all
    return html.encode("utf-8", "replace")


def _text(value: Any, longest: int) -> str | None:
    """A text on one line, of a text, a number or an object with a message."""
    if isinstance(value, dict):
        value = value.get("message") or value.get("detail")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**18 else None
    if not isinstance(value, str):
        return None
    plain = "".join(sign if sign.isprintable() else " " for sign in value[: 4 * longest])
    return " ".join(plain.split())[:longest] or None
