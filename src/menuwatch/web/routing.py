"""Routing: the app that answers a path, and the registration of its routes.

Adding a screen or an endpoint is adding a module with a `router` to a package that `include_package` lists. `Apps` passes a request
to the API, the dashboard below `/admin`, the MCP server at `/mcp`, or the public site, which has every other address, and removes the
prefix below which all of them are served behind a proxy."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from fastapi.params import Depends
from fastapi.routing import APIRoute
from fastapi.utils import generate_unique_id
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from menuwatch.web.headers import BARE_POLICY, SecurityHeaders


def include_package(
    app: FastAPI | APIRouter,
    package: ModuleType,
    *,
    dependencies: Sequence[Depends] = (),
    operation_id: Callable[[APIRoute], str] = generate_unique_id,
) -> APIRouter:
    """Includes the routers of all modules of a package and returns them as one. Fixed path segments match before parameters
    (`/tasks/bulk` before `/tasks/{task_id}`), otherwise modules are in alphabetical order. Every route gets the `dependencies`."""
    combined, included = _included(package, tuple(dependencies), operation_id)
    app.routes.extend(included)
    return combined


@functools.cache
def _included(
    package: ModuleType, dependencies: tuple[Depends, ...], operation_id: Callable[[APIRoute], str]
) -> tuple[APIRouter, Sequence[BaseRoute]]:
    """The routers of a package as one, and what an app includes for it. Apps of one process share that: the framework works out the
    parameters of all routes at the first request, which takes longer than the request."""
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    routers = [value for module in modules for value in vars(module).values() if isinstance(value, APIRouter)]
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    combined = APIRouter()
    combined.routes = [*sorted(routes, key=lambda route: ["{" in segment for segment in route.path.split("/")])]
    including = APIRouter()
    including.include_router(combined, dependencies=dependencies, generate_unique_id_function=operation_id)
    return combined, including.routes


API = ("/api", "/img", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/problems")
"""Paths of the API, with everything below them."""
ADMIN = "/admin"
MCP = "/mcp"


def prefix_of(public_url: str | None) -> str:
    """The path below which everything lies, from the address at which people reach the server: `""` or `/menus`."""
    return urlsplit(public_url).path.rstrip("/") if public_url else ""


def over_https(public_url: str | None) -> bool:
    """Whether people reach the server over HTTPS, by that address."""
    return public_url is not None and urlsplit(public_url).scheme == "https"


class Apps:
    """ASGI app that dispatches by path. A proxy in front may strip the prefix or keep it."""

    def __init__(
        self,
        *,
        api: ASGIApp,
        dashboard: ASGIApp,
        site: ASGIApp,
        mcp: ASGIApp | None = None,
        prefix: str = "",
        https: bool = False,
    ) -> None:
        """`https`: send HSTS."""
        self._api = SecurityHeaders(api, BARE_POLICY, https=https)
        self._mcp = None if mcp is None else SecurityHeaders(mcp, BARE_POLICY, https=https)
        self._dashboard, self._site = (SecurityHeaders(app, https=https) for app in (dashboard, site))
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._api(scope, receive, send)
            return
        path: str = scope["path"]
        if self._prefix and _below(path, self._prefix):
            path = path[len(self._prefix) :] or "/"
        root = self._prefix
        app = self._site
        if any(_below(path, own) for own in API):
            app = self._api
        elif path == MCP and self._mcp is not None:
            app = self._mcp
        elif _below(path, ADMIN):
            app, root = self._dashboard, self._prefix + ADMIN
            path = path if path != ADMIN else ADMIN + "/"
        inner = dict(scope, root_path=root, path=self._prefix + path, prefix=self._prefix)
        await app(inner, receive, send)


def _below(path: str, own: str) -> bool:
    return path == own or path.startswith(own + "/")


class Head:
    """ASGI middleware: HEAD is answered as GET would be, without the body (RFC 9110 section 9.3.2)."""

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
        scope["head"] = True  # for apps that would stream long after the headers
        try:
            await self._app(scope, receive, sending)
        finally:
            scope["method"] = "HEAD"
