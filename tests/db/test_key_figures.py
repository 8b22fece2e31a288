"""Key figures and throughput against rows planted at known times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from menuwatch.config.settings import Settings
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Pool
from menuwatch.hosts.hourly import HourBook
from menuwatch.ops.key_figures import DiskFigures, key_figures
from menuwatch.queue.throughput import floor, throughput

_WEEK = timedelta(days=7)


async def _do(pool: Pool, query: str, **values: object) -> None:
    async with pool.connection() as conn:
        await conn.execute(query.encode(), values or None)


async def _crawl(pool: Pool, at: datetime, *, price_changes: int, size: int = 1000) -> None:
    """A payload and its crawl of store 1."""
    await _do(
        pool,
        "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, fetched_at, path, bytes, raw_bytes, sha256, content_sha256)"
        " VALUES (1, 'dutchie', 'ok', %(at)s, %(at)s::text, %(size)s, 1, '', '')",
        at=at,
        size=size,
    )
    await _do(
        pool,
        "INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing,"
        " out_of_stock, price_changes, stock_changes) VALUES (1, %(at)s, 9, 0, 0, 9, 0, 0, 0, %(n)s, 0)",
        at=at,
        n=price_changes,
    )


async def test_stores_by_the_age_of_their_menu(pool: Pool, tmp_path: Path) -> None:
    await _do(
        pool,
        "INSERT INTO dispensaries (name, name_raw, platform_dispensary_id) SELECT 's', 's', n::text FROM generate_series(1, 8) n",
    )
    # Crawled every four hours: late after five, stale after eight.
    for store, age in ((1, 1), (2, 4.9), (3, 5.1), (4, 7.9), (5, 8.1)):
        await _do(
            pool,
            "UPDATE dispensaries SET last_crawled_at = now() - %(age)s * interval '1 hour' WHERE id = %(store)s",
            age=age,
            store=store,
        )
    await _do(pool, "UPDATE dispensaries SET crawl_enabled = false WHERE id = 7")
    await _do(pool, "UPDATE dispensaries SET platform_dispensary_id = NULL, slug = 'x' WHERE id = 8")
    async with pool.connection() as conn:
        stores = (await key_figures(conn, Settings(home=tmp_path), HourBook())).stores
    assert (stores.known, stores.crawled, stores.current) == (8, 6, 4)
    assert (stores.fresh, stores.late, stores.stale, stores.never) == (2, 2, 1, 1)


async def test_today_is_compared_with_the_same_hours_a_week_ago(pool: Pool, tmp_path: Path) -> None:
    await _do(pool, "INSERT INTO dispensaries (name, name_raw, platform_dispensary_id) VALUES ('s', 's', '1')")
    async with pool.connection() as conn:
        now = await database_now(conn)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    second = timedelta(microseconds=1)
    await _crawl(pool, midnight, price_changes=3, size=500)
    await _crawl(pool, midnight - second, price_changes=50)  # yesterday, within 24 hours
    await _crawl(pool, midnight - _WEEK, price_changes=7)
    await _crawl(pool, midnight - _WEEK - second, price_changes=1000)  # the day before
    await _crawl(pool, now - _WEEK + timedelta(hours=1), price_changes=2000)  # later than now
    async with pool.connection() as conn:
        found = await key_figures(conn, Settings(home=tmp_path), HourBook())
    assert (found.payloads.today, found.payloads.week_ago) == (1, 1)
    assert (found.price_changes.today, found.price_changes.week_ago) == (3, 7)
    assert len(found.payloads.hours) == 24
    # In the last hour of the day the window of 24 hours begins at midnight.
    yesterday = now.hour < 23
    assert sum(found.price_changes.hours) == 3 + 50 * yesterday
    assert found.price_changes.hours[23 - now.hour] == 3
    assert found.disk.payload_bytes == 500 + 1000 * yesterday


async def test_requests_are_counted_with_refusals_and_bytes(pool: Pool, tmp_path: Path) -> None:
    await _do(pool, "SELECT ensure_fetch_attempts_partition(now() - d * interval '1 day') FROM generate_series(0, 2) d")
    for verdict, hours, size in (("ok", 0, 100), ("ok", 5, 40), ("blocked", 5, 2), ("timeout", 5, 0), ("ok", 26, 9)):
        await _do(
            pool,
            "INSERT INTO fetch_attempts (host, verdict, blame, reaction, bytes, attempted_at)"
            " VALUES ('dutchie.com', %(verdict)s, 'none', 'use', %(size)s, now() - %(hours)s * interval '1 hour')",
            verdict=verdict,
            size=size,
            hours=hours,
        )
    book = HourBook()
    for _ in range(2):  # the second time past hours come from the cache
        async with pool.connection() as conn:
            found = (await key_figures(conn, Settings(home=tmp_path), book)).requests
        assert (found.requests, found.refused, found.bytes) == (4, 1, 142)
        assert found.block_rate == pytest.approx(0.25)
        assert (found.hours[18], found.refused_hours[18], found.bytes_hours[18], found.bytes_hours[23]) == (
            3,
            1,
            42,
            100,
        )


async def test_without_data_nothing_is_promised(pool: Pool, tmp_path: Path) -> None:
    async with pool.connection() as conn:
        found = await key_figures(conn, Settings(home=tmp_path), HourBook())
    assert found.requests.block_rate is None
    assert found.disk.free_bytes is not None
    assert found.disk.days_left is None, "no payloads: growth is unknown"
    assert DiskFigures(free_bytes=1000, payload_bytes=100).days_left == 10
    assert DiskFigures(free_bytes=None, payload_bytes=100).days_left is None, "an object store has no known limit"


async def _ended(pool: Pool, at: datetime, *, wait: float, took: float, status: str = "completed") -> None:
    await _do(
        pool,
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
        " postpone_count, role, platform, status, worker_id, error_message, payload)"
        " VALUES (nextval('task_ids'), %(at)s - (%(took)s + %(wait)s) * interval '1 second', %(at)s - %(took)s * interval '1 second',"
        " %(at)s - %(took)s * interval '1 second', %(at)s, 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', %(status)s, 'w',"
        " CASE WHEN %(status)s <> 'completed' THEN 'why' END, '{}')",
        at=at,
        wait=wait,
        took=took,
        status=status,
    )


async def test_percentiles_of_an_interval(pool: Pool) -> None:
    await _do(pool, "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 1) d")
    async with pool.connection() as conn:
        now = await database_now(conn)
    step = timedelta(minutes=5)
    then = floor(now, step) - 2 * step
    for n in range(
        1, 22
    ):  # durations 1 to 21 s, waits 10 to 210 s: the median is the 11th, the 95th percentile the 20th
        await _ended(pool, then + timedelta(seconds=n), wait=10 * n, took=n)
    await _ended(pool, then + step, wait=5, took=900, status="failed")
    await _do(pool, "INSERT INTO worker_tasks (role) VALUES ('store_discovery')")
    async with pool.connection() as conn:
        series = await throughput(conn, 3)
    assert [one.start for one in series] == [series[0].start + n * step for n in range(37)]
    found = next(one for one in series if one.start == then)
    assert (found.completed, found.failed) == (21, 0)
    assert (found.duration_p50, found.duration_p95) == pytest.approx((11, 20))
    assert (found.wait_p50, found.wait_p95) == pytest.approx((110, 200))
    failed = next(one for one in series if one.start == then + step)
    assert (failed.completed, failed.failed, failed.duration_p50, failed.wait_p50) == (0, 1, None, 5.0)
    assert (series[0].duration_p50, series[0].wait_p95) == (None, None)
    assert sum(one.enqueued for one in series) == 23
    assert series[0].start.tzinfo == UTC


@pytest.mark.parametrize(("hours", "minutes"), [(1, 1), (3, 5), (6, 15), (12, 15), (24, 30)])
async def test_longer_times_have_longer_intervals(pool: Pool, hours: int, minutes: int) -> None:
    async with pool.connection() as conn:
        series = await throughput(conn, hours)
    assert series[1].start - series[0].start == timedelta(minutes=minutes)
    assert len(series) == hours * 60 // minutes + 1
