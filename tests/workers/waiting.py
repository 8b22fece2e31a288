"""Waiting for a condition that is seen from outside, and looking at the queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Task


async def until(condition: Callable[[], Awaitable[Any]], *, seconds: float = 10.0) -> None:
    """Returns once the condition holds; fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.005)


async def put(pool: Pool, *new: NewTask) -> list[int]:
    async with pool.connection() as conn:
        return [made.id for made in await tasks.enqueue(conn, new)]


async def look(pool: Pool, task_id: int) -> Task:
    async with pool.connection() as conn:
        task = await tasks.get(conn, task_id)
    assert task is not None
    return task
