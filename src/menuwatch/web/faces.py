"""Which face answers: the API, the dashboard below `/admin`, or the public site, which has every other address. And the prefix below
which all of them lie where the server stands behind another one."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

API = ("/api", "/img", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/problems")
"""What belongs to the API, with all below it."""
ADMIN = "/admin"


def prefix_of(public_url: str | None) -> str:
    """The path below which everything lies, from the address at which people reach the server: `""` or `/menus`."""
    return urlsplit(public_url).path.rstrip("/") if public_url else ""


class Faces:
    """ASGI app. A proxy in front may take the prefix off or leave it on: both are understood."""

    def __init__(self, *, api: ASGIApp, dashboard: ASGIApp, site: ASGIApp, prefix: str = "") -> None:
        self._api, self._dashboard, self._site = api, dashboard, site
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._api(scope, receive, send)
            return
        path: str = scope["path"]
        if self._prefix and _below(path, self._prefix):
            path = path[len(self._prefix) :] or "/"
        root = self._prefix
        face = self._site
        if any(_below(path, own) for own in API):
            face = self._api
        elif _below(path, ADMIN):
            face, root = self._dashboard, self._prefix + ADMIN
            path = path if path != ADMIN else ADMIN + "/"
        inner = dict(scope, root_path=root, path=self._prefix + path, prefix=self._prefix)
        await face(inner, receive, send)


def _below(path: str, own: str) -> bool:
    return path == own or path.startswith(own + "/")
