"""Menuwatch: the real worker, with registry, heartbeat, reaper, listener and logs, and `tasks.store.enqueue`."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from side import Tally, batches, main, on_lines, say, timed

import menuwatch
from menuwatch.core import gc_tuning as collector
from menuwatch.core import logging as telemetry
from menuwatch.db import migrate
from menuwatch.db.pool import connect, open_pool
from menuwatch.queue import store
from menuwatch.queue.model import NewTask, Role, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker

URL = os.environ["DATABASE_URL"]
SLOTS = 2000


def new_task(number: int, keys: int) -> NewTask:
    """A crawl of a store, or work without a store."""
    if keys:
        return NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=number % keys + 1, unique=False)
    return NewTask(role=Role.STORE_DISCOVERY, unique=False)


async def install() -> None:
    migrate.migrate(URL)
    say(installed=menuwatch.__version__)


async def enqueue(jobs: int, keys: int, batch: int) -> None:
    async with await connect(URL) as conn:

        async def act() -> None:
            for numbers in batches(jobs, batch):
                await store.enqueue(conn, [new_task(number, keys) for number in numbers])

        await timed(act)


async def singles() -> None:
    async with await connect(URL) as conn:

        async def act() -> None:
            at = time.monotonic_ns()
            await store.enqueue(conn, [new_task(0, 0)])
            say(at=at)

        await on_lines(act)


async def work(jobs: int = 0, keyed: bool = False, hold: float = 0.0, announce: bool = False) -> None:
    tally = Tally(jobs=jobs, hold=hold, announce=announce)

    async def plain(task: Task, ctx: TaskContext) -> Outcome:
        tally.plain()
        return Done()

    async def exclusive(task: Task, ctx: TaskContext) -> Outcome:
        await tally.exclusive(task.dispensary_id or 0)
        return Done()

    folder = Path(os.environ.get("BENCH_FOLDER") or tempfile.gettempdir())
    with (folder / f"worker-{os.getpid()}.log").open("w") as log:
        telemetry.configure("json", "info", log)
        async with open_pool(URL) as pool:
            handlers = {Role.STORE_DISCOVERY: plain, Role.PAYLOAD_FETCH: exclusive}
            collector.calm()  # as `menuwatch worker` does
            say(ready=True)
            await Worker(pool, URL, handlers, WorkerConfig(slots=SLOTS)).run()


if __name__ == "__main__":
    main(asyncio.run, install=install, enqueue=enqueue, singles=singles, work=work)
