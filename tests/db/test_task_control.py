"""What people do to tasks, on the queue itself: retry and bulk, alone and among workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Connection, Pool, connect
from menuwatch.queue import service
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.outcome import Done, Fail, Postpone, Retry
from menuwatch.queue.task_list import TaskFilter
from tests.db.queue_calls import claim, end, look, put, states

FETCH = Role.PAYLOAD_FETCH
REFRESH = Role.PRODUCT_REFRESH
NONE = timedelta(0)


async def _ended(pool: Pool, outcome: Any, **new: Any) -> int:
    """A task that ended like this."""
    (task_id,) = await put(pool, NewTask(**{"role": FETCH, "dispensary_id": 1, **new}))
    (task,) = await claim(pool)
    assert task.id == task_id
    await end(pool, ending(task, outcome, backoff=timedelta(hours=1)))
    return task_id


async def _retry(pool: Pool, *ids: int, priority: int = 10) -> dict[int, tuple[int | None, str]]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT id, task_id, outcome FROM retry_tasks(%s, %s)", (list(ids), priority))
        return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}


@pytest.mark.parametrize(("outcome", "status"), [(Done(), "completed"), (Fail(reason="no"), "failed")])
async def test_what_is_over_is_enqueued_anew(pool: Pool, outcome: Any, status: str) -> None:
    old = await _ended(pool, outcome, priority=3, platform="other", payload={"a": 1.50}, max_retries=7)
    before = await look(pool, old)
    new, became = (await _retry(pool, old))[old]
    assert became == "created"
    assert new is not None
    assert new > old
    task = await look(pool, new)
    assert (task.role, task.dispensary_id, task.platform, task.payload, task.max_retries) == (
        FETCH, 1, "other", {"a": 1.5}, 7,
    )  # fmt: skip
    assert (task.status, task.priority, task.retry_count, task.attempt, task.error_message, task.scheduled_for) == (
        Status.PENDING, 10, 0, 0, None, None,
    )  # fmt: skip
    assert await look(pool, old) == before, "history is history"
    assert before.status == status
    (claimed,) = await claim(pool)
    assert claimed.id == new


async def test_a_cancelled_task_too_and_a_high_priority_is_kept(pool: Pool) -> None:
    (old,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, priority=30))
    async with pool.connection() as conn:
        await tasks.cancel(conn, [old])
    new, became = (await _retry(pool, old))[old]
    assert (became, (await look(pool, new or 0)).priority) == ("created", 30)


async def test_the_same_work_never_waits_twice(pool: Pool) -> None:
    one = await _ended(pool, Fail(reason="x"))
    two = await _ended(pool, Fail(reason="x"))
    (waiting,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, priority=1))
    assert await _retry(pool, one) == {one: (waiting, "joined")}
    assert (await look(pool, waiting)).priority == 10, "it is wanted now"
    await claim(pool)
    answer = await _retry(pool, one, two)
    assert {became for _, became in answer.values()} == {"created", "joined"}
    assert len({task for task, _ in answer.values()}) == 1


async def test_refreshes_are_each_their_own(pool: Pool) -> None:
    old = [
        await _ended(pool, Fail(reason="x"), role=REFRESH, payload={"payload_id": n}, unique=False) for n in (1, 2, 2)
    ]
    answer = await _retry(pool, *old)
    assert [became for _, became in answer.values()] == ["created"] * 3
    again = [(await look(pool, answer[task][0] or 0)).payload["payload_id"] for task in old]
    assert again == [1, 2, 2]


async def test_what_waits_for_its_time_is_due_at_once(pool: Pool) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    (planned,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, scheduled_for=later))
    failing = await _ended(pool, Retry(reason="try later"), dispensary_id=2)
    thrown = await _ended(
        pool, Postpone(code=PostponeCode.THROTTLED, until=later, reason="host cooling down"), dispensary_id=3
    )
    assert await claim(pool) == []
    assert await _retry(pool, planned, failing, thrown) == {
        task: (task, "pulled") for task in (planned, failing, thrown)
    }
    claimed = {task.id: task for task in await claim(pool, 5)}
    assert set(claimed) == {planned, failing, thrown}
    assert {task.priority for task in claimed.values()} == {10}
    assert (claimed[failing].retry_count, claimed[failing].attempt) == (1, 2), "it remains the task it was"


async def test_a_pulled_task_still_waits_behind_its_head(pool: Pool) -> None:
    failing = await _ended(pool, Retry(reason="try later"))
    (head,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, unique=False))
    await claim(pool)
    await _retry(pool, failing)
    assert await claim(pool) == []
    assert await states(pool) == {head: "a", failing: "p"}
    await end(pool, ending(await look(pool, head), Done(), backoff=NONE))
    assert [task.id for task in await claim(pool)] == [failing]


async def test_what_is_due_already_becomes_more_urgent(pool: Pool) -> None:
    head, parked = await put(pool, *[NewTask(role=FETCH, dispensary_id=1, unique=False) for _ in range(2)])
    (alone,) = await put(pool, NewTask(role=Role.STORE_DISCOVERY, priority=12))
    assert await _retry(pool, parked, alone, priority=20) == {parked: (parked, "raised"), alone: (alone, "raised")}
    assert await states(pool) == {head: "p", parked: "r", alone: "r"}, "it goes before the one it waited behind"
    assert await _retry(pool, parked, alone, priority=15) == {parked: (parked, "waiting"), alone: (alone, "waiting")}
    assert [(await look(pool, task)).priority for task in (head, parked, alone)] == [0, 20, 20]
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE task_live SET state = 's', scheduled_for = now() - interval '1 minute' WHERE id = %s", [alone]
        )
    assert await _retry(pool, alone, priority=30) == {alone: (alone, "raised")}, "due, and not taken up yet"
    assert [task.id for task in await claim(pool, 3)] == [alone, parked]


async def test_the_rest_is_told_apart(pool: Pool) -> None:
    (ready, parked) = await put(
        pool, *[NewTask(role=FETCH, dispensary_id=1, priority=10, unique=False) for _ in range(2)]
    )
    (other,) = await put(pool, NewTask(role=FETCH, dispensary_id=2, priority=11))
    await claim(pool)
    old = await _ended(pool, Fail(reason="x"), role=Role.ANALYTICS_REFRESH, dispensary_id=None, priority=50)
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT * FROM retry_tasks(%s, 10, '{analytics_refresh}')", ([ready, parked, other, old, 999],)
        )
        answer = {row[0]: row[2] for row in await cursor.fetchall()}
    assert answer == {ready: "waiting", parked: "waiting", other: "active", old: "unhandled", 999: "missing"}


async def test_bulk_retry_says_what_it_passed_over(pool: Pool) -> None:
    failed = [await _ended(pool, Fail(reason="403 from host"), dispensary_id=store) for store in (1, 2, 2)]
    done = await _ended(pool, Done(), dispensary_id=3)
    backing_off = await _ended(pool, Retry(reason="403 from host"), dispensary_id=4)
    later = datetime.now(UTC) + timedelta(days=1)
    (planned,) = await put(pool, NewTask(role=FETCH, dispensary_id=5, scheduled_for=later))
    (waiting,) = await put(pool, NewTask(role=FETCH, dispensary_id=6))

    async with pool.connection() as conn:
        everything = TaskFilter(roles=[FETCH])
        dry = await service.bulk_retry(conn, everything, dry_run=True)
        assert (dry.matched, dry.done, dry.would, dry.skipped) == (
            7,
            0,
            3,
            {"completed": 1, "scheduled": 1, "waiting": 2},
        )
        assert await states(pool) == {backing_off: "s", planned: "s", waiting: "r"}, "nothing was done"
        only = await service.bulk_retry(conn, TaskFilter(error="403 FROM"), dry_run=True)
        assert (only.matched, only.done, only.would, only.skipped) == (4, 0, 3, {"waiting": 1})

        real = await service.bulk_retry(conn, everything)
        assert (real.matched, real.done, real.would) == (7, 3, 0), "two of them were the same work"
        assert real.skipped == {"completed": 1, "scheduled": 1, "waiting": 2}
        named = await service.bulk_retry(conn, TaskFilter(statuses=[Status.COMPLETED, Status.PENDING]))
        assert (named.done, named.skipped) == (2, {"waiting": 4}), "completed and planned, as was asked"
        picked = await service.bulk_retry(conn, TaskFilter(), ids=[done, failed[0], 999, done])
        assert (picked.matched, picked.done, picked.skipped) == (2, 0, {"missing": 1, "waiting": 2})
    counts = Counter([(await look(pool, task)).dispensary_id for task in await states(pool)])
    assert counts == dict.fromkeys(range(1, 7), 1)


async def test_a_retry_preview_counts_what_is_done(pool: Pool) -> None:
    analytics, discovery = Role.ANALYTICS_REFRESH, Role.STORE_DISCOVERY
    for _ in range(3):  # store 1: one new task for three failures
        await _ended(pool, Fail(reason="x"))
    await _ended(pool, Fail(reason="x"), role=Role.PRODUCT_DISCOVERY)  # another role: one of its own
    await _ended(pool, Fail(reason="x"), dispensary_id=2)  # store 2: one waits
    await put(pool, NewTask(role=FETCH, dispensary_id=2, scheduled_for=datetime.now(UTC) + timedelta(days=1)))
    for _ in range(2):  # store 3: a failure joins the task that backs off, which is due at once
        await _ended(pool, Fail(reason="x"), dispensary_id=3, unique=False)
    await _ended(pool, Retry(reason="try later"), dispensary_id=3)
    for payload in (1, 1, 2):  # each refresh is its own
        await _ended(pool, Fail(reason="x"), role=REFRESH, payload={"payload_id": payload}, unique=False)
    for state in ("az", "az", "ca"):  # without a store the payload decides: "ca" waits already
        await _ended(pool, Fail(reason="x"), role=discovery, dispensary_id=None, payload={"state": state})
    await _ended(pool, Fail(reason="x"), role=analytics, dispensary_id=None)
    await _ended(pool, Fail(reason="x"), dispensary_id=4)  # store 4: one runs, and another one waits behind it then
    await put(pool, NewTask(role=FETCH, dispensary_id=4))
    (running,) = await claim(pool, 1, roles=[FETCH])
    assert running.dispensary_id == 4
    await put(pool, NewTask(role=discovery, payload={"state": "ca"}))

    async with pool.connection() as conn:
        where = TaskFilter(error="x")
        preview = await service.bulk_retry(conn, where, dry_run=True)
        everything = await service.bulk_retry(conn, TaskFilter(), dry_run=True)
        done = await service.bulk_retry(conn, where)
    # 1 of store 1, 1 product discovery, none of stores 2 and 3, 3 refreshes, 1 "az", 1 analytics, store 4.
    assert (preview.matched, preview.would, preview.skipped) == (15, 8, {"waiting": 7})
    assert (done.matched, done.done, done.skipped) == (15, 8, {"waiting": 7})
    assert everything.would == 9, "and the task that backs off"


async def test_bulk_cancel_and_who_is_at_it_is_told(pool: Pool, database_url: str) -> None:
    done = await _ended(pool, Done(), dispensary_id=9)
    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n % 3, unique=False) for n in range(9)])
    other = (await put(pool, NewTask(role=REFRESH, dispensary_id=1)))[0]
    (running, _) = await claim(pool, 2, roles=[FETCH])
    listener = await connect(database_url)
    try:
        await listener.execute("LISTEN menuwatch_tasks")
        async with pool.connection() as conn:
            dry = await service.bulk_cancel(conn, TaskFilter(roles=[FETCH]), dry_run=True)
            assert (dry.matched, dry.done, dry.would, dry.skipped, dry.dry_run) == (10, 0, 9, {"finished": 1}, True)
            assert len(await states(pool)) == 10
            real = await service.bulk_cancel(conn, TaskFilter(roles=[FETCH]), reason="wrong day")
            assert (real.matched, real.done, real.skipped) == (10, 9, {"finished": 1})
        lost = set()
        async for notice in listener.notifies(timeout=5, stop_after=2):
            lost.add(notice.payload)
        assert f"lost {running.id}" in lost
        assert len(lost) == 2
    finally:
        await listener.close()
    assert await states(pool) == {other: "r"}
    assert {((await look(pool, task)).status, (await look(pool, task)).error_message) for task in ids} == {
        (Status.CANCELLED, "wrong day")
    }
    assert (await look(pool, done)).status is Status.COMPLETED
    assert await end(pool, ending(running, Done(), backoff=NONE)) == {}, "whoever ran it has lost it"


@asynccontextmanager
async def _connections(url: str, n: int) -> AsyncIterator[list[Connection]]:
    opened = [await connect(url) for _ in range(n)]
    try:
        yield opened
    finally:
        for conn in opened:
            await conn.close()


async def test_a_task_whose_end_is_being_written_is_left_to_its_worker(pool: Pool, database_url: str) -> None:
    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in range(1, 5)])
    async with _connections(database_url, 2) as (worker, person):
        (task,) = await tasks.claim(worker, "w", None, 1)
        async with worker.transaction():
            await tasks.finish(worker, "w", [ending(task, Done(), backoff=NONE)])
            async with asyncio.timeout(5):
                found = await service.bulk_cancel(person, TaskFilter())
        assert (found.matched, found.done, found.skipped) == (4, 3, {"busy": 1})
    assert {(await look(pool, one)).status for one in ids if one != task.id} == {Status.CANCELLED}
    assert (await look(pool, task.id)).status is Status.COMPLETED


@pytest.mark.parametrize("commits", [True, False])
async def test_a_retry_gives_way_and_comes_again(pool: Pool, database_url: str, commits: bool) -> None:
    """While a worker's transaction is about to free the place that a retried task would wait behind."""
    old = await _ended(pool, Fail(reason="x"))
    async with _connections(database_url, 3) as (worker, person, watch):
        await tasks.enqueue(worker, [NewTask(role=FETCH, dispensary_id=1)])
        (task,) = await tasks.claim(worker, "w", None, 1)
        await worker.execute("BEGIN")
        await tasks.finish(worker, "w", [ending(task, Done(), backoff=NONE)])
        retrying = asyncio.create_task(service.retry(person, old))
        async with asyncio.timeout(20):
            for _ in range(2):  # it waits, gives way, and waits again
                for waits in (True, False):
                    while True:
                        cursor = await watch.execute(
                            "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = %s",
                            (person.info.backend_pid,),
                        )
                        if await cursor.fetchone() == (waits,):
                            break
                        await asyncio.sleep(0.002)
            await worker.execute("COMMIT" if commits else "ROLLBACK")
            result = await retrying
    assert result.outcome == "created"
    assert await states(pool) == ({result.task.id: "r"} if commits else {task.id: "a", result.task.id: "p"})


async def test_bulk_among_a_crowd_of_workers(pool: Pool, database_url: str) -> None:
    """People cancel and retry in bulk while workers claim, end and retry on few stores: nobody meets an error, two never work on one
    store, nothing ends twice and nothing is stranded."""
    stores, people, turns = 5, 2, 10
    acting = people

    async def worker(conn: Connection, name: str, seed: int) -> None:
        mine = Random(seed)
        while True:
            over = acting == 0
            # In the order of their ids, as the engine ends them.
            claimed = sorted(await tasks.claim(conn, name, None, mine.randint(1, 4)), key=lambda task: task.id)
            if not claimed:
                if over and await tasks.unfinished(conn) == 0:
                    return
                await asyncio.sleep(0.001)
                continue
            endings = []
            for task in claimed:
                what: Any = mine.choice((Done(), Done(), Fail(reason="no"), Retry(reason="again", after=NONE)))
                endings.append(ending(task, what, backoff=NONE))
            async with conn.transaction():
                await tasks.finish(conn, name, endings)

    async def person(conn: Connection, seed: int) -> None:
        nonlocal acting
        mine = Random(seed)
        for turn in range(turns):
            store = mine.randrange(stores)
            batch = [
                NewTask(
                    role=mine.choice((FETCH, REFRESH)),
                    dispensary_id=store,
                    priority=mine.choice((0, 10, 30)),
                    unique=mine.random() < 0.2,
                    max_retries=2,
                )
                for _ in range(40)
            ]
            await tasks.enqueue(conn, batch)
            async with conn.transaction():
                where = mine.choice((TaskFilter(dispensary_id=store), TaskFilter(roles=[REFRESH]), TaskFilter()))
                if turn % 2:
                    await service.bulk_cancel(conn, where, reason="enough")
                else:
                    await service.bulk_retry(conn, where)
        acting -= 1

    async with _connections(database_url, 6) as conns, asyncio.timeout(60):
        await asyncio.gather(
            *(person(conn, 100 + n) for n, conn in enumerate(conns[:people])),
            *(worker(conn, f"w{n}", 200 + n) for n, conn in enumerate(conns[people:])),
        )
    assert await states(pool) == {}
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT count(*) FROM task_history a JOIN task_history b ON a.dispensary_id = b.dispensary_id AND a.id < b.id"
            " AND a.claimed_at IS NOT NULL AND b.claimed_at IS NOT NULL"
            " AND tstzrange(a.claimed_at, a.completed_at) && tstzrange(b.claimed_at, b.completed_at)"
        )
        assert await cursor.fetchone() == (0,)
        cursor = await conn.execute("SELECT status, count(*) FROM task_history GROUP BY status")
        assert set(dict(await cursor.fetchall())) == {"completed", "failed", "cancelled"}
        cursor = await conn.execute("SELECT count(*) - count(DISTINCT id) FROM task_history")
        assert await cursor.fetchone() == (0,)


async def test_discoveries_of_two_platforms_are_two_tasks(pool: Pool) -> None:
    def new(platform: str) -> NewTask:
        return NewTask(role=Role.STORE_DISCOVERY, platform=platform, payload={"state": "AZ"})

    first = await put(pool, new("dutchie"), new("weedmaps"), new("dutchie"))
    assert (first[0] == first[2], first[0] == first[1]) == (True, False)
    assert await put(pool, new("weedmaps"), new("dutchie")) == [first[1], first[0]], "a waiting one is returned"
    for task in await claim(pool, 2):
        await end(pool, ending(task, Fail(reason="no reason"), backoff=timedelta(hours=1)))
    (resolved,) = await put(pool, new("weedmaps"))
    assert resolved not in first
    retried = await _retry(pool, *first[:2])
    assert [outcome for _, outcome in retried.values()] == ["created", "joined"], retried
