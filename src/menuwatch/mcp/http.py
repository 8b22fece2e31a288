"""`/mcp` of the server: the MCP server over HTTP (streamable HTTP, stateless), for API tokens.

Stateless: each request stands alone, so that any replica answers it and nothing is kept between two of them.

- **Tokens only.** A session cookie is ignored: pages of other sites can make no use of a login.
- **Origin.** Browsers state the origin of a request: only PUBLIC_URL and loopback addresses are accepted, whatever the `Host` header
  says, so that a name which is pointed at this server (DNS rebinding) is refused. There is no CORS.
- **Import.** The SDK is imported at the first request with a valid token, in a thread: the start of the server does not wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch.accounts.model import Permission, Principal
from menuwatch.core.logging import get_logger
from menuwatch.web.auth import Authenticate, NotAllowed, NotSignedIn, PasswordChangeRequired, principal_of
from menuwatch.web.dependencies import AppContext
from menuwatch.web.request_middleware import MAX_BODY_BYTES, Observe, Traffic

log = get_logger(__name__)

PATH = "/mcp"
_AT_ONCE = 4
"""Requests that are processed at once: dashboard and API have the same connections to the database."""
_PATIENCE_SECONDS = 10.0
"""Longest wait of a request for its turn."""


class McpEndpoint:
    """ASGI app that answers at PATH. It runs from its first request until `running` ends."""

    def __init__(self, system: AppContext, traffic: Traffic) -> None:
        self.state = SimpleNamespace(system=system)
        self._stop = asyncio.Event()
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        guarded: ASGIApp = Authenticate(self._answer)
        self._app: ASGIApp = Observe(guarded, traffic, on_fault=_fault, most=2 * MAX_BODY_BYTES)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[McpEndpoint]:
        """Answers requests for as long as the context lasts."""
        try:
            yield self
        finally:
            self._stop.set()
            if self._task is not None:
                await self._task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        scope["route"] = SimpleNamespace(path=PATH)
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        manager = await self._manager()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            refusal = _problem(
                429, "Too many requests", "other calls of AI clients are running: try again later", {"Retry-After": "5"}
            )
            await refusal(scope, receive, send)
            return
        try:
            await manager.handle_request(scope, receive, send)
        finally:
            self._free.release()

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that may not go on; None if it may."""
        if not _is_own_origin(request.headers.get("origin"), self.state.system.settings.public_url):
            return _problem(
                403, "Cross-site request", "Origin not accepted; if it belongs to this server, set PUBLIC_URL to it"
            )
        try:
            principal = principal_of(request)
        except NotSignedIn as error:
            return _unauthenticated(str(error) if error.shown else _SEND_TOKEN)
        except Exception as error:  # the database is unreachable
            log.error("database error", action="mcp_database_error", exc_info=error)
            return _problem(503, "Unavailable", "the database cannot be reached at the moment: try again in a minute")
        if principal.token_id is None:
            return _unauthenticated(_SEND_TOKEN)
        try:
            _check(principal)
        except NotAllowed as error:
            return _problem(403, "Forbidden", str(error))
        if request.method != "POST":
            return _problem(
                405, "Method not allowed", "send requests by POST: there are no sessions", {"Allow": "POST"}
            )
        return None

    async def _manager(self) -> Any:
        """The SDK's session manager, started by the first call."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._ready), name="mcp")
        return await asyncio.shield(self._ready)

    async def _run(self, ready: asyncio.Future[Any]) -> None:
        try:
            transport = await asyncio.to_thread(importlib.import_module, "menuwatch.mcp.transport")
            async with transport.serving(self.state.system) as manager:
                ready.set_result(manager)
                await self._stop.wait()
        except Exception as error:
            self._ready = None  # the next request tries again
            if ready.done():
                raise
            ready.set_exception(error)


_SEND_TOKEN = "send an API token with every request: Authorization: Bearer mw_…"  # noqa: S105 - a hint, no secret


def _check(principal: Principal) -> None:
    if principal.must_change_password:
        raise PasswordChangeRequired
    if not principal.may(Permission.READ):
        raise NotAllowed(Permission.READ)


def _is_own_origin(origin: str | None, public_url: str | None) -> bool:
    """Whether a request with this Origin header may be answered: programs send none."""
    if origin is None:
        return True
    try:
        given, ours = urlsplit(origin), urlsplit(public_url or "")
        if public_url is not None and (given.scheme, given.netloc.lower()) == (ours.scheme, ours.netloc.lower()):
            return True
        return given.scheme in ("http", "https") and _is_loopback(given.hostname or "")
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _unauthenticated(detail: str) -> Response:
    return _problem(401, "Not authenticated", detail, {"WWW-Authenticate": "Bearer"})


def _problem(status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    body = msgspec.json.encode({"type": "about:blank", "title": title, "status": status, "detail": detail})
    return Response(body, status_code=status, headers=headers, media_type="application/problem+json")


def _fault(_: Request) -> Response:
    return _problem(500, "Internal error", "the request failed unexpectedly; the server's log says why")
