"""A worker of a pool, in a process of its own: `python -m tests.scaling.fake_worker URL`.

Its handler writes a row to `effects` on a connection of its own when it starts and another when it ends: interrupted and repeated
work shows without reading the queue.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from menuwatch.db.pool import open_pool
from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.scaling.worker_process import on_parent_death
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker

WORK_SECONDS = 0.04


async def main(url: str) -> None:
    async with open_pool(url, max_size=4) as pool:

        async def handler(task: Task, ctx: TaskContext) -> Outcome:
            async with pool.connection() as conn:
                await conn.execute("INSERT INTO effects VALUES (%s, 'began', %s)", [task.id, ctx.worker_id])
            await asyncio.sleep(WORK_SECONDS)
            async with pool.connection() as conn:
                await conn.execute("INSERT INTO effects VALUES (%s, 'ended', %s)", [task.id, ctx.worker_id])
            return Done()

        worker = Worker(
            pool, url, {Role.PAYLOAD_FETCH: handler}, WorkerConfig(heartbeat_interval=0.2, grace=5.0, slots=2)
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        async with on_parent_death(worker.stop):
            await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
