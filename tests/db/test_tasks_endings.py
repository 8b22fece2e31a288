"""How attempts end, and what happens when they do not: retries, fencing, heartbeat, recovery, cancelling."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import Claim, cycle
from menuwatch.queue.ending import Ending, ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.outcome import Done, Fail, Postpone, Retry
from menuwatch.queue.task_list import TaskFilter, count_tasks, list_tasks
from tests.db.queue_calls import claim, end, look, put, states

FETCH = Role.PAYLOAD_FETCH
ANALYTICS = Role.ANALYTICS_REFRESH
NONE = timedelta(0)


async def test_done_moves_to_history_with_its_result(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    assert await end(pool, ending(task, Done(result={"n": 1}), backoff=NONE, ran=0.5)) == {task_id: Status.COMPLETED}
    done = await look(pool, task_id)
    assert (done.status, done.result, done.error_message, done.worker_id) == (Status.COMPLETED, {"n": 1}, None, "w")
    assert await states(pool) == {}
    assert done.completed_at is not None


async def test_retry_counts_and_runs_out(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=1))
    (task,) = await claim(pool)
    assert await end(pool, ending(task, Retry(reason="first"), backoff=timedelta(seconds=40))) == {
        task_id: Status.PENDING
    }
    waiting = await look(pool, task_id)
    assert (waiting.retry_count, waiting.error_message, waiting.worker_id, waiting.claimed_at) == (
        1,
        "first",
        None,
        None,
    )
    assert waiting.scheduled_for is not None
    assert timedelta(seconds=35) < waiting.scheduled_for - datetime.now(UTC) <= timedelta(seconds=40)
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET scheduled_for = now()")
    (task,) = await claim(pool)
    assert await end(pool, ending(task, Retry(reason="second"), backoff=NONE)) == {task_id: Status.FAILED}
    failed = await look(pool, task_id)
    assert (failed.status, failed.error_message, failed.retry_count, failed.attempt) == (Status.FAILED, "second", 1, 2)


async def test_fail_fails_at_once(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    assert await end(pool, ending(task, Fail(reason="no such store"), backoff=NONE)) == {task_id: Status.FAILED}
    assert (await look(pool, task_id)).retry_count == 0


async def test_postpone_uses_no_retry_up_to_its_limit(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, max_retries=1))
    past = datetime.now(UTC) - timedelta(seconds=1)
    for turn in range(1, 51):
        (task,) = await claim(pool)
        await end(
            pool, ending(task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="throttled"), backoff=NONE)
        )
        waiting = await look(pool, task_id)
        assert (waiting.postpone_count, waiting.retry_count) == (turn, 0)
    (task,) = await claim(pool)
    await end(pool, ending(task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="throttled"), backoff=NONE))
    assert (await look(pool, task_id)).retry_count == 1
    (task,) = await claim(pool)
    assert await end(
        pool, ending(task, Postpone(code=PostponeCode.THROTTLED, until=past, reason="throttled"), backoff=NONE)
    ) == {task_id: Status.FAILED}


@pytest.mark.parametrize("verb", ["done", "fail", "retry", "postpone", "release"])
async def test_who_lost_a_claim_changes_nothing(pool: Pool, verb: Any) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (lost,) = await claim(pool, worker="old")
    async with pool.connection() as conn:
        assert await tasks.recover_stale(conn, 0) == 1
    recovered = await look(pool, task_id)
    assert (recovered.status, recovered.worker_id, recovered.retry_count) == (Status.PENDING, None, 1)
    zombie = Ending(task_id=task_id, attempt=lost.attempt, verb=verb, reason="zombie", due=datetime.now(UTC))
    assert await end(pool, zombie, worker="old") == {}
    (mine,) = await claim(pool, worker="new")
    assert await end(pool, zombie, worker="old") == {}
    assert await end(pool, zombie, worker="new") == {}  # right worker, attempt of before
    async with pool.connection() as conn, conn.transaction():
        assert not await tasks.hold(conn, "old", lost)
        assert await tasks.hold(conn, "new", mine)
    assert (await look(pool, task_id)).worker_id == "new"


async def test_heartbeat_says_what_is_still_owned(pool: Pool) -> None:
    await put(pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=FETCH, dispensary_id=2))
    kept, lost = await claim(pool, 2)
    async with pool.connection() as conn:
        await tasks.cancel(conn, [lost.id])
        held = [tasks.Held(task_id=task.id, attempt=task.attempt, ran=1.0) for task in (kept, lost)]
        assert await tasks.heartbeat(conn, "w", held) == {(kept.id, 1)}
        assert await tasks.heartbeat(conn, "other", held) == set()
    beaten = await look(pool, kept.id)
    assert beaten.status == Status.RUNNING
    assert beaten.last_heartbeat_at is not None
    assert (await look(pool, lost.id)).status == Status.CANCELLED


async def test_heartbeat_passes_over_a_task_that_is_being_settled(pool: Pool) -> None:
    await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    async with pool.connection() as settling, pool.connection() as beating, settling.transaction():
        assert await tasks.hold(settling, "w", task)
        await beating.execute("SET lock_timeout = '2s'")
        held = [tasks.Held(task_id=task.id, attempt=1)]
        assert await tasks.heartbeat(beating, "w", held) == {(task.id, 1)}
        # and recovery leaves it alone, and an enqueue behind it does not wait
        assert await tasks.recover_stale(beating, 0) == 0
        (behind,) = await tasks.enqueue(beating, [NewTask(role=FETCH, dispensary_id=1)])
        await beating.execute("RESET lock_timeout")
    assert behind.created


async def test_mark_running(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    held = [tasks.Held(task_id=task_id, attempt=task.attempt)]
    async with pool.connection() as conn:
        assert await tasks.mark_running(conn, "other", held) == []
        assert await tasks.mark_running(conn, "w", held) == [task_id]
    assert (await look(pool, task_id)).status == Status.RUNNING


async def test_recovery_of_silent_workers(pool: Pool) -> None:
    ids = await put(
        pool, *(NewTask(role=FETCH, dispensary_id=store, max_retries=0 if store == 3 else 3) for store in range(1, 5))
    )
    await claim(pool, 4)
    async with pool.connection() as conn:
        # 1 never beat; 2 beat long ago; 3 too, and has no retry left; 4 beats.
        await conn.execute("UPDATE task_live SET claimed_at = now() - interval '11 minutes'")
        await conn.execute(
            "UPDATE task_live SET last_heartbeat_at = now() - interval '11 minutes' WHERE id = ANY(%s)", (ids[1:3],)
        )
        await conn.execute(
            "UPDATE task_live SET last_heartbeat_at = now() - interval '9 minutes' WHERE id = %s", (ids[3],)
        )
        shown = [(await look(pool, task_id)).status for task_id in ids]
        assert shown == [Status.STALE, Status.STALE, Status.STALE, Status.CLAIMED]
        assert await tasks.recover_stale(conn, 10) == 3
        assert await tasks.recover_stale(conn, 10) == 0
    after = [await look(pool, task_id) for task_id in ids]
    assert [task.status for task in after] == [Status.PENDING, Status.PENDING, Status.FAILED, Status.CLAIMED]
    assert [task.retry_count for task in after] == [1, 1, 0, 0]
    assert after[0].worker_id is None
    assert all("fell silent" in str(task.error_message) for task in after[:3])


async def test_cancel_waiting_and_running(pool: Pool) -> None:
    running, parked, other = await put(
        pool, *(NewTask(role=FETCH, dispensary_id=store, unique=False) for store in (1, 1, 2))
    )
    (task,) = await claim(pool)
    assert task.id == running
    async with pool.connection() as conn:
        assert sorted(await tasks.cancel(conn, [running, other, 999], "by hand")) == [running, other]
        assert await tasks.cancel(conn, [running]) == []
    assert await states(pool) == {parked: "r"}
    cancelled = await look(pool, running)
    assert (cancelled.status, cancelled.error_message) == (Status.CANCELLED, "by hand")
    assert await end(pool, ending(task, Done(), backoff=NONE)) == {}


async def test_a_finish_makes_the_partition_it_needs(pool: Pool) -> None:
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'task_history'::regclass"
        )
        for (name,) in await cursor.fetchall():
            await conn.execute(f"DROP TABLE {name}")  # type: ignore[arg-type]
    a, b, c = await put(pool, *(NewTask(role=FETCH, dispensary_id=store) for store in (1, 2, 3)))
    first, second, _ = await claim(pool, 3)
    assert await end(pool, ending(first, Done(), backoff=NONE)) == {a: Status.COMPLETED}
    async with pool.connection() as conn:
        assert await tasks.cancel(conn, [b]) == [b]
        assert await tasks.ensure_partitions(conn, 3) == 3
        assert await tasks.ensure_partitions(conn, 3) == 0
        assert sorted(task.id for task in await list_tasks(conn, TaskFilter())) == [a, b, c]
    assert second.id == b


async def test_listing_filters_and_pages(pool: Pool) -> None:
    ids = await put(pool, *(NewTask(role=FETCH, dispensary_id=store) for store in range(5)), NewTask(role=ANALYTICS))
    (task,) = await claim(pool)
    await end(pool, ending(task, Done(), backoff=NONE))
    async with pool.connection() as conn:
        first = await list_tasks(conn, TaskFilter(), limit=4)
        rest = await list_tasks(conn, TaskFilter(), limit=4, after=first[-1].id)
        assert [item.id for item in first + rest] == sorted(ids, reverse=True)
        assert [item.id for item in await list_tasks(conn, TaskFilter(statuses=[Status.COMPLETED]))] == [task.id]
        assert [item.id for item in await list_tasks(conn, TaskFilter(roles=[ANALYTICS]))] == [ids[5]]
        assert [item.id for item in await list_tasks(conn, TaskFilter(dispensary_id=4))] == [ids[4]]
        assert await count_tasks(conn, TaskFilter()) == {
            ANALYTICS: {Status.PENDING: 1},
            FETCH: {Status.PENDING: 4, Status.COMPLETED: 1},
        }
        assert await tasks.get(conn, 12345) is None


async def test_unfinished_does_not_count_first_attempts_of_later(pool: Pool) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    await put(pool, NewTask(role=FETCH, dispensary_id=1, scheduled_for=later), NewTask(role=FETCH, dispensary_id=2))
    async with pool.connection() as conn:
        assert await tasks.unfinished(conn) == 1
        assert await tasks.unfinished(conn, [ANALYTICS]) == 0
        due = (await cycle(conn, "w", claim=Claim(roles=[ANALYTICS], n=1))).next_due
    assert due is not None
    assert 3590 < due <= 3600
    (task,) = await claim(pool)
    await end(pool, ending(task, Retry(reason="x"), backoff=timedelta(hours=1)))
    async with pool.connection() as conn:
        assert await tasks.unfinished(conn) == 1


async def test_a_postponed_task_says_why_until_it_is_due(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    later = datetime.now(UTC) + timedelta(hours=1)
    paused = Postpone(code=PostponeCode.PAUSED, host="menus.invalid", until=later, reason="x", counted=False)
    await end(pool, ending(task, paused, backoff=NONE))
    waiting = await look(pool, task_id)
    assert (waiting.postpone_code, waiting.postpone_host) == (PostponeCode.PAUSED, "menus.invalid")
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET scheduled_for = now() - interval '1 second'")
    (task,) = await claim(pool)
    assert (task.postpone_code, task.postpone_host) == (None, None)
    await end(pool, ending(task, Retry(reason="y", after=timedelta(hours=1)), backoff=NONE))
    waiting = await look(pool, task_id)
    assert (waiting.scheduled_for is not None, waiting.postpone_code, waiting.postpone_host) == (True, None, None)


async def test_the_database_knows_every_postpone_code(pool: Pool) -> None:
    async with pool.connection() as conn:
        row = await (
            await conn.execute(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'task_live_postpone_code'"
            )
        ).fetchone()
    assert row is not None
    assert set(re.findall(r"'(\w+)'", row[0])) == set(PostponeCode)
    assert all(code.label for code in PostponeCode)
