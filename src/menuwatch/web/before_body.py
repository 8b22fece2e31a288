"""Permission is checked before a body is read, and before a stored answer is sent again (web/idempotency.py).

The framework reads a body before it calls the dependencies of a route, so the checks that a route names (web/auth.py) are made here
first. The route makes them again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch.web.auth import permission_of

Handlers = Mapping[Any, Callable[[Request, Any], Awaitable[Response]]]


class BeforeBody:
    """ASGI middleware behind `Authenticate`. `handlers` turn errors of the checks into responses."""

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter], handlers: Handlers) -> None:
        self._app = app
        self._routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            request = Request(scope)
            try:
                await self._check(request)
            except Exception as error:
                answer = next((self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers), None)
                if answer is None:
                    raise
                await (await answer(request, error))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, request: Request) -> None:
        for route in self._routes:
            if route.matches(request.scope)[0] is Match.FULL:
                request.scope["route"] = route  # for figures of requests that are refused here
                for one in route.dependant.dependencies:
                    if one.call is not None and permission_of(one.call, request.method) is not None:
                        await one.call(request)
                return
