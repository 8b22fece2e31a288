"""The public interface for workers in Python."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.workers.custom import (
    Done,
    NewTask,
    Outcome,
    Retry,
    Role,
    Task,
    TaskContext,
    WorkerConfig,
    connect,
    enqueue,
    run_worker,
)


async def done(task: Task, ctx: TaskContext) -> Outcome:
    return Done()


async def test_a_program_enqueues_in_bulk_and_works_on_its_tasks(database_url: str, pool: Pool) -> None:
    stop = asyncio.Event()
    seen: list[int] = []

    async def handle(task: Task, ctx: TaskContext) -> Outcome:
        n = task.payload["n"]
        if n == 3 and task.attempt == 1:
            return Retry(reason="not this time", after=timedelta(seconds=0.05))
        seen.append(n)
        if len(seen) == 20:
            stop.set()
        return Done(result={"n": n})

    async with await connect(database_url) as conn:
        made = await enqueue(conn, [NewTask(role=Role.ANALYTICS_REFRESH, payload={"n": n}) for n in range(20)])
    assert [item.created for item in made] == [True] * 20
    config = WorkerConfig(worker_id="mine", slots=4, poll_interval=0.2)
    async with asyncio.timeout(60):
        await run_worker(database_url, {"analytics_refresh": handle}, config, stop=stop)
    assert sorted(seen) == list(range(20))
    async with pool.connection() as conn:
        rows = await (
            await conn.execute("SELECT status, worker_id, (result->>'n')::int FROM worker_tasks ORDER BY 3")
        ).fetchall()
    assert rows == [("completed", "mine", n) for n in range(20)]


async def test_a_role_must_exist_and_have_a_handler(database_url: str) -> None:
    with pytest.raises(Refused, match="unknown role 'dance'; use one of: store_discovery"):
        await run_worker(database_url, {"dance": done})
    with pytest.raises(Refused, match="no handlers given"):
        await run_worker(database_url, {})
