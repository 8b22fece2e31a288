"""The only module that opens a connection: one curl handle for one identity, always through its proxy.

Pitfalls of curl_cffi 0.16 that this module works around:
- libcurl itself reads the environment. An explicit proxy beats `HTTPS_PROXY`, but only an explicit empty NOPROXY beats
  `NO_PROXY`, which would otherwise let a request leave directly.
- Plain http:// targets are otherwise offered an upgrade to HTTP/2, which no browser does (and which only an option set before
  impersonation prevents), and are sent to an HTTP proxy without a tunnel.
- A handle that is closed during a request resolves that request with nothing; so a transport may be closed only when idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from curl_cffi import AsyncCurl, Curl, CurlError, CurlHttpVersion, CurlInfo, CurlOpt
from curl_cffi.aio import CURL_POLL_NONE, CURL_SOCKET_TIMEOUT
from msgspec import Struct

from menuwatch.core.http import Expect, Response
from menuwatch.fetch.classify import Classification, RequestOutcome, TransportError, classify, classify_response
from menuwatch.fetch.identity import Identity, browser_headers
from menuwatch.proxies.model import Proxy

Method = Literal["GET", "POST"]

_LONG_SECRET = 8
"""Shortest password that is masked anywhere: a shorter one may be part of another word."""
_ADVICE = ". See https://curl.se/"
# Characters that JavaScript's encodeURIComponent leaves unescaped, besides letters and digits.
_UNESCAPED = "-_.!~*'()"
_NO_EXPECT = b"Expect:"
"""Keeps curl from sending `Expect: 100-continue`, which no browser does."""
_POLL_SECONDS = 0.1


class Exchange(Struct, frozen=True, kw_only=True):
    """Result of one request: a response, or a fault. `elapsed_ms` is the whole duration, including the proxy's part."""

    answer: Response | None
    error: TransportError | None
    elapsed_ms: float

    @property
    def bytes(self) -> int:
        """Decoded size of the response body."""
        return 0 if self.answer is None else len(self.answer.body)

    def classify(self, expect: Expect, now: datetime) -> Classification:
        """What happened, and who caused it; `now` is the time of the response."""
        if self.answer is None:
            return classify(RequestOutcome(error=self.error, expect=expect, now=now))
        return classify_response(self.answer.status, self.answer.headers, self.answer.body, expect=expect, now=now)


def proxy_options(proxy: Proxy) -> dict[CurlOpt, Any]:
    """The curl options that route everything through this proxy: names are resolved there, targets reached through a tunnel."""
    if not proxy.host or not 1 <= proxy.port <= 65535:
        raise ValueError(f"proxy {proxy.id} has no address")
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    scheme = "socks5h" if proxy.protocol == "socks5" else proxy.protocol
    options: dict[CurlOpt, Any] = {
        CurlOpt.PROXY: f"{scheme}://{host}:{proxy.port}",
        CurlOpt.NOPROXY: "",
        CurlOpt.HTTPPROXYTUNNEL: 1,
        CurlOpt.PROXY_CREDENTIAL_NO_REUSE: 1,
        CurlOpt.SUPPRESS_CONNECT_HEADERS: 1,
        CurlOpt.PROTOCOLS_STR: "http,https",
    }
    if proxy.username:
        options[CurlOpt.PROXYUSERNAME] = proxy.username
        options[CurlOpt.PROXYPASSWORD] = proxy.password or ""
    return options


class _Pieces(list[bytes]):
    """Write target for curl: keeps the chunks, where a buffer would be copied each time it grows."""

    write = list.append


class _Multi(AsyncCurl):
    """curl_cffi polls each handle ten times a second in case libcurl missed a timeout. Here this happens only during a request, so
    that idle identities cost nothing."""

    def __init__(self) -> None:
        self.busy = asyncio.Event()
        super().__init__()

    async def _force_timeout(self) -> None:
        while True:
            await self.busy.wait()
            self.socket_action(CURL_SOCKET_TIMEOUT, CURL_POLL_NONE)
            await asyncio.sleep(_POLL_SECONDS)


class CurlHandle:
    """A curl handle that keeps its options, cookies and connections between requests, one at a time. `options` apply to all requests,
    `http_options` also to plain http.

    curl_cffi's own session sets some forty options for every request and reads as many values back; for one identity nearly all of
    them stay the same. The bytes sent are identical (tests/fingerprint).
    """

    def __init__(
        self, target: str, options: Mapping[CurlOpt, Any], *, http_options: Mapping[CurlOpt, Any] | None = None
    ) -> None:
        self._target = target
        self._options = options
        self._http_options = http_options or {}
        self._scheme: str | None = None
        self._curl: Curl | None = None
        self._multi: _Multi | None = None
        self.head = b""
        """Header lines of the last response, after those of interim responses."""
        self.body = b""

    async def perform(self, method: str, url: str, lines: Sequence[bytes], order: str, body: bytes | None) -> None:
        """Send a request; the response is in `head` and `body`. Raises CurlError; `info` refers to this request in either case."""
        if self._multi is None:
            self._multi = _Multi()
        if self._curl is None:
            self._curl = Curl()
        multi, curl, head, pieces = self._multi, self._curl, _Pieces(), _Pieces()
        self.head = self.body = b""
        scheme = url.partition(":")[0]
        if scheme != self._scheme:
            self._set_up(curl, scheme)
        curl.setopt(CurlOpt.URL, url.encode())
        if method == "POST":
            curl.setopt(CurlOpt.POST, 1)
            curl.setopt(CurlOpt.POSTFIELDS, body or b"")
            curl.setopt(CurlOpt.POSTFIELDSIZE, len(body or b""))
        else:
            curl.setopt(CurlOpt.HTTPGET, 1)
        curl.setopt(CurlOpt.HTTPHEADER, [*lines, _NO_EXPECT])
        curl.setopt(CurlOpt.HTTPHEADER_ORDER, order)
        curl.setopt(CurlOpt.HEADERDATA, head)
        curl.setopt(CurlOpt.WRITEDATA, pieces)
        multi.busy.set()
        try:
            await multi.add_handle(curl)
            self.body = b"".join(pieces)
        except BaseException as error:
            # A handle keeps a failed state (such as an incomplete handshake) until it is reset.
            self._scheme = None
            if not isinstance(error, CurlError):
                multi.remove_handle(curl)
            raise
        finally:
            multi.busy.clear()
            self.head = b"".join(head)
            # They belong to this request; curl would keep pointers to them.
            curl.clean_handles_and_buffers()

    def _set_up(self, curl: Curl, scheme: str) -> None:
        self._scheme = None
        curl.reset()
        curl.setopt(CurlOpt.COOKIEFILE, b"")  # no file: it only makes curl keep cookies
        if scheme == "http":
            for option, value in self._http_options.items():
                curl.setopt(option, value)
        if curl.impersonate(self._target, default_headers=False) != 0:
            raise CurlError(f"{self._target} is not a browser that curl_cffi supports")
        for option, value in self._options.items():
            curl.setopt(option, value)
        self._scheme = scheme

    def info(self, which: CurlInfo) -> float:
        """A numeric value that curl reports for the last request, 0 if there is none."""
        value = self._curl.getinfo(which) if self._curl is not None else 0
        return value if isinstance(value, (int, float)) else 0

    async def close(self) -> None:
        """Close the connections; the handle cannot be used again."""
        if self._multi is not None:
            await self._multi.close()  # type: ignore[no-untyped-call]
        if self._curl is not None:
            self._curl.close()
        self._multi = self._curl = None


class Transport:
    """Connections and cookies of one identity. Not for concurrent requests; close it when idle."""

    def __init__(
        self, identity: Identity, *, timeout_seconds: float, max_bytes: int, ca_file: str | None = None
    ) -> None:
        self.identity = identity
        self._closed = False
        options = self._options = proxy_options(identity.proxy)
        options[CurlOpt.MAXFILESIZE_LARGE] = max_bytes
        options[CurlOpt.TIMEOUT_MS] = options[CurlOpt.CONNECTTIMEOUT_MS] = int(timeout_seconds * 1000)
        options[CurlOpt.FOLLOWLOCATION] = 0
        options[CurlOpt.ACCEPT_ENCODING] = identity.profile.accept_encoding
        if identity.profile.stream_weight is not None:
            options[CurlOpt.STREAM_WEIGHT] = identity.profile.stream_weight
        if ca_file is not None:
            options[CurlOpt.CAINFO] = options[CurlOpt.PROXY_CAINFO] = ca_file
        self._handle = CurlHandle(
            identity.profile.target,
            options,
            http_options={CurlOpt.HTTP_VERSION: CurlHttpVersion.V1_1},
        )

    def __repr__(self) -> str:
        return f"<Transport {self.identity.profile.name} through proxy {self.identity.proxy.id}>"

    async def send(
        self,
        method: Method,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect = "json",
    ) -> Exchange:
        """Send one request. Redirects are not followed. Raises nothing but cancellation: failures are in the exchange."""
        target = with_params(url, params)
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            error = TransportError(code=3, message="expected an http(s) URL without credentials")
            return Exchange(answer=None, error=error, elapsed_ms=0.0)
        own_headers = dict(headers or {})
        body: bytes | None = None
        if json is not None:
            body = msgspec.json.encode(json)
            if not any(name.lower() == "content-type" for name in own_headers):
                own_headers["Content-Type"] = "application/json"
        lines, order = browser_headers(self.identity, method=method, url=target, expect=expect, own=own_headers)
        try:
            # A header without a value would be dropped if it were not written so.
            header_lines = [f"{name}: {value}".encode() if value else f"{name};".encode() for name, value in lines]
            await self._handle.perform(method, target, header_lines, order, body)
        except CurlError as error:
            return self._failure(error)
        return self._answer(target)

    def _answer(self, url: str) -> Exchange:
        handle = self._handle
        total = handle.info(CurlInfo.TOTAL_TIME)
        answer = Response(
            status=int(handle.info(CurlInfo.RESPONSE_CODE)),
            headers=parse_head(handle.head),
            body=handle.body,
            url=url,
            elapsed_ms=max(total - handle.info(CurlInfo.PRETRANSFER_TIME), 0.0) * 1000,
        )
        return Exchange(answer=answer, error=None, elapsed_ms=total * 1000)

    def _failure(self, curl_error: CurlError) -> Exchange:
        info = self._handle.info
        message = str(curl_error).partition(_ADVICE)[0].removeprefix("Failed to perform, ")
        for secret in (self.identity.proxy.password or "", quote(self.identity.proxy.password or "", safe="")):
            # The URL holds no credentials, so libcurl should not print them: a second safeguard. Short words would garble messages.
            if len(secret) >= _LONG_SECRET:
                message = message.replace(secret, "***")
        error = TransportError(
            code=int(curl_error.code or 0),
            connect_code=int(info(CurlInfo.HTTP_CONNECTCODE)),
            proxy_error=int(info(CurlInfo.PROXY_ERROR)),
            # libcurl counts the bytes of the request itself, without CONNECT and handshakes.
            sent=info(CurlInfo.REQUEST_SIZE) > 0,
            connections=int(info(CurlInfo.NUM_CONNECTS)),
            # 1 from the first byte of a handshake, 0 again after a certificate is accepted.
            in_tls=bool(info(CurlInfo.SSL_VERIFYRESULT)),
            in_proxy_tls=bool(info(CurlInfo.PROXY_SSL_VERIFYRESULT)),
            message=message,
        )
        return Exchange(answer=None, error=error, elapsed_ms=info(CurlInfo.TOTAL_TIME) * 1000)

    async def close(self) -> None:
        """Close the connections; the transport cannot be used again. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._handle.close()


def parse_head(head: bytes) -> dict[str, str]:
    """Headers of the last response: lower-case names, repeated ones joined by commas in order."""
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    headers: dict[str, str] = {}
    last = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("HTTP/"):
            headers, last = {}, ""
        elif line[:1] in (" ", "\t") and last:
            headers[last] = f"{headers[last]} {line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            value = value.strip()
            headers[last] = f"{headers[last]}, {value}" if last in headers else value
    return headers


def with_params(url: str, params: Mapping[str, str] | None) -> str:
    """The URL with these parameters added, encoded like a browser's encodeURIComponent."""
    if not params:
        return url
    query = urlencode(params, quote_via=quote, safe=_UNESCAPED)
    return f"{url}{'&' if urlsplit(url).query else '?'}{query}"
