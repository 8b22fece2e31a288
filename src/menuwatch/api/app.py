"""The API application: every route of `api/routes`, on the parts that the server passes in."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch import __version__
from menuwatch.api import error_handlers, openapi, routes
from menuwatch.api.routes.images import ImageParts
from menuwatch.web.auth import Authenticate, principal_of
from menuwatch.web.before_body import BeforeBody
from menuwatch.web.dependencies import AppContext
from menuwatch.web.idempotency import Idempotency
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Observe, Traffic
from menuwatch.web.routing import Head, include_package

__all__ = ["AppContext", "create_app"]

PUBLIC_PATHS = ("/healthz", "/readyz", "/docs", "/openapi.json", "/problems", "/img", "/api/crawl/webhook")
"""Paths without authentication, including everything below; webhooks are authenticated by the secret in their URL."""


class RequireLogin:
    """ASGI middleware behind `Authenticate`: lets unauthenticated requests pass only to PUBLIC_PATHS and to the login.

    Routes name the permission that they require (web/auth.py). This check runs before that and before a body is read, so that no
    unauthenticated request gets further even if a route forgets its permission."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_public(scope):
            request = Request(scope)
            try:
                principal_of(request)
            except Exception as error:
                if error_handlers.problem_of(request, error) is None:
                    raise
                await error_handlers.refuse(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_public(scope: Scope) -> bool:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    if path == "/api/session" and scope["method"] == "POST":
        return True
    return any(path == public or path.startswith(public + "/") for public in PUBLIC_PATHS)


def _operation_id(route: APIRoute) -> str:
    return route.name


def bare_app() -> FastAPI:
    """The app without the parts that its routes need: enough to describe it."""
    app = FastAPI(
        title="Menuwatch",
        version=__version__,
        summary="Monitors retail menus: stores, products, prices, stock, and how they change.",
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        # FastAPI's own pages load their scripts from elsewhere; ours (docs.py) works without a network.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.router = include_package(app, routes, operation_id=_operation_id)
    error_handlers.install(app)
    openapi.install(app, app.state.router)
    return app


def create_app(system: AppContext, traffic: Traffic | None = None, live: Live | None = None) -> FastAPI:
    """Creates the app. The caller opens and closes its dependencies. `traffic` counts its requests, together with those of the
    other apps of the server; `live` publishes changes to all of them."""
    app = bare_app()
    app.state.system = system
    app.state.traffic = traffic or Traffic()
    app.state.live = live or Live(system.pool)
    app.state.images = ImageParts.of(system.settings)
    app.add_middleware(Idempotency, refuse=error_handlers.refuse)
    app.add_middleware(BeforeBody, routers=[app.state.router], handlers=error_handlers.HANDLERS)
    app.add_middleware(RequireLogin)
    app.add_middleware(Authenticate)
    app.add_middleware(Head)
    app.add_middleware(Observe, traffic=app.state.traffic, on_fault=error_handlers.fault)
    return app
