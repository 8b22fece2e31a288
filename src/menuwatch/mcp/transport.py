"""The HTTP transport of the SDK, without sessions. `http` imports it at the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from menuwatch.accounts.model import Principal
from menuwatch.mcp.server import Context, create_server
from menuwatch.web.dependencies import AppContext
from menuwatch.web.request_middleware import MAX_BODY_BYTES


def _principal(context: Context) -> Principal:
    assert context.request is not None, "a request over HTTP"
    principal: Principal = context.request.state.principal
    return principal


@asynccontextmanager
async def serving(app: AppContext) -> AsyncIterator[StreamableHTTPSessionManager]:
    """The session manager, ready for requests that `http` let in."""
    manager = StreamableHTTPSessionManager(
        create_server(app, _principal),
        json_response=True,
        stateless=True,
        # `http` checks origins before a token is looked up.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=MAX_BODY_BYTES,
    )
    async with manager.run():
        yield manager
