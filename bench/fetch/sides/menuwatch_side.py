"""Menuwatch's own fetch path: the handler of `payload_fetch` on real tasks, and its outcome written as the engine does.

Identity, budget, verdicts, attempt rows, archive and the payload's row are all in it; the queue is not (bench/queue measures that).
With a `profile` in the job the measured run is profiled into that file.
"""

from __future__ import annotations

import asyncio
import cProfile
import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import side

from menuwatch import bootstrap
from menuwatch.config.settings import Settings
from menuwatch.core import logging as telemetry
from menuwatch.fetch.rotator import Rotator
from menuwatch.pipeline.payload_fetch import PayloadFetch
from menuwatch.queue.model import Role, Status, Task
from menuwatch.queue.outcome import Done
from menuwatch.system import System, open_system
from menuwatch.workers.engine.handler import TaskContext

WORKER = "bench"
_numbers = itertools.count(1)


def unlimited() -> dict[str, Any]:
    """Settings of a host budget that holds nobody back: what is measured is the work, not the waiting."""
    wanted = {"host_rate": 10_000.0, "host_burst": 1000, "host_concurrency": 1000}
    known = {spec.name for spec in dataclasses.fields(Settings)}
    return {name: value for name, value in wanted.items() if name in known}


def handler(system: System, ca_file: str) -> PayloadFetch:
    """The handler as a worker has it, but for whom it trusts."""
    rotator = Rotator(system.pool, system.settings, clock=system.clock, ca_file=ca_file)
    return PayloadFetch(dataclasses.replace(bootstrap.handler_context(system), open_session=rotator.open))


def claimed(dispensary_id: int) -> Task:
    """A task as a worker has it after a claim."""
    now = datetime.now(UTC)
    return Task(
        id=next(_numbers), role=Role.PAYLOAD_FETCH, dispensary_id=dispensary_id, platform="dutchie", status=Status.RUNNING,
        priority=0, scheduled_for=None, worker_id=WORKER, claimed_at=now, started_at=now, completed_at=None,
        last_heartbeat_at=now, result=None, error_message=None, retry_count=0, max_retries=3, created_at=now, updated_at=now,
        attempt=1,
    )  # fmt: skip


async def crawl(job: side.Job, system: System, fetch: PayloadFetch, menus: list[dict[str, Any]]) -> None:
    """Every menu into the archive and the database, `concurrency` at once."""
    left = iter(menus)
    context = TaskContext(WORKER)

    async def slot() -> None:
        for menu in left:
            outcome = await fetch(claimed(menu["store_id"]), context)
            if not isinstance(outcome, Done) or outcome.writes is None or outcome.settle is None:
                side.failed(f"menu {menu['id']}: {outcome}")
                return
            async with system.pool.connection() as conn, conn.transaction():
                await outcome.writes(conn)
            outcome.settle(True)
            result = outcome.result or {}
            job.count(result["pages"], result["products"], result["bytes"])

    await asyncio.gather(*(slot() for _ in range(job.concurrency)))


@contextmanager
def profiled(path: str | None) -> Iterator[None]:
    """Profiles what runs meanwhile in this thread, where a path says so."""
    if path is None:
        yield
        return
    profile = cProfile.Profile()
    with profile:
        yield
    profile.dump_stats(path)


async def main() -> None:
    job = side.job()
    telemetry.configure("json", "info")
    settings = Settings(
        home=Path(job.folder),
        database_url=job.database_url,
        dutchie_base_url=job.base_url,
        fetch_timeout_seconds=30,
        **unlimited(),
    )
    async with open_system(settings) as system:
        fetch = handler(system, job.ca_file)
        job.start()
        await crawl(job, system, fetch, job.warm)
        await side.go()
        with profiled(job.given.get("profile")):
            job.start()
            await crawl(job, system, fetch, job.menus)
            job.stop()
    side.say(**job.found)


if __name__ == "__main__":
    asyncio.run(main())
