"""Keeps rendered pages in memory for as long as browsers may keep them: many visitors ask for the same few pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Any

from cachetools import TLRUCache
from msgspec import Struct
from prometheus_client import Counter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from menuwatch.core.logging import get_logger
from menuwatch.web.pages import FRAGMENT

log = get_logger(__name__)

SECONDS = 60
"""Age that a page reaches at most, here and in the browser together: the response says its age (RFC 9111, section 5.1)."""
_RENEWED = 30.0
"""Age in seconds from which a request for a page also renews it in the background, so that no visitor waits for that."""
_REST = 2_000
"""About the bytes of a page's headers and keys in memory."""
_SHARED = "menuwatch.shared_page"


def share(request: Request) -> None:
    """For a page that is the same for all visitors of the same variant: it may be kept."""
    request.scope.setdefault("state", {})[_SHARED] = True


class _Kept(Struct, frozen=True):
    """A response. `route` is for metrics."""

    start: Message
    body: bytes
    route: Any
    rendered: float
    overhead: int
    """Bytes besides the body."""

    @property
    def size(self) -> int:
        return len(self.body) + self.overhead


class PageCache:
    """ASGI middleware, around compression. Keeps successful GET responses for which the route called `share`, the least recently
    used dropped first."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        megabytes: int,
        variant: Callable[[Request], Hashable],
        results: Counter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`megabytes` are kept, 0: none. `variant`: what pages depend on besides the URL."""
        self._app = app
        self._results = results
        self._clock = clock
        self._variant = variant
        self._kept: TLRUCache[Hashable, _Kept] = TLRUCache(
            megabytes * 1_000_000,
            ttu=lambda _key, page, _now: page.rendered + SECONDS,
            timer=clock,
            getsizeof=lambda page: page.size,
        )
        self._renewals: dict[Hashable, asyncio.Task[None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not self._kept.maxsize:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if FRAGMENT in headers:
            await self._app(scope, receive, send)
            return
        key = (*_addressed(scope), "gzip" in headers.get("accept-encoding", ""), self._variant(Request(scope)))
        page = self._kept.get(key)
        if page is None:
            if await self._render(key, scope, receive, send):
                self._results.labels("miss").inc()
            return
        self._results.labels("hit").inc()
        if self._clock() - page.rendered > _RENEWED and key not in self._renewals:
            self._renewals[key] = asyncio.create_task(self._renew(key, {**scope, "state": {}}))
        scope["route"] = page.route
        await self._send(page, send)

    async def _render(self, key: Hashable, scope: Scope, receive: Receive, send: Send) -> bool:
        """Passes the request on, and keeps the response if it may be kept. Returns whether it may."""
        rendered = self._clock()
        start: Message | None = None
        body = bytearray()

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                # A copy: what is around this middleware adds headers of one request to the message, such as its id.
                start = {**message, "headers": list(message["headers"])}
            else:
                body.extend(message.get("body", b""))
            await send(message)

        # Routes see this very dictionary, whatever copies of the scope lie between.
        state = scope.setdefault("state", {})
        await self._app(scope, receive, sending)
        if start is None or start["status"] != 200 or not state.get(_SHARED):
            return False
        page = _Kept(start, bytes(body), scope.get("route"), rendered, _REST + sum(map(len, _addressed(scope))))
        if page.size <= self._kept.maxsize:
            self._kept[key] = page
        return True

    async def _renew(self, key: Hashable, scope: Scope) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_message: Message) -> None:
            pass

        try:
            await self._render(key, scope, receive, send)
        except Exception:
            log.exception("page could not be renewed", action="page_renewal", path=scope["path"])
        finally:
            del self._renewals[key]

    async def _send(self, page: _Kept, send: Send) -> None:
        start = {**page.start, "headers": list(page.start["headers"])}
        headers = MutableHeaders(scope=start)
        if "max-age" in headers.get("cache-control", ""):
            headers["Age"] = str(int(self._clock() - page.rendered))
        await send(start)
        await send({"type": "http.response.body", "body": page.body})


def _addressed(scope: Scope) -> tuple[str, str, str, bytes]:
    """What the request asked for: scheme, host, path and query."""
    return scope["scheme"], Headers(scope=scope).get("host", ""), scope["path"], scope["query_string"]
