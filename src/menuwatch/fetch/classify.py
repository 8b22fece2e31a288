"""Classify the result of a request and who caused it. Pure.

Sources: libcurl's error codes (libcurl-errors) and CURLINFO_PROXY_ERROR; RFC 9110 sections 10.2.3 and 15; RFC 1928. Faults were
matched to their codes with a proxy and a target that produce each of them (tests/fetch/test_faults.py). Challenge pages:
research/crawl.md section 7; Cloudflare's `cf-mitigated`; AWS WAF's `x-amzn-waf-action`; DataDome's `x-datadome` and `x-dd-b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from msgspec import Struct

from menuwatch.core.http import Expect


class Verdict(StrEnum):
    """Outcome of a request."""

    # Stored as `fetch_attempts.verdict`.

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
"""Verdicts of a target that rejected this identity."""


class Blame(StrEnum):
    """Party responsible for a failed request. `proxy_or_target`: undecided until another proxy was tried."""

    NONE = "none"
    PROXY = "proxy"
    IDENTITY = "identity"
    TARGET = "target"
    US = "us"
    PROXY_OR_TARGET = "proxy_or_target"


class TransportError(Struct, frozen=True, kw_only=True):
    """A request without a complete response.

    `code` is libcurl's error, 0 if the request could not be made. `connect_code` is the proxy's response to CONNECT, 0 when
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


class Classification(Struct, frozen=True, kw_only=True):
    """`retry_after` in seconds, for rate_limited only, None when the target named no time it meant."""

    verdict: Verdict
    blame: Blame
    reason: str
    retry_after: float | None = None


HEAD = 4096
"""Bytes of a body that are inspected."""


class RequestOutcome(Struct, frozen=True, kw_only=True):
    """Result of one request: a transport error, or a response with its status.

    `headers` have lower-case names. `start` is the beginning of the decoded body, `size` its full length in bytes (None: `start` is
    all of it). `expect` is the expected kind of content, `now` the time of the response.
    """

    now: datetime
    expect: Expect = "json"
    error: TransportError | None = None
    status: int = 0
    headers: Mapping[str, str] = {}
    start: bytes = b""
    size: int | None = None


_OUR_MISTAKE = frozenset({400, 405, 406, 411, 413, 414, 415, 416, 417, 422, 426, 428, 431})

# libcurl's error codes by meaning.
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
# libcurl's message when HTTP/2 streams were refused before they were begun, on one fresh connection after the other.
_STREAMS_REFUSED = "Connection died, tried"
# Of 300 KB, with the code of a connection that broke off.
_MANY_HEADERS = "Too large response headers"

_REFUSAL_STATUSES = frozenset({401, 403, 405, 429, 503})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CHALLENGE_ONLY = re.compile(
    rb"just a moment\.\.\."
    rb"|/cdn-cgi/challenge-platform/(?!scripts/jsd)"  # scripts/jsd also occurs on pages that were let through
    rb"|cf-challenge|cf_chl_opt"
    rb"|captcha-delivery\.com"
    rb"|_incapsula_resource\?[^\"'>]*swudnsai|incapsula incident id"
    rb"|px-captcha|_pxcaptcha"
)
"""Occurs in challenge pages only."""
_CHALLENGE_OR_PAGE = re.compile(
    rb"/cdn-cgi/challenge-platform|_incapsula_resource|(?<!\w)_px[a-z]+|g-recaptcha|h-captcha|hcaptcha\.com"
)
"""Occurs in challenge pages and in other pages of the same site."""
_CREDENTIALS = re.compile(
    rb"""["'](?:code|name|type|message|error)["']\s*:\s*["'][^"']{0,80}?"""
    rb"""(?:api[ _-]?key|application[ _-]?id|unauthenticated|rest_cookie_invalid_nonce|rest_forbidden)""",
    re.IGNORECASE,
)
"""An API's own refusal, in JSON, of the key, nonce or application id that the request had: no other identity would help."""
_LONGEST_WAIT = 100 * 365 * 86_400.0
"""Seconds. A Retry-After is honored in full; this limit only avoids date overflow."""


def retry_after(value: str | None, now: datetime) -> float | None:
    """Delay in seconds that a Retry-After header (seconds or a date) asks for; None if invalid or in the past."""
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
    """Time of the response by the server's clock, since ours may differ; dates in Retry-After are relative to it."""
    try:
        at = parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def classify(outcome: RequestOutcome) -> Classification:
    """Classify the result of a request, and who caused it."""
    if outcome.error is not None:
        return classify_error(outcome.error)
    status, headers = outcome.status, outcome.headers
    if is_challenge(status, headers, outcome.start[:HEAD], outcome.expect):
        return Classification(
            verdict=Verdict.CHALLENGE, blame=Blame.IDENTITY, reason=f"a challenge page (HTTP {status})"
        )
    wait = retry_after(headers.get("retry-after"), _sent_at(headers) or outcome.now)
    if status == 429 or (status == 503 and wait is not None):
        named = "" if wait is None else f", wait {wait:.0f} s"
        return Classification(
            verdict=Verdict.RATE_LIMITED, blame=Blame.NONE, reason=f"HTTP {status}{named}", retry_after=wait
        )
    if status in (401, 403) and _refuses_credentials(outcome.start[:HEAD]):
        return Classification(
            verdict=Verdict.CLIENT_BUG, blame=Blame.US, reason=f"the API refuses the credentials (HTTP {status})"
        )
    if status in (403, 451):
        return Classification(verdict=Verdict.BLOCKED, blame=Blame.IDENTITY, reason=f"refused with HTTP {status}")
    if status >= 500 or status in (408, 421, 425):
        return Classification(verdict=Verdict.TARGET_DOWN, blame=Blame.TARGET, reason=f"HTTP {status}")
    if status in _OUR_MISTAKE:
        return Classification(verdict=Verdict.CLIENT_BUG, blame=Blame.US, reason=f"HTTP {status}")
    if 200 <= status < 300:
        return _content(outcome)
    return Classification(verdict=Verdict.OK, blame=Blame.NONE, reason=f"HTTP {status}")


def _refuses_credentials(start: bytes) -> bool:
    return start.removeprefix(_BOM).lstrip()[:1] == b"{" and _CREDENTIALS.search(start) is not None


def is_challenge(status: int, headers: Mapping[str, str], start: bytes, expect: Expect) -> bool:
    """Detect a challenge page, which asks a browser to prove itself. `headers` have lower-case names; `start` is the first part of the
    body.

    The same services put their scripts into normal pages as well. So a marker counts only on a refusal or where data was expected, and
    some markers only on a refusal or in a page with `noindex`, which shop pages never have.
    """
    if headers.get("cf-mitigated", "").lower() == "challenge":
        return True
    if headers.get("x-amzn-waf-action", "").lower() in ("challenge", "captcha"):
        return True
    # DataDome marks every response of a site that it protects; its own responses also have x-dd-b.
    if "x-dd-b" in headers or ("x-datadome" in headers and status in (403, 405)):
        return True
    if status in _REDIRECTS:
        to = headers.get("location", "").lower().encode("utf-8", "replace")
        return _CHALLENGE_ONLY.search(to) is not None or _CHALLENGE_OR_PAGE.search(to) is not None
    refused = status in _REFUSAL_STATUSES
    text = start.lower()
    if not refused and not (expect in ("json", "image") and text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"):
        return False
    if _CHALLENGE_ONLY.search(text):
        return True
    return _CHALLENGE_OR_PAGE.search(text) is not None and (refused or b"noindex" in text)


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, expect: Expect, now: datetime
) -> Classification:
    """Classify a response. `headers` have lower-case names."""
    return classify(
        RequestOutcome(now=now, expect=expect, status=status, headers=headers, start=body[:HEAD], size=len(body))
    )


_NOTHING = frozenset({b"", b"null", b"{}", b"[]", b'{"data":null}'})
_SPACE = re.compile(rb"\s+")
_BOM = b"\xef\xbb\xbf"


def _content(outcome: RequestOutcome) -> Classification:
    """Whether a complete, accepted response has the expected content. The caller gets the body in any case and decides what it is
    worth."""
    status, start = outcome.status, outcome.start[:HEAD]
    size = len(outcome.start) if outcome.size is None else outcome.size
    verdict, blame, reason = Verdict.OK, Blame.NONE, f"HTTP {status}"
    text = start.removeprefix(_BOM).lstrip()
    match outcome.expect:
        case "json" if size <= HEAD and _SPACE.sub(b"", text) in _NOTHING:
            content = _SPACE.sub(b"", text).decode("ascii") or f"{size} bytes"
            verdict, blame, reason = Verdict.EMPTY_SUSPECT, Blame.TARGET, f"no data in the response: {content}"
        case "json" if text[:1] not in (b"{", b"["):
            verdict, blame, reason = Verdict.SCHEMA_CHANGED, Blame.TARGET, f"{_form(text)} instead of JSON"
        case "image" if size == 0:
            verdict, blame, reason = Verdict.EMPTY_SUSPECT, Blame.TARGET, "no data in the response: 0 bytes"
        case "image" if _is_text(text, outcome.headers.get("content-type", "")):
            verdict, blame, reason = Verdict.SCHEMA_CHANGED, Blame.TARGET, f"{_form(text)} instead of an image"
    return Classification(verdict=verdict, blame=blame, reason=reason)


def _form(text: bytes) -> str:
    if text[:1] == b"<":
        return "a web page"
    return "JSON" if text[:1] in (b"{", b"[") else "text"


def _is_text(text: bytes, content_type: str) -> bool:
    """Whether it is HTML or JSON, as far as the start shows. An SVG is an image that begins like a page."""
    if text[:1] in (b"{", b"["):
        return True
    return text[:1] == b"<" and not (b"<svg" in text.lower() or content_type.startswith("image/svg"))


def classify_error(error: TransportError) -> Classification:
    """Classify a request without a complete response."""
    verdict, blame, reason = _cause(error)
    message = f": {error.message}" if error.message else ""
    return Classification(verdict=verdict, blame=blame, reason=reason + message)


def _cause(error: TransportError) -> tuple[Verdict, Blame, str]:
    code = error.code
    if code == _UNSUPPORTED and error.sent:
        return Verdict.TARGET_DOWN, Blame.TARGET, "the response is not HTTP"
    if code in _CLIENT:
        return Verdict.CLIENT_BUG, Blame.US, "invalid request"
    if code == _TOO_LARGE:
        return Verdict.TOO_LARGE, Blame.TARGET, "the response exceeds FETCH_MAX_BYTES"
    if code == _RESOLVE_PROXY:
        return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy's name cannot be resolved"
    if code == _PROXY:
        return _socks(error.proxy_error)
    if error.connect_code not in (0, 200):
        return _refused_connect(error.connect_code)
    if error.in_proxy_tls:
        if code in _UNTRUSTED:
            return Verdict.TLS_UNTRUSTED, Blame.PROXY, "the proxy's own certificate is not trusted"
        return Verdict.PROXY_DOWN, Blame.PROXY, "TLS handshake with the proxy failed"
    if code in _UNTRUSTED:
        # Either the target's certificate is wrong for all proxies, or this proxy replaces it.
        return Verdict.TLS_UNTRUSTED, Blame.PROXY_OR_TARGET, "the certificate is not trusted"
    if error.sent:
        return _after_sending(error)
    if error.in_tls or error.connect_code == 200:
        if code == _TIMEOUT:
            return Verdict.TARGET_DOWN, Blame.TARGET, "timeout during the TLS handshake"
        return Verdict.PATH_RESET, Blame.NONE, "connection lost during the TLS handshake"
    if code == _TIMEOUT and error.connections:
        # A hanging proxy and a target that lets every proxy hang look the same from here.
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "timeout while connecting through the proxy"
    if code == _RESOLVE_HOST:
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "the host's name cannot be resolved"
    return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy does not respond"


def _after_sending(error: TransportError) -> tuple[Verdict, Blame, str]:
    """The request was sent, so the proxy did not refuse it."""
    if error.code == _TIMEOUT:
        return Verdict.TARGET_DOWN, Blame.TARGET, "timeout before the response was complete"
    if error.code == _WEIRD_REPLY:
        return Verdict.TARGET_DOWN, Blame.TARGET, "the response is not HTTP"
    if error.code == _HTTP2_STREAM and "ENHANCE_YOUR_CALM" in error.message:
        return Verdict.RATE_LIMITED, Blame.NONE, "the host asked to slow down (ENHANCE_YOUR_CALM)"
    if _MANY_HEADERS in error.message:
        return Verdict.TOO_LARGE, Blame.TARGET, "response headers too large"
    if _STREAMS_REFUSED in error.message:
        # GOAWAY, of whatever reason, or REFUSED_STREAM: libcurl does not say which, and has already retried five times.
        return Verdict.RATE_LIMITED, Blame.NONE, f"the host refused {error.connections} connections"
    return Verdict.PATH_RESET, Blame.NONE, "connection lost"


def _refused_connect(status: int) -> tuple[Verdict, Blame, str]:
    if status in (401, 407):
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy rejected the credentials"
    if status in (502, 503, 504):
        # Many proxies respond so when the target is down as well (504: RFC 9110, 15.6.5); other proxies will show.
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, f"the proxy cannot reach the host (HTTP {status})"
    return Verdict.PROXY_DOWN, Blame.PROXY, f"the proxy refuses to connect (HTTP {status})"


def _socks(error: int) -> tuple[Verdict, Blame, str]:
    if error in _SOCKS_LOGIN:
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy rejected the credentials"
    if error == _SOCKS_VERSION:
        return Verdict.PROXY_CONFIG, Blame.PROXY, "the proxy does not speak SOCKS5"
    if error in _SOCKS_UNREACHABLE:
        return Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET, "the proxy cannot reach the host"
    if error == _SOCKS_NOT_ALLOWED:
        return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy's rules forbid the host"
    return Verdict.PROXY_DOWN, Blame.PROXY, "the proxy does not respond"
