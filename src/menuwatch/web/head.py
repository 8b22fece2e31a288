"""HEAD: answered as GET would be, without the body (RFC 9110 section 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """ASGI middleware: routes see a GET, the client gets its status and headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            # From here on it is a HEAD again: for the server, which counts the bytes of a body, and for the log.
            scope["method"] = "HEAD"
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        scope["head"] = True  # for whoever would go on answering long after the headers
        try:
            await self._app(scope, receive, sending)
        finally:
            scope["method"] = "HEAD"
