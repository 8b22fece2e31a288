"""Downloads a result that a provider stored at a URL sent by webhook.

The URL is untrusted, so only hosts of `CRAWL_RESULT_HOSTS` are requested, redirects are not followed, and the size is limited. The
page has been crawled already, so no proxy is used."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx

from menuwatch import __version__
from menuwatch.search_crawl.protocols import LARGEST_PAGE
from menuwatch.search_crawl.providers.packing import Unpackable, unpacked

MOST_BYTES = LARGEST_PAGE
"""Largest page, decompressed, in bytes."""


class NotFetched(Exception):
    """The page could not be downloaded. `final`: a retry would not help."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.final = final


class Results:
    """Keeps connections; close it at the end."""

    def __init__(self, hosts: Sequence[str], *, seconds: float = 30.0, most: int = MOST_BYTES) -> None:
        """`hosts` with their ports where they are not the usual ones; `*.example.com` stands for all below it. `seconds` is the
        longest wait for one page, `most` its largest size in bytes, packed and unpacked."""
        self._hosts = tuple(host.strip().lower() for host in hosts)
        self._seconds = seconds
        self._most = most
        self._client: httpx.AsyncClient | None = None

    async def fetch(self, url: str) -> bytes:
        """The page, unpacked. Raises NotFetched."""
        self._admit(url)
        try:
            async with asyncio.timeout(self._seconds):
                packed = await self._read(url)
        except (TimeoutError, httpx.TimeoutException):
            raise NotFetched(f"the result was not there within {self._seconds:g} s", final=False) from None
        except (httpx.InvalidURL, UnicodeError):
            raise NotFetched("the address of the result is no URL", final=True) from None
        except (httpx.HTTPError, OSError, ssl.SSLError) as error:
            raise NotFetched(f"the result cannot be downloaded: {type(error).__name__}", final=False) from None
        try:
            return await asyncio.to_thread(unpacked, packed, self._most)
        except Unpackable as error:
            raise NotFetched(f"the result cannot be read: {error}", final=True) from None

    async def close(self) -> None:
        """Closes its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _admit(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise NotFetched("the address of the result is no URL", final=True) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise NotFetched("the result URL must be http or https", final=True)
        usual = port is None or port == (443 if parts.scheme == "https" else 80)
        host = parts.hostname if usual else f"{parts.hostname}:{port}"
        if not any(_is(host, allowed) for allowed in self._hosts):
            raise NotFetched(f"the result is on {host[:200]}, which is not in CRAWL_RESULT_HOSTS", final=True)

    async def _read(self, url: str) -> bytes:
        if self._client is None:
            self._client = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=self._seconds)
        headers = {"Accept-Encoding": "identity", "User-Agent": f"menuwatch/{__version__}"}
        async with self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code != 200:
                gone = answer.status_code in (301, 302, 303, 307, 308, 403, 404, 410)
                raise NotFetched(f"the result URL returned {answer.status_code}", final=gone)
            pieces, size = [], 0
            # Raw: the compression is detected by content, and a decompression bomb stays compressed.
            async for piece in answer.aiter_raw():
                size += len(piece)
                if size > self._most:
                    raise NotFetched(f"the result is larger than {self._most:,} bytes", final=True)
                pieces.append(piece)
        return b"".join(pieces)


def _is(host: str, allowed: str) -> bool:
    if allowed.startswith("*."):
        return host.endswith(allowed[1:]) and host != allowed[1:]
    return host == allowed
