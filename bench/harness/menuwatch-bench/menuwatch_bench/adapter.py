"""Menuwatch as a system of the benchmark: `menuwatch migrate`, and the public interface for workers in Python."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from menuwatch.workers.custom import (
    Done,
    NewTask,
    Outcome,
    Role,
    Task,
    TaskContext,
    WorkerConfig,
    configure_logging,
    connect,
    enqueue,
    run_worker,
)
from menuwatch_bench import contract
from menuwatch_bench.contract import Job, Settings, Work

ROLE = Role.ANALYTICS_REFRESH


class Menuwatch:
    """Its producer and its observer each have a connection, which is opened anew when it is lost."""

    name = "menuwatch"
    event_tables = ("public.task_live", "public.task_history")

    def __init__(self, settings: Settings) -> None:
        self.version = version("menuwatch")
        self._url = settings.url
        self._instance = settings.instance
        self._connections: dict[str, Any] = {}

    async def install(self) -> None:
        conn = await self._connection("observer")
        cursor = await conn.execute("SELECT to_regclass('worker_tasks') IS NOT NULL")
        if (await cursor.fetchone())[0]:
            return
        with tempfile.TemporaryDirectory() as home:
            await asyncio.to_thread(
                subprocess.run,
                [Path(sys.executable).with_name("menuwatch"), "migrate"],
                env=os.environ | {"MENUWATCH_HOME": home},
                check=True,
                stdout=subprocess.DEVNULL,
            )

    async def enqueue(self, jobs: list[Job]) -> None:
        tasks = [NewTask(role=ROLE, payload=job, unique=False) for job in jobs]
        await enqueue(await self._connection("producer"), tasks)

    async def work(self, job: Work, slots: int, stop: asyncio.Event) -> None:
        async def handle(task: Task, ctx: TaskContext) -> Outcome:
            await job(dict(task.payload))
            return Done()

        # With a fixed id, a replica that is started again gives back what its dead process held.
        config = WorkerConfig(worker_id=f"bench-{self._instance}", slots=slots, grace=3)
        await run_worker(self._url, {ROLE: handle}, config, stop=stop)

    async def depth(self) -> int:
        conn = await self._connection("observer")
        cursor = await conn.execute("SELECT count(*) FROM live_tasks WHERE wait_state = 'ready'")
        return (await cursor.fetchone())[0]

    async def close(self) -> None:
        for conn in self._connections.values():
            await conn.close()

    async def _connection(self, use: str) -> Any:
        conn = self._connections.get(use)
        if conn is None or conn.closed:
            conn = self._connections[use] = await connect(self._url)
        return conn


def main() -> None:
    """The command `menuwatch-bench`."""
    configure_logging("json")  # standard output is for records
    contract.main(Menuwatch)


if __name__ == "__main__":
    main()
