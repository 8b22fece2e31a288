"""The first screen's numbers, worked out by hand."""

from __future__ import annotations

import pytest

from menuwatch.db.pool import Pool
from menuwatch.ops.overview import Drain, RoleLoad, drain, overview
from menuwatch.queue.capacity import Capacity, WorkersNeeded

_ENDED = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
    " postpone_count, role, platform, status, worker_id, error_message, payload)"
    " SELECT nextval('task_ids'), now() - %(arrived)s * interval '1 minute', at - interval '60 seconds',"
    " at - interval '60 seconds', at, 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', %(status)s, 'w',"
    " CASE WHEN %(status)s <> 'completed' THEN 'why' END, '{}'"
    " FROM (SELECT now() - %(minutes)s * interval '1 minute') t(at), generate_series(1, %(n)s)"
)


async def _do(pool: Pool, query: str, **values: object) -> None:
    async with pool.connection() as conn:
        await conn.execute(query.encode(), values or None)


async def test_numbers_by_hand(pool: Pool) -> None:
    await _do(pool, "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 1) d")
    await _do(
        pool,
        "INSERT INTO dispensaries (name, name_raw, platform_dispensary_id) SELECT 's', 's', n::text FROM generate_series(1, 5) n",
    )
    await _do(pool, "UPDATE dispensaries SET crawl_enabled = false WHERE id = 1")
    await _do(pool, "UPDATE dispensaries SET last_crawled_at = now() - interval '9 hours' WHERE id = 2")
    await _do(pool, "UPDATE dispensaries SET last_crawled_at = now() - interval '7 hours' WHERE id = 3")
    # Four due, the longest for 20 minutes; one for later, of which one attempt was made; one at work.
    await _do(
        pool, "INSERT INTO worker_tasks (role, dispensary_id) SELECT 'payload_fetch', n FROM generate_series(1, 6) n"
    )
    await _do(pool, "UPDATE task_live SET created_at = now() - interval '20 minutes' WHERE dispensary_id = 2")
    await _do(
        pool,
        "UPDATE task_live SET state = 's', attempt = 1, scheduled_for = now() + interval '1 hour' WHERE dispensary_id = 5",
    )
    await _do(
        pool,
        "UPDATE task_live SET state = 'a', worker_id = 'w', claimed_at = now(), attempt = 1, uniq = 2 WHERE dispensary_id = 6",
    )
    await _do(pool, _ENDED, status="completed", minutes=12, arrived=30, n=3)
    await _do(pool, _ENDED, status="failed", minutes=12, arrived=30, n=1)
    await _do(pool, _ENDED, status="completed", minutes=300, arrived=301, n=7)
    await _do(
        pool,
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, heartbeat, last_heartbeat_at) VALUES"
        " ('a', 'A', 'p', 'h', 'active', '{\"max_concurrent_tasks\": 3}', now()), ('b', 'B', 'p', 'h', 'backing_off', '{}', now()),"
        " ('c', 'C', 'q', 'h', 'active', '{}', now() - interval '1 hour'), ('d', 'D', 'q', 'h', 'stopped', '{}', now()),"
        " ('e', 'E', 'p', 'h', 'stopping', '{}', now())",
    )
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at, enabled) VALUES"
        " ('late', 'payload_fetch', 4, now() - interval '5 minutes', true),"
        " ('off', 'payload_fetch', 4, now() - interval '5 minutes', false),"
        " ('fine', 'payload_fetch', 4, now() - interval '1 minute', true)",
    )
    await _do(
        pool,
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate, paused_at, paused_reason) VALUES"
        " ('open.test', 1, 1, 1, 1, NULL, NULL), ('shut.test', 1, 1, 1, 1, now(), 'asked us to stop')",
    )
    await _do(
        pool,
        "INSERT INTO proxies (host, port, is_active, disabled_at, disabled_reason) VALUES ('up', 1, true, NULL, NULL),"
        " ('down', 1, false, NULL, NULL), ('off', 1, false, now(), 'mine')",
    )
    async with pool.connection() as conn:
        found = await overview(conn)
    assert (found.ready, found.pending, found.running) == (4, 5, 1)
    assert (found.completed_last_hour, found.failed_last_hour) == (3, 1)
    assert found.oldest_ready_seconds == pytest.approx(1200, abs=60)
    (fetch,) = [one for one in found.roles if one.role == "payload_fetch"]
    assert (fetch.scheduled, fetch.retrying, fetch.claimed, fetch.running, fetch.stale) == (1, 1, 1, 0, 0)

    assert (found.workers.live, found.workers.claiming, found.workers.backing_off, found.workers.silent) == (3, 1, 1, 1)
    assert (found.workers.stopping, found.workers.slots, found.workers.pods) == (1, 5, 1)
    assert [one.name for one in found.late_schedules] == ["late"]
    assert [(one.host, one.code) for one in found.closed_hosts] == [("shut.test", "paused")]
    assert (found.proxies.known, found.proxies.active, found.proxies.down, found.proxies.disabled) == (3, 1, 1, 1)
    assert (found.stores.known, found.stores.crawled, found.stores.never, found.stores.stale) == (5, 4, 2, 1)
    # A task takes a minute, a worker has two slots at a mean: 120 an hour. Two workers live and do not stop.
    assert found.drain.worker_hours == pytest.approx(4 / 120)
    assert found.drain.hours == pytest.approx(2 / 120)
    assert found.drain.needed == {1: 1, 4: 1, 8: 1}


async def test_a_task_that_was_due_before_it_was_made_waits_since_it_was_made(pool: Pool) -> None:
    await _do(pool, "INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
    await _do(
        pool,
        "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for) VALUES ('payload_fetch', 1, now() - interval '14 hours')",
    )
    async with pool.connection() as conn:
        found = await overview(conn)
    assert found.ready == 1
    assert found.oldest_ready_seconds == pytest.approx(0, abs=60)


async def test_of_nothing_there_is_nothing(pool: Pool) -> None:
    async with pool.connection() as conn:
        found = await overview(conn)
    assert (found.ready, found.pending, found.running, found.oldest_ready_seconds) == (0, 0, 0, None)
    assert found.drain == Drain(
        worker_hours=0.0, hours=0.0, needed={1: 0, 4: 0, 8: 0}, unknown=[], blocked=0, blocked_by=[]
    )
    assert (found.late_schedules, found.closed_hosts) == ([], [])


def _load(role: str, ready: int, rate: float | None) -> RoleLoad:
    known = Capacity(
        role=role, pending_tasks=ready, ready_tasks=ready, blocked_tasks=0, blocked_by=[], claimed_tasks=0, running_tasks=0,
        completed_last_hour=0,
        failed_last_hour=0, active_workers=0, avg_duration_sec=None, tasks_per_worker_hour=rate, estimated_hours_to_drain=None,
        workers_needed=WorkersNeeded(for_1_hour=None, for_4_hours=None, for_8_hours=None),
    )  # fmt: skip
    return RoleLoad(
        role=role,
        ready=ready,
        blocked=0,
        scheduled=0,
        retrying=0,
        claimed=0,
        running=0,
        stale=0,
        oldest_ready_seconds=None,
        capacity=known,
    )


def test_the_work_of_all_roles_is_added_up() -> None:
    load = [_load("a", 100, 10), _load("b", 30, 60), _load("c", 5, None), _load("d", 0, None)]
    assert drain(load, 3) == Drain(
        worker_hours=10.5, hours=3.5, needed={1: 11, 4: 3, 8: 2}, unknown=["c"], blocked_by=[]
    )
    assert drain(load, 0).hours is None
    assert drain([_load("c", 5, None)], 2) == Drain(
        worker_hours=None, hours=None, needed={1: None, 4: None, 8: None}, unknown=["c"], blocked_by=[]
    )
