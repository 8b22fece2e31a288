"""Schedulers side by side on one database, over many days of a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool, open_pool
from menuwatch.queue.schedules import service
from menuwatch.queue.schedules import store as schedules
from menuwatch.queue.schedules.model import DEFAULTS, NewSchedule, Schedule
from menuwatch.queue.schedules.scheduler import Scheduler

T0 = datetime(2126, 3, 1, tzinfo=UTC)
H = timedelta(hours=1)
ENABLED = tuple(replace(one, enabled=True) for one in DEFAULTS)
"""The default schedules as if discovery had been chosen."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(T0)


@pytest.fixture
async def pools(database_url: str) -> AsyncIterator[list[Pool]]:
    """Three of them, as three servers would have."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_pool(database_url, max_size=2)) for _ in range(3)]


async def _do(pool: Pool, query: str, values: Any = None) -> list[Any]:
    async with pool.connection() as conn:
        cursor = await conn.execute(query, values)  # type: ignore[arg-type]
        return await cursor.fetchall() if cursor.description else []


async def _stores(pool: Pool, count: int) -> None:
    await _do(
        pool,
        "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw, state) "
        "SELECT 'id-' || n, 's', 's', CASE WHEN mod(n, 2) = 0 THEN 'AZ' ELSE 'MI' END FROM generate_series(1, %s) n",
        [count],
    )


async def _create(pool: Pool, *wanted: NewSchedule) -> int:
    async with pool.connection() as conn:
        return await schedules.create_missing(conn, T0, wanted)


async def test_a_row_inserted_as_in_the_former_system_fires(pool: Pool) -> None:
    await _stores(pool, 4)
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, enabled, interval_hours, priority, state_code) VALUES"
        " ('az', 'payload_fetch', true, 4, 0, 'AZ'), ('former', 'product_resync', true, 4, 0, 'MI')",
    )
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('null', 'store_discovery', 24, NULL)",
    )
    await Scheduler(pool).step()
    assert await _do(pool, "SELECT name, role, last_task_count, last_error FROM task_schedules ORDER BY id") == [
        ("az", "payload_fetch", 2, None),
        ("former", "payload_fetch", 2, None),
        ("null", "store_discovery", 1, None),
    ]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match='role "sweep" does not exist'):
        await _do(pool, "INSERT INTO task_schedules (name, role, interval_hours) VALUES ('x', 'sweep', 4)")
    with pytest.raises(psycopg.errors.CheckViolation, match="task_schedules_role"):
        await _do(pool, "INSERT INTO task_schedules (name, role, interval_hours) VALUES ('x', 'product_refresh', 4)")


async def _get(pool: Pool, name: str) -> Schedule:
    async with pool.connection() as conn:
        found = await schedules.find(conn, name)
    assert found is not None
    return found


async def _runs(pool: Pool, name: str) -> list[tuple[datetime, int, str | None]]:
    return await _do(
        pool,
        "SELECT r.fire_at, r.task_count, r.error FROM schedule_runs r JOIN task_schedules s ON s.id = r.schedule_id "
        "WHERE s.name = %s ORDER BY r.fire_at",
        [name],
    )


@pytest.mark.parametrize("replicas", [2, 3])
async def test_each_schedule_once_per_period_for_many_days(
    pools: list[Pool], clock: ManualClock, replicas: int
) -> None:
    pool, rng, days, count = pools[0], Random(replicas), 40, 3
    await _stores(pool, count)
    assert await _create(pool, *ENABLED) == 3
    assert await _create(pool, *ENABLED) == 0
    running = [Scheduler(one, clock=clock) for one in pools[:replicas]]
    end = T0 + timedelta(days=days)
    # Whenever something is due: one looks a moment too early, all look within twenty minutes, one looks again.
    moments = sorted({T0 + every * n for every in (4 * H, 6 * H) for n in range(timedelta(days=days) // every)})
    async with pool.connection() as conn:
        for moment in moments:
            if moment > T0:
                clock.advance(moment - timedelta(microseconds=1) - clock.now())
                await rng.choice(running).step()
            clock.advance(moment + timedelta(seconds=rng.randrange(1200)) - clock.now())
            await asyncio.gather(*(one.step() for one in running))
            # Their crawls end some time after the firing, and the queue is empty again.
            await conn.execute(
                "WITH crawled AS (UPDATE dispensaries SET last_crawled_at = %s WHERE id IN (SELECT dispensary_id FROM task_live))"
                " SELECT cancel_tasks(array_agg(id)) FROM task_live HAVING count(*) > 0",
                [clock.now() + timedelta(minutes=rng.randrange(50))],
            )
            await rng.choice(running).step()
    for name, every, tasks in (
        ("payload_fetch_all", 4 * H, count),
        ("store_discovery_dutchie", 24 * H, 1),
        ("analytics_refresh", 6 * H, 1),
    ):
        runs = await _runs(pool, name)
        assert runs == [(T0 + every * n, tasks, None) for n in range(timedelta(days=days) // every)]
        made = await _do(pool, "SELECT count(*) FROM task_history WHERE role = %s", [(await _get(pool, name)).role])
        assert made == [(tasks * len(runs),)]
        assert (await _get(pool, name)).next_run_at == end


async def test_missed_runs_collapse_into_one(pools: list[Pool], clock: ManualClock) -> None:
    pool = pools[0]
    await _create(pool, *ENABLED)
    both = [Scheduler(one, clock=clock) for one in pools[:2]]
    await asyncio.gather(*(one.step() for one in both))
    clock.advance(timedelta(days=9, hours=3))
    for _ in range(3):
        await asyncio.gather(*(one.step() for one in both))
    assert [run[0] for run in await _runs(pool, "store_discovery_dutchie")] == [T0, T0 + timedelta(days=9)]
    assert [run[0] for run in await _runs(pool, "payload_fetch_all")] == [T0, T0 + timedelta(days=9)]
    found = await _get(pool, "payload_fetch_all")
    assert (found.last_run_at, found.next_run_at) == (clock.now(), T0 + timedelta(days=9, hours=4)), "no drift"


async def test_one_that_fails_is_noted_hinders_none_and_is_tried_again(pools: list[Pool], clock: ManualClock) -> None:
    pool = pools[0]
    await _stores(pool, 3)
    await _create(pool, ENABLED[1], ENABLED[0])
    await _do(
        pool,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'out of order'; END $$",
    )
    await _do(
        pool,
        "CREATE TRIGGER refuse BEFORE INSERT ON task_live FOR EACH ROW WHEN (NEW.role = 'store_discovery')"
        " EXECUTE FUNCTION refuse()",
    )
    scheduler = Scheduler(pool, clock=clock)
    for _ in range(2):
        await scheduler.step()
        assert await _runs(pool, "payload_fetch_all") == [(T0, 3, None)]
        assert await _runs(pool, "store_discovery_dutchie") == [(T0, 0, "RaiseException: out of order")]
        broken = await _get(pool, "store_discovery_dutchie")
        assert (broken.last_error, broken.last_run_at) == ("RaiseException: out of order", None)
        assert broken.next_run_at == T0, "it stays due"
    await _do(pool, "DROP TRIGGER refuse ON task_live")
    clock.advance(timedelta(minutes=1))
    await scheduler.step()
    assert await _runs(pool, "store_discovery_dutchie") == [(T0, 1, None)]
    mended = await _get(pool, "store_discovery_dutchie")
    assert (mended.last_error, mended.last_task_count, mended.next_run_at) == (None, 1, T0 + 24 * H)


async def test_a_scheduler_that_dies_in_the_middle_leaves_nothing_and_blocks_no_other(
    pools: list[Pool], clock: ManualClock
) -> None:
    await _stores(pools[0], 2)
    await _create(pools[0], ENABLED[0])
    async with pools[0].connection() as conn:
        with contextlib.suppress(psycopg.OperationalError):
            async with conn.transaction():
                taken = await schedules.take_due(conn, T0)
                assert taken is not None
                assert await schedules.fire(conn, taken, fire_at=T0, now=T0, next_run_at=T0 + 4 * H) == 2
                await Scheduler(pools[1], clock=clock).step()
                assert await _runs(pools[1], "payload_fetch_all") == [], "another one's: passed over"
                await _do(pools[1], "SELECT pg_terminate_backend(%s)", [conn.info.backend_pid])
                await conn.execute("SELECT 1")
        assert conn.closed
    await Scheduler(pools[1], clock=clock).step()
    assert await _runs(pools[1], "payload_fetch_all") == [(T0, 2, None)]
    assert await _do(pools[1], "SELECT count(*) FROM task_live") == [(2,)]


async def test_which_stores_a_firing_is_for(pools: list[Pool], clock: ManualClock) -> None:
    pool = pools[0]
    await _stores(pool, 8)
    await _create(pool, ENABLED[0])
    # Of 4 h at a schedule of 4 h: due when over by 2 h from now, the firing nearest to it.
    for store, hours in ((2, 1.9), (3, 2.0), (4, 9.0)):
        await _do(pool, "UPDATE dispensaries SET last_crawled_at = %s WHERE id = %s", [T0 - hours * H, store])
    await _do(pool, "UPDATE dispensaries SET crawl_enabled = false WHERE id = 5")
    await _do(pool, "UPDATE dispensaries SET platform_dispensary_id = NULL, slug = 'x' WHERE id = 6")
    await _do(pool, "UPDATE dispensaries SET platform = 'other' WHERE id = 7")
    await _do(pool, "INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 8)")
    await Scheduler(pool, clock=clock).step()
    waiting = await _do(pool, "SELECT dispensary_id, priority FROM task_live ORDER BY dispensary_id")
    assert waiting == [(1, 0), (3, 0), (4, 0), (8, 0)]
    assert (await _get(pool, "payload_fetch_all")).last_task_count == 3, "store 8 had one waiting"

    await _do(pool, "SELECT cancel_tasks(array_agg(id)) FROM task_live")
    await _do(pool, "UPDATE task_schedules SET state_code = 'MI', priority = 7")
    clock.advance(4 * H)
    await Scheduler(pool, clock=clock).step()
    waiting = await _do(pool, "SELECT dispensary_id, priority FROM task_live ORDER BY dispensary_id")
    assert waiting == [(1, 7), (3, 7)], "odd ones are in Michigan"


async def test_a_disabled_one_does_not_fire_and_a_discovery_names_its_state(
    pools: list[Pool], clock: ManualClock
) -> None:
    pool = pools[0]
    await _create(pool, *ENABLED[:2])
    await _do(pool, "UPDATE task_schedules SET enabled = false WHERE name = 'payload_fetch_all'")
    await _do(pool, "UPDATE task_schedules SET state_code = 'ON' WHERE name = 'store_discovery_dutchie'")
    await Scheduler(pool, clock=clock).step()
    assert await _runs(pool, "payload_fetch_all") == []
    assert await _do(pool, "SELECT role, priority, payload FROM task_live") == [("store_discovery", 5, {"state": "ON"})]


@pytest.mark.parametrize("ahead", [timedelta(days=20 * 365), timedelta(hours=7)])
async def test_one_that_a_wrong_clock_fired_is_planned_again(
    pools: list[Pool], clock: ManualClock, ahead: timedelta
) -> None:
    pool = pools[0]
    await _create(pool, *ENABLED)
    await asyncio.gather(*(Scheduler(one, clock=ManualClock(T0 + ahead)).step() for one in pools[:2]))
    far = {new.name: (await _get(pool, new.name)).next_run_at for new in ENABLED}
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at)"
        " VALUES ('odd', 'analytics_refresh', 0.01, '290000-01-01Z')",
    )
    clock.advance(timedelta(minutes=1))
    now = clock.now()
    with capture_logs() as logs:
        await asyncio.gather(*(Scheduler(one, clock=clock).step() for one in pools))
    mended = {line["schedule"]: line["next_run_at"] for line in logs if line["action"] == "schedule_corrected"}
    found = {new.name: await _get(pool, new.name) for new in ENABLED}
    for name, one in found.items():
        every = float(one.interval_hours) * H
        if far[name] <= now + every:
            assert (one.next_run_at, one.last_error) == (far[name], None)
            continue
        assert now <= one.next_run_at < now + every
        assert (far[name] - one.next_run_at) % every == timedelta(0), "it stays on its grid"
        assert (mended[name], one.last_error is None) == (one.next_run_at.isoformat(), False)
    assert {"payload_fetch_all", "analytics_refresh", "odd"} <= mended.keys()
    clock.advance(24 * H)
    await Scheduler(pool, clock=clock).step()
    assert {(await _get(pool, name)).last_error for name in found} == {None}, "they have fired"


async def test_a_process_whose_clock_lags_corrects_nothing(pools: list[Pool]) -> None:
    """After a jump of the database's clock one process may follow it later than another."""
    pool, right = pools[0], ManualClock(datetime.now(UTC))
    async with pool.connection() as conn:
        await schedules.create_missing(conn, right.now(), ENABLED)
    await Scheduler(pool, clock=right).step()
    planned = {new.name: (await _get(pool, new.name)).next_run_at for new in ENABLED}
    lagging = Scheduler(pools[1], clock=ManualClock(right.now() - timedelta(minutes=30)))
    with capture_logs() as logs:
        await lagging.step()
    assert [line for line in logs if line["action"] == "schedule_corrected"] == []
    assert {new.name: (await _get(pool, new.name)).next_run_at for new in ENABLED} == planned


async def test_a_store_local_schedule_runs_once_in_each_zone(pool: Pool) -> None:
    # T0 is 2126-03-01 00:00 UTC: 02:00 is at 07:00 UTC in New York, at 09:00 UTC in Phoenix, at 02:00 UTC without a zone.
    await _do(
        pool,
        "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw, timezone) VALUES "
        "('ny1', 's', 's', 'America/New_York'), ('ny2', 's', 's', 'America/New_York'), ('az', 's', 's', 'America/Phoenix'), "
        "('none', 's', 's', NULL)",
    )
    async with pool.connection() as conn:
        made = await service.create(
            conn, {"name": "night", "role": "payload_fetch", "cron": "02:00"}, platforms=["dutchie"], now=T0
        )
    assert (made.timezone, made.next_run_at, made.interval_hours) == ("store", T0 + 2 * H, 24)
    clock = ManualClock(T0)
    queued = (
        "SELECT coalesce(array_agg(d.platform_dispensary_id ORDER BY d.id), '{}') FROM task_live t JOIN dispensaries d "
        "ON d.id = t.dispensary_id"
    )
    steps = [(1, []), (2, ["none"]), (6, ["none"]), (7.01, ["ny1", "ny2", "none"]), (9, ["ny1", "ny2", "az", "none"])]
    for hours, expected in steps:
        clock.advance(T0 + hours * H - clock.now())
        await Scheduler(pool, clock=clock).step()
        assert await _do(pool, queued) == [(expected,)], f"{hours} hours after midnight"
    assert await _do(pool, "SELECT next_run_at FROM task_schedules") == [(T0 + 26 * H,)]
    assert [n for (n,) in await _do(pool, "SELECT task_count FROM schedule_runs ORDER BY fire_at")] == [1, 2, 1]


async def test_a_cron_schedule_that_a_wrong_clock_moved_away_is_corrected(pool: Pool) -> None:
    async with pool.connection() as conn:
        fields = {"name": "night", "role": "analytics_refresh", "cron": "0 2 * * *"}
        assert (await service.create(conn, fields, platforms=["dutchie"], now=T0)).timezone == "UTC"
        await conn.execute("UPDATE task_schedules SET next_run_at = %s", [T0 + 500 * H])
    await Scheduler(pool, clock=ManualClock(T0)).step()
    ((due, error),) = await _do(pool, "SELECT next_run_at, last_error FROM task_schedules")
    assert (due, "too far away" in error) == (T0 + 2 * H, True)


async def test_a_cron_line_that_cannot_be_evaluated_stops_no_other(pool: Pool) -> None:
    await _create(pool, ENABLED[0], ENABLED[2])
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, cron, timezone, next_run_at) VALUES"
        " ('never', 'analytics_refresh', 24, '0 25 * * *', 'UTC', '2126-03-02Z'),"
        " ('odd', 'analytics_refresh', 24, '0 2 * * *', 'UTC', '290000-01-01Z')",
    )
    await Scheduler(pool, clock=ManualClock(T0)).step()
    rows = await _do(pool, "SELECT name, last_run_at, next_run_at, last_error FROM task_schedules ORDER BY id")
    assert [row[1] for row in rows] == [T0, T0, None, None]
    assert (rows[2][2], "CronSimError" in rows[2][3]) == (T0 + 24 * H, True)
    assert (rows[3][2], "too far away" in rows[3][3]) == (T0 + 2 * H, True)


async def test_a_store_in_an_earlier_zone_moves_the_next_run_without_an_error(pool: Pool) -> None:
    # 02:00 is at 09:00 UTC in Phoenix and at 07:00 UTC in New York; on 2126-03-04, a Monday, only.
    await _do(
        pool,
        "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw, state, timezone) VALUES "
        "('az', 's', 's', 'AZ', 'America/Phoenix')",
    )
    async with pool.connection() as conn:
        fields = {"name": "night", "role": "payload_fetch", "cron": "0 2 * * 1", "state_code": "AZ"}
        made = await service.create(conn, fields, platforms=["dutchie"], now=T0)
        assert made.next_run_at == T0 + timedelta(days=3, hours=9)
        await conn.execute(
            "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw, state, timezone) VALUES "
            "('az2', 's', 's', 'AZ', 'America/New_York'), ('on', 's', 's', 'ON', 'America/St_Johns')"
        )
    await Scheduler(pool, clock=ManualClock(T0)).step()
    row = "SELECT next_run_at, last_error FROM task_schedules"
    assert await _do(pool, row) == [(T0 + timedelta(days=3, hours=7), None)]
    async with pool.connection() as conn:
        await service.change(conn, made.id, {"state_code": "ON"}, platforms=["dutchie"], now=T0)
    assert await _do(pool, row) == [(T0 + timedelta(days=3, hours=5, minutes=30), None)], "at once"


async def test_discovery_is_off_until_states_are_chosen(pools: list[Pool], clock: ManualClock) -> None:
    await _create(pools[0], *DEFAULTS)
    await Scheduler(pools[0], clock=clock).step()
    assert await _do(pools[0], "SELECT role FROM task_live") == [("analytics_refresh",)]
