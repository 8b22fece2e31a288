"""The queue under concurrency: several connections, deterministic races first, then a crowd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Connection, Pool, connect
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import Claim, cycle
from menuwatch.queue.ending import Ending, ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.outcome import Done, Postpone, Retry
from tests.db.queue_calls import claim, put

FETCH = Role.PAYLOAD_FETCH
REFRESH = Role.PRODUCT_REFRESH
NONE = timedelta(0)
SOME_DAY = datetime.now(UTC) + timedelta(days=1)


@asynccontextmanager
async def _connections(url: str, n: int) -> AsyncIterator[list[Connection]]:
    opened = [await connect(url) for _ in range(n)]
    try:
        yield opened
    finally:
        for conn in opened:
            await conn.close()


async def _waits(pool: Pool, conn: Connection) -> None:
    """Returns once that connection waits for a lock."""
    pid = conn.info.backend_pid
    async with pool.connection() as watch:
        async with asyncio.timeout(10):
            while True:
                cursor = await watch.execute(
                    "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", (pid,)
                )
                if (await cursor.fetchone() or (False,))[0]:
                    return
                await asyncio.sleep(0.002)


async def _states(pool: Pool) -> dict[int, str]:
    async with pool.connection() as conn:
        return dict(await (await conn.execute("SELECT id, state FROM task_live ORDER BY id")).fetchall())


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("outcome", [Done(), Retry(reason="x", after=timedelta(hours=1))])
async def test_a_finish_waits_for_who_is_parking_behind_it(
    pool: Pool, database_url: str, outcome: Any, commits: bool
) -> None:
    async with _connections(database_url, 2) as (enqueuer, worker):
        await tasks.enqueue(worker, [NewTask(role=FETCH, dispensary_id=1)])
        (task,) = await tasks.claim(worker, "w", None, 1)
        await enqueuer.execute("BEGIN")
        (behind,) = await tasks.enqueue(enqueuer, [NewTask(role=FETCH, dispensary_id=1, unique=False)])
        finishing = asyncio.create_task(tasks.finish(worker, "w", [ending(task, outcome, backoff=NONE)]))
        await _waits(pool, worker)
        await enqueuer.execute("COMMIT" if commits else "ROLLBACK")
        assert list(await finishing) == [task.id]
    live = {} if isinstance(outcome, Done) else {task.id: "s"}
    assert await _states(pool) == {**live, **({behind.id: "r"} if commits else {})}


@pytest.mark.parametrize("commits", [True, False])
async def test_who_enqueues_behind_a_task_that_is_finishing_waits_for_it(
    pool: Pool, database_url: str, commits: bool
) -> None:
    async with _connections(database_url, 2) as (enqueuer, worker):
        await tasks.enqueue(worker, [NewTask(role=FETCH, dispensary_id=1)])
        (task,) = await tasks.claim(worker, "w", None, 1)
        await worker.execute("BEGIN")
        await tasks.finish(worker, "w", [ending(task, Done(), backoff=NONE)])
        enqueuing = asyncio.create_task(tasks.enqueue(enqueuer, [NewTask(role=FETCH, dispensary_id=1)]))
        await _waits(pool, enqueuer)
        await worker.execute("COMMIT" if commits else "ROLLBACK")
        (made,) = await enqueuing
    assert made.created
    assert await _states(pool) == ({made.id: "r"} if commits else {task.id: "a", made.id: "p"})


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("where", ["idle", "behind a running task", "without a store", "for later"])
async def test_two_enqueuers_make_one_waiting_task(pool: Pool, database_url: str, where: str, commits: bool) -> None:
    async with _connections(database_url, 2) as (first, second):
        if where == "behind a running task":
            await tasks.enqueue(first, [NewTask(role=FETCH, dispensary_id=1)])
            assert len(await tasks.claim(first, "w", None, 1)) == 1
        (now,) = await (await first.execute("SELECT now()")).fetchone() or (None,)
        new = NewTask(
            role=FETCH,
            dispensary_id=None if where == "without a store" else 1,
            scheduled_for=now + timedelta(hours=1) if where == "for later" else None,
        )
        await first.execute("BEGIN")
        (one,) = await tasks.enqueue(first, [new])
        enqueuing = asyncio.create_task(tasks.enqueue(second, [new]))
        await _waits(pool, second)
        await first.execute("COMMIT" if commits else "ROLLBACK")
        (two,) = await enqueuing
    assert one.created
    assert two.created is not commits
    assert (two.id == one.id) is commits


async def test_a_due_task_and_a_new_head_in_the_same_moment(pool: Pool, database_url: str) -> None:
    """A scheduled task comes due while another session enqueues the first of its key: the claim neither fails nor waits, work
    of other stores goes on, and nothing is lost."""
    async with _connections(database_url, 2) as (enqueuer, claimer):
        await tasks.enqueue(claimer, [NewTask(role=FETCH, dispensary_id=1), NewTask(role=FETCH, dispensary_id=2)])
        task, other = await tasks.claim(claimer, "w", None, 2)
        later = Retry(reason="x", after=timedelta(hours=1))
        await tasks.finish(claimer, "w", [ending(one, later, backoff=NONE) for one in (task, other)])
        await claimer.execute("UPDATE task_live SET scheduled_for = now()")
        await enqueuer.execute("BEGIN")
        (head,) = await tasks.enqueue(enqueuer, [NewTask(role=FETCH, dispensary_id=1, unique=False)])
        assert [item.id for item in await tasks.claim(claimer, "w", None, 5)] == [other.id]
        await enqueuer.execute("COMMIT")
        assert [item.id for item in await tasks.claim(claimer, "w", None, 5)] == [task.id]
    assert await _states(pool) == {task.id: "a", other.id: "a", head.id: "p"}


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize(
    "outcome",
    [
        Done(),
        Retry(reason="x", after=timedelta(hours=1)),
        Postpone(code=PostponeCode.THROTTLED, until=SOME_DAY, reason="x"),
    ],
)
async def test_nothing_parks_behind_a_head_that_is_on_its_way_out(
    pool: Pool, database_url: str, outcome: Any, commits: bool
) -> None:
    """A task comes due while the head of its key is being finished: it stays where it is, until there is a head or none."""
    async with _connections(database_url, 2) as (worker, other):
        await tasks.enqueue(worker, [NewTask(role=FETCH, dispensary_id=1)])
        (task,) = await tasks.claim(worker, "w", None, 1)
        (later,) = await tasks.enqueue(
            worker, [NewTask(role=FETCH, dispensary_id=1, scheduled_for=SOME_DAY, unique=False)]
        )
        await worker.execute("UPDATE task_live SET scheduled_for = now() WHERE id = %s", (later.id,))
        await worker.execute("BEGIN")
        await tasks.finish(worker, "w", [ending(task, outcome, backoff=NONE)])
        assert await asyncio.wait_for(tasks.claim(other, "o", None, 5), 5) == []
        await worker.execute("COMMIT" if commits else "ROLLBACK")
        assert await tasks.unpark_stranded(other) == 0
        assert [item.id for item in await tasks.claim(other, "o", None, 5)] == ([later.id] if commits else [])
        assert await tasks.unpark_stranded(other) == 0
    assert (await _states(pool))[later.id] == ("a" if commits else "p")


@pytest.mark.parametrize("commits", [True, False])
async def test_a_cycle_that_loses_its_transaction_leaves_nothing(pool: Pool, database_url: str, commits: bool) -> None:
    """Ends, follow-ups and the next claim are one: a follow-up may even be claimed in the cycle that makes it."""
    async with _connections(database_url, 2) as (worker, other):
        await tasks.enqueue(worker, [NewTask(role=FETCH, dispensary_id=store) for store in (1, 2)])
        one, two = await tasks.claim(worker, "w", None, 2)
        assert await tasks.cancel(other, [two.id]) == [two.id]
        ends = [Ending(task_id=task.id, attempt=task.attempt, verb="done") for task in (one, two)]
        then = [(task.id, NewTask(role=REFRESH, dispensary_id=task.dispensary_id, unique=False)) for task in (one, two)]
        await worker.execute("BEGIN")
        cycled = await cycle(worker, "w", ends, then, Claim(roles=list(Role), n=3))
        (next_one,) = cycled.claimed
        assert (cycled.lost, next_one.task.dispensary_id, next_one.task.role) == ({two.id}, 1, REFRESH)
        assert await asyncio.wait_for(tasks.claim(other, "o", None, 5), 5) == []
        await worker.execute("COMMIT" if commits else "ROLLBACK")
        assert await tasks.claim(other, "o", None, 5) == []
    assert await _states(pool) == ({next_one.task.id: "a"} if commits else {one.id: "a"})


async def test_a_claimer_passes_over_what_another_has_in_hand(database_url: str) -> None:
    async with _connections(database_url, 2) as (first, second):
        await tasks.enqueue(first, [NewTask(role=FETCH, dispensary_id=store) for store in (1, 2, 3)])
        await tasks.enqueue(first, [NewTask(role=REFRESH, dispensary_id=1)])
        await first.execute("BEGIN")
        (mine,) = await tasks.claim(first, "a", None, 1)
        theirs = await asyncio.wait_for(tasks.claim(second, "b", None, 5), 5)
        assert (mine.dispensary_id, [task.dispensary_id for task in theirs]) == (1, [2, 3])
        await first.execute("ROLLBACK")
        assert [task.dispensary_id for task in await tasks.claim(second, "b", None, 5)] == [1]


async def test_a_crash_before_commit_leaves_nothing_of_it(pool: Pool, database_url: str) -> None:
    async with pool.connection() as conn:
        await conn.execute("CREATE TABLE effects (note text)")
        await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1)])
        (task,) = await tasks.claim(conn, "w", None, 1)
    async with _connections(database_url, 1) as (worker,):
        await worker.execute("BEGIN")
        assert await tasks.hold(worker, "w", task)
        await worker.execute("INSERT INTO effects VALUES ('half')")
        assert await tasks.finish(worker, "w", [ending(task, Done(), backoff=NONE)]) == {task.id: Status.COMPLETED}
        await tasks.enqueue(worker, [NewTask(role=REFRESH, dispensary_id=1)])
        async with pool.connection() as conn:
            await conn.execute("SELECT pg_terminate_backend(%s, 5000)", (worker.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            await worker.execute("COMMIT")
    async with pool.connection() as conn:
        assert await (await conn.execute("SELECT * FROM effects")).fetchall() == []
        assert await _states(pool) == {task.id: "a"}
        # The same worker, back on its feet, completes it with its chain: exactly once.
        async with conn.transaction():
            assert await tasks.hold(conn, "w", task)
            await tasks.finish(conn, "w", [ending(task, Done(), backoff=NONE)])
            (chained,) = await tasks.enqueue(conn, [NewTask(role=REFRESH, dispensary_id=1)])
    assert await _states(pool) == {chained.id: "r"}


async def test_recovery_and_cancel_pass_the_baton(pool: Pool) -> None:
    async with pool.connection() as conn:
        ids = [
            made.id
            for made in await tasks.enqueue(
                conn, [NewTask(role=FETCH, dispensary_id=1, unique=False, max_retries=0) for _ in range(3)]
            )
        ]
        await tasks.claim(conn, "w", None, 1)
        assert await tasks.recover_stale(conn, 0) == 1  # out of retries: failed
        assert await _states(pool) == {ids[1]: "r", ids[2]: "p"}
        await tasks.cancel(conn, [ids[1]])
        assert await _states(pool) == {ids[2]: "r"}
        assert await tasks.unpark_stranded(conn) == 0


async def test_stranded_tasks_are_mended(pool: Pool) -> None:
    """This needs a manual write to the table; the safety net is there all the same."""
    async with pool.connection() as conn:
        ids = [
            made.id
            for made in await tasks.enqueue(
                conn, [NewTask(role=FETCH, dispensary_id=s, unique=False) for s in (1, 1, 2, 2, 2)]
            )
        ]
        await conn.execute("DELETE FROM task_live WHERE id = ANY(%s)", ([ids[0], ids[2]],))
        assert await tasks.unpark_stranded(conn) == 2
    assert await _states(pool) == {ids[1]: "r", ids[3]: "r", ids[4]: "p"}


async def test_a_crowd_of_claimers_and_enqueuers(pool: Pool, database_url: str) -> None:
    """Everything at once on few stores: no errors, no overlap, every task exactly once, nothing stranded, chains complete."""
    rng = Random(20)
    stores = 6
    expected: set[int] = set()
    finished: list[int] = []
    active: dict[int, int] = {}
    enqueuing = 3

    async def enqueuer(conn: Connection, seed: int) -> None:
        nonlocal enqueuing
        mine = Random(seed)
        for _ in range(25):
            batch = [
                NewTask(
                    role=mine.choice((FETCH, REFRESH)),
                    dispensary_id=mine.choice((None, *range(stores))),
                    priority=mine.choice((0, 0, 10)),
                    unique=mine.random() < 0.3,
                    payload={"chain": mine.random() < 0.3},
                )
                for _ in range(mine.randint(1, 6))
            ]
            expected.update(made.id for made in await tasks.enqueue(conn, batch))
        enqueuing -= 1

    async def claimer(conn: Connection, name: str, seed: int) -> None:
        mine = Random(seed)
        while True:
            over = enqueuing == 0
            claimed = await tasks.claim(conn, name, None, mine.randint(1, 4))
            if not claimed and over and await tasks.unfinished(conn) == 0:
                return
            for task in claimed:
                if task.dispensary_id is not None:
                    assert task.dispensary_id not in active, "two active tasks of one store"
                    active[task.dispensary_id] = task.id
            await asyncio.sleep(0)
            for task in claimed:
                async with conn.transaction():
                    assert await tasks.hold(conn, name, task)
                    if task.attempt == 1 and mine.random() < 0.2:
                        outcome: Any = Retry(reason="again", after=timedelta(milliseconds=mine.choice((0, 1, 5))))
                    else:
                        outcome = Done()
                        finished.append(task.id)
                        if task.payload.get("chain"):
                            chain = [NewTask(role=REFRESH, dispensary_id=task.dispensary_id, unique=False)]
                            expected.update(made.id for made in await tasks.enqueue(conn, chain, wake=False))
                    if task.dispensary_id is not None:
                        del active[task.dispensary_id]
                    assert len(await tasks.finish(conn, name, [ending(task, outcome, backoff=NONE)])) == 1

    async with _connections(database_url, 8) as conns, asyncio.timeout(60):
        await asyncio.gather(
            *(enqueuer(conn, rng.randrange(10**6)) for conn in conns[:3]),
            *(claimer(conn, f"w{n}", rng.randrange(10**6)) for n, conn in enumerate(conns[3:])),
        )
    assert len(finished) == len(set(finished))
    assert set(finished) == expected
    assert await _states(pool) == {}
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT id, status FROM task_history")
        assert dict(await cursor.fetchall()) == dict.fromkeys(expected, "completed")
        # The intervals in which a store was held never overlap, as the database itself recorded them.
        cursor = await conn.execute(
            "SELECT count(*) FROM task_history a JOIN task_history b ON a.dispensary_id = b.dispensary_id AND a.id < b.id"
            " AND tstzrange(a.claimed_at, a.completed_at) && tstzrange(b.claimed_at, b.completed_at)"
        )
        assert await cursor.fetchone() == (0,)


@pytest.mark.parametrize("roles", [[FETCH], [FETCH, REFRESH]], ids=["one role", "two roles"])
async def test_stores_that_others_have_in_hand_do_not_hide_the_one_that_is_free(pool: Pool, roles: list[Role]) -> None:
    """Ten stores are held by a claim of another role that is not committed; the eleventh is found by a claim for one."""
    held = [NewTask(role=Role.PRODUCT_DISCOVERY, dispensary_id=n) for n in range(10)]
    await put(pool, *held)
    waiting = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in range(11)])
    async with pool.connection() as other, other.transaction():
        assert len(await tasks.claim(other, "other", [Role.PRODUCT_DISCOVERY], 10)) == 10
        assert [task.id for task in await claim(pool, 1, roles)] == waiting[-1:]
