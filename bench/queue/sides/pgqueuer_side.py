"""pgqueuer on asyncpg and uvloop (which its own command line uses where it is installed). It has no exclusion by key."""

from __future__ import annotations

import time
from importlib.metadata import version

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from side import Tally, batches, main, on_lines, say, timed

BATCH = 500


async def install() -> None:
    await Queries(AsyncpgDriver(await asyncpg.connect())).install()
    say(installed=version("pgqueuer"))


async def enqueue(jobs: int, keys: int, batch: int) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))

    async def act() -> None:
        for numbers in batches(jobs, batch):
            await queries.enqueue(["plain"] * len(numbers), [None] * len(numbers), [0] * len(numbers))

    await timed(act)


async def singles() -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))

    async def act() -> None:
        at = time.monotonic_ns()
        await queries.enqueue("plain", None)
        say(at=at)

    await on_lines(act)


async def work(jobs: int = 0, keyed: bool = False, hold: float = 0.0, announce: bool = False) -> None:
    tally = Tally(jobs=jobs, hold=hold, announce=announce)
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect()))

    @queue.entrypoint("plain")
    async def plain(job: Job) -> None:
        tally.plain()

    say(ready=True)
    await queue.run(batch_size=BATCH)


if __name__ == "__main__":
    import uvloop

    main(uvloop.run, install=install, enqueue=enqueue, singles=singles, work=work)
