"""SerpWatch: fetches a page with a browser and calls a webhook with the result.

An order is `POST /api/v2/browser`; credits are charged for it whatever the result, so an order that may have been accepted is not
repeated before its deadline. Neither the token nor the URL of the webhook, which holds a secret, gets into a message or a log.
"""

from __future__ import annotations

import asyncio
import binascii
import re
import ssl
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

import httpx
import msgspec

from menuwatch import __version__
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.search_crawl.protocols import BadWebhook, Delivery, Order, OrderRefused

log = get_logger(__name__)

ADDRESS = "https://engine.v2.serpwatch.io"
PATH = "/api/v2/browser"
_MOST_ANSWER = 65_536
_MOST_SHOWN = 200
_PERMANENT = frozenset({400, 413, 422})
"""Status codes of permanently rejected orders."""
_AN_EPOCH = 1_000_000_000
"""Seconds; a larger value is a timestamp, not a delay."""
MOST_RESULTS = 1000
_MOST_ERROR = 300
_MOST_ID = 200
_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,1990}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]{8,}={0,2}\s*")


class SerpWatch:
    """Keeps connections; close it at the end."""

    name: ClassVar[str] = "serpwatch"
    needs_webhook: ClassVar[bool] = True

    def __init__(
        self, token: str, *, address: str = ADDRESS, seconds: float = 30.0, clock: Clock | None = None
    ) -> None:
        """`seconds` is the longest wait for an answer. Raises Refused for a token that cannot be one."""
        if not token or not all(33 <= ord(sign) <= 126 for sign in token):
            raise Refused("invalid SERPWATCH_TOKEN: a token is printable ASCII without spaces")
        self._token = token
        self._url = address.rstrip("/") + PATH
        self._seconds = seconds
        self._clock = clock or SystemClock()
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"SerpWatch({self._url})"

    async def submit(self, order: Order) -> str | None:
        """Orders the page; returns SerpWatch's id of the request, None where it names none. Raises OrderRefused."""
        if order.postback_url is None:
            raise OrderRefused("SerpWatch needs the address of a webhook: set PUBLIC_URL", final=True)
        payload = {
            "url": order.url,
            "device": "desktop",
            "postback_url": order.postback_url,
            "post_id": order.reference,
        }
        if order.country:
            payload["iso_code"] = order.country.upper()
        try:
            # A total timeout: httpx limits only each read, and a response may arrive slowly.
            async with asyncio.timeout(self._seconds):
                status, headers, body = await self._post(payload)
        except (TimeoutError, httpx.TimeoutException):
            raise OrderRefused(f"no answer within {self._seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
            raise OrderRefused(f"it cannot be reached: {type(error).__name__}") from None
        document = _decoded(body)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, document, order)
        if isinstance(document, dict) and document.get("success") is False:
            raise OrderRefused(self._redact(_reason(document), order) or "no reason given")
        return _request_id(document, order)

    def read_webhook(self, body: object) -> list[Delivery]:
        """The deliveries in the body of a webhook. Raises BadWebhook."""
        return read_deliveries(body)

    async def close(self) -> None:
        """Closes its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, payload: dict[str, str]) -> tuple[int, httpx.Headers, bytes]:
        if self._client is None:
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                trust_env=False,
                timeout=self._seconds,
                headers={"Authorization": f"Bearer {self._token}", "User-Agent": f"menuwatch/{__version__}"},
            )
        async with self._client.stream("POST", self._url, json=payload) as answer:
            pieces, size = [], 0
            async for piece in answer.aiter_bytes():
                pieces.append(piece)
                size += len(piece)
                if size > _MOST_ANSWER:
                    break
        return answer.status_code, answer.headers, b"".join(pieces)[:_MOST_ANSWER]

    def _refusal(self, status: int, headers: httpx.Headers, document: Any, order: Order) -> OrderRefused:
        reason = self._redact(_reason(document), order)
        if status in (401, 403):
            return OrderRefused(f"the token was rejected (HTTP {status}): check SERPWATCH_TOKEN")
        if 300 <= status < 400:
            return OrderRefused(f"HTTP {status}: redirects are not followed, check SERPWATCH_URL")
        message = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
        wait = _wait(headers, document, self._clock.now()) if status in (429, 503) else None
        return OrderRefused(message, retry_after=wait, final=status in _PERMANENT)

    def _redact(self, text: str, order: Order) -> str:
        """The service's message for display: on one line and without our secrets, which services may echo."""
        plain = "".join(sign if sign.isprintable() else " " for sign in text[:10_000])
        hidden = [self._token]
        if order.postback_url is not None:
            hidden += [order.postback_url, order.postback_url.rstrip("/").rpartition("/")[2]]
        for secret in hidden:
            if len(secret) >= 4:
                plain = plain.replace(secret, "…")
        return " ".join(plain.split())[:_MOST_SHOWN]


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _request_id(document: Any, order: Order) -> str | None:
    if isinstance(document, dict):
        for key in ("request_id", "id"):
            value = document.get(key)
            if isinstance(value, str) and value:
                return value[:_MOST_SHOWN]
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)[:_MOST_SHOWN]
    log.warning("order accepted without an id", action="serpwatch_no_id", reference=order.reference)
    return None


def _reason(document: Any) -> str:
    """The message of an error: `{"detail": "…"}`, a list of field errors, or `{"code", "message"}`."""
    if not isinstance(document, dict):
        return ""
    detail = document.get("detail")
    if isinstance(detail, list):
        return "; ".join(_fields(detail))
    parts = (document.get(key) for key in ("code", "detail", "message", "error"))
    return ": ".join(part for part in parts if isinstance(part, str) and part)


def _fields(detail: list[Any]) -> Iterator[str]:
    # "input", which repeats what was sent, stays out.
    for one in detail[:5]:
        if isinstance(one, dict) and isinstance(one.get("msg"), str):
            place = one.get("loc")
            names = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
            yield f"{'.'.join(names)[:100]}: {one['msg'][:100]}" if names else one["msg"][:100]


def _wait(headers: httpx.Headers, document: Any, now: datetime) -> float | None:
    """Seconds until the next order is allowed: from the body, else from the headers."""
    named = document.get("retry_after") if isinstance(document, dict) else None
    remaining = headers.get("x-ratelimit-remaining", "0").strip()
    for value in (named, headers.get("retry-after"), headers.get("x-ratelimit-reset") if remaining == "0" else None):
        if (seconds := _seconds(value, now)) is not None:
            return seconds
    return None


def _seconds(value: Any, now: datetime) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    except ValueError:
        try:
            moment = parsedate_to_datetime(str(value))
            return max(0.0, (moment - now).total_seconds())
        except (ValueError, TypeError):
            return None
    if number > _AN_EPOCH:
        number -= now.timestamp()
    return number if 0 <= number < _AN_EPOCH else None


def read_deliveries(body: object) -> list[Delivery]:
    """Deliveries in a webhook body, in order: `{"status": "ok", "results": [...]}`, a list of results, or a single result. A result is
    `{"success", "url", "html", "post_id", "request_id", "error"}`, where `html` is the page, or a temporary URL of it.

    Raises BadWebhook for a body of another shape: one invalid result rejects the whole, so that it is sent again or investigated
    rather than partly lost.
    """
    if isinstance(body, dict) and "results" in body:
        body = body["results"]
        if not isinstance(body, list):
            raise BadWebhook('"results" must be a list')
    results = body if isinstance(body, list) else [body]
    if len(results) > MOST_RESULTS:
        raise BadWebhook(f"it holds {len(results)} results, and {MOST_RESULTS} at most are taken")
    return [_delivery(result, place) for place, result in enumerate(results, 1)]


def _delivery(result: Any, place: int) -> Delivery:
    if not isinstance(result, dict):
        raise BadWebhook(f"result {place} is not an object")
    reference = result.get("post_id")
    if not isinstance(reference, str) or not reference or len(reference) > _MOST_ID:
        raise BadWebhook(f'result {place}: "post_id" is not a string of 1 to {_MOST_ID} characters')
    html = result.get("html")
    if html is not None and not isinstance(html, str):
        raise BadWebhook(f'result {place}: "html" is neither a text nor null')
    success = result.get("success", not result.get("error") and bool(html))
    if not isinstance(success, bool):
        raise BadWebhook(f'result {place}: "success" is neither true nor false')
    request_id = _one_line(result.get("request_id"), _MOST_ID)
    if not success or not html or not html.strip():
        reason = _one_line(result.get("error"), _MOST_ERROR) or ("no page included" if success else "no reason given")
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


def _one_line(value: Any, longest: int) -> str | None:
    """A string, a number or an object with a message, as one line."""
    if isinstance(value, dict):
        value = value.get("message") or value.get("detail")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**18 else None
    if not isinstance(value, str):
        return None
    plain = "".join(sign if sign.isprintable() else " " for sign in value[: 4 * longest])
    return " ".join(plain.split())[:longest] or None
