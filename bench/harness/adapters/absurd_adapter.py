"""Absurd by its Python SDK and the schema of absurdctl. It has no bulk enqueue: `spawn_task` is called in a pipeline."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Any

import absurdctl
import psycopg
from absurd_sdk import AsyncAbsurd
from menuwatch_bench import contract
from menuwatch_bench.contract import Job, Settings, Work

QUEUE = "bench"
TASK = "bench_job"


class Absurd:
    name = "absurd"
    event_tables = (f"absurd.t_{QUEUE}", f"absurd.r_{QUEUE}")

    def __init__(self, settings: Settings) -> None:
        self.version = f"absurd-sdk {version('absurd-sdk')}"
        self._url = settings.url
        self._connections: dict[str, Any] = {}

    async def install(self) -> None:
        conn = await self._connection("producer")
        cursor = await conn.execute("SELECT to_regnamespace('absurd') IS NULL")
        if (await cursor.fetchone())[0]:
            await conn.execute(absurdctl.BUNDLED_SCHEMA_SQL)
        app = AsyncAbsurd(self._url, queue_name=QUEUE)
        await app.create_queue()
        await app.close()

    async def enqueue(self, jobs: list[Job]) -> None:
        conn = await self._connection("producer")
        async with conn.transaction(), conn.cursor() as cursor:
            await cursor.executemany(
                "SELECT absurd.spawn_task(%s, %s, %s::jsonb, %s::jsonb)",
                [(QUEUE, TASK, json.dumps(job), "{}") for job in jobs],
            )

    async def work(self, job: Work, slots: int, stop: asyncio.Event) -> None:
        app = AsyncAbsurd(self._url, queue_name=QUEUE)

        @app.register_task(TASK, default_max_attempts=5)
        async def bench_job(params: Job, ctx: Any) -> None:
            await job(params)

        worker = asyncio.create_task(app.start_worker(concurrency=slots, claim_timeout=5, poll_interval=0.05))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        app.stop_worker()
        try:
            await worker
        finally:
            await app.close()

    async def depth(self) -> int:
        conn = await self._connection("observer")
        cursor = await conn.execute(f"SELECT count(*) FROM absurd.r_{QUEUE} WHERE state = 'pending'")
        return (await cursor.fetchone())[0]

    async def close(self) -> None:
        for conn in self._connections.values():
            await conn.close()

    async def _connection(self, use: str) -> Any:
        conn = self._connections.get(use)
        if conn is None or conn.closed:
            conn = self._connections[use] = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        return conn


if __name__ == "__main__":
    contract.main(Absurd)
