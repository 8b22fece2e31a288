"""Sends requests with httpx and repeats them: synchronously and asynchronously."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Self

import httpx

from menuwatch_client.core import Call, Requests, Retries, is_retried, retry_after
from menuwatch_client.errors import ConnectionFailed

_TIMEOUT = 60.0


class SyncTransport:
    """A connection pool to one server. Close it, or use it in a `with` block. Threads may share it."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = _TIMEOUT,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        """`url` and `token` default to MENUWATCH_URL and MENUWATCH_TOKEN. `timeout` in seconds. `http`: your own httpx client,
        for example with a proxy or certificates; you then have to close it."""
        self._requests = Requests(url, token)
        self._retries = retries or Retries()
        self._own = http is None
        self._http = http or httpx.Client(timeout=timeout)

    def call(self, call: Call) -> Any:
        """Sends a request, repeats it after temporary failures, and returns the decoded response."""
        attempt = 0
        while True:
            attempt += 1
            request = self._requests.build(self._http, call)
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                wait = self._retries.wait(attempt) if call.repeatable else None
                if wait is None:
                    raise _failed(request, error) from error
            else:
                wait = self._retries.wait(attempt, retry_after(response)) if is_retried(call, response) else None
                if wait is None:
                    return self._requests.read(call, response)
            time.sleep(wait)

    def close(self) -> None:
        """Closes the connections."""
        if self._own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncTransport:
    """A connection pool to one server for asyncio. Close it, or use it in an `async with` block."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = _TIMEOUT,
        retries: Retries | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """`url` and `token` default to MENUWATCH_URL and MENUWATCH_TOKEN. `timeout` in seconds. `http`: your own httpx client,
        for example with a proxy or certificates; you then have to close it."""
        self._requests = Requests(url, token)
        self._retries = retries or Retries()
        self._own = http is None
        self._http = http or httpx.AsyncClient(timeout=timeout)

    async def call(self, call: Call) -> Any:
        """Sends a request, repeats it after temporary failures, and returns the decoded response."""
        attempt = 0
        while True:
            attempt += 1
            request = self._requests.build(self._http, call)
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                wait = self._retries.wait(attempt) if call.repeatable else None
                if wait is None:
                    raise _failed(request, error) from error
            else:
                wait = self._retries.wait(attempt, retry_after(response)) if is_retried(call, response) else None
                if wait is None:
                    return self._requests.read(call, response)
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Closes the connections."""
        if self._own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _failed(request: httpx.Request, error: httpx.TransportError) -> ConnectionFailed:
    url = request.url.copy_with(query=None, userinfo=b"")
    return ConnectionFailed(f"{request.method} {url} failed: {str(error) or type(error).__name__}")
