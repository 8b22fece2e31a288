"""awa-pg: bulk enqueue by COPY, one queue with `WORKER_COUNT` workers, library defaults but for the rescue of dead workers' jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from awa import AsyncClient
from menuwatch_bench import contract
from menuwatch_bench.contract import Job, Settings, Work

QUEUE = "bench"


@dataclass
class BenchJob:
    n: str
    at: float
    pad: str


class Awa:
    name = "awa"
    event_tables = ()

    def __init__(self, settings: Settings) -> None:
        self.version = f"awa-pg {version('awa-pg')}"
        self._url = settings.url
        self._client = AsyncClient(settings.url, 10)

    async def install(self) -> None:
        await self._client.migrate()

    async def enqueue(self, jobs: list[Job]) -> None:
        await self._client.enqueue_many_copy([BenchJob(**job) for job in jobs], queue=QUEUE)

    async def work(self, job: Work, slots: int, stop: asyncio.Event) -> None:
        client = AsyncClient(self._url, 20)

        @client.task(BenchJob, queue=QUEUE)
        async def handle(given: Any) -> None:
            args = given.args
            await job({"n": args.n, "at": args.at, "pad": args.pad})

        await client.start(
            [{"name": QUEUE, "max_workers": slots}],
            heartbeat_interval_ms=1000,
            heartbeat_staleness_ms=5000,
            heartbeat_rescue_interval_ms=1000,
            leader_election_interval_ms=1000,
        )
        await stop.wait()
        await client.shutdown(3000)
        await client.close()

    async def depth(self) -> int:
        return sum(queue.available for queue in await self._client.queue_stats() if queue.queue == QUEUE)

    async def close(self) -> None:
        await self._client.close()


if __name__ == "__main__":
    contract.main(Awa)
