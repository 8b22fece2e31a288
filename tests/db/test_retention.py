"""Old days of history go, whole, while others finish tasks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.db import partitions
from menuwatch.db.pool import Pool, connect
from menuwatch.ops.janitor import LOCK_SECONDS, Janitor
from menuwatch.ops.retention import Retention
from menuwatch.workers.engine.reaper import Reaper
from tests.workers.waiting import until

DAYS_AGO = "now() - make_interval(days => %s)"


async def _do(pool: Pool, query: str, *values: Any) -> list[Any]:
    async with pool.connection() as conn:
        cursor = await conn.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def _history(pool: Pool, *days: int) -> None:
    """A completed task on each of these days."""
    for ago in days:
        await _do(pool, f"SELECT ensure_task_history_partition({DAYS_AGO})", ago)
        await _do(
            pool,
            "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count,"
            " max_retries, postpone_count, role, platform, status, worker_id, payload)"
            " SELECT nextval('task_ids'), at, at, at, at, 0, 1, 0, 3, 0, 'store_discovery', 'dutchie', 'completed', 'w', '{}'"
            f" FROM (SELECT {DAYS_AGO}) t(at)",
            ago,
        )


async def _days(pool: Pool) -> list[int]:
    """How many UTC days ago each finished task was, as everybody reads it."""
    rows = await _do(
        pool,
        "SELECT (now() AT TIME ZONE 'UTC')::date - (completed_at AT TIME ZONE 'UTC')::date FROM worker_tasks"
        " WHERE completed_at IS NOT NULL ORDER BY 1",
    )
    return [row[0] for row in rows]


async def _tables(pool: Pool) -> set[str]:
    """Every table that is or was a day of history, attached or not, by how many days ago it was."""
    return {
        r[0]
        for r in await _do(
            pool, r"SELECT relname FROM pg_class WHERE relname ~ '^task_history_\d{8}$' AND relkind = 'r'"
        )
    }


def _named(ago: int) -> str:
    return f"task_history_{datetime.now(UTC) - timedelta(days=ago):%Y%m%d}"


async def _maintenance_run(pool: Pool, job: str) -> tuple[bool, str | None]:
    """Whether a job was done in the last minute, and why not."""
    (row,) = await _do(
        pool, "SELECT succeeded_at > now() - interval '1 minute', error FROM maintenance_runs WHERE job = %s", job
    )
    return row  # type: ignore[no-any-return]


async def _start_task(pool: Pool) -> int:
    """A task that worker `w` runs."""
    (made,) = await _do(pool, "INSERT INTO worker_tasks (role) VALUES ('store_discovery') RETURNING id")
    await _do(pool, "SELECT claim_tasks('{store_discovery}', 'w', 1)")
    return int(made[0])


FINISH = (
    "SELECT * FROM finish_tasks('w', ARRAY[%s::bigint], '{1}', '{done}', ARRAY[NULL::text], ARRAY[NULL::jsonb],"
    " ARRAY[NULL::double precision], ARRAY[NULL::timestamptz], '{0.1}')"
)


async def test_days_past_their_time_go_and_younger_ones_stay(pool: Pool) -> None:
    await _history(pool, 0, 1, 6, 7, 8, 9, 400)
    before = await _tables(pool)
    await Janitor(pool, retention=Retention(history=timedelta(days=7))).step()
    assert await _days(pool) == [0, 1, 6, 7], "the day in which the limit falls stays whole"
    assert before - await _tables(pool) == {_named(8), _named(9), _named(400)}
    assert await _maintenance_run(pool, "history") == (True, None)


async def test_a_table_that_somebody_set_aside_stays(pool: Pool) -> None:
    await _history(pool, 0, 40, 41)
    await _do(pool, f"ALTER TABLE task_history DETACH PARTITION {_named(41)}")
    await Janitor(pool).step()
    assert await _days(pool) == [0]
    assert (_named(40) in await _tables(pool), _named(41) in await _tables(pool)) == (False, True)


async def test_a_finisher_with_an_open_transaction_is_left_alone_and_the_day_goes_later(
    pool: Pool, database_url: str
) -> None:
    await _history(pool, 0, 50)
    first, second = await _start_task(pool), await _start_task(pool)
    janitor = Janitor(pool)
    async with await connect(database_url) as slow, slow.transaction():
        await slow.execute(FINISH.encode(), [first])
        began = asyncio.get_running_loop().time()
        step = asyncio.create_task(janitor.step())
        async with await connect(database_url) as quick:
            await quick.execute("SET lock_timeout = '500ms'")
            # While the janitor waits: tasks end, are read, and days are added.
            await until(
                lambda: _do(
                    pool,
                    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%CONCURRENTLY'",
                )
            )
            await quick.execute(FINISH.encode(), [second])
            await quick.execute("SELECT count(*) FROM worker_tasks")
            await quick.execute("SELECT ensure_task_history_partition(now() + interval '9 days')")
        await step
        assert asyncio.get_running_loop().time() - began < LOCK_SECONDS + 2
        done, error = await _maintenance_run(pool, "history")
        assert not done
        assert "lock timeout" in str(error)
        # Half way: nobody sees the old day any more, and work goes on.
        assert await _days(pool) == [0, 0]
        assert _named(50) in await _tables(pool)
        await _do(pool, "SELECT ensure_task_history_partition(now() + interval '10 days')")
    await janitor.step()
    assert await _maintenance_run(pool, "history") == (True, None)
    assert await _days(pool) == [0, 0, 0]
    assert _named(50) not in await _tables(pool)


async def _kill_detach(pool: Pool) -> list[Any]:
    return await _do(
        pool,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%CONCURRENTLY'",
    )


async def test_what_a_crash_left_is_mended(pool: Pool, database_url: str) -> None:
    await _history(pool, 0, 50, 51, 52)
    # It dies while it waits for a reader ...
    async with await connect(database_url) as reader, reader.transaction():
        await reader.execute("SELECT count(*) FROM worker_tasks")
        step = asyncio.create_task(Janitor(pool).step())
        await until(lambda: _kill_detach(pool))
        with pytest.raises(psycopg.OperationalError):
            await step
    async with pool.connection() as conn:
        assert [part.name for part in await partitions.parts(conn, "task_history") if part.pending] == [_named(52)]
        # ... and another one between detaching a day and dropping it.
        await conn.execute(f"COMMENT ON TABLE {_named(51)} IS '{partitions.MARK}'".encode())
        await conn.execute(f"ALTER TABLE task_history DETACH PARTITION {_named(52)} FINALIZE".encode())
        await conn.execute(f"ALTER TABLE task_history DETACH PARTITION {_named(51)}".encode())
    assert {_named(50), _named(51), _named(52)} <= await _tables(pool)
    await Janitor(pool).step()
    assert await _maintenance_run(pool, "history") == (True, None)
    assert not {_named(50), _named(51), _named(52)} & await _tables(pool)
    assert await _days(pool) == [0]


async def test_a_detach_that_was_cut_off_is_finalized(pool: Pool, database_url: str) -> None:
    await _history(pool, 0, 50, 51)
    async with await connect(database_url) as reader, reader.transaction():
        await reader.execute("SELECT count(*) FROM worker_tasks")
        await Janitor(pool).step()
    async with pool.connection() as conn:
        assert [part.pending for part in await partitions.parts(conn, "task_history")][:2] == [True, False]
    await Janitor(pool).step()
    assert not {_named(50), _named(51)} & await _tables(pool)
    assert await _days(pool) == [0]


async def test_statistics_of_the_whole_are_renewed(pool: Pool) -> None:
    await _history(pool, 0, 1)
    assert await _do(pool, "SELECT attname FROM pg_stats WHERE tablename = 'task_history' AND inherited") == []
    await Janitor(pool).step()
    assert (
        await _do(
            pool, "SELECT attname FROM pg_stats WHERE tablename = 'task_history' AND inherited AND attname = 'role'"
        )
        != []
    )


async def test_old_runs_plans_and_workers_go(pool: Pool) -> None:
    await _do(pool, "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw) VALUES ('a', 's', 's')")
    for name in ("busy", "rare"):
        await _do(
            pool,
            "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES (%s, 'payload_fetch', 4, now())",
            name,
        )
    for schedule, ago in ((1, 1), (1, 89), (1, 91), (1, 300), (2, 200), (2, 201)):
        await _do(
            pool,
            f"INSERT INTO schedule_runs (schedule_id, fire_at, ran_at) VALUES (%s, {DAYS_AGO}, now())",
            schedule,
            ago,
        )
    for ago in (0, 89, 91):
        await _do(
            pool,
            "INSERT INTO resync_plan (day, dispensary_id, scheduled_for) VALUES (current_date - %s::integer, 1, now())",
            ago,
        )
    for worker, ago in (("old", 8), ("young", 6)):
        await _do(
            pool,
            "INSERT INTO worker_registry (worker_id, friendly_name, host, status, last_heartbeat_at)"
            f" VALUES (%s, 'n', 'h', 'stopped', {DAYS_AGO})",
            worker, ago,
        )  # fmt: skip
    await Janitor(pool).step()
    kept = await _do(pool, "SELECT schedule_id, current_date - fire_at::date FROM schedule_runs ORDER BY 1, 2")
    assert kept == [(1, 1), (1, 89), (2, 200)], "the last run of a schedule is kept"
    assert await _do(pool, "SELECT current_date - day FROM resync_plan ORDER BY 1") == [(0,), (89,)]
    assert await _do(pool, "SELECT worker_id FROM worker_registry") == [("young",)]


async def _past(pool: Pool, *months_ago: int) -> None:
    """One product, with a state that ended in each of these months, and the one that it is in."""
    await _do(
        pool,
        "INSERT INTO catalog_products (id, dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
        " changed_at, name_raw, name, stock_status, is_in_stock, variants, extra) VALUES (1, 1, 'dutchie', 'p', '', '2020-01-01Z',"
        " now(), now(), 'n', 'n', 'in_stock', true, '[]', '{}') RETURNING id",
    )
    for ago in months_ago:
        await _do(pool, "SELECT ensure_product_history_partition(now() - make_interval(months => %s))", ago)
        await _do(
            pool,
            "INSERT INTO product_history (product_id, dispensary_id, seen_from, seen_to, ended_at, present, quantity_capped,"
            " stock_status, quantity, prices, stock)"
            ""
            " SELECT 1, 1, t - interval '1 minute', t - interval '1 minute', t, true, false, 'in_stock', %s, '[]', '[]'"
            " FROM (SELECT now() - make_interval(months => %s)) x(t) RETURNING product_id",
            ago,
            ago,
        )


async def _quantities(pool: Pool) -> list[int | None]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT quantity FROM product_states ORDER BY seen_from DESC")
        return [row[0] for row in await cursor.fetchall()]


async def _months(pool: Pool) -> set[str]:
    """Every table of a month of past states."""
    return {
        r[0] for r in await _do(pool, r"SELECT relname FROM pg_class WHERE relname ~ '^product_history_\d{4}_\d{2}$'")
    }


async def test_product_history_is_kept_for_good_unless_somebody_says_how_long(pool: Pool) -> None:
    await _past(pool, 0, 2, 13, 60)
    await Janitor(pool, retention=Retention()).step()
    assert await _quantities(pool) == [None, 0, 2, 13, 60]


async def test_product_history_goes_by_the_month_and_the_present_one_stays(pool: Pool) -> None:
    await _past(pool, 0, 2, 14, 60)
    before = await _months(pool)
    await Janitor(pool, retention=Retention(states=timedelta(days=365))).step()
    assert await _quantities(pool) == [None, 0, 2]
    assert len(before - await _months(pool)) == 2


async def test_months_of_product_history_are_made_ahead(pool: Pool) -> None:
    ahead = await _months(pool)
    assert len(ahead) == 3
    async with pool.connection() as conn:
        for name in sorted(ahead)[1:]:
            await conn.execute(f"DROP TABLE {name}")
    await Reaper(pool, stale_after=timedelta(minutes=10)).step()
    assert await _months(pool) == ahead
