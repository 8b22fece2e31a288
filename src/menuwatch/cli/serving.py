"""Serves the API until stopped. Imported only by commands that serve: the web server takes long to import."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from menuwatch import bootstrap
from menuwatch.api.app import create_app
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.core.signals import on_signals
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.loop import running
from menuwatch.geo import postcodes
from menuwatch.geo.database import opened
from menuwatch.mcp.http import McpEndpoint
from menuwatch.site.app import create_site
from menuwatch.system import System
from menuwatch.web import request_middleware as observe
from menuwatch.web.connections import ACCEPT_AT_ONCE, SWEEP_SECONDS, Connection, Connections, Limits
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps, over_https, prefix_of
from menuwatch.web.visit_log import VisitLog

log = get_logger(__name__)

_BACKLOG = 512
_PATIENCE_SECONDS = 10
"""Longest wait at a stop for requests that are under way."""
_STALLED_MS = 300_000
"""Longest time in which a client may take nothing of an answer."""
_TICKS = round(SWEEP_SECONDS / 0.1)
"""Of uvicorn's main loop between two sweeps."""


class Server(uvicorn.Server):
    """Leaves signals to the caller: uvicorn raises them again after it has ended, which would skip the cleanup of everything
    else."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.server_state = self._connections = connections

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            # asyncio takes one number for both: how many may wait, and how many it accepts at once (ACCEPT_AT_ONCE).
            listener.listen(_BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            self._connections.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def end(self) -> None:
        """Lets running requests end, and takes no more."""
        self.should_exit = True


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """The port that `serve` serves. Clients that connect already wait for it. Raises Refused when the port is taken."""
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, asyncio has its connections send at once; else each answer but the first waits 40 ms for an acknowledgement.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STALLED_MS)  # its connections inherit it
        try:
            listener.bind((host, port))
            # Bound is not enough: a second process may bind the same port until one of them listens.
            listener.listen(_BACKLOG)
        except OSError as error:
            raise Refused(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port or PORT"
            ) from error
        yield listener


def address_lines(address: str, *login: str) -> list[str]:
    """What a start prints last: where everything is, and how to log in."""
    return [
        "",
        f"Dashboard    {address}/admin/",
        f"Public site  {address}/",
        f"API          {address}/docs",
        *login,
        "",
    ]


async def serve(
    system: System,
    listener: socket.socket,
    up: Callable[[str], object],
    limits: Limits | None = None,
    *,
    demo_token: str | None = None,
) -> None:
    """Serves the API until a signal; `up` is given the address once requests are answered. `demo_token` makes a login link."""
    host, port = system.settings.host, listener.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    traffic = Traffic()
    async with open_app(system, traffic, demo_token=demo_token) as app:
        config = uvicorn.Config(
            app,
            http=Connection,
            backlog=ACCEPT_AT_ONCE,
            log_config=None,  # its lines go the way of ours (core/logging.py)
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            # By default uvicorn trusts X-Forwarded-For from any local process; our own code uses TRUSTED_PROXIES.
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE_SECONDS,
        )
        web = Server(config, Connections(traffic, limits))
        with on_signals(asyncio.get_running_loop(), web.end):
            log.info("listening", action="start_listening", address=address)
            up(address)
            await web.serve(sockets=[listener])


@contextlib.asynccontextmanager
async def open_app(
    system: System, traffic: Traffic | None = None, *, demo_token: str | None = None
) -> AsyncIterator[ASGIApp]:
    """API, dashboard, public site and MCP server on this system, with their background loops, for as long as the context
    lasts. `traffic` is shown among their metrics. Raises Refused for a GEOIP_DATABASE that cannot be used."""
    traffic, live = traffic or observe.Traffic(), Live(system.pool)
    scaled = await system.at_end.enter_async_context(bootstrap.run_scaler(system))
    geo = opened(system.settings.geoip_database)
    if geo is not None:
        system.at_end.callback(geo.close)
    visits = VisitLog(system.pool, geo, clock=system.clock, registry=traffic.registry)
    served = AppContext(
        pool=system.pool,
        archive=system.archive,
        platforms=system.platforms,
        settings=system.settings,
        geo=geo,
        visits=visits,
        scaler=scaled,
        sites=system.sites,
        providers=system.providers,
        keeper=system.keeper,
        demo_token=demo_token,
    )
    postcodes.warm()  # else the first search by postcode would block all requests
    async with running(visits), bootstrap.run_search_crawls(system), McpEndpoint(served, traffic).running() as mcp:
        yield Apps(
            api=create_app(served, traffic, live),
            dashboard=create_dashboard(served, traffic, live),
            site=create_site(served, traffic),
            mcp=mcp,
            prefix=prefix_of(system.settings.public_url),
            https=over_https(system.settings.public_url),
        )
