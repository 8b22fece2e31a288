"""What happened to a request, and who is to blame: one pure function, `judge`.

Sources: libcurl's error codes (libcurl-errors) and CURLINFO_PROXY_ERROR; RFC 9110 sections 10.2.3 and 15; RFC 1928. Faults were
matched to their codes with a proxy and a target that produce each of them (tests/fetch/test_faults.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from menuwatch.core.http import Expect
from menuwatch.fetch.challenge import is_challenge


class Verdict(StrEnum):
    """What happened. The values are written to `fetch_attempts.verdict`."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    BLOCKED = "blocked"
    CHALLENGE = "challenge"
    EMPTY_SUSPECT = "empty_suspect"
    SCHEMA_CHANGED = "schema_changed"
    PROXY_CONFIG = "proxy_config"
    PROXY_DOWN = "proxy_down"
    TARGET_DOWN = "target_down"
    PATH_RESET = "path_reset"
    TLS_UNTRUSTED = "tls_untrusted"
    TOO_LARGE = "too_large"
    CLIENT_BUG = "client_bug"


REFUSALS = (Verdict.BLOCKED, Verdict.CHALLENGE)
"""Verdicts of a target that did not want this identity."""


class Blame(StrEnum):
    """Who caused it. `proxy_or_target`: other proxies will tell."""

    NOBODY = "nobody"
    PROXY = "proxy"
    IDENTITY = "identity"
    TARGET = "target"
    US = "us"
    PROXY_OR_TARGET = "proxy_or_target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A request that got no whole answer.

    `code` is libcurl's error, 0 when the request could not even be made. `connect_code` is the proxy's answer to CONNECT, 0 when
    there was none (SOCKS never has one). `proxy_error` is CURLINFO_PROXY_ERROR. `sent`: bytes of the request itself went out
    through the tunnel, so the proxy had done its part. `connections` that libcurl made for it: 0 when the proxy took none and
    none was there already. `in_tls`: it ended within the handshake with the target, to which the proxy must have led;
    `in_proxy_tls`: within that with the proxy. `message` holds no password.
    """

    code: int
    connect_code: int = 0
    proxy_error: int = 0
    sent: bool = False
    connections: int = 1
    in_tls: bool = False
    in_proxy_tls: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`retry_after` in seconds, for rate_limited only, None when the target named no time it meant."""

    verdict: Verdict
    blame: Blame
    reason: str
    retry_after: float | None = None


HEAD = 4096
"""Bytes of a body that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What came of one request: a fault, or an answer with its status.

    `headers` have lower-case names. `start` is the beginning of the body, decoded, of `size` bytes in all (None: `start` is all
    of it). `expect` is what was asked for, `now` when the answer came.
    """

    now: datetime
    expect: Expect = "json"
    fault: Fault | None = None
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    start: bytes = b""
    size: int | None = None


_OUR_MISTAKE = frozenset({400, 405, 406, 411, 413, 414, 415, 416, 417, 422, 426, 428, 431})

# libcurl's numbers, by what they mean for us.
_UNSUPPORTED, _RESOLVE_PROXY, _RESOLVE_HOST, _WEIRD_REPLY = 1, 5, 6, 8
_TIMEOUT, _TOO_LARGE, _HTTP2_STREAM, _PROXY = 28, 63, 92, 97
_CLIENT = frozenset({0, _UNSUPPORTED, 2, 3, 4, 23, 26, 27, 41, 42, 43, 48, 49, 53, 54, 58, 59, 66, 77})
_UNTRUSTED = frozenset({51, 60, 83, 90, 91})
# CURLproxycode: no common login method, too long a user or password, user rejected; and no SOCKS 5 at all.
_SOCKS_LOGIN = frozenset({10, 11, 12, 33})
_SOCKS_VERSION = 2
# CURLproxycode for SOCKS replies 5, 4, 3 and 6: refused, host and network unreachable, TTL expired.
_SOCKS_UNREACHABLE = frozenset({19, 21, 22, 24, 27})
_SOCKS_NOT_ALLOWED = 23
# What libcurl says when HTTP/2 streams were refused before they were begun, on one fresh connection after the other.
_TURNED_AWAY = "Connection died, tried"
# Of 300 KB, with the code of a connection that broke off.
_MANY_HEADERS = "Too large response headers"


_LONGEST_WAIT = 100 * 365 * 86_400.0
"""Seconds. A wait is honoured in full; this is only where calendars end."""


def retry_after(value: str | None, now: datetime) -> float | None:
    """The wait that a Retry-After header names, in seconds: a whole number or a date. None where it names none that lies ahead."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:300]), _LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
        seconds = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(seconds, _LONGEST_WAIT) if seconds >= 0 else None


def _sent_at(headers: Mapping[str, str]) -> datetime | None:
    """When the answer was made, by the clock that a date in Retry-After goes by too; ours may be wrong."""
    try:
        at = parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def judge(happening: Happening) -> Judgement:
    """What it means that this happened, and who caused it."""
    if happening.fault is not None:
        return judge_fault(happening.fault)
    status, headers = happening.status, happening.headers
    if is_challenge(status, headers, happening.start[:HEAD], happening.expect):
        return Judgement(verdict=Verdict.CHALLENGE, blame=Blame.IDENTITY, reason=f"a challenge page (HTTP {status})")
    wait = retry_after(headers.get("retry-after"), _sent_at(headers) or happening.now)
    if status == 429 or (status == 503 and wait is not None):
        named = "" if wait is None else f", wait {wait:.0f} s"
        return Judgement(
            verdict=Verdict.RATE_LIMITED, blame=Blame.NOBODY, reason=f"HTTP {status}{named}", retry_after=wait
        )
    if status in (403, 451):
        return Judgement(verdict=Verdict.BLOCKED, blame=Blame.IDENTITY, reason=f"refused with HTTP {status}")
    if status >= 500 or status in (408, 421, 425):
        return Judgement(verdict=Verdict.TARGET_DOWN, blame=Blame.TARGET, reason=f"HTTP {status}")
    if status in _OUR_MISTAKE:
        return Judgement(verdict=Verdict.CLIENT_BUG, blame=Blame.US, reason=f"HTTP {status}")
    if 200 <= status < 300:
        return _content(happening)
    return Judgement(verdict=Verdict.OK, blame=Blame.NOBODY, reason=f"HTTP {status}")


def judge_answer(status: int, headers: Mapping[str, str], body: bytes, *, expect: Expect, now: datetime) -> Judgement:
    """What an answer means. `headers` have lower-case names."""
    return judge(Happening(now=now, expect=expect, status=status, headers=headers, start=body[:HEAD], size=len(body)))


_NOTHING = frozenset({b"", b"null", b"{}", b"[]", b'{"data":null}'})
_SPACE = re.compile(rb"\s+")
_BOM = b"\xef\xbb\xbf"


def _content(happening: Happening) -> Judgement:
    """Of a whole answer to which nobody objected: whether it is what was asked for. What it is worth is for whoever asked to
    say, who therefore gets its bytes in any case."""
    status, start = happening.status, happening.start[:HEAD]
    size = len(happening.start) if happening.size is None else happening.size
    verdict, blame, reason = Verdict.OK, Blame.NOBODY, f"HTTP {status}"
    text = start.removeprefix(_BOM).lstrip()
    match happening.expect:
        case "json" if size <= HEAD and _SPACE.sub(b"", text) in _NOTHING:
            said = _SPACE.sub(b"", text).decode("ascii") or f"{size} bytes"
            verdict, blame, reason = Verdict.EMPTY_SUSPECT, Blame.TARGET, f"no data in the answer: {said}"
        case "json" if text[:1] not in (b"{", b"["):
            verdict, blame, reason = Verdict.SCHEMA_CHANGED, Blame.TARGET, f"{_form(text)} where JSON was due"
        case "image" if size == 0:
            verdict, blame, reason = Verdict.EMPTY_SUSPECT, Blame.TARGET, "no data in the answer: 0 bytes"
        case "image" if _is_text(text, happening.headers.get("content-type", "")):
            verdict, blame, reason = Verdict.SCHEMA_CHANGED, Blame.TARGET, f"{_form(text)} where an image was due"
    return Judgement(verdict=verdict, blame=blame, reason=reason)


def _form(text: bytes) -> str:
    if text[:1] == b"<":
        return "a web page"
    return "JSON" if text[:1] in (b"{", b"[") else "text"


def _is_text(text: bytes, content_type: str) -> bool:
    """HTML or JSON, as far as the start tells. An SVG is an image that begins as a page does."""
    if text[:1] in (b"{", b"["):
        return True
    return text[:1] == b"<" and not (b"<svg" in text.lower() or content_type.startswith("image/svg"))


def judge_fault(fault: Fault) -> Judgement:
    """What a request without a whole answer means."""
    verdict, blame, what = _cause(fault)
    said = f": {fault.message}" if fault.message else ""
    return Judgement(verdict=verdict, blame=blame, reason=f"{what}{said}")


def _cause(fault: Fault) -> tuple[Verdict, Blame, str]:
    code = fault.code
    if code == _UNSUPPORTED and fault.sent:
        return Verdict.TARGET_DOWN, Blame.TARGET, "the answer is no HTTP"
    if code in _CLIENT:
        return Verdict.CLIENT_BUG, Blame.US, "the request could not be made"
    if code == _TOO_LARGE:
        return Verdict.TOO_LARGE, Blame.TARGET, "the answer is larger than FETCH_MAX_BYTES"
    if code == _RESOLVE_PROXY:
        return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy's name is not known"
    if code == _PROXY:
        return _socks(fault.proxy_error)
    if fault.connect_code not in (0, 200):
        return _refused_connect(fault.connect_code)
    if fault.in_proxy_tls:
        if code in _UNTRUSTED:
            return Verdict.TLS_UNTRUSTED, Blame.PROXY, "the proxy's own certificate is not trusted"
        return Verdict.PROXY_DOWN, Blame.PROXY, "no TLS with the proxy"
    if code in _UNTRUSTED:
        # Either the target's certificate is wrong for everybody, or this proxy puts its own in its place.
        return Verdict.TLS_UNTRUSTED, Blame.PROXY_OR_TARGET, "the certificate is not trusted"
    if fault.sent:
        return _after_sending(fault)
    if fault.in_tls or fault.connect_code == 200:
        if code == _TIMEOUT:
            return Verdict.TARGET_DOWN, Blame.TARGET, "no TLS handshake in time"
        return Verdict.PATH_RESET, Blame.NOBODY, "the connection broke off in the TLS handshake"
    if code == _TIMEOUT and fault.connections:
        # A proxy that hangs and a target that lets every proxy hang look the same from here.
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "no connection through the proxy in time"
    if code == _RESOLVE_HOST:
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "the target's name is not known"
    return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy does not answer"


def _after_sending(fault: Fault) -> tuple[Verdict, Blame, str]:
    """The request went out, so whatever came after is not the proxy's refusal."""
    if fault.code == _TIMEOUT:
        return Verdict.TARGET_DOWN, Blame.TARGET, "no whole answer in time"
    if fault.code == _WEIRD_REPLY:
        return Verdict.TARGET_DOWN, Blame.TARGET, "the answer is no HTTP"
    if fault.code == _HTTP2_STREAM and "ENHANCE_YOUR_CALM" in fault.message:
        return Verdict.RATE_LIMITED, Blame.NOBODY, "the target asked to slow down (ENHANCE_YOUR_CALM)"
    if _MANY_HEADERS in fault.message:
        return Verdict.TOO_LARGE, Blame.TARGET, "the answer's headers are larger than a client takes"
    if _TURNED_AWAY in fault.message:
        # GOAWAY, of whatever reason, or REFUSED_STREAM: libcurl does not say which, and has asked five times more by itself.
        return Verdict.RATE_LIMITED, Blame.NOBODY, f"the target turned {fault.connections} connections away"
    return Verdict.PATH_RESET, Blame.NOBODY, "the connection broke off"


def _refused_connect(status: int) -> tuple[Verdict, Blame, str]:
    if status in (401, 407):
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy refuses the user or password"
    if status in (502, 503, 504):
        # Common proxies answer so when the target is down as well (504: RFC 9110, 15.6.5); other proxies will tell.
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, f"the proxy cannot reach the target (HTTP {status})"
    return Verdict.PROXY_DOWN, Blame.PROXY, f"the proxy refuses to connect (HTTP {status})"


def _socks(error: int) -> tuple[Verdict, Blame, str]:
    if error in _SOCKS_LOGIN:
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy refuses the user or password"
    if error == _SOCKS_VERSION:
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy does not speak SOCKS5"
    if error in _SOCKS_UNREACHABLE:
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "the proxy cannot reach the target"
    if error == _SOCKS_NOT_ALLOWED:
        return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy's rules forbid the target"
    return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy does not answer"
