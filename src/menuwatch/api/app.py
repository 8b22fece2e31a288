"""The app: every route, on the parts it is given."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import APIRoute

from menuwatch import __version__
from menuwatch.api import access, openapi, problems, reference
from menuwatch.api.routes import (
    alerts,
    analytics,
    attempts,
    audit,
    capacity,
    changes,
    crawl,
    events,
    exports,
    health,
    hosts,
    images,
    job_queue,
    migration,
    payloads,
    products,
    proxies,
    scaling,
    schedules,
    session,
    stores,
    tasks,
    tokens,
    users,
    visitors,
    workers,
)
from menuwatch.web.auth import Authenticate
from menuwatch.web.head import Head
from menuwatch.web.idempotency import Idempotency
from menuwatch.web.live import Live
from menuwatch.web.observe import Observe, Traffic
from menuwatch.web.system import System

__all__ = ["System", "create_app"]


ROUTERS = (
    schedules.generating,
    health.router,
    # /api/tasks/capacity comes before /api/tasks/{task_id}.
    capacity.router,
    migration.router,
    tasks.router,
    job_queue.router,
    schedules.router,
    workers.router,
    scaling.router,
    payloads.router,
    stores.router,
    products.router,
    changes.router,
    analytics.router,
    visitors.router,
    exports.router,
    events.router,
    proxies.router,
    hosts.router,
    attempts.router,
    alerts.router,
    images.router,
    crawl.router,
    crawl.webhooks,
    session.router,
    users.router,
    tokens.router,
    audit.router,
)
"""Every route of the API, in the order in which they are looked at."""


def _named(route: APIRoute) -> str:
    return route.name


def bare_app() -> FastAPI:
    """The app without anything to stand on: enough to describe it."""
    app = FastAPI(
        title="Menuwatch",
        version=__version__,
        summary="Retail menus, watched: stores, products, prices, stock, and how they change.",
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        # The usual reference pages load their scripts from elsewhere; ours works without a network (reference.py).
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_named,
    )
    for router in ROUTERS:
        app.include_router(router)
    reference.install(app)
    problems.install(app)
    access.install(app)
    openapi.install(app, ROUTERS)
    return app


def create_app(system: System, traffic: Traffic | None = None, live: Live | None = None) -> FastAPI:
    """The app on its parts. They stay the caller's: it opens them before and closes them after. `traffic` counts its requests; the
    other faces of a server count theirs in it too. `live` tells what changes, to all of them."""
    app = bare_app()
    app.state.system = system
    app.state.traffic = traffic or Traffic()
    app.state.live = live or Live(system.pool)
    app.state.gallery = images.Gallery.of(system.settings)
    app.add_middleware(Idempotency, refuse=access.refuse)
    app.add_middleware(access.Closed)
    app.add_middleware(Authenticate)
    app.add_middleware(Head)
    app.add_middleware(Observe, traffic=app.state.traffic, on_fault=problems.fault)
    return app
