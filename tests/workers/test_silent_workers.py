"""Workers that fall silent: suspended past the threshold and resumed, cut off from the database."""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import AsyncConnection

from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome, Wrote
from menuwatch.workers import registry
from menuwatch.workers.engine.handler import TaskContext
from tests.conftest import ROOT
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH


async def _effects(pool: Pool) -> list[tuple[str, str]]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT worker, what FROM distant ORDER BY what, worker")
        return [(str(worker), str(what)) for worker, what in await cursor.fetchall()]


async def test_a_worker_that_was_suspended_too_long_leaves_its_task_alone(
    pool: Pool, database_url: str, start: Any
) -> None:
    async with pool.connection() as conn:
        await conn.execute("CREATE TABLE distant (task bigint, worker text, what text); CREATE TABLE go ()")
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.workers.worker_process", database_url, cwd=ROOT
    )
    try:

        async def began() -> bool:
            return len(await _effects(pool)) == 1

        await until(began)
        ((distant, _),) = await _effects(pool)
        process.send_signal(signal.SIGSTOP)

        async def recovered() -> bool:
            async with pool.connection() as conn:
                return await tasks.recover_stale(conn, 0.5 / 60) == 1

        await until(recovered)

        async def quick(task: Task, ctx: TaskContext) -> Outcome:
            async def writes(conn: AsyncConnection[Any]) -> Wrote:
                await conn.execute("INSERT INTO distant VALUES (%s, %s, 'done')", [task.id, ctx.worker_id])
                return Wrote()

            return Done(writes=writes)

        async with start({FETCH: quick}) as near:
            await until(lambda: _is(pool, task_id, Status.COMPLETED))
        async with pool.connection() as conn:
            await conn.execute("INSERT INTO go DEFAULT VALUES")
        resumed = datetime.now(UTC)
        process.send_signal(signal.SIGCONT)

        async def noticed() -> bool:
            async with pool.connection() as conn:
                row = await registry.get(conn, distant)
            return row is not None and row.last_heartbeat_at > resumed and row.heartbeat["active_task_count"] == 0

        await until(noticed)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert await _effects(pool) == [(distant, "began"), (near.worker_id, "done")]
    task = await look(pool, task_id)
    assert (task.status, task.attempt, task.retry_count, task.worker_id) == (Status.COMPLETED, 2, 1, near.worker_id)


async def _is(pool: Pool, task_id: int, status: Status) -> bool:
    return (await look(pool, task_id)).status == status


def _cut_all(url: str) -> int:
    """Ends every other connection to this database; returns how many."""
    with psycopg.connect(url, autocommit=True) as conn:
        cut = conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return len(cut)


async def _listens(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'menuwatch-listen' AND datname = current_database()"
            " AND state = 'idle' AND query LIKE 'LISTEN%'"
        ).fetchone()
    return bool(row and row[0])


async def test_lost_connections_are_survived(pool: Pool, database_url: str, start: Any) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        if task.dispensary_id == 1:
            began.set()
            await go.wait()
        return Done()

    (first,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}, heartbeat_interval=0.1) as worker:
        await began.wait()
        await until(lambda: _listens(database_url))
        assert _cut_all(database_url) >= 2
        cut_at = datetime.now(UTC)
        await until(lambda: _listens(database_url))
        # What runs is neither lost nor done twice; new work is heard of; the registry hears from the worker.
        (second,) = await put(pool, NewTask(role=FETCH, dispensary_id=2))
        await until(lambda: _is(pool, second, Status.COMPLETED))
        go.set()
        await until(lambda: _is(pool, first, Status.COMPLETED))
        assert (await look(pool, first)).attempt == 1

        async def beats() -> bool:
            async with pool.connection() as conn:
                row = await registry.get(conn, worker.worker_id)
            return row is not None and row.last_heartbeat_at > cut_at

        await until(beats)
