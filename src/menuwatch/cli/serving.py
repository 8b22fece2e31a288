"""Serves the API until told to stop. Loaded only by who serves: the web server takes a while."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.process import on_signals
from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)

_BACKLOG = 512
_PATIENCE_SECONDS = 10
"""Longest wait at a stop for requests that are under way."""


class _Server(uvicorn.Server):
    """Leaves signals to us: the original raises them anew when it has ended, and nothing else of the process would be closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        """Lets running requests end, and takes no more."""
        self.should_exit = True


async def serve(system: System, up: Callable[[str], object]) -> None:
    """Serves the API until a signal; `up` is told the address once the port is open. Raises Refused when the port is taken."""
    host, port = system.settings.host, system.settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, asyncio has its connections send at once; else each answer but the first waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise Refused(
                f"cannot listen on {host}:{port}: {error.strerror}; name another with --port or PORT"
            ) from error
        listener.listen(_BACKLOG)
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        async with bootstrap.serving(system) as app:
            config = uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                # Left to itself it believes what any process of this machine says in X-Forwarded-For: ours asks TRUSTED_PROXIES.
                proxy_headers=False,
                timeout_graceful_shutdown=_PATIENCE_SECONDS,
            )
            web = _Server(config)
            with on_signals(asyncio.get_running_loop(), web.end):
                address = f"http://{shown}:{listener.getsockname()[1]}"
                log.info("listening", action="start_listening", address=address)
                up(address)
                await web.serve(sockets=[listener])
