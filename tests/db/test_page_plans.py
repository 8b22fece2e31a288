"""What lists and screens read of the queue and its history: what they show, not what there is."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest

from menuwatch.db.pool import Connection, connect
from menuwatch.operations import failures, overview, store_health, task_counts, tasks, timeline
from menuwatch.operations.failures import Window
from menuwatch.operations.store_health import StoreFilter
from menuwatch.operations.task_search import TaskSearch, parse
from menuwatch.tasks import store as queue
from tests.conftest import create_database, drop_database

DAYS, A_DAY = 8, 3_000
"""Days of history, and tasks that ended on each. A page of the history's table holds some 40 of them."""

_FILL = f"""
SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, {DAYS}) d;
INSERT INTO dispensaries (name, name_raw, slug, platform_dispensary_id, last_crawled_at)
  SELECT 's' || n, 's', 's' || n, n::text, now() - n * interval '1 minute' FROM generate_series(1, 500) n;
INSERT INTO task_live (role, dispensary_id, state, scheduled_for)
  SELECT 'payload_fetch', 1 + n % 500, 's', now() + interval '1 hour' FROM generate_series(1, 2000) n;
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                          max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)
  SELECT nextval('task_ids'), at, at, at, at, 1 + n % 500, 0, 1, 0, 3, 0,
         CASE WHEN n % 2 = 0 THEN 'payload_fetch' ELSE 'product_refresh' END, 'dutchie',
         CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, 'w' || n % 10,
         CASE WHEN n % 50 = 0 THEN 'host:' || n || ' refused' END,
         CASE WHEN n % 2 = 0 THEN '{{}}'::jsonb ELSE jsonb_build_object('payload_id', n) END
    FROM generate_series(1, {DAYS * A_DAY}) n,
         LATERAL (SELECT now() - interval '{DAYS} days' * (1 - n::float8 / {DAYS * A_DAY})) t(at);
VACUUM ANALYZE;
"""


@pytest.fixture(scope="module")
def long(server_url: str, template: str) -> Iterator[str]:
    """A database with some history."""
    name = f"page_plans_{os.getpid()}"
    url = create_database(server_url, name, template)
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in _FILL.split(";\n"):
            if statement.strip():
                conn.execute(statement.encode())
        conn.execute("SELECT count_task_days()")
    yield url
    drop_database(server_url, name)


@pytest.fixture
async def conn(long: str) -> Any:
    opened = await connect(long)
    yield opened
    await opened.close()


async def _blocks(watch: Connection) -> int:
    cursor = await watch.execute(
        "SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint"
        "  FROM pg_statio_user_tables WHERE relname LIKE 'task\\_history%'"
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def _read(url: str, conn: Connection, work: Callable[[], Awaitable[Any]]) -> int:
    """Pages of the history that the work reads, table and indexes. The counters are flushed by the connection that works."""
    watch = await connect(url)
    try:
        await conn.execute("SELECT pg_stat_force_next_flush()")
        before = await _blocks(watch)
        await work()
        await conn.execute("SELECT pg_stat_force_next_flush()")
        return await _blocks(watch) - before
    finally:
        await watch.close()


async def _searched(conn: Connection, text: str) -> Any:
    search = parse(text)
    assert isinstance(search, TaskSearch)
    return await search.filter(conn)


@pytest.mark.parametrize(
    "text",
    [
        "", "state:failed", "store:s7", "args.payload_id:333", "args.payload_id:1", "created:>=-1h", "created:<-5d",
        "ended:>=-1h state:failed", "state:failed created:<-5d", "state:pending refused", "worker:w3", "worker:nobody",
        "id:20000,21000",
    ],
)  # fmt: skip
async def test_a_page_of_tasks(long: str, conn: Connection, text: str) -> None:
    where = await _searched(conn, text)
    # Where ids begin that are too young is found by halving, in so many steps over all days.
    halving = 15 * DAYS * 5 if "created:<" in text else 0
    assert await _read(long, conn, lambda: tasks.page(conn, where)) < 450 + halving


async def test_counts(long: str, conn: Connection) -> None:
    for text in ("", "state:completed", "role:payload_fetch", "platform:dutchie"):
        where = await _searched(conn, text)
        # The days that are not over for six hours are counted now: at most two.
        assert await _read(long, conn, lambda where=where: task_counts.counts(conn, where)) < 500
    for text in ("state:failed", "store:s7", "args.payload_id:333", "worker:nobody"):
        where = await _searched(conn, text)
        assert await _read(long, conn, lambda where=where: task_counts.counts(conn, where)) < 900


async def test_screens(long: str, conn: Connection) -> None:
    for work in (
        lambda: overview.overview(conn),
        lambda: failures.failures(conn, Window.HOUR),
        lambda: failures.failures(conn, Window.WEEK),
        lambda: timeline.timeline(conn, hours=2),
        lambda: store_health.one(conn, 7),
        lambda: queue.count_days(conn),
    ):
        assert await _read(long, conn, work) < 600
    # Of each of 50 stores some twenty tasks are looked at, in as many days as it takes.
    assert await _read(long, conn, lambda: store_health.page(conn, StoreFilter(), limit=50)) < 50 * (20 * 2 + 8 * 4)
