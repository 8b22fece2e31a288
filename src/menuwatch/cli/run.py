"""`menuwatch up`, `server`, `supervisor`, `worker` and `migrate`: the services."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Annotated

import typer

from menuwatch import bootstrap
from menuwatch.accounts import first_password as first_login
from menuwatch.accounts import users
from menuwatch.accounts.passwords import Passwords
from menuwatch.cli.output import echo, notice
from menuwatch.cli.startup import load_settings
from menuwatch.cli.worker_processes import run_worker_pool, start_pod
from menuwatch.config.settings import Settings
from menuwatch.core import gc_tuning as collector
from menuwatch.core.logging import get_logger
from menuwatch.core.signals import on_signals
from menuwatch.db import embedded
from menuwatch.db import migrate as migrations
from menuwatch.ops.backup.mark import refuse_unfinished
from menuwatch.scaling import kubernetes
from menuwatch.scaling.worker_process import on_parent_death
from menuwatch.storage.service import open_storage
from menuwatch.system import System, open_system

log = get_logger(__name__)

_SETTLE_SECONDS = 1.0
"""From the first answered request to the address lines."""
_POLL_SECONDS = 1.0
"""Between two checks whether a pod marked for removal may stay."""

HostOption = Annotated[str | None, typer.Option(help="Address to listen on; default: HOST, 127.0.0.1.")]
PortOption = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port to listen on; default: PORT, 8640. 0 selects a free one.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Number of workers. Default: the last desired number, initially WORKERS_PER_POD (1).", min=0
    ),
]


def up(host: HostOption = None, port: PortOption = None, workers: WorkersOption = None) -> None:
    """Run server and workers on this machine. Scale the workers from the dashboard, the API or `menuwatch workers scale`."""
    asyncio.run(_server(host, port, with_workers=True, workers=workers))


def server(host: HostOption = None, port: PortOption = None) -> None:
    """Run the server: dashboard, public site, API and schedules."""
    asyncio.run(_server(host, port))


def supervisor(workers: WorkersOption = None) -> None:
    """Run the desired number of workers, for servers on other machines. One supervisor per installation is active; others stand by."""
    asyncio.run(_supervisor(workers))


def worker(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="Number of worker processes; default: WORKERS_PER_POD, 1. With 2 or more, crashed ones are replaced.",
        ),
    ] = None,
    ordinal: Annotated[int | None, typer.Option("--place-in-pod", min=0, hidden=True)] = None,
) -> None:
    """Run tasks until stopped (Ctrl-C or SIGTERM). Refuses to start without an active proxy."""
    settings = load_settings(quiet=False, workers_per_pod=workers)
    if ordinal is not None:
        asyncio.run(_worker(settings, ordinal))
    elif settings.workers_per_pod == 1:
        asyncio.run(_worker(settings))
    elif code := asyncio.run(_pod(settings)):
        raise typer.Exit(code)


def migrate(
    empty: Annotated[
        bool,
        typer.Option("--empty", help="Create an empty database even if the archive contains files."),
    ] = False,
) -> None:
    """Migrate the database to the schema of this version."""
    settings = load_settings()
    refuse_unfinished(open_storage(settings))
    with embedded.database_url(settings, empty=empty) as url:
        done = migrations.migrate(url)
    if done.changed:
        echo(f"Migrated from {done.before or 'an empty database'} to {done.after}.")
    else:
        echo(f"Nothing to do: the database is at {done.after}.")


async def _server(
    host: str | None, port: int | None, *, with_workers: bool = False, workers: int | None = None
) -> None:
    from menuwatch.cli.serving import address_lines, listening, serve

    scaler = "local" if with_workers else None  # its own workers, in a cluster too
    settings = load_settings(quiet=False, host=host, port=port, scaler=scaler)
    # The port comes first: a second server that cannot have it must not recover tasks, create the first admin or fire schedules.
    with listening(settings) as listener:
        # While the database starts; later the supervisor needs the event loop.
        apps = asyncio.create_task(asyncio.to_thread(bootstrap.load_apps))
        async with open_system(settings, goes_on=True) as system, contextlib.AsyncExitStack() as stack:
            await bootstrap.recover_tasks(system)
            login = await _first_login(system)
            # Without a start, nothing else would show the first password.
            login_shown = stack.enter_context(contextlib.ExitStack())
            login_shown.callback(notice, *login)
            await stack.enter_async_context(bootstrap.run_scheduler(system))
            await stack.enter_async_context(bootstrap.run_maintenance(system))
            if with_workers:
                await stack.enter_async_context(run_worker_pool(system, requested=workers))
            await apps

            def on_up(address: str) -> None:
                def show() -> None:
                    collector.calm()
                    login_shown.pop_all()
                    lines = address_lines(settings.public_url or address, *login)
                    notice("", f"Menuwatch is listening on {address}", *lines[1:], "Press Ctrl-C to stop.")

                # After the log lines of the start, so that they are the last ones.
                asyncio.get_running_loop().call_later(_SETTLE_SECONDS, show)

            await serve(system, listener, on_up)
            if with_workers:
                notice("Workers finish running tasks; press Ctrl-C again to stop immediately.")


async def _supervisor(workers: int | None) -> None:
    async with open_system(load_settings(quiet=False), goes_on=True) as system:
        await bootstrap.recover_tasks(system)
        stopped = asyncio.Event()
        async with bootstrap.run_maintenance(system), run_worker_pool(system, requested=workers):
            with on_signals(asyncio.get_running_loop(), stopped.set):
                collector.calm()
                await stopped.wait()


async def _first_login(system: System) -> tuple[str, ...]:
    """How to log in at the very first start; empty later. The password is never logged, nor printed to where output is kept."""
    password = await users.first_admin(system.pool, Passwords.of(system.settings))
    if password is None:
        return ()
    user = f"First login  user {users.FIRST_NAME}"
    another = f"`menuwatch users password {users.FIRST_NAME}` creates another"
    if sys.stderr.isatty():
        return f"{user}, password {password}", f"             shown only once, changed at login; {another}"
    try:
        file = await asyncio.to_thread(first_login.write, system.settings.home, password)
    except OSError as error:
        return (f"{user}, no password: {system.settings.home} cannot be written ({error.strerror}); {another}",)
    return f"{user}, password in {file}", f"             changed at login, which removes the file; {another}"


async def _worker(settings: Settings, ordinal: int | None = None) -> None:
    """One worker; with `ordinal` it is one of a pod, and stops when its supervisor dies."""
    async with open_system(settings, goes_on=True) as system, contextlib.AsyncExitStack() as stack:
        if ordinal is None and not await _may_begin(system):
            return
        runner = await bootstrap.worker(system, ordinal=ordinal)
        if ordinal is not None:
            await stack.enter_async_context(on_parent_death(runner.stop))
        stack.enter_context(bootstrap.metrics(system, runner, ordinal=ordinal))
        await stack.enter_async_context(bootstrap.run_maintenance(system))
        with on_signals(asyncio.get_running_loop(), runner.stop):
            collector.calm()
            await runner.run()


async def _may_begin(system: System) -> bool:
    """Waits while this pod is marked for removal: Kubernetes restarts such a pod until it is gone. False: stopped meanwhile."""
    stopped, logged = asyncio.Event(), False
    with on_signals(asyncio.get_running_loop(), stopped.set):
        while not stopped.is_set():
            async with system.pool.connection() as conn:
                if not await kubernetes.is_removed(conn, system.settings):
                    return True
            if not logged:
                log.info("pod is being removed, not starting workers", action="pod_stands_by")
                logged = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await stopped.wait()
    return False


async def _pod(settings: Settings) -> int:
    async with open_system(settings, pool_size=2, goes_on=True) as system:
        if not await _may_begin(system):
            return 0
        worker_pool = await start_pod(system, settings.workers_per_pod)
        with on_signals(asyncio.get_running_loop(), worker_pool.stop):
            collector.calm()
            return await worker_pool.run()
