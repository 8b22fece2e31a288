"""Enqueueing and claiming: order, exclusion, uniqueness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from menuwatch.db.pool import Pool
from menuwatch.queue import store as tasks
from menuwatch.queue.ending import ending
from menuwatch.queue.model import NewTask, Role, Status
from menuwatch.queue.outcome import Done, Retry
from tests.db.queue_calls import claim, end, look, put, states

FETCH = Role.PAYLOAD_FETCH
REFRESH = Role.PRODUCT_REFRESH
DISCOVERY = Role.STORE_DISCOVERY
ANALYTICS = Role.ANALYTICS_REFRESH
NONE = timedelta(0)


async def test_highest_priority_first_then_oldest(pool: Pool) -> None:
    low, high, mid, high_later = await put(
        pool,
        NewTask(role=FETCH, dispensary_id=1, priority=0),
        NewTask(role=REFRESH, dispensary_id=2, priority=20),
        NewTask(role=FETCH, dispensary_id=3, priority=10),
        NewTask(role=DISCOVERY, priority=20),
    )
    assert [task.id for task in await claim(pool, 2)] == [high, high_later]
    assert [task.id for task in await claim(pool, 1)] == [mid]
    assert [task.id for task in await claim(pool, 5)] == [low]
    assert await claim(pool, 5) == []


async def test_a_claim_is_limited_to_its_roles(pool: Pool) -> None:
    fetch, refresh, analytics = await put(
        pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=REFRESH, dispensary_id=2), NewTask(role=ANALYTICS)
    )
    assert [task.id for task in await claim(pool, 5, [ANALYTICS])] == [analytics]
    assert {task.id for task in await claim(pool, 5, [REFRESH, FETCH])} == {fetch, refresh}


async def test_a_claim_says_whose_the_task_is(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1, payload={"k": [1, "é"]}, priority=3))
    (task,) = await claim(pool)
    assert (task.id, task.role, task.status, task.worker_id, task.attempt) == (task_id, FETCH, Status.CLAIMED, "w", 1)
    assert (task.payload, task.priority, task.retry_count, task.max_retries) == ({"k": [1, "é"]}, 3, 0, 3)
    assert task.claimed_at is not None
    assert task == await look(pool, task_id)


async def test_only_what_is_due(pool: Pool) -> None:
    now = datetime.now(UTC)
    later, past = await put(
        pool,
        NewTask(role=FETCH, dispensary_id=1, priority=20, scheduled_for=now + timedelta(hours=1)),
        NewTask(role=FETCH, dispensary_id=2, scheduled_for=now - timedelta(hours=1)),
    )
    assert [task.id for task in await claim(pool, 5)] == [past]
    assert (await look(pool, later)).status == Status.PENDING
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET scheduled_for = now() - interval '1 second' WHERE id = %s", (later,))
    assert [task.id for task in await claim(pool, 5)] == [later]


async def test_what_comes_due_behind_a_head_waits_its_turn(pool: Pool) -> None:
    now = datetime.now(UTC)
    head, later = await put(
        pool,
        NewTask(role=FETCH, dispensary_id=1, unique=False),
        NewTask(role=FETCH, dispensary_id=1, unique=False, scheduled_for=now + timedelta(hours=1)),
    )
    (task,) = await claim(pool, 5)
    assert task.id == head
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET scheduled_for = now() WHERE id = %s", (later,))
    assert await claim(pool, 5) == []
    assert (await states(pool))[later] == "p"
    await end(pool, ending(task, Done(), backoff=NONE))
    assert [task.id for task in await claim(pool, 5)] == [later]


async def test_one_active_task_per_store_across_roles(pool: Pool) -> None:
    fetch, refresh = await put(
        pool, NewTask(role=FETCH, dispensary_id=1), NewTask(role=REFRESH, dispensary_id=1, priority=10)
    )
    claimed = await claim(pool, 5)
    assert [task.id for task in claimed] == [refresh]
    assert await claim(pool, 5) == []
    await end(pool, ending(claimed[0], Done(), backoff=NONE))
    assert [task.id for task in await claim(pool, 5)] == [fetch]


async def test_a_busy_store_hides_nothing_behind_it(pool: Pool) -> None:
    await put(pool, *(NewTask(role=FETCH, dispensary_id=1, priority=20, unique=False) for _ in range(50)))
    await put(
        pool,
        *(NewTask(role=role, dispensary_id=1, priority=20, unique=False) for role in (REFRESH, Role.PRODUCT_DISCOVERY)),
    )
    (other, nowhere) = await put(pool, NewTask(role=FETCH, dispensary_id=2), NewTask(role=DISCOVERY))
    first = await claim(pool, 3)
    assert [(task.dispensary_id, task.id in (other, nowhere)) for task in first] == [
        (1, False),
        (2, True),
        (None, True),
    ]


async def test_tasks_without_a_store_neither_hide_nor_are_hidden(pool: Pool) -> None:
    first, second, store = await put(
        pool,
        NewTask(role=ANALYTICS),
        NewTask(role=DISCOVERY, payload={"state": "AZ"}),
        NewTask(role=FETCH, dispensary_id=1),
    )
    assert [task.id for task in await claim(pool, 1)] == [first]
    assert [task.id for task in await claim(pool, 5)] == [second, store]


async def test_enqueueing_again_returns_the_waiting_one(pool: Pool) -> None:
    async with pool.connection() as conn:
        (first,) = await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1)])
        (again,) = await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1, priority=20)])
        (lower,) = await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1, priority=5)])
        (other,) = await tasks.enqueue(conn, [NewTask(role=REFRESH, dispensary_id=1)])
    assert (first.created, again.created, lower.created, other.created) == (True, False, False, True)
    assert first.id == again.id == lower.id != other.id
    assert (await look(pool, first.id)).priority == 20


async def test_a_running_task_is_not_a_waiting_one(pool: Pool) -> None:
    (first,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (running,) = await claim(pool)
    async with pool.connection() as conn:
        second, third = await tasks.enqueue(
            conn, [NewTask(role=FETCH, dispensary_id=1), NewTask(role=FETCH, dispensary_id=1)]
        )
    assert (second.created, third.created, second.id == third.id) == (True, False, True)
    assert (await states(pool)) == {first: "a", second.id: "p"}
    # It fails and waits again, beside the one that was enqueued meanwhile: neither is lost.
    await end(pool, ending(running, Retry(reason="x"), backoff=timedelta(hours=1)))
    assert (await states(pool)) == {first: "s", second.id: "r"}


async def test_asked_for_sooner_an_untried_task_comes_forward(pool: Pool) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    async with pool.connection() as conn:
        (planned,) = await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1, scheduled_for=tomorrow)])
        (now,) = await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1)])
    assert (now.id, now.created) == (planned.id, False)
    assert [task.id for task in await claim(pool)] == [planned.id]


async def test_a_task_that_backs_off_comes_forward_only_for_something_more_urgent(pool: Pool) -> None:
    (task_id,) = await put(pool, NewTask(role=FETCH, dispensary_id=1))
    (task,) = await claim(pool)
    await end(pool, ending(task, Retry(reason="x"), backoff=timedelta(hours=1)))
    await put(pool, NewTask(role=FETCH, dispensary_id=1))
    assert await claim(pool) == []
    assert await put(pool, NewTask(role=FETCH, dispensary_id=1, priority=20)) == [task_id]
    assert [task.id for task in await claim(pool)] == [task_id]


async def test_unique_without_a_store_goes_by_payload(pool: Pool) -> None:
    async with pool.connection() as conn:
        made = await tasks.enqueue(
            conn,
            [
                NewTask(role=DISCOVERY, payload={"state": "AZ"}),
                NewTask(role=DISCOVERY, payload={"state": "CA"}),
                NewTask(role=DISCOVERY, payload={"state": "AZ"}, priority=5),
                NewTask(role=ANALYTICS),
                NewTask(role=ANALYTICS),
            ],
        )
        again = await tasks.enqueue(conn, [NewTask(role=DISCOVERY, payload={"state": "CA"}), NewTask(role=ANALYTICS)])
    assert [item.created for item in made] == [True, True, False, True, False]
    assert [item.id for item in again] == [made[1].id, made[3].id]
    assert (await look(pool, made[0].id)).priority == 5


async def test_in_one_batch_what_waits_alone_stands_back_behind_an_earlier_one(pool: Pool) -> None:
    async with pool.connection() as conn:
        made = await tasks.enqueue(
            conn,
            [
                NewTask(role=FETCH, dispensary_id=1, unique=False),
                NewTask(role=FETCH, dispensary_id=1, priority=7),
                NewTask(role=FETCH, dispensary_id=1, unique=False),
                NewTask(role=FETCH, dispensary_id=2),
            ],
        )
    assert [item.created for item in made] == [True, False, True, True]
    assert made[1].id == made[0].id
    assert (await look(pool, made[0].id)).priority == 7


async def test_first_in_first_out_behind_a_head_and_priority_before_that(pool: Pool) -> None:
    ids = await put(pool, *(NewTask(role=REFRESH, dispensary_id=1, payload={"n": n}, unique=False) for n in range(4)))
    (urgent,) = await put(pool, NewTask(role=REFRESH, dispensary_id=1, priority=20, unique=False))
    order = []
    while claimed := await claim(pool, 5):
        assert len(claimed) == 1
        order.append(claimed[0].id)
        await end(pool, ending(claimed[0], Done(), backoff=NONE))
    assert order == [urgent, *ids]


async def test_enqueue_notifies_once_per_batch_and_only_of_due_work(pool: Pool) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    async with pool.connection() as listening, pool.connection() as conn:
        await listening.execute("LISTEN menuwatch_tasks")
        await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=1, scheduled_for=later)])
        await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=2)], wake=False)
        await tasks.enqueue(conn, [NewTask(role=FETCH, dispensary_id=store) for store in range(10, 20)])
        await conn.execute("NOTIFY menuwatch_tasks, 'end'")
        heard = []
        async for notice in listening.notifies(timeout=10):
            heard.append(notice.payload)
            if notice.payload == "end":
                break
        await listening.execute("UNLISTEN *")
    assert heard == ["", "end"]
