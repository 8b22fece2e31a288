"""`menuwatch up`, `server`, `supervisor`, `worker` and `migrate`: what runs by itself."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.accounts.passwords import Passwords
from menuwatch.backup.marker import refuse_unfinished
from menuwatch.cli.crews import pod, supervising
from menuwatch.cli.output import console, errors
from menuwatch.cli.process import on_signals, settings
from menuwatch.cluster import kubernetes
from menuwatch.cluster.lifeline import lifeline
from menuwatch.core import collector
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db import embedded
from menuwatch.db import migrate as migrations
from menuwatch.operations import accounts

log = get_logger(__name__)

_LOOK = 1.0
"""Seconds between two looks at whether a pod that was to go may stay."""

HostOption = Annotated[str | None, typer.Option(help="Address to listen on; HOST, 127.0.0.1.")]
PortOption = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port to listen on; PORT, 8640. 0 takes a free one.")
]
CrewOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Workers to run. Unset: as many as were ordered last, at first WORKERS_PER_POD (1).", min=0
    ),
]


def up(host: HostOption = None, port: PortOption = None, workers: CrewOption = None) -> None:
    """Serve and run workers on this machine until told to stop: all that Menuwatch needs.

    Dashboard, API and `menuwatch workers scale` change how many workers there are.
    """
    asyncio.run(_server(host, port, crew=True, workers=workers))


def server(host: HostOption = None, port: PortOption = None) -> None:
    """Serve the HTTP API and fire the schedules until told to stop."""
    asyncio.run(_server(host, port))


def supervisor(workers: CrewOption = None) -> None:
    """Run workers, as many as are ordered, for servers elsewhere. One supervisor of an installation does; another one stands by."""
    asyncio.run(_supervisor(workers))


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
    ours = settings()
    refuse_unfinished(ours.storage)
    with embedded.database_url(ours) as url:
        done = migrations.migrate(url)
    if done.changed:
        console.print(f"Migrated from {done.before or 'an empty database'} to {done.after}.")
    else:
        console.print(f"Nothing to do: the database is at {done.after}.")


async def _server(host: str | None, port: int | None, *, crew: bool = False, workers: int | None = None) -> None:
    from menuwatch.cli.serving import serve

    async with (
        bootstrap.open_system(
            settings(
                quiet=False, host=host, port=port, scaler="local" if crew else None
            )  # its own workers, in a cluster too
        ) as system,
        contextlib.AsyncExitStack() as stack,
    ):
        await bootstrap.recover_tasks(system)
        await _first_login(system)
        await stack.enter_async_context(bootstrap.scheduling(system))
        await stack.enter_async_context(bootstrap.keeping(system))
        if crew:
            await stack.enter_async_context(supervising(system, asked=workers))
            # Loading the faces takes a while, and much longer on a busy machine: the supervisor needs the event loop meanwhile.
            await asyncio.to_thread(bootstrap.load_faces)
        await serve(
            system,
            lambda address: errors.print(
                f"Menuwatch listens on {address}  (reference: {address}/docs, Ctrl-C ends it)", soft_wrap=True
            ),
        )
        if crew:
            errors.print("Workers finish what they have; Ctrl-C again does not wait for them.", soft_wrap=True)


async def _supervisor(workers: int | None) -> None:
    async with bootstrap.open_system(settings(quiet=False)) as system:
        await bootstrap.recover_tasks(system)
        told = asyncio.Event()
        async with bootstrap.keeping(system), supervising(system, asked=workers):
            with on_signals(asyncio.get_running_loop(), told.set):
                await told.wait()


async def _first_login(system: bootstrap.System) -> None:
    """Says once, to whoever starts the very first server, how to get in. Printed, not logged: logs are kept and read by others."""
    password = await accounts.first_admin(system.pool, Passwords.of(system.settings))
    if password is not None:
        errors.print(
            f"First login: user {accounts.FIRST_NAME}, password {password}\n"
            "It is shown this once and must be changed at the login. Lost it? `menuwatch users password admin` makes another.",
            markup=False,
            soft_wrap=True,
        )


async def _worker(found: Settings, place: int | None = None) -> None:
    """One worker; with `place` it is one of a pod, and stops when its supervisor dies."""
    async with bootstrap.open_system(found) as system, contextlib.AsyncExitStack() as stack:
        if place is None and not await _may_begin(system):
            return
        runner = await bootstrap.worker(system, ordinal=place)
        if place is not None:
            await stack.enter_async_context(lifeline(runner.stop))
        stack.enter_context(bootstrap.metrics(system, runner, ordinal=place))
        await stack.enter_async_context(bootstrap.keeping(system))
        with on_signals(asyncio.get_running_loop(), runner.stop):
            collector.calm()
            await runner.run()


async def _may_begin(system: bootstrap.System) -> bool:
    """Waits while this pod is one that goes: Kubernetes starts such a pod again until it is gone. False: told to stop meanwhile."""
    told, said = asyncio.Event(), False
    with on_signals(asyncio.get_running_loop(), told.set):
        while not told.is_set():
            async with system.pool.connection() as conn:
                if not await kubernetes.goes(conn, system.settings):
                    return True
            if not said:
                log.info("this pod is to go, and begins nothing", action="pod_stands_by")
                said = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await told.wait()
    return False


async def _pod(found: Settings) -> int:
    async with bootstrap.open_system(found, pool_size=2) as system:
        if not await _may_begin(system):
            return 0
        supervisor = await pod(system, found.workers_per_pod)
        with on_signals(asyncio.get_running_loop(), supervisor.stop):
            return await supervisor.run()
