"""SerpWatch: fetches a page with a browser of its own and calls a webhook when it is there.

An order is `POST /api/v2/browser`; credits are charged for it whatever comes, so an order that may have been taken is not made again
before its time is up. Neither the token nor the address of the webhook, which holds a secret, gets into a message or a log.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

import httpx
import msgspec

from menuwatch import __version__
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.crawls.base import Delivery, Order, OrderRefused
from menuwatch.providers import serpwatch_webhook

log = get_logger(__name__)

ADDRESS = "https://engine.v2.serpwatch.io"
PATH = "/api/v2/browser"
_MOST_ANSWER = 65_536
_MOST_SHOWN = 200
_NEVER = frozenset({400, 413, 422})
"""What it answers to orders that it will not take however often they are made."""
_AN_EPOCH = 1_000_000_000
"""Seconds; more than that is a point in time and no wait."""


class SerpWatch:
    """Keeps connections; close it at the end."""

    name: ClassVar[str] = "serpwatch"
    needs_webhook: ClassVar[bool] = True

    def __init__(
        self, token: str, *, address: str = ADDRESS, seconds: float = 30.0, clock: Clock | None = None
    ) -> None:
        """`seconds` is the longest wait for an answer. Raises Refused for a token that cannot be one."""
        if not token or not all(33 <= ord(sign) <= 126 for sign in token):
            raise Refused("SERPWATCH_TOKEN cannot be used: a token is printable ASCII without spaces")
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
        wanted = {
            "url": order.url,
            "device": "desktop",
            "postback_url": order.postback_url,
            "post_id": order.reference,
        }
        if order.country:
            wanted["iso_code"] = order.country.upper()
        try:
            # Around all of it: httpx's own limit is on each read, and an answer may come in drips.
            async with asyncio.timeout(self._seconds):
                status, headers, body = await self._post(wanted)
        except (TimeoutError, httpx.TimeoutException):
            raise OrderRefused(f"no answer within {self._seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
            raise OrderRefused(f"it cannot be reached: {type(error).__name__}") from None
        said = _decoded(body)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, said, order)
        if isinstance(said, dict) and said.get("success") is False:
            raise OrderRefused(self._shown(_reason(said), order) or "it names no reason")
        return _request_id(said, order)

    def read_webhook(self, body: object) -> list[Delivery]:
        """The deliveries in the body of a webhook. Raises BadWebhook."""
        return serpwatch_webhook.read(body)

    async def close(self) -> None:
        """Closes its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, wanted: dict[str, str]) -> tuple[int, httpx.Headers, bytes]:
        if self._client is None:
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                trust_env=False,
                timeout=self._seconds,
                headers={"Authorization": f"Bearer {self._token}", "User-Agent": f"menuwatch/{__version__}"},
            )
        async with self._client.stream("POST", self._url, json=wanted) as answer:
            pieces, size = [], 0
            async for piece in answer.aiter_bytes():
                pieces.append(piece)
                size += len(piece)
                if size > _MOST_ANSWER:
                    break
        return answer.status_code, answer.headers, b"".join(pieces)[:_MOST_ANSWER]

    def _refusal(self, status: int, headers: httpx.Headers, said: Any, order: Order) -> OrderRefused:
        reason = self._shown(_reason(said), order)
        if status in (401, 403):
            return OrderRefused(f"it does not take the token (HTTP {status}): check SERPWATCH_TOKEN")
        if 300 <= status < 400:
            return OrderRefused(f"HTTP {status}: redirects are not followed, check SERPWATCH_URL")
        told = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
        wait = _wait(headers, said, self._clock.now()) if status in (429, 503) else None
        return OrderRefused(told, retry_after=wait, final=status in _NEVER)

    def _shown(self, text: str, order: Order) -> str:
        """What it said, fit for people: on one line, and without our secrets, which services like to repeat."""
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


def _request_id(said: Any, order: Order) -> str | None:
    if isinstance(said, dict):
        for key in ("request_id", "id"):
            value = said.get(key)
            if isinstance(value, str) and value:
                return value[:_MOST_SHOWN]
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)[:_MOST_SHOWN]
    log.warning("an order was taken without an id", action="serpwatch_no_id", reference=order.reference)
    return None


def _reason(said: Any) -> str:
    """What its errors say: `{"detail": "…"}`, a list of what is wrong with which field, or `{"code", "message"}`."""
    if not isinstance(said, dict):
        return ""
    detail = said.get("detail")
    if isinstance(detail, list):
        return "; ".join(_fields(detail))
    parts = (said.get(key) for key in ("code", "detail", "message", "error"))
    return ": ".join(part for part in parts if isinstance(part, str) and part)


def _fields(detail: list[Any]) -> Iterator[str]:
    # "input", which repeats what was sent, stays out.
    for one in detail[:5]:
        if isinstance(one, dict) and isinstance(one.get("msg"), str):
            place = one.get("loc")
            names = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
            yield f"{'.'.join(names)[:100]}: {one['msg'][:100]}" if names else one["msg"][:100]


def _wait(headers: httpx.Headers, said: Any, now: datetime) -> float | None:
    """For how many seconds it wants to be left alone: what the body names, then the headers."""
    named = said.get("retry_after") if isinstance(said, dict) else None
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
