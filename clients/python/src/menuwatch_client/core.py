"""Requests, responses and retries, without I/O: what the synchronous and the asynchronous client share."""

from __future__ import annotations

import datetime as dt
import email.utils
import functools
import os
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from menuwatch_client._version import __version__
from menuwatch_client.errors import ConfigurationError, InvalidResponse, error_of
from menuwatch_client.models import ProblemDetails

_encode = msgspec.json.Encoder(decimal_format="number").encode
_REFUSED = frozenset({429, 503})
"""The server has not processed the request."""
_UNKNOWN = frozenset({502, 504})
"""It may have."""
_REPEATABLE = frozenset({"GET", "HEAD", "PUT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """When a request is sent again: after a 429 or 503, and after a 502, a 504 or a lost connection if the request cannot take effect
    twice. A POST with an `Idempotency-Key` cannot."""

    attempts: int = 5
    """Attempts in all; 1 for no retries."""
    first_wait: float = 0.5
    """Longest wait before the second attempt, in seconds; it doubles with each further one. The wait is a random part of it."""
    longest_wait: float = 60.0
    """Longest wait in seconds. If `Retry-After` asks for more, the error is raised at once."""

    def wait(self, attempt: int, retry_after: float | None = None) -> float | None:
        """Seconds before the next attempt after this many; None: give up."""
        if attempt >= self.attempts:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait else None
        longest = min(self.first_wait * 2.0 ** (attempt - 1), self.longest_wait)
        return random.uniform(0.5, 1.0) * float(longest)  # noqa: S311


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request of the API and the type of its response: bytes, None, or anything that msgspec decodes."""

    method: str
    path: str
    returns: Any
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: Any = None

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again if it is unknown whether it was processed."""
        return self.method in _REPEATABLE or "Idempotency-Key" in self.headers


def path_of(template: str, **values: Any) -> str:
    """The path with these values, encoded."""
    encoded = {name: quote(_text(value), safe="/" if name == "path" else "") for name, value in values.items()}
    return template.format(**encoded)


def new_key(given: str | None) -> str:
    """The key that makes a POST repeatable."""
    return str(uuid.uuid4()) if given is None else given


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, dt.datetime):
        if value.utcoffset() is None:
            raise ConfigurationError(f"{value!r} has no time zone: use for example datetime(…, tzinfo=UTC)")
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _query(values: Mapping[str, Any]) -> httpx.QueryParams:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, (list, tuple, set, frozenset)):
            pairs += [(name, _text(one)) for one in value]
        else:
            pairs.append((name, _text(value)))
    return httpx.QueryParams(pairs)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class Requests:
    """Builds requests for one server and reads its responses."""

    def __init__(self, url: str | None, token: str | None) -> None:
        url = url or os.environ.get("MENUWATCH_URL")
        if not url:
            raise ConfigurationError("no address: pass url='https://…' or set MENUWATCH_URL")
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"{url!r} is not a valid address: it must begin with http:// or https://")
        self._url = url.rstrip("/")
        token = token or os.environ.get("MENUWATCH_TOKEN")
        self._headers = {"User-Agent": f"menuwatch-client/{__version__}", "Accept": "application/json, */*;q=0.5"}
        if token:
            if not token.isascii() or not token.isprintable():
                raise ConfigurationError("the token has characters that no token has: copy it again")
            self._headers["Authorization"] = f"Bearer {token}"

    def build(self, client: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
        """The request of httpx."""
        headers = {**self._headers, **{name: value for name, value in call.headers.items() if value is not None}}
        content = None
        if call.body is not None:
            content = _encode(call.body)
            headers["Content-Type"] = "application/json"
        params = _query(call.query)
        return client.build_request(
            call.method, self._url + call.path, params=params or None, headers=headers, content=content
        )

    def read(self, call: Call, response: httpx.Response) -> Any:
        """The value of a response; raises ApiError and InvalidResponse."""
        if response.status_code >= 300:
            raise error_of(_problem(response), response.headers)
        if call.returns is None:
            return None
        if call.returns is bytes:
            return response.content
        try:
            return _decoder(call.returns).decode(response.content)
        except msgspec.MsgspecError as error:
            raise InvalidResponse(f"unexpected response to {call.method} {call.path}: {error}") from error


def is_retried(call: Call, response: httpx.Response) -> bool:
    """Whether a response asks for another attempt."""
    return response.status_code in _REFUSED or (call.repeatable and response.status_code in _UNKNOWN)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that `Retry-After` names, as a number or a date; None without one that can be read."""
    text = response.headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _problem(response: httpx.Response) -> ProblemDetails:
    """The problem document; one made of the status where another program answered."""
    try:
        return msgspec.json.decode(response.content, type=ProblemDetails)
    except msgspec.MsgspecError:
        return ProblemDetails(
            type="about:blank",
            title=response.reason_phrase or "Error",
            status=response.status_code,
            detail=f"not a response of Menuwatch: {response.text[:200]!r}",
            instance=response.request.url.path,
            trace_id=response.headers.get("x-request-id", ""),
        )
