"""What is written, and what is not, when things go wrong around an outcome."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psycopg
from psycopg import AsyncConnection

from menuwatch.core.errors import Permanent
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Outcome, Wrote
from menuwatch.workers.engine.handler import TaskContext
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH
REFRESH = Role.PRODUCT_REFRESH


async def _notes(pool: Pool) -> list[str]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT note FROM notes ORDER BY note")
        return [row[0] for row in await cursor.fetchall()]


async def _make_notes(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("CREATE TABLE notes (note text)")


async def _live(pool: Pool) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT role, state FROM task_live ORDER BY id")
        return await cursor.fetchall()


async def test_writes_that_raise_leave_nothing_and_count_as_the_handlers_error(pool: Pool, make: Any) -> None:
    await _make_notes(pool)
    settled: list[bool] = []

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        async def writes(conn: AsyncConnection[Any]) -> None:
            await conn.execute("INSERT INTO notes VALUES ('half')")
            raise Permanent("the store is gone")

        return Done(then=[NewTask(role=REFRESH, dispensary_id=1)], writes=writes, settle=settled.append)

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: handler}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert (task.status, task.error_message, task.attempt) == (Status.FAILED, "the store is gone", 1)
    assert await _notes(pool) == []
    assert await _live(pool) == []
    assert settled == [False]


async def test_a_lost_claim_writes_nothing_and_cancels_the_handler(pool: Pool, start: Any) -> None:
    await _make_notes(pool)
    began = asyncio.Event()
    ended: list[bool] = []

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.lost.is_set())
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}) as worker:
        await began.wait()
        async with pool.connection() as conn:
            assert await tasks.cancel(conn, [task_id], "not wanted") == [task_id]
        await until(lambda: _free(worker))
    assert ended == [True]
    task = await look(pool, task_id)
    assert (task.status, task.error_message) == (Status.CANCELLED, "not wanted")


async def _free(worker: Any) -> bool:
    return len(worker.slots) == 0


async def test_a_zombie_cannot_complete_or_chain(pool: Pool, make: Any) -> None:
    """The handler is deaf to cancellation and returns after its task went to another worker, which completed it."""
    await _make_notes(pool)
    began, go = asyncio.Event(), asyncio.Event()
    settled: list[tuple[str, bool]] = []
    slow_id = ""

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        who = ctx.worker_id
        if who == slow_id:
            began.set()
            while not go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await go.wait()

        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            await conn.execute("INSERT INTO notes VALUES (%s)", (who,))
            return Wrote(then=[NewTask(role=REFRESH, dispensary_id=1, payload={"by": who})])

        return Done(result={"by": who}, writes=writes, settle=lambda ok: settled.append((who, ok)))

    slow, quick = make({FETCH: handler}), make({FETCH: handler})
    slow_id = slow.worker_id
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    run = asyncio.create_task(slow.run())
    try:
        await began.wait()
        await slow.producer.close(seconds=20)  # or it would claim the task again itself
        async with pool.connection() as conn:
            assert await tasks.recover_stale(conn, 0) == 1
        await quick.run_until_idle(timeout=20)
    finally:
        go.set()  # nothing else ends a handler that is deaf
    await until(lambda: _free(slow))
    slow.stop()
    await run
    assert await _notes(pool) == [quick.worker_id]
    assert sorted(settled) == sorted([(slow.worker_id, False), (quick.worker_id, True)])
    assert (await look(pool, task_id)).result == {"by": quick.worker_id}
    assert await _live(pool) == [(str(REFRESH), "r")]


async def _terminate(url: str, application: str = "menuwatch") -> None:
    """Cuts every connection of our pool, from outside."""
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE %s AND pid <> pg_backend_pid()",
            (application + "%",),
        )


async def test_the_task_ends_right_when_connections_die_while_the_handler_runs(
    pool: Pool, database_url: str, make: Any
) -> None:
    await _make_notes(pool)

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        await _terminate(database_url)

        async def writes(conn: AsyncConnection[Any]) -> None:
            await conn.execute("INSERT INTO notes VALUES ('once')")

        return Done(then=[NewTask(role=REFRESH, dispensary_id=1)], writes=writes)

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: handler}).run_until_idle(timeout=30)
    task = await look(pool, task_id)
    assert (task.status, task.attempt) == (Status.COMPLETED, 1)
    assert await _notes(pool) == ["once"]
    assert await _live(pool) == [(str(REFRESH), "r")]


async def test_the_task_ends_right_when_the_connection_dies_between_writes_and_commit(
    pool: Pool, database_url: str, make: Any
) -> None:
    await _make_notes(pool)
    settled: list[bool] = []
    turns = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            nonlocal turns
            turns += 1
            await conn.execute("INSERT INTO notes VALUES ('once')")
            if turns == 1:
                await _terminate(database_url)
            return Wrote(then=[NewTask(role=REFRESH, dispensary_id=1)])

        return Done(writes=writes, settle=settled.append)

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: handler}).run_until_idle(timeout=30)
    assert turns == 2
    assert (await look(pool, task_id)).status == Status.COMPLETED
    assert await _notes(pool) == ["once"]
    assert await _live(pool) == [(str(REFRESH), "r")]
    assert settled == [True]


async def test_a_commit_of_unknown_fate_that_happened_is_not_repeated(pool: Pool, make: Any) -> None:
    """The connection breaks when COMMIT has been carried out but its answer has not arrived."""
    await _make_notes(pool)
    settled: list[bool] = []

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            await conn.execute("INSERT INTO notes VALUES ('once')")
            _break_after_commit(conn)
            return Wrote(then=[NewTask(role=REFRESH, dispensary_id=1)])

        return Done(writes=writes, settle=settled.append)

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: handler}).run_until_idle(timeout=30)
    assert (await look(pool, task_id)).status == Status.COMPLETED
    assert await _notes(pool) == ["once"]
    assert await _live(pool) == [(str(REFRESH), "r")]
    assert settled == [True]


def _break_after_commit(conn: Any) -> None:
    """This one connection carries out its COMMIT and then breaks, as if the network had gone in between."""
    commit = conn.wait

    async def wait(generator: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await commit(generator, *args, **kwargs)
        if conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            conn.pgconn.finish()
            raise psycopg.OperationalError("the answer did not arrive")
        return answer

    conn.wait = wait


async def test_a_deadlocked_transaction_is_written_again(pool: Pool, make: Any) -> None:
    await _make_notes(pool)
    turns = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        async def writes(conn: AsyncConnection[Any]) -> None:
            nonlocal turns
            turns += 1
            await conn.execute("INSERT INTO notes VALUES ('once')")
            if turns < 3:
                await conn.execute("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = 'deadlock_detected'; END $$")

        return Done(writes=writes)

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    await make({FETCH: handler}).run_until_idle(timeout=20)
    assert (await look(pool, task_id)).status == Status.COMPLETED
    assert turns == 3
    assert await _notes(pool) == ["once"]


async def test_a_worker_survives_losing_every_connection_while_idle(pool: Pool, database_url: str, start: Any) -> None:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return Done()

    async with start({FETCH: handler}) as worker:
        await until(lambda: _listening(worker))
        before = worker.listener._conn
        await _terminate(database_url)
        await until(lambda: _listening_anew(worker, before))
        (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
        await until(lambda: _completed(pool, task_id))


async def _listening(worker: Any) -> bool:
    return worker.listener._conn is not None


async def _listening_anew(worker: Any, before: object) -> bool:
    return worker.listener._conn is not None and worker.listener._conn is not before


async def _completed(pool: Pool, task_id: int) -> bool:
    return (await look(pool, task_id)).status == Status.COMPLETED


async def test_a_claim_whose_answer_was_lost_is_given_back(pool: Pool, make: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    done = asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        done.set()
        return Done()

    worker = make({FETCH: handler})
    async with pool.connection() as conn:
        assert len(await tasks.claim(conn, worker.worker_id, None, 1)) == 1  # the answer never reached the producer
    worker.producer._in_doubt = True
    await worker.run_until_idle(timeout=20)
    assert done.is_set()
    task = await look(pool, task_id)
    assert (task.status, task.retry_count, task.attempt) == (Status.COMPLETED, 0, 2)
