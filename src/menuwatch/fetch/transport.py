"""The only module that opens a connection: one curl handle for one identity, always through its proxy.

Traps of curl_cffi 0.16 that this module is built around:
- libcurl itself reads the environment. An explicit proxy beats `HTTPS_PROXY`, but only an explicit empty NOPROXY beats
  `NO_PROXY`, which would otherwise let a request leave directly.
- Plain http:// targets are otherwise offered an upgrade to HTTP/2, which no browser does (and which only an option set before
  impersonation prevents), and are sent to an HTTP proxy without a tunnel.
- A handle that is closed while a request runs resolves that request with nothing; whoever owns a transport closes it only
  when it is idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from curl_cffi import CurlError, CurlHttpVersion, CurlInfo, CurlOpt

from menuwatch.core.http import Expect, Response
from menuwatch.fetch.identity import Identity, browser_headers
from menuwatch.fetch.verdict import Fault
from menuwatch.fetch.wire import Wire
from menuwatch.proxies.model import Proxy

Method = Literal["GET", "POST"]

_LONG_SECRET = 8
"""Characters from which on a password cannot be a part of some other word."""
_ADVICE = ". See https://curl.se/"
# What JavaScript's encodeURIComponent leaves as it is, besides letters and digits.
_UNESCAPED = "-_.!~*'()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What came of one request: an answer, or a fault. `elapsed_ms` counts from the call to the end, the proxy's part included."""

    answer: Response | None
    fault: Fault | None
    elapsed_ms: float

    @property
    def bytes(self) -> int:
        """Decoded size of the answer's body."""
        return 0 if self.answer is None else len(self.answer.body)


def proxy_options(proxy: Proxy) -> dict[CurlOpt, Any]:
    """The curl options that send everything through this proxy: names resolved there, targets reached by tunnel."""
    if not proxy.host or not 1 <= proxy.port <= 65535:
        raise ValueError(f"proxy {proxy.id} has no address, and nothing leaves without one")
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


class Transport:
    """One identity's connections and cookies. Not for use by two requests at once; close it when it is idle."""

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
        self._wire = Wire(
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
        """Asks once. Redirects are not followed. Raises nothing but cancellation: what goes wrong is in the exchange."""
        target = with_params(url, params)
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            return _failed(Fault(code=3, message="the address is no http(s) URL without a login"), 0.0)
        given = dict(headers or {})
        body: bytes | None = None
        if json is not None:
            body = msgspec.json.encode(json)
            if not any(name.lower() == "content-type" for name in given):
                given["Content-Type"] = "application/json"
        lines, order = browser_headers(self.identity, method=method, url=target, expect=expect, given=given)
        try:
            # A header without a value would be left out if it were not written so.
            sent = [f"{name}: {value}".encode() if value else f"{name};".encode() for name, value in lines]
            await self._wire.perform(method, target, sent, order, body)
        except CurlError as error:
            return self._fault(error)
        return self._answer(target)

    def _answer(self, url: str) -> Exchange:
        wire = self._wire
        total = wire.info(CurlInfo.TOTAL_TIME)
        answer = Response(
            status=int(wire.info(CurlInfo.RESPONSE_CODE)),
            headers=parse_head(wire.head),
            body=wire.body,
            url=url,
            elapsed_ms=max(total - wire.info(CurlInfo.PRETRANSFER_TIME), 0.0) * 1000,
        )
        return Exchange(answer=answer, fault=None, elapsed_ms=total * 1000)

    def _fault(self, error: CurlError) -> Exchange:
        info = self._wire.info
        message = str(error).partition(_ADVICE)[0].removeprefix("Failed to perform, ")
        for secret in (self.identity.proxy.password or "", quote(self.identity.proxy.password or "", safe="")):
            # The login is in no address, so libcurl has no occasion to say it. This is a second lock, which a short word would jam.
            if len(secret) >= _LONG_SECRET:
                message = message.replace(secret, "***")
        fault = Fault(
            code=int(error.code or 0),
            connect_code=int(info(CurlInfo.HTTP_CONNECTCODE)),
            proxy_error=int(info(CurlInfo.PROXY_ERROR)),
            # libcurl counts the bytes of the request itself, not those of CONNECT or of a handshake.
            sent=info(CurlInfo.REQUEST_SIZE) > 0,
            connections=int(info(CurlInfo.NUM_CONNECTS)),
            # 1 from the first byte of a handshake on, 0 again once a certificate was accepted.
            in_tls=bool(info(CurlInfo.SSL_VERIFYRESULT)),
            in_proxy_tls=bool(info(CurlInfo.PROXY_SSL_VERIFYRESULT)),
            message=message,
        )
        return _failed(fault, info(CurlInfo.TOTAL_TIME) * 1000)

    async def close(self) -> None:
        """Closes its connections; the transport cannot be used again. Once more does nothing."""
        if not self._closed:
            self._closed = True
            await self._wire.close()


def parse_head(head: bytes) -> dict[str, str]:
    """The headers of the last answer in it, their names in lower case, those of one name joined by commas in their order."""
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    found: dict[str, str] = {}
    last = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("HTTP/"):
            found, last = {}, ""
        elif line[:1] in (" ", "\t") and last:
            found[last] = f"{found[last]} {line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            value = value.strip()
            found[last] = f"{found[last]}, {value}" if last in found else value
    return found


def with_params(url: str, params: Mapping[str, str] | None) -> str:
    """The address with these parameters added, encoded as a browser's encodeURIComponent does."""
    if not params:
        return url
    query = urlencode(params, quote_via=quote, safe=_UNESCAPED)
    return f"{url}{'&' if urlsplit(url).query else '?'}{query}"


def _failed(fault: Fault, elapsed_ms: float) -> Exchange:
    return Exchange(answer=None, fault=fault, elapsed_ms=elapsed_ms)
