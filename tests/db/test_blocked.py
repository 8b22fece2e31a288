"""Tasks whose host gets no requests: the same number in every list, count and forecast, while it lasts and afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Connection, Pool
from menuwatch.hosts import service as hosts
from menuwatch.ops import overview
from menuwatch.ops.metrics import Reader
from menuwatch.queue import store as tasks
from menuwatch.queue.capacity import capacity
from menuwatch.queue.counts import count_by_status, count_tabs
from menuwatch.queue.ending import ending
from menuwatch.queue.explain.model import Code
from menuwatch.queue.explain.service import explain
from menuwatch.queue.model import NewTask, Role, Status, WaitState
from menuwatch.queue.outcome import Postpone
from menuwatch.queue.search import apply_query
from menuwatch.queue.task_list import TaskFilter, list_tasks
from menuwatch.workers import pods
from tests.db.queue_calls import claim, end, put

HOST = "menus.test"
_DONE = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
    " postpone_count, role, platform, status, worker_id, payload)"
    " SELECT nextval('task_ids'), now(), now() - interval '60 seconds', now() - interval '60 seconds', now(), 0, 1, 0, 3, 0, r,"
    " 'dutchie', 'completed', 'w', '{}' FROM unnest(ARRAY['payload_fetch', 'product_refresh']) r"
)


async def _hosts(conn: Connection, state: str) -> None:
    """Puts the host into a state, as operators and responses do."""
    sets = {
        "open": "paused_at = NULL, paused_reason = NULL, circuit = 'closed', circuit_until = NULL, circuit_reason = NULL,"
        " cooldown_until = NULL, cooldown_reason = NULL",
        "paused": "paused_at = now(), paused_reason = 'lawyers'",
        "circuit": "circuit = 'open', circuit_until = now() + interval '1 hour', circuit_reason = 'HTTP 403'",
        "cooling": "cooldown_until = now() + interval '1 hour', cooldown_reason = 'HTTP 429'",
    }[state]
    await conn.execute(f"UPDATE hosts SET {sets} WHERE host = '{HOST}'".encode())


@pytest.fixture
async def queue(pool: Pool) -> Mapping[str, list[int]]:
    """4 fetches that are due (one behind another of its store), one postponed by the host, one scheduled; a refresh, which requests
    nothing; a fetch of another platform; a running fetch."""
    async with pool.connection() as conn:
        await tasks.set_platform_hosts(conn, {"dutchie": {HOST}, "weedmaps": {"other.test"}, "files": ()})
        for host in (HOST, "other.test"):
            await conn.execute(
                "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES (%s, 1, 1, 1, 1)", [host]
            )
        await conn.execute(_DONE.encode())
        await conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, host, status, heartbeat) VALUES ('w', 'W', 'h', 'active', '{}')"
        )
        await conn.execute("INSERT INTO proxies (host, port, is_active) VALUES ('10.0.0.1', 80, true)")
    later = datetime.now(UTC) + timedelta(days=1)
    (running,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1))
    await claim(pool)
    (postponed,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=2))
    (task,) = await claim(pool)
    code = PostponeCode.PAUSED
    await end(pool, ending(task, Postpone(until=later, reason="paused", code=code, host=HOST), backoff=timedelta(0)))
    due = await put(
        pool, *(NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=store, unique=False) for store in (3, 4, 5, 5))
    )
    (scheduled,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=6, scheduled_for=later))
    (refresh,) = await put(pool, NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=7))
    (other,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=8, platform="weedmaps"))
    return {
        "due": due,
        "postponed": [postponed],
        "scheduled": [scheduled],
        "free": [refresh, other],
        "running": [running],
    }


@pytest.mark.parametrize("state", ["paused", "circuit", "cooling"])
async def test_every_face_counts_the_same_and_recovers(pool: Pool, queue: Mapping[str, list[int]], state: str) -> None:
    blocked = {*queue["due"], *queue["postponed"]}
    async with pool.connection() as conn:
        assert await _faces(conn, pool) == (6, 0, 2, {*queue["due"], *queue["free"]}), (
            "4 due and 2 others; 1 postponed and 1 scheduled"
        )

        await _hosts(conn, state)
        ready, count, scheduled, listed = await _faces(conn, pool)
        assert (ready, count, scheduled, listed) == (2, 5, 1, set(queue["free"]))
        found = await list_tasks(conn, await apply_query(conn, TaskFilter(), "state:blocked"))
        assert {task.id for task in found} == blocked
        assert {(task.status, task.wait_state, task.blocked_by) for task in found} == {("pending", "blocked", HOST)}
        for task in blocked:
            why = await explain(conn, task)
            assert (why.code, why.details["host"]) == (Code.HOST_CLOSED, HOST)
        assert (await explain(conn, queue["free"][1])).code == Code.NO_FREE_SLOT, "its platform has another host"
        by_host = {host.host: host.blocked_tasks for host in await hosts.list_hosts(conn)}
        assert by_host == {HOST: 5, "other.test": 0}
        mixed = await list_tasks(conn, await apply_query(conn, TaskFilter(), "state:blocked,running,claimed,scheduled"))
        assert {task.id for task in mixed} == blocked | {*queue["running"], *queue["scheduled"]}

        await _hosts(conn, "open")
        assert await _faces(conn, pool) == (6, 0, 2, {*queue["due"], *queue["free"]})


async def _faces(conn: Connection, pool: Pool) -> tuple[int, int, int, set[int]]:
    """Ready, blocked and scheduled tasks as every count says, and the ready ones as a list."""
    first = await overview.overview(conn)
    counts = await count_by_status(conn, TaskFilter())
    waiting = await pods.waiting(conn)
    load = await capacity(conn)
    figures = await Reader(pool, fresh_seconds=0).read()
    tabs = await count_tabs(conn, TaskFilter())
    numbers = {
        (first.ready, first.blocked, first.scheduled),
        (counts.ready, counts.blocked, counts.scheduled),
        (waiting.ready, waiting.blocked, waiting.scheduled),
        (sum(row.n for row in figures.queue if row.state in ("ready", "parked")),
         sum(row.n for row in figures.queue if row.state == "blocked"),
         sum(row.n for row in figures.queue if row.state == "scheduled")),
    }  # fmt: skip
    assert len(numbers) == 1, numbers
    ready, blocked, scheduled = numbers.pop()
    assert (sum(row.ready_tasks for row in load), sum(row.blocked_tasks for row in load)) == (ready, blocked)
    assert (tabs[WaitState.BLOCKED], tabs[Status.PENDING]) == (blocked, counts.pending)
    assert first.pending == counts.pending == ready + blocked + scheduled
    assert waiting.blocked_by == first.drain.blocked_by == ([HOST] if blocked else [])
    listed = {
        task.id for task in await list_tasks(conn, TaskFilter(statuses=[Status.PENDING], waits=[WaitState.READY]))
    }
    following = {row["id"] for row in await pods.next_ready(conn)}
    assert following <= listed, "a blocked task is not next"
    return ready, blocked, scheduled, listed


async def test_forecasts_leave_blocked_tasks_out(pool: Pool, queue: Mapping[str, list[int]]) -> None:
    async with pool.connection() as conn:
        before = (await overview.overview(conn)).drain
        # A minute each: 5 fetches and a refresh that are due, by one worker.
        assert before.hours == pytest.approx(6 / 60)
        await _hosts(conn, "paused")
        after = (await overview.overview(conn)).drain
        assert after.hours == pytest.approx(2 / 60)
        assert (after.blocked, after.blocked_by) == (5, [HOST])
        by_role = {row.role: row for row in await capacity(conn)}
        # Of 7 pending fetches 5 are blocked; one is due, one scheduled.
        fetch = by_role["payload_fetch"]
        assert (fetch.pending_tasks, fetch.blocked_tasks, fetch.blocked_by) == (7, 5, [HOST])
        assert fetch.estimated_hours_to_drain == pytest.approx(2 / 60)
        assert fetch.workers_needed.for_1_hour == 1
        assert by_role["product_refresh"].blocked_tasks == 0
