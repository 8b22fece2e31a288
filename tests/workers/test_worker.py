"""A worker end to end: what handlers return and raise, chains, waking, stopping."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from menuwatch.core.errors import Blocked, Permanent, Refused, Throttled, Transient
from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role, Status, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry, Wrote
from menuwatch.queue.task_list import TaskFilter, count_tasks
from menuwatch.workers import registry
from menuwatch.workers.engine.claimable_roles import Claimable
from menuwatch.workers.engine.handler import TaskContext
from tests.workers.waiting import look, put, until

FETCH = Role.PAYLOAD_FETCH
REFRESH = Role.PRODUCT_REFRESH


def saying(outcome: Outcome) -> Any:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        return outcome

    return handler


def raising(error: Exception) -> Any:
    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        raise error

    return handler


async def test_a_chain_runs_to_its_end(pool: Pool, make: Any) -> None:
    seen: list[tuple[str, Any]] = []

    async def fetch(task: Task, ctx: TaskContext) -> Outcome:
        seen.append(("fetch", task.payload))

        async def writes(conn: AsyncConnection[Any]) -> Wrote:
            return Wrote(
                result={"bytes": 10},
                then=[NewTask(role=REFRESH, dispensary_id=task.dispensary_id, payload={"payload_id": 8}, unique=False)],
            )

        return Done(result={"pages": 2}, writes=writes)

    async def refresh(task: Task, ctx: TaskContext) -> Outcome:
        seen.append(("refresh", task.payload))
        return Done(result={"products": 3})

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=5, payload={"a": 1}))
    await make({FETCH: fetch, REFRESH: refresh}).run_until_idle(timeout=20)
    assert seen == [("fetch", {"a": 1}), ("refresh", {"payload_id": 8})]
    done = await look(pool, task_id)
    assert (done.status, done.result, done.attempt) == (Status.COMPLETED, {"pages": 2, "bytes": 10}, 1)
    assert done.claimed_at is not None
    assert done.started_at is not None
    assert done.completed_at is not None
    assert done.claimed_at <= done.started_at <= done.completed_at
    async with pool.connection() as conn:
        assert await count_tasks(conn, TaskFilter()) == {FETCH: {Status.COMPLETED: 1}, REFRESH: {Status.COMPLETED: 1}}


@pytest.mark.parametrize(
    ("error", "status", "reason", "runs"),
    [
        (Permanent("no such store"), Status.FAILED, "no such store", 1),
        (Refused("bad payload_id"), Status.FAILED, "bad payload_id", 1),
        (Transient("connection reset"), Status.FAILED, "connection reset", 3),
        (Blocked("403 four times"), Status.FAILED, "403 four times", 3),
        (ZeroDivisionError("division by zero"), Status.FAILED, "ZeroDivisionError: division by zero", 3),
    ],
)
async def test_errors_by_the_reaction_they_ask_for(
    pool: Pool, make: Any, error: Exception, status: Status, reason: str, runs: int
) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=2))
    await make({FETCH: raising(error)}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert (task.status, task.error_message, task.attempt) == (status, reason, runs)
    assert task.retry_count == runs - 1


async def test_throttled_is_postponed_without_using_up_a_retry(pool: Pool, start: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    before = datetime.now(UTC)
    async with start({FETCH: raising(Throttled("slow down", retry_after=120))}):
        await until(lambda: _attempted(pool, task_id))
    task = await look(pool, task_id)
    assert (task.status, task.retry_count, task.postpone_count) == (Status.PENDING, 0, 1)
    assert task.error_message == "slow down"
    assert task.scheduled_for is not None
    assert timedelta(seconds=119) < task.scheduled_for - before < timedelta(seconds=130)


async def _attempted(pool: Pool, task_id: int) -> bool:
    task = await look(pool, task_id)
    return task.attempt > 0 and task.status == Status.PENDING


async def test_retries_are_waited_for_and_the_last_error_is_forgotten_on_success(pool: Pool, make: Any) -> None:
    async def third_time_lucky(task: Task, ctx: TaskContext) -> Outcome:
        if task.attempt < 3:
            return Retry(reason=f"attempt {task.attempt}", result={"kept": task.attempt})
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: third_time_lucky}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert (task.status, task.attempt, task.retry_count, task.error_message) == (Status.COMPLETED, 3, 2, None)
    assert task.result == {"kept": 2}


async def test_postpone_comes_back_when_it_is_time(pool: Pool, make: Any) -> None:
    async def later(task: Task, ctx: TaskContext) -> Outcome:
        if task.attempt == 1:
            return Postpone(
                code=PostponeCode.THROTTLED, until=datetime.now(UTC) + timedelta(milliseconds=50), reason="not now"
            )
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: later}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert (task.status, task.attempt, task.postpone_count) == (Status.COMPLETED, 2, 1)


async def test_idle_does_not_wait_for_first_attempts_of_another_day(pool: Pool, make: Any) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    (later, now) = await put(
        pool, NewTask(role=FETCH, dispensary_id=1, scheduled_for=tomorrow), NewTask(role=FETCH, dispensary_id=2)
    )
    await make({FETCH: saying(Done())}).run_until_idle(timeout=20)
    assert (await look(pool, later)).status == Status.PENDING
    assert (await look(pool, now)).status == Status.COMPLETED


async def test_a_result_that_is_no_json_the_database_takes_fails_the_attempt(pool: Pool, make: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    settled: list[bool] = []
    await make({FETCH: saying(Done(result={"name": "a\x00b"}, settle=settled.append))}).run_until_idle(timeout=20)
    task = await look(pool, task_id)
    assert task.status == Status.FAILED
    assert task.error_message is not None
    assert "\\u0000" in task.error_message
    assert settled == [False]


async def test_a_handler_that_returns_no_outcome_fails_the_attempt(pool: Pool, make: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=0))
    await make({FETCH: saying(None)}).run_until_idle(timeout=20)  # type: ignore[arg-type]
    task = await look(pool, task_id)
    assert task.status == Status.FAILED
    assert "NoneType" in str(task.error_message)


async def test_new_work_is_picked_up_at_once_through_a_notification(pool: Pool, start: Any) -> None:
    done = asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        done.set()
        return Done()

    async with start({FETCH: handler}) as worker:  # polls once a minute
        await until(lambda: _listens(pool))
        await until(lambda: _paused(worker))
        await put(pool, NewTask(role=FETCH, dispensary_id=1))
        await asyncio.wait_for(done.wait(), 5)


async def _listens(pool: Pool) -> bool:
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'menuwatch-listen' AND state = 'idle'"
            " AND datname = current_database() AND query LIKE 'LISTEN%'"
        )
        return bool((await cursor.fetchone() or (0,))[0])


async def _paused(worker: Any) -> bool:
    return bool(not worker.producer._woken.is_set())


async def test_a_scheduled_task_is_picked_up_when_it_comes_due(pool: Pool, start: Any) -> None:
    done = asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        done.set()
        return Done()

    async with start({FETCH: handler}):
        soon = datetime.now(UTC) + timedelta(milliseconds=200)
        await put(pool, NewTask(role=FETCH, dispensary_id=1, scheduled_for=soon))
        await put(pool, NewTask(role=FETCH, dispensary_id=2, scheduled_for=soon + timedelta(days=1)))
        await pool_wake(pool)
        await asyncio.wait_for(done.wait(), 5)
    assert datetime.now(UTC) >= soon


async def pool_wake(pool: Pool) -> None:
    async with pool.connection() as conn:
        await tasks.wake(conn)


async def test_slots_bound_how_much_runs_at_once_and_a_store_runs_alone(pool: Pool, make: Any) -> None:
    running: set[int | None] = set()
    most = 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal most
        assert task.dispensary_id not in running
        running.add(task.dispensary_id)
        most = max(most, len(running))
        await asyncio.sleep(0)
        await _turn(pool)
        running.remove(task.dispensary_id)
        return Done()

    new = [NewTask(role=role, dispensary_id=store, unique=False) for store in range(6) for role in (FETCH, REFRESH) * 3]
    await put(pool, *new)
    await make({FETCH: handler, REFRESH: handler}, slots=4).run_until_idle(timeout=30)
    assert most == 4
    async with pool.connection() as conn:
        assert await count_tasks(conn, TaskFilter()) == {FETCH: {Status.COMPLETED: 18}, REFRESH: {Status.COMPLETED: 18}}


async def _turn(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("SELECT 1")


async def test_roles_it_may_not_claim_are_left_until_it_may(pool: Pool, start: Any) -> None:
    """The gate pauses network roles when no proxy is active; the others go on."""
    allowed = frozenset({REFRESH})

    async def gate() -> Claimable:
        return Claimable(allowed)

    fetch_id, refresh_id = await put(pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=REFRESH, dispensary_id=2))
    async with start({FETCH: saying(Done()), REFRESH: saying(Done())}, may_claim=gate) as worker:
        await until(lambda: _is(pool, refresh_id, Status.COMPLETED))
        assert (await look(pool, fetch_id)).status == Status.PENDING
        allowed = frozenset(Role)
        worker.producer.wake()
        await until(lambda: _is(pool, fetch_id, Status.COMPLETED))


async def _is(pool: Pool, task_id: int, status: Status) -> bool:
    return (await look(pool, task_id)).status == status


async def test_a_graceful_stop_lets_work_finish(pool: Pool, make: Any) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        began.set()
        await go.wait()
        return Done()

    worker = make({FETCH: handler}, slots=1, grace=20)
    first, second = await put(pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=FETCH, dispensary_id=2))
    run = asyncio.create_task(worker.run())
    await began.wait()
    worker.stop()
    await until(lambda: _stopping(worker))
    go.set()
    await run
    assert (await look(pool, first)).status == Status.COMPLETED
    assert (await look(pool, second)).status == Status.PENDING
    assert (await look(pool, second)).attempt == 0
    async with pool.connection() as conn:
        (row,) = await registry.list_workers(conn, stopped=True)
    assert (row.worker_id, row.status) == (worker.worker_id, "stopped")


async def _stopping(worker: Any) -> bool:
    return bool(worker.producer.closing)


async def test_what_does_not_finish_in_time_goes_back_without_using_up_a_retry(pool: Pool, make: Any) -> None:
    began = asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        began.set()
        await asyncio.Event().wait()
        return Fail(reason="never reached")

    worker = make({FETCH: handler}, grace=0.05)
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    run = asyncio.create_task(worker.run())
    await began.wait()
    worker.stop()
    await run
    task = await look(pool, task_id)
    assert (task.status, task.worker_id, task.retry_count, task.attempt) == (Status.PENDING, None, 0, 1)
    assert task.error_message is None


async def test_the_registry_says_who_works_on_what(pool: Pool, start: Any) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        began.set()
        await go.wait()
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}, slots=3) as worker:
        await began.wait()
        await worker.heartbeat.step()
        async with pool.connection() as conn:
            (row,) = await registry.list_workers(conn)
        assert (await look(pool, task_id)).status == Status.RUNNING
        go.set()
    assert row.status == "active"
    assert row.friendly_name
    body = row.heartbeat
    assert set(body) == {
        "worker_id", "current_task_id", "current_task_ids", "active_task_count", "max_concurrent_tasks", "status", "resources",
    }  # fmt: skip
    assert set(body["resources"]) - {"process_cpu_percent"} == {
        "memory_mb", "memory_total_mb", "memory_rss_mb", "memory_percent", "cpu_user_ms", "cpu_system_ms", "cpu_percent",
        "is_backing_off", "backoff_reason",
    }  # fmt: skip
    assert (body["worker_id"], body["current_task_id"], body["current_task_ids"]) == (
        worker.worker_id,
        task_id,
        [task_id],
    )
    assert (body["active_task_count"], body["max_concurrent_tasks"], body["status"]) == (1, 3, "active")


async def test_a_registry_that_fails_is_not_fatal(pool: Pool, make: Any) -> None:
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE worker_registry RENAME TO elsewhere")
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    await make({FETCH: saying(Done())}).run_until_idle(timeout=20)
    assert (await look(pool, task_id)).status == Status.COMPLETED


async def test_each_start_is_another_worker(make: Any) -> None:
    ids = {make({FETCH: saying(Done())}).worker_id for _ in range(20)}
    assert len(ids) == 20


async def test_what_takes_longer_shows_as_running_long_before_the_first_heartbeat(pool: Pool, start: Any) -> None:
    go = asyncio.Event()

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        await go.wait()
        return Done()

    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with start({FETCH: handler}, heartbeat_interval=3600.0):
        await until(lambda: _is(pool, task_id, Status.RUNNING))
        shown = await look(pool, task_id)
        assert shown.started_at is not None
        assert shown.claimed_at is not None
        assert (shown.started_at - shown.claimed_at).total_seconds() < 0.5, (
            "it says when it began, not when that was noticed"
        )
        go.set()
        await until(lambda: _is(pool, task_id, Status.COMPLETED))
    assert (await look(pool, task_id)).started_at == shown.started_at
