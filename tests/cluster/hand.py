"""A worker of a crew, in a process of its own: `python -m tests.cluster.hand URL`.

Its handler writes a line to `effects` on a connection of its own when it begins and another when it has ended: what was cut off or
done twice can be told without asking the queue.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from menuwatch.cluster.lifeline import lifeline
from menuwatch.db.pool import open_pool
from menuwatch.engine.handler import TaskContext
from menuwatch.engine.options import Options
from menuwatch.engine.worker import Worker
from menuwatch.tasks.model import Role, Task
from menuwatch.tasks.outcome import Done, Outcome

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

        worker = Worker(pool, url, {Role.PAYLOAD_FETCH: handler}, Options(heartbeat_interval=0.2, grace=5.0, slots=2))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        async with lifeline(worker.stop):
            await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
