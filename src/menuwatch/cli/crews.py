"""Worker processes that this one starts: a pod of a fixed number, or as many as are ordered."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

import psycopg
from psycopg_pool import PoolTimeout

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cluster import local
from menuwatch.cluster.crew import Crew, Pace
from menuwatch.cluster.supervisor import Ended, Rules, Supervisor
from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.engine.options import Options
from menuwatch.operations import workers
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import NoProxy

log = get_logger(__name__)

STOPPING_SECONDS = 30.0
"""What a worker may need to stop beyond the grace time of its tasks, when the database is slow to answer."""


def _nth_worker(place: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "menuwatch.cli.main", "worker", "--place-in-pod", str(place))


async def pod(system: System, count: int) -> Supervisor:
    """A supervisor of that many worker processes. What no worker could start with is refused here, once, as a lone worker does."""
    name = (await bootstrap.worker(system)).identity.pod
    rules = Rules(grace=system.settings.shutdown_grace_seconds + STOPPING_SECONDS)
    return Supervisor(_nth_worker, count, rules=rules, on_end=_undertaker(system, name))


def _undertaker(system: System, pod: str | None) -> Ended:
    """Tells the registry of workers of that pod whose processes were seen to end."""

    async def on_end(*, pid: int, since: datetime) -> None:
        try:
            async with system.pool.connection(timeout=5) as conn, conn.transaction():
                await workers.died(conn, host=socket.gethostname(), pid=pid, pod=pod, since=since)
        except (psycopg.Error, PoolTimeout) as error:
            # Its tasks wait then until it counts as silent.
            log.warning("the registry was not told", action="registry_failed", pid=pid, error=str(error))

    return on_end


@asynccontextmanager
async def supervising(
    system: System,
    *,
    asked: int | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Crew]:
    """As many worker processes on this machine as are ordered, for as long as the context lasts; `asked` is an order, `env` their
    environment (None: ours). Raises Refused for a number outside the limits and for roles that do not exist; without an active proxy
    the workers wait for one: whoever adds it may need the server that runs beside them."""
    limits = local.limits(system.settings)
    if asked is not None and not limits.low <= asked <= limits.high:
        raise Refused(
            f"{asked} workers are too {'few' if asked < limits.low else 'many'}: from {limits.low} to {limits.high} are allowed "
            "(WORKERS_MIN and WORKERS_MAX)"
        )
    bootstrap.check_roles(system)

    async def may_start() -> str | None:
        async with system.pool.connection(timeout=5) as conn:
            standing = await proxies.standing(conn)
        return None if standing.active else str(NoProxy(standing))

    crew = Crew(
        system.pool,
        _nth_worker,
        limits,
        first=min(max(system.settings.workers_per_pod, limits.low), limits.high),
        asked=asked,
        env=env,
        may_start=may_start,
        on_end=_undertaker(system, Options.from_settings(system.settings).pod),
        pace=Pace(grace=system.settings.shutdown_grace_seconds + STOPPING_SECONDS),
    )
    task = asyncio.create_task(crew.run(), name="crew")
    try:
        # The workers load while whatever comes next does (a server takes its time, and nobody else has the event loop meanwhile).
        looked = asyncio.create_task(crew.looked.wait(), name="crew-looked")
        await asyncio.wait({task, looked}, return_when=asyncio.FIRST_COMPLETED)
        looked.cancel()
        yield crew
    finally:
        crew.stop()
        try:
            await task
        finally:
            task.cancel()
