"""One curl handle that keeps its options, cookies and connections from request to request.

curl_cffi's own session sets some forty options anew for every request and reads as many facts back; with one identity all but a
few are the same each time. What is sent is the same, byte for byte (tests/fingerprint).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from curl_cffi import AsyncCurl, Curl, CurlError, CurlInfo, CurlOpt
from curl_cffi.aio import CURL_POLL_NONE, CURL_SOCKET_TIMEOUT

_NO_EXPECT = b"Expect:"
"""Keeps curl from asking whether a body is welcome, which no browser does."""


_LOOK_SECONDS = 0.1


class _Pieces(list[bytes]):
    """What curl writes into: pieces are kept as they come, where a buffer would be copied each time it grows."""

    write = list.append


class _Multi(AsyncCurl):
    """curl_cffi looks after each of these ten times a second, in case libcurl forgot a timeout: here only while a request is
    under way, so that idle identities cost nothing."""

    def __init__(self) -> None:
        self.busy = asyncio.Event()
        super().__init__()

    async def _force_timeout(self) -> None:
        while True:
            await self.busy.wait()
            self.socket_action(CURL_SOCKET_TIMEOUT, CURL_POLL_NONE)
            await asyncio.sleep(_LOOK_SECONDS)


class Wire:
    """Sends one request at a time. `options` are set for all of them, those in `http_options` for plain http as well."""

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
        """The lines of the last answer's head, those of interim answers before them."""
        self.body = b""

    async def perform(self, method: str, url: str, lines: Sequence[bytes], order: str, body: bytes | None) -> None:
        """Asks, and leaves the answer in `head` and `body`. Raises CurlError; what `info` tells is of this request in either case."""
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
            # A handle remembers what went wrong (a half-done handshake) until it is reset.
            self._scheme = None
            if not isinstance(error, CurlError):
                multi.remove_handle(curl)
            raise
        finally:
            multi.busy.clear()
            self.head = b"".join(head)
            # They belong to this request, and curl would go on pointing at them.
            curl.clean_handles_and_buffers()

    def _set_up(self, curl: Curl, scheme: str) -> None:
        self._scheme = None
        curl.reset()
        curl.setopt(CurlOpt.COOKIEFILE, b"")  # no file: it only makes curl keep cookies
        if scheme == "http":
            for option, value in self._http_options.items():
                curl.setopt(option, value)
        if curl.impersonate(self._target, default_headers=False) != 0:
            raise CurlError(f"{self._target} is no browser that curl knows")
        for option, value in self._options.items():
            curl.setopt(option, value)
        self._scheme = scheme

    def info(self, which: CurlInfo) -> float:
        """A number that curl knows about the last request, 0 where it knows none."""
        found = self._curl.getinfo(which) if self._curl is not None else 0
        return found if isinstance(found, (int, float)) else 0

    async def close(self) -> None:
        """Closes its connections; it cannot be used again."""
        if self._multi is not None:
            await self._multi.close()  # type: ignore[no-untyped-call]
        if self._curl is not None:
            self._curl.close()
        self._multi = self._curl = None
