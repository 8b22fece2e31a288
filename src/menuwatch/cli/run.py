"""`menuwatch server`, `worker` and `migrate`: what runs by itself."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
import uvicorn

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.output import console, errors
from menuwatch.cli.process import settings
from menuwatch.cluster.lifeline import lifeline
from menuwatch.core import collector
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db import embedded
from menuwatch.db import migrate as migrations

log = get_logger(__name__)
_BACKLOG = 512
_PATIENCE_SECONDS = 10
"""Longest wait at a stop for requests that are under way."""


def server(
    host: Annotated[str | None, typer.Option(help="Address to listen on; HOST, 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; PORT, 8640. 0 takes a free one.")
    ] = None,
) -> None:
    """Serve the HTTP API and fire the schedules until told to stop."""
    asyncio.run(_server(host, port))


def worker(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="Worker processes; WORKERS_PER_POD, 1. From 2 on, those that crash are replaced.",
        ),
    ] = None,
    place: Annotated[int | None, typer.Option("--place-in-pod", min=0, hidden=True)] = None,
) -> None:
    """Run tasks until told to stop (Ctrl-C or SIGTERM). Refuses to start without an active proxy."""
    found = settings(quiet=False, workers_per_pod=workers)
    if place is not None:
        asyncio.run(_worker(found, place))
    elif found.workers_per_pod == 1:
        asyncio.run(_worker(found))
    elif code := asyncio.run(_pod(found)):
        raise typer.Exit(code)


def migrate() -> None:
    """Bring the database to this version's schema."""
    with embedded.database_url(settings()) as url:
        done = migrations.migrate(url)
    if done.changed:
        console.print(f"Migrated from {done.before or 'an empty database'} to {done.after}.")
    else:
        console.print(f"Nothing to do: the database is at {done.after}.")


async def _server(host: str | None, port: int | None) -> None:
    async with bootstrap.open_system(settings(quiet=False, host=host, port=port)) as system:
        await bootstrap.recover_tasks(system)
        async with bootstrap.scheduling(system), bootstrap.keeping(system):
            await serve(
                system,
                lambda address: errors.print(
                    f"Menuwatch listens on {address}  (reference: {address}/docs, Ctrl-C ends it)", soft_wrap=True
                ),
            )


async def _worker(found: Settings, place: int | None = None) -> None:
    """One worker; with `place` it is one of a pod, and stops when its supervisor dies."""
    async with bootstrap.open_system(found) as system, contextlib.AsyncExitStack() as stack:
        runner = await bootstrap.worker(system, ordinal=place)
        if place is not None:
            await stack.enter_async_context(lifeline(runner.stop))
        stack.enter_context(bootstrap.metrics(system, runner, ordinal=place))
        await stack.enter_async_context(bootstrap.keeping(system))
        with _signals(asyncio.get_running_loop(), runner.stop):
            collector.calm()
            await runner.run()


async def _pod(found: Settings) -> int:
    async with bootstrap.open_system(found, pool_size=2) as system:
        supervisor = await bootstrap.pod(system, found.workers_per_pod, _nth_worker)
        with _signals(asyncio.get_running_loop(), supervisor.stop):
            return await supervisor.run()


def _nth_worker(place: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "menuwatch.cli.main", "worker", "--place-in-pod", str(place))


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks for a graceful stop; a second one has its usual effect."""
    handled = (signal.SIGTERM, signal.SIGINT)

    def once() -> None:
        for number in handled:
            loop.remove_signal_handler(number)
        act()

    for number in handled:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


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
    listener = socket.socket(family, socket.SOCK_STREAM)
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
        config = uvicorn.Config(
            bootstrap.app(system),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_PATIENCE_SECONDS,
        )
        web = _Server(config)
        with _signals(asyncio.get_running_loop(), web.end):
            address = f"http://{shown}:{listener.getsockname()[1]}"
            log.info("listening", action="start_listening", address=address)
            up(address)
            await web.serve(sockets=[listener])
