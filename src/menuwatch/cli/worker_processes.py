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
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.proxies import store as proxies
from menuwatch.scaling import local
from menuwatch.scaling.desired_count import SupervisorLease
from menuwatch.scaling.worker_pool import OnEnd, Timing, WorkerPool
from menuwatch.system import System
from menuwatch.workers import service as workers
from menuwatch.workers.engine.config import WorkerConfig

log = get_logger(__name__)

STOPPING_SECONDS = 30.0
"""Seconds that a worker may need to stop beyond the grace time of its tasks, when the database responds slowly."""


def _nth_worker(ordinal: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "menuwatch.cli.main", "worker", "--place-in-pod", str(ordinal))


def _timing(system: System) -> Timing:
    return Timing(grace=system.settings.shutdown_grace_seconds + STOPPING_SECONDS)


async def start_pod(system: System, count: int) -> WorkerPool:
    """A pool of that many worker processes. What no worker could start with is refused here, once, as a lone worker does."""
    pod = (await bootstrap.worker(system)).identity.pod
    return WorkerPool(_nth_worker, count=count, timing=_timing(system), on_end=_mark_dead_on_end(system, pod))


def _mark_dead_on_end(system: System, pod: str | None) -> OnEnd:
    """Callback that marks workers of that pod as dead when their process ends."""

    async def on_end(*, pid: int, since: datetime) -> None:
        try:
            async with system.pool.connection(timeout=5) as conn, conn.transaction():
                await workers.mark_dead(conn, host=socket.gethostname(), pid=pid, pod=pod, since=since)
        except (psycopg.Error, PoolTimeout) as error:
            # Its tasks wait then until it counts as silent.
            log.warning("worker registry not updated", action="registry_failed", pid=pid, error=str(error))

    return on_end


@asynccontextmanager
async def run_worker_pool(
    system: System,
    *,
    requested: int | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[WorkerPool]:
    """Runs the ordered number of worker processes on this machine while the context is open; `requested` overrides the order,
    `env` is their environment (None: ours). Raises Refused for a number outside the limits and for unknown roles; without an
    active proxy the workers wait for one, since adding it may need the server that runs beside them."""
    limits = local.limits(system.settings)
    if requested is not None and not limits.low <= requested <= limits.high:
        raise Refused(
            f"too {'few' if requested < limits.low else 'many'} workers ({requested}): allowed are {limits.low} to "
            f"{limits.high} (WORKERS_MIN, WORKERS_MAX)"
        )
    bootstrap.check_roles(system)

    async def may_start() -> str | None:
        async with system.pool.connection(timeout=5) as conn:
            standing = await proxies.count(conn)
        return None if standing.active else f"{standing.shortage}. Add one with `menuwatch proxies add`"

    lease = SupervisorLease(
        system.pool,
        limits,
        first=min(max(system.settings.workers_per_pod, limits.low), limits.high),
        requested=requested,
    )
    worker_pool = WorkerPool(
        _nth_worker,
        lease=lease,
        env=env,
        may_start=may_start,
        on_end=_mark_dead_on_end(system, WorkerConfig.from_settings(system.settings).pod),
        timing=_timing(system),
    )
    task = asyncio.create_task(worker_pool.run(), name="worker-pool")
    try:
        # Wait until the workers have started, before the caller begins to block the event loop.
        started = asyncio.create_task(worker_pool.started.wait(), name="worker-pool-started")
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        yield worker_pool
    finally:
        worker_pool.stop()
        try:
            await task
        finally:
            task.cancel()
