"""Short hands on the queue, for its tests."""

from __future__ import annotations

from typing import Any

from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Status, Task


async def put(pool: Pool, *new: NewTask) -> list[int]:
    async with pool.connection() as conn:
        return [made.id for made in await tasks.enqueue(conn, new)]


async def claim(pool: Pool, n: int = 1, roles: Any = None, worker: str = "w") -> list[Task]:
    async with pool.connection() as conn:
        return await tasks.claim(conn, worker, roles, n)


async def look(pool: Pool, task_id: int) -> Task:
    async with pool.connection() as conn:
        task = await tasks.get(conn, task_id)
    assert task is not None
    return task


async def end(pool: Pool, *endings: Ending, worker: str = "w") -> dict[int, Status]:
    async with pool.connection() as conn:
        return await tasks.finish(conn, worker, endings)


async def states(pool: Pool) -> dict[int, str]:
    async with pool.connection() as conn:
        return dict(await (await conn.execute("SELECT id, state FROM task_live ORDER BY id")).fetchall())
