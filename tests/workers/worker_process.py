"""A worker in a process of its own, for tests that suspend it: `python -m tests.workers.worker_process URL`.

Its handler says in `distant` that it began, works until there is a row in `go`, and writes its effect with its end.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db.pool import open_pool
from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Done, Outcome, Wrote
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker


async def main(url: str) -> None:
    async with open_pool(url) as pool:

        async def handler(task: Task, ctx: TaskContext) -> Outcome:
            async with pool.connection() as conn:
                await conn.execute("INSERT INTO distant VALUES (%s, %s, 'began')", [task.id, ctx.worker_id])
            gone = False
            while not gone:
                async with pool.connection() as conn:
                    gone = await (await conn.execute("SELECT FROM go")).fetchone() is not None
                await asyncio.sleep(0.01)

            async def writes(conn: AsyncConnection[Any]) -> Wrote:
                await conn.execute("INSERT INTO distant VALUES (%s, %s, 'done')", [task.id, ctx.worker_id])
                return Wrote()

            return Done(writes=writes)

        worker = Worker(pool, url, {Role.PAYLOAD_FETCH: handler}, WorkerConfig(heartbeat_interval=0.1, grace=1.0))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
