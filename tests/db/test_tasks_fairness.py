"""No task waits for ever: old work rises, roles and stores take turns, and a claim that goes on where the last one ended misses
nothing for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import median
from time import monotonic

import pytest

from menuwatch.db.pool import Pool, connect
from menuwatch.queue import store as tasks
from menuwatch.queue.claim import BEGINNING, Claim, cycle
from menuwatch.queue.model import NewTask, Role
from tests.db.queue_calls import claim, put

FETCH, REFRESH, DISCOVERY = Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH, Role.STORE_DISCOVERY
MINUTE = timedelta(minutes=1)


async def _waited(pool: Pool, task_id: int, waited: timedelta) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET created_at = now() - %s WHERE id = %s", (waited, task_id))


async def _aged(pool: Pool) -> tuple[int, dict[int, int]]:
    async with pool.connection() as conn:
        raised = await tasks.age(conn)
        cursor = await conn.execute("SELECT id, aged FROM task_live WHERE aged > 0")
        return raised, dict(await cursor.fetchall())


@pytest.mark.parametrize(
    ("priority", "waited", "aged"),
    [
        (0, 14 * MINUTE, 0),
        (0, 15 * MINUTE, 1),
        (0, 50 * MINUTE, 3),
        (0, 60 * 24 * MINUTE, 19),
        (10, 60 * 24 * MINUTE, 9),
        (19, 60 * 24 * MINUTE, 0),
        (20, 60 * 24 * MINUTE, 0),
        (-5, 60 * 24 * MINUTE, 24),
    ],
)
async def test_a_point_for_every_quarter_of_an_hour_up_to_just_below_urgent(
    pool: Pool, priority: int, waited: timedelta, aged: int
) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, priority=priority))
    await _waited(pool, task_id, waited)
    assert await _aged(pool) == ((1, {task_id: aged}) if aged else (0, {}))
    assert (await _aged(pool))[0] == 0, "it does not rise twice for the same waiting"


async def test_waiting_begins_when_a_task_is_due(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE task_live SET created_at = now() - interval '1 day', scheduled_for = now() - interval '16 minutes'"
        )
    assert await _aged(pool) == (1, {task_id: 1})


async def test_old_work_passes_newer_work_of_higher_priority_but_nothing_urgent(pool: Pool) -> None:
    old, newer, urgent = await put(
        pool,
        NewTask(role=FETCH, dispensary_id=1),
        NewTask(role=FETCH, dispensary_id=2, priority=10),
        NewTask(role=FETCH, dispensary_id=3, priority=20),
    )
    await _waited(pool, old, 5 * 60 * MINUTE)
    await _aged(pool)
    assert [task.id for task in await claim(pool, 3)] == [urgent, old, newer]


async def test_what_begins_anew_has_not_waited_yet(pool: Pool) -> None:
    """A retry is a new wait; given back by a worker that stops it is the same one."""
    first, second = await put(pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=FETCH, dispensary_id=2))
    for task_id in (first, second):
        await _waited(pool, task_id, 60 * MINUTE)
    await _aged(pool)
    await claim(pool, 2)
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT finish_tasks('w', %s::bigint[], '{1,1}', '{retry,release}', null, null, '{0,null}', null, null)",
            ([first, second],),
        )
        cursor = await conn.execute("SELECT id, aged FROM task_live ORDER BY id")
        assert await cursor.fetchall() == [(first, 0), (second, 4)]


async def test_the_fair_share_goes_to_the_role_that_has_waited_longest(pool: Pool) -> None:
    (lone,) = await put(pool, NewTask(role=DISCOVERY, priority=-10))
    flood = await put(pool, *[NewTask(role=REFRESH, dispensary_id=n, priority=10) for n in range(1, 9)])
    roles = [FETCH, REFRESH, DISCOVERY]
    async with pool.connection() as conn:
        strict = await cycle(conn, "w", claim=Claim(roles=roles, n=2))
        fair = await cycle(conn, "w", claim=Claim(roles=roles, n=4, fair=1))
        none_left = await cycle(conn, "w", claim=Claim(roles=roles, n=4, fair=1))
    assert [one.task.id for one in strict.claimed] == flood[:2]
    assert sorted(one.task.id for one in fair.claimed) == sorted([lone, *flood[2:5]])
    assert [one.task.id for one in none_left.claimed] == flood[5:], "an unused share goes to the other roles"


async def test_who_has_waited_longest_counts_from_when_it_was_due(pool: Pool) -> None:
    """A crawl that was planned ten hours ago for a moment ago has not waited longer than a refresh of two hours ago."""
    planned, waiting = await put(
        pool, NewTask(role=FETCH, dispensary_id=1, priority=5), NewTask(role=REFRESH, dispensary_id=2)
    )
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE task_live SET created_at = now() - interval '10 hours', scheduled_for = now() - interval '1 second'"
            " WHERE id = %s",
            (planned,),
        )
        await conn.execute("UPDATE task_live SET created_at = now() - interval '2 hours' WHERE id = %s", (waiting,))
        done = await cycle(conn, "w", claim=Claim(roles=[FETCH, REFRESH], n=1, fair=1))
    assert [one.task.id for one in done.claimed] == [waiting]


async def test_an_open_batch_neither_delays_claims_nor_hides_due_tasks(pool: Pool, database_url: str) -> None:
    """300 keys come due and have a head in a transaction that is open; one key more is free."""
    due = datetime.now(UTC) + timedelta(hours=1)
    later = [
        NewTask(role=REFRESH, dispensary_id=n, scheduled_for=due, payload={"n": n}, unique=False) for n in range(301)
    ]
    *_, free = await put(pool, *later)
    async with await connect(database_url) as other, other.transaction():
        await tasks.enqueue(
            other, [NewTask(role=REFRESH, dispensary_id=n, payload={"other": n}, unique=False) for n in range(300)]
        )
        async with pool.connection() as conn:
            await conn.execute("UPDATE task_live SET scheduled_for = now() - interval '1 second' WHERE state = 's'")
        took: list[float] = []
        found: list[int] = []
        while free not in found:
            assert len(took) < 1000
            began = monotonic()
            found += [task.id for task in await claim(pool, 5, [REFRESH])]
            took.append(monotonic() - began)
        assert found == [free]
        assert median(took) < 3, "a claim that waits 20 ms for each of the 300 keys takes 6 seconds"


async def test_stores_take_turns(pool: Pool) -> None:
    """One store's long queue does not stand before another store's only task."""
    crowd = await put(pool, *[NewTask(role=REFRESH, dispensary_id=1, payload={"n": n}, unique=False) for n in range(5)])
    (other,) = await put(pool, NewTask(role=REFRESH, dispensary_id=2))
    assert [task.id for task in await claim(pool, 6)] == [crowd[0], other]


async def test_a_claim_goes_on_where_it_is_told_to(pool: Pool) -> None:
    ids = await put(pool, *[NewTask(role=FETCH, dispensary_id=n, priority=p) for n, p in enumerate([5, 5, 0, 0, 0])])
    async with pool.connection() as conn:
        first = await cycle(conn, "w", claim=Claim(roles=[FETCH], n=3, start=[BEGINNING]))
        assert [one.task.id for one in first.claimed] == ids[:3]
        assert [one.place[0] for one in first.claimed] == [-5, -5, 0]
        (late,) = (made.id for made in await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=9, priority=7)]))
        past = await cycle(conn, "w", claim=Claim(roles=[FETCH], n=1, start=[first.claimed[-1].place]))
        assert [one.task.id for one in past.claimed] == [ids[3]], "tasks added before that position are not read"
        whole = await cycle(conn, "w", claim=Claim(roles=[FETCH], n=2))
        assert [one.task.id for one in whole.claimed] == [late, ids[4]]


async def test_several_roles_go_on_each_from_its_own_place(pool: Pool) -> None:
    fetches = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in (1, 2)])
    refreshes = await put(pool, *[NewTask(role=REFRESH, dispensary_id=n) for n in (3, 4)])
    async with pool.connection() as conn:
        one = await cycle(conn, "w", claim=Claim(roles=[FETCH], n=1))
        both = await cycle(conn, "w", claim=Claim(roles=[FETCH, REFRESH], n=9, start=[one.claimed[0].place, BEGINNING]))
    assert [one.task.id for one in one.claimed] == fetches[:1]
    assert sorted(one.task.id for one in both.claimed) == sorted([fetches[1], *refreshes])


async def test_a_claim_that_comes_short_says_when_the_next_task_is_due(pool: Pool) -> None:
    await put(pool, NewTask(role=FETCH, dispensary_id=1))
    async with pool.connection() as conn:
        assert (await cycle(conn, "w", claim=Claim(roles=[FETCH], n=2))).next_due is None
        await tasks.enqueue(
            conn,
            [NewTask(role=FETCH, dispensary_id=2, scheduled_for=datetime.now(UTC) + timedelta(seconds=100))],
        )
        due = (await cycle(conn, "w", claim=Claim(roles=[FETCH], n=2))).next_due
        assert due is not None
        assert 90 < due <= 100


async def test_a_cycle_ends_chains_and_claims_in_one(pool: Pool) -> None:
    """What was lost is named, and nothing follows from it."""
    mine, lost, third = await put(pool, *[NewTask(role=FETCH, dispensary_id=n) for n in (1, 2, 3)])
    first, second = await claim(pool, 2)
    async with pool.connection() as conn:
        await tasks.cancel(conn, [lost])
        done = await cycle(
            conn,
            "w",
            [tasks.Ending(task_id=task.id, attempt=task.attempt, verb="done") for task in (first, second)],
            [
                (task_id, NewTask(role=REFRESH, dispensary_id=task_id, payload={"of": task_id}))
                for task_id in (mine, lost)
            ],
            Claim(roles=[FETCH, REFRESH], n=5),
        )
        cursor = await conn.execute("SELECT role, payload->>'of' FROM worker_tasks WHERE role = 'product_refresh'")
        assert await cursor.fetchall() == [(str(REFRESH), str(mine))]
    assert done.lost == {lost}
    assert {one.task.role for one in done.claimed} == {FETCH, REFRESH}
    assert third in {one.task.id for one in done.claimed}
