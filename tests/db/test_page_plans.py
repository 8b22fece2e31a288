"""What lists and screens read of the queue, its history and the requests: what they show, not what there is."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection, connect
from menuwatch.hosts.hourly import HourBook, host_day
from menuwatch.ops import overview
from menuwatch.queue import store as queue
from menuwatch.queue.counts import count_by_status
from menuwatch.queue.depth import queue_depth
from menuwatch.queue.failures import FailureWindow, list_failures
from menuwatch.queue.search import parse
from menuwatch.queue.search_values import TaskSearch
from menuwatch.queue.task_list import can_sort_by_end, list_by_end, list_tasks
from menuwatch.stores import service as store_service
from menuwatch.stores.service import StoreFilter
from menuwatch.workers import timeline
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
SELECT ensure_fetch_attempts_partition(now() - interval '1 day');
INSERT INTO fetch_attempts (host, proxy_id, verdict, blame, reaction, attempted_at)
  SELECT 'h' || n % 500, n % 1000, 'ok', 'none', 'return', now() - n * interval '2 s' FROM generate_series(1, 40000) n;
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
        # What autovacuum reads meanwhile would be counted as well.
        tables = conn.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^task_history'"
        ).fetchall()
        for (table,) in tables:
            conn.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
    yield url
    drop_database(server_url, name)


@pytest.fixture
async def conn(long: str) -> Any:
    opened = await connect(long)
    yield opened
    await opened.close()


async def _blocks(watch: Connection, table: str) -> int:
    cursor = await watch.execute(
        "SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint"
        "  FROM pg_statio_user_tables WHERE starts_with(relname, %s)",
        [table],
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def _read(url: str, conn: Connection, work: Callable[[], Awaitable[Any]], table: str = "task_history") -> int:
    """Pages of a partitioned table that the work reads, with its indexes. The counters are flushed by the connection that works."""
    watch = await connect(url)
    try:
        await conn.execute("SELECT pg_stat_force_next_flush()")
        before = await _blocks(watch, table)
        await work()
        await conn.execute("SELECT pg_stat_force_next_flush()")
        return await _blocks(watch, table) - before
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
        "ended:>=-1h state:failed", "state:failed created:<-5d", "state:pending refused", "worker:w3",
        "attempts:>0", "-role:payload_fetch", "-state:completed",
        "id:20000,21000",
    ],
)  # fmt: skip
async def test_a_page_of_tasks(long: str, conn: Connection, text: str) -> None:
    where = await _searched(conn, text)
    # Where ids begin that are too young is found by halving, in so many steps over all days.
    halving = 15 * DAYS * 5 if "created:<" in text else 0
    # The planner may look at ends of indexes too, once.
    reads = [await _read(long, conn, lambda: list_tasks(conn, where)) for _ in range(2)]
    assert min(reads) < 450 + halving


@pytest.mark.parametrize("text", ["", "state:failed", "store:s7", "role:payload_fetch"])
async def test_a_page_of_the_oldest_tasks(long: str, conn: Connection, text: str) -> None:
    where = await _searched(conn, text)
    assert await _read(long, conn, lambda: list_tasks(conn, where, oldest_first=True)) < 450


@pytest.mark.parametrize("text", ["", "state:completed", "store:s7", "role:payload_fetch", "ended:<-5d"])
@pytest.mark.parametrize("oldest_first", [False, True])
async def test_a_page_of_tasks_by_their_end(long: str, conn: Connection, text: str, oldest_first: bool) -> None:
    where = await _searched(conn, text)
    assert can_sort_by_end(where)
    assert await _read(long, conn, lambda: list_by_end(conn, where, oldest_first=oldest_first)) < 600


async def test_what_no_index_sorts_by_end_is_not_sorted(conn: Connection) -> None:
    for text in ("state:failed", "worker:w3", "refused", "took:>1s", "state:pending", "created:<-5d"):
        assert not can_sort_by_end(await _searched(conn, text)), text


async def test_counts(long: str, conn: Connection) -> None:
    for text in ("", "state:completed", "role:payload_fetch", "platform:dutchie"):
        where = await _searched(conn, text)
        # The days that are not over for six hours are counted now: at most two.
        assert await _read(long, conn, lambda where=where: count_by_status(conn, where)) < 500
    for text in ("state:failed", "store:s7", "args.payload_id:333"):
        where = await _searched(conn, text)
        assert await _read(long, conn, lambda where=where: count_by_status(conn, where)) < 900


async def test_screens(long: str, conn: Connection) -> None:
    now = await database_now(conn)
    for work in (
        lambda: overview.overview(conn),
        lambda: list_failures(conn, FailureWindow.HOUR),
        lambda: list_failures(conn, FailureWindow.WEEK),
        lambda: timeline.timeline(conn, hours=2),
        lambda: timeline.timeline(conn, span=(now - timedelta(hours=5), now - timedelta(hours=4))),
        lambda: queue_depth(conn, now - timedelta(hours=2), now),
        lambda: store_service.get_health(conn, 7),
        lambda: queue.count_days(conn),
    ):
        assert await _read(long, conn, work) < 600
    # Of each of 50 stores some twenty tasks are looked at, in as many days as it takes.
    assert await _read(long, conn, lambda: store_service.list_health(conn, StoreFilter(), limit=50)) < 50 * (
        20 * 2 + 8 * 4
    )


async def test_the_day_of_a_host_and_of_a_proxy(long: str, conn: Connection) -> None:
    # Of some 600 pages: 80 requests of the host and 40 through the proxy, and the way to them in three partitions at most.
    assert await _read(long, conn, lambda: host_day(conn, "h7"), "fetch_attempts") < 200
    book = HourBook()
    assert await _read(long, conn, lambda: book.day(conn, proxy_id=7), "fetch_attempts") < 120
    assert await _read(long, conn, lambda: book.day(conn, proxy_id=7), "fetch_attempts") < 60, "past hours are known"
