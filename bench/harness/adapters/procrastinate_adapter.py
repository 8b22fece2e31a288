"""procrastinate: batch_defer, a worker with `WORKER_COUNT` concurrent jobs and LISTEN, and the periodic task for stalled jobs that its
documentation recommends."""

from __future__ import annotations

import asyncio
import contextlib
from importlib.metadata import version
from typing import Any

import psycopg
from menuwatch_bench import contract
from menuwatch_bench.contract import Job, Settings, Work
from procrastinate import App, JobContext, PsycopgConnector

QUEUE = "bench"
SILENT = 5.0
"""Seconds without a heartbeat after which a worker counts as dead."""


class Procrastinate:
    name = "procrastinate"
    event_tables = ("public.procrastinate_jobs", "public.procrastinate_events")

    def __init__(self, settings: Settings) -> None:
        self.version = f"procrastinate {version('procrastinate')}"
        self._url = settings.url
        self._app = App(connector=PsycopgConnector(conninfo=settings.url, min_size=1, max_size=4))
        self._open = False

    async def install(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._url) as conn:
            cursor = await conn.execute("SELECT to_regclass('procrastinate_jobs') IS NULL")
            missing = (await cursor.fetchone())[0]  # type: ignore[index]
        await self._app.open_async()
        if missing:
            await self._app.schema_manager.apply_schema_async()

    async def enqueue(self, jobs: list[Job]) -> None:
        await self._app.configure_task("bench_job", queue=QUEUE).batch_defer_async(*jobs)

    async def work(self, job: Work, slots: int, stop: asyncio.Event) -> None:
        app = App(connector=PsycopgConnector(conninfo=self._url, min_size=4, max_size=min(slots, 20)))

        @app.task(name="bench_job", queue=QUEUE, retry=5)
        async def bench_job(n: str, at: float, pad: str) -> None:
            await job({"n": n, "at": at, "pad": pad})

        @app.periodic(cron="*/2 * * * * *")
        @app.task(name="retry_stalled", queue=QUEUE, queueing_lock="retry_stalled", pass_context=True)
        async def retry_stalled(context: JobContext, timestamp: int) -> None:
            for stalled in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=SILENT):
                await app.job_manager.retry_job(stalled)

        async with app.open_async():
            options: dict[str, Any] = {
                "queues": [QUEUE],
                "concurrency": slots,
                "fetch_job_polling_interval": 0.5,
                "update_heartbeat_interval": 1.0,
                "stalled_worker_timeout": SILENT,
                "install_signal_handlers": False,
                "shutdown_graceful_timeout": 3.0,
            }
            worker = asyncio.create_task(app.run_worker_async(**options))
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if not worker.done():
                worker.cancel()  # how a worker is asked to stop
            with contextlib.suppress(asyncio.CancelledError):
                await worker

    async def depth(self) -> int:
        async with await psycopg.AsyncConnection.connect(self._url) as conn:
            cursor = await conn.execute(
                "SELECT count(*) FROM procrastinate_jobs WHERE queue_name = %s AND status = 'todo'", [QUEUE]
            )
            return (await cursor.fetchone())[0]  # type: ignore[index]

    async def close(self) -> None:
        await self._app.close_async()


if __name__ == "__main__":
    contract.main(Procrastinate)
