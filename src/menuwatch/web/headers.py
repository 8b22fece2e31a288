"""Security headers of every response: content security policy, no framing, no MIME sniffing, and HSTS when the server is reached
over HTTPS."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
))  # fmt: skip
"""The content security policy of pages. Names on menus are written by strangers: nothing in a page runs but our own files."""

BARE_POLICY = "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
"""The policy of answers for programs, which load nothing."""

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
# A year. Other names below ours and browsers' built-in lists are not ours to decide on: no includeSubDomains, no preload.
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """ASGI middleware, the outermost of a face: sets them on every answer, faults and redirects too, that has none of its own."""

    def __init__(self, app: ASGIApp, policy: str = POLICY, *, https: bool = False) -> None:
        """`https`: people reach the server over HTTPS alone."""
        self._app = app
        self._headers = [*_HEADERS, (b"content-security-policy", policy.encode())]
        if https:
            self._headers.append(_HTTPS_ONLY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message.get("headers", ())}
                more = [(name, value) for name, value in self._headers if name not in there]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        await self._app(scope, receive, sending)
