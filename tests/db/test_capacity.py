"""Capacity: numbers that were worked out by hand."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.db.pool import Pool
from menuwatch.queue.capacity import Capacity, capacity, workers_needed
from menuwatch.queue.model import Role


async def _do(pool: Pool, query: str, *values: object) -> None:
    async with pool.connection() as conn:
        await conn.execute(query.encode(), values)


async def _of(pool: Pool, role: Role) -> Capacity:
    async with pool.connection() as conn:
        (found,) = await capacity(conn, role)
    return found


async def _ended(pool: Pool, role: str, seconds: float, minutes_ago: int, status: str = "completed") -> None:
    await _do(
        pool,
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
        " postpone_count, role, platform, status, worker_id, error_message, payload) "
        "SELECT nextval('task_ids'), at, at - make_interval(secs => %s), at - make_interval(secs => %s), at, 0, 1, 0, 3, 0, %s,"
        " 'dutchie', %s, 'w', CASE WHEN %s <> 'completed' THEN 'why' END, '{}'"
        " FROM (SELECT now() - make_interval(mins => %s)) t(at)",
        seconds, seconds, role, status, status, minutes_ago,
    )  # fmt: skip


async def _worker(
    pool: Pool, name: str, *, roles: list[str] | None = None, slots: int | None = None, silent: int = 0
) -> None:
    beat = {} if slots is None else {"max_concurrent_tasks": slots}
    await _do(
        pool,
        "INSERT INTO worker_registry (worker_id, friendly_name, host, roles, heartbeat, last_heartbeat_at)"
        " VALUES (%s, %s, 'h', %s, %s, now() - make_interval(secs => %s))",
        name, name, roles, msgspec.json.encode(beat).decode(), silent,
    )  # fmt: skip


async def test_a_heartbeat_without_a_usable_number_of_slots_counts_as_one(pool: Pool) -> None:
    cases = (
        ({"max_concurrent_tasks": 4}, 4),
        ({"max_concurrent_tasks": "four"}, 1),
        ({}, 1),
        ({"max_concurrent_tasks": -3}, 1),
    )
    for heartbeat, slots in cases:
        async with pool.connection() as conn:
            cursor = await conn.execute("SELECT worker_slots(%s::jsonb)", [msgspec.json.encode(heartbeat).decode()])
            assert await cursor.fetchone() == (slots,)


async def test_the_view_by_hand(pool: Pool) -> None:
    # The partition of yesterday may be needed in the first hour of a day.
    await _do(pool, "SELECT ensure_task_history_partition(now() - interval '2 hours')")
    # Ten stores wait for a crawl; one of them later, one for another role.
    await _do(
        pool, "INSERT INTO worker_tasks (role, dispensary_id) SELECT 'payload_fetch', n FROM generate_series(1, 9) n"
    )
    await _do(
        pool,
        "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for) VALUES ('payload_fetch', 10, now() + interval '1 day')",
    )
    await _do(pool, "INSERT INTO worker_tasks (role, dispensary_id, payload) VALUES ('product_refresh', 11, '{}')")
    await _do(pool, "SELECT claim_tasks('{payload_fetch}', 'w', 2)")
    await _do(
        pool, "UPDATE task_live SET started_at = now() WHERE id = (SELECT min(id) FROM task_live WHERE state = 'a')"
    )
    # Durations 20, 40 and 60 s: 40 on average. What failed, and what is older, does not count.
    for seconds, minutes in ((20, 1), (40, 30), (60, 59)):
        await _ended(pool, "payload_fetch", seconds, minutes)
    await _ended(pool, "payload_fetch", 500, 10, "failed")
    await _ended(pool, "payload_fetch", 500, 10, "cancelled")
    await _ended(pool, "payload_fetch", 500, 61)
    # Two live workers of 3 slots and 1: on average 2 x 3600 / 40 = 180 tasks an hour. One is silent, one does something else.
    await _worker(pool, "a", slots=3)
    await _worker(pool, "b", slots=1, roles=["payload_fetch", "store_discovery"])
    await _worker(pool, "c", slots=50, silent=121)
    await _worker(pool, "d", slots=50, roles=["product_refresh"])
    found = await _of(pool, Role.PAYLOAD_FETCH)
    assert (found.pending_tasks, found.ready_tasks, found.claimed_tasks, found.running_tasks) == (8, 7, 1, 1)
    assert (found.completed_last_hour, found.failed_last_hour, found.active_workers) == (3, 1, 2)
    assert found.avg_duration_sec == pytest.approx(40)
    assert found.tasks_per_worker_hour == pytest.approx(180)
    assert found.estimated_hours_to_drain == pytest.approx(8 / 360)

    refresh = await _of(pool, Role.PRODUCT_REFRESH)
    assert (refresh.pending_tasks, refresh.active_workers) == (1, 2), "a takes any role"
    assert (refresh.avg_duration_sec, refresh.tasks_per_worker_hour, refresh.estimated_hours_to_drain) == (None,) * 3


async def test_every_role_has_a_row_and_an_empty_queue_is_drained(pool: Pool) -> None:
    async with pool.connection() as conn:
        found = await capacity(conn)
    assert [one.role for one in found] == [str(role) for role in Role]
    assert {(one.pending_tasks, one.active_workers, one.estimated_hours_to_drain) for one in found} == {(0, 0, 0.0)}


async def test_a_rate_is_known_without_anybody_at_work(pool: Pool) -> None:
    await _do(pool, "SELECT ensure_task_history_partition(now() - interval '2 hours')")
    await _do(pool, "INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')")
    await _ended(pool, "analytics_refresh", 90, 5)
    found = await _of(pool, Role.ANALYTICS_REFRESH)
    assert found.tasks_per_worker_hour == pytest.approx(40), "one slot, until somebody says how many"
    assert found.estimated_hours_to_drain is None, "nobody works"


def test_workers_needed_by_hand() -> None:
    assert [workers_needed(1000, 90, hours) for hours in (1, 4, 8)] == [12, 3, 2]
    assert workers_needed(180, 90, 1) == 2
    assert workers_needed(181, 90, 1) == 3
    assert workers_needed(3, 0.1 + 0.2, 1) == 10, "binary fractions ask for nobody"
    assert workers_needed(0, None, 1) == 0
    assert workers_needed(5, None, 1) is None
    assert workers_needed(1, 1e15, 8) == 1


@given(pending=st.integers(1, 10**6), rate=st.integers(1, 10**5), hours=st.sampled_from([1, 4, 8]))
def test_as_many_as_needed_and_no_more(pending: int, rate: int, hours: int) -> None:
    needed = workers_needed(pending, float(rate), hours)
    assert needed is not None
    assert needed * rate * hours >= pending > (needed - 1) * rate * hours
