"""procrastinate with its psycopg connector and a worker of 20 concurrent jobs."""

from __future__ import annotations

import os
import time
from importlib.metadata import version

from procrastinate import App, PsycopgConnector
from side import Tally, batches, main, on_lines, say, timed

CONCURRENCY = 20
app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"], min_size=4, max_size=CONCURRENCY))
tally: Tally


@app.task(name="plain")
async def plain() -> None:
    tally.plain()


@app.task(name="exclusive")
async def exclusive(key: int) -> None:
    await tally.exclusive(key)


async def install() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    say(installed=version("procrastinate"))


async def enqueue(jobs: int, keys: int, batch: int) -> None:
    async def act() -> None:
        if keys:
            # batch_defer gives one lock to the whole batch, so there is a batch per key.
            for key in range(keys):
                await exclusive.configure(lock=f"key-{key}").batch_defer_async(
                    *[{"key": key}] * len(range(key, jobs, keys))
                )
        else:
            for numbers in batches(jobs, batch):
                await plain.batch_defer_async(*[{}] * len(numbers))

    async with app.open_async():
        await timed(act)


async def singles() -> None:
    async def act() -> None:
        at = time.monotonic_ns()
        await plain.defer_async()
        say(at=at)

    async with app.open_async():
        await on_lines(act)


async def work(jobs: int = 0, keyed: bool = False, hold: float = 0.0, announce: bool = False) -> None:
    global tally
    tally = Tally(jobs=jobs, hold=hold, announce=announce)
    async with app.open_async():
        say(ready=True)
        await app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)


if __name__ == "__main__":
    import asyncio

    main(asyncio.run, install=install, enqueue=enqueue, singles=singles, work=work)
