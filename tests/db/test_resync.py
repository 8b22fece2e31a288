"""A day's crawls, spread over its batches."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

DAY = date(2031, 6, 15)
SYDNEY = ZoneInfo("Australia/Sydney")
PHOENIX = ZoneInfo("America/Phoenix")

Plan = dict[int, datetime]


@pytest.fixture
def sync(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


def _stores(sync: psycopg.Connection[Any], count: int, timezone: str | None) -> None:
    sync.execute(
        "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw, timezone) "
        "SELECT gen_random_uuid()::text, 's', 's', %s FROM generate_series(1, %s)",
        [timezone, count],
    )


def _generate(sync: psycopg.Connection[Any], batches: int, day: date = DAY, *more: str | None) -> int:
    query = "SELECT generate_resync_tasks(%s, %s" + ", %s" * len(more) + ")"
    row = sync.execute(query.encode(), [batches, day, *more]).fetchone()
    assert row is not None
    return int(row[0])


def _plan(sync: psycopg.Connection[Any]) -> Plan:
    rows = sync.execute(
        "SELECT dispensary_id, scheduled_for FROM worker_tasks WHERE role = 'payload_fetch' AND status = 'pending'"
    ).fetchall()
    assert len({store for store, _ in rows}) == len(rows), "one waiting task per store"
    return dict(rows)


def _hours(plan: Plan, zone: Any, day: date = DAY) -> list[float]:
    """Hours since the local midnight of the day."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall clock on purpose
    return [(at.astimezone(zone).replace(tzinfo=None) - midnight) / timedelta(hours=1) for at in plan.values()]


def test_evenly_over_the_batches_with_jitter_inside(sync: psycopg.Connection[Any]) -> None:
    _stores(sync, 100, None)
    assert _generate(sync, 6) == 100
    hours = _hours(_plan(sync), UTC)
    per_batch = Counter(int(hour // 4) for hour in hours)
    assert sorted(per_batch) == [0, 1, 2, 3, 4, 5]
    assert sorted(per_batch.values()) == [16, 16, 17, 17, 17, 17], "100 over 6"
    inside = sorted(hour % 4 for hour in hours)
    assert 0 <= inside[0] < 0.4, "some come early in their batch"
    assert 3.6 < inside[-1] < 4, "some late"
    assert len(set(hours)) == 100
    assert {row[0] for row in sync.execute("SELECT DISTINCT priority FROM worker_tasks")} == {0}


def test_the_same_day_again_adds_only_new_stores(sync: psycopg.Connection[Any]) -> None:
    _stores(sync, 10, None)
    assert _generate(sync, 6) == 10
    before = _plan(sync)
    assert _generate(sync, 6) == 0
    assert _generate(sync, 24) == 0
    _stores(sync, 2, None)
    assert _generate(sync, 6) == 2
    assert {store: at for store, at in _plan(sync).items() if store in before} == before, "nothing was moved"
    sync.execute("SELECT cancel_tasks(array_agg(id)) FROM task_live")
    assert _generate(sync, 6) == 0, "also when they are over"
    assert _generate(sync, 6, DAY + timedelta(days=1)) == 12
    moved = _hours({s: at for s, at in _plan(sync).items() if s in before}, UTC, DAY + timedelta(days=1))
    assert sorted(moved) != sorted(_hours(before, UTC)), "another day, other moments"


def test_each_store_by_its_own_clock(sync: psycopg.Connection[Any]) -> None:
    for zone in ("Australia/Sydney", "America/Phoenix", "Mars/Olympus", None):
        _stores(sync, 12, zone)
    assert _generate(sync, 6) == 48
    zones = dict(sync.execute("SELECT id, timezone FROM dispensaries").fetchall())
    for name, clock in (("Australia/Sydney", SYDNEY), ("America/Phoenix", PHOENIX), ("Mars/Olympus", UTC), (None, UTC)):
        hours = _hours({store: at for store, at in _plan(sync).items() if zones[store] == name}, clock)
        assert all(0 <= hour < 24 for hour in hours), name
        if name not in ("Mars/Olympus", None):  # these two share UTC and are dealt out together
            assert sorted(Counter(int(hour // 4) for hour in hours).values()) == [2] * 6, name


def test_one_clock_for_all_when_it_is_named(sync: psycopg.Connection[Any]) -> None:
    _stores(sync, 12, "Australia/Sydney")
    assert _generate(sync, 2, DAY, "America/Phoenix") == 12
    assert Counter(int(hour // 12) for hour in _hours(_plan(sync), PHOENIX)) == {0: 6, 1: 6}


def test_a_day_of_23_hours(sync: psycopg.Connection[Any]) -> None:
    _stores(sync, 48, "America/New_York")
    spring = date(2031, 3, 9)
    assert _generate(sync, 24, spring) == 48
    zone = ZoneInfo("America/New_York")
    per_hour = Counter(int(hour) for hour in _hours(_plan(sync), zone, spring))
    assert per_hour[2] == 0, "02:00 to 03:00 does not exist that day"
    assert per_hour[3] == 4, "its two go where the clock goes"
    assert sum(per_hour.values()) == 48


def test_which_stores(sync: psycopg.Connection[Any]) -> None:
    _stores(sync, 4, None)
    sync.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = 1")
    sync.execute("UPDATE dispensaries SET platform_dispensary_id = NULL WHERE id = 2")
    sync.execute("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', 3)")
    assert _generate(sync, 6) == 1
    plan = _plan(sync)
    assert set(plan) == {3, 4}
    assert plan[3] is None, "it waits as before"
    sync.execute("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE dispensary_id = 3")
    assert _generate(sync, 6) == 1, "store 3 was not planned, and now it is"


def test_four_at_once_plan_each_store_once(sync: psycopg.Connection[Any], database_url: str) -> None:
    _stores(sync, 200, "America/Phoenix")
    made: list[int] = []

    def run() -> None:
        with psycopg.connect(database_url, autocommit=True) as conn:
            made.append(_generate(conn, 6))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [0, 0, 0, 200]
    assert len(_plan(sync)) == 200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("0, '2031-06-15'", "from 1 to 1440, got 0"),
        ("100000, '2031-06-15'", "from 1 to 1440"),
        ("NULL, '2031-06-15'", "from 1 to 1440"),
        ("6, 'infinity'", "must be a day"),
        ("6, NULL", "must be a day"),
        ("6, '2031-06-15', 'Mars/Olympus'", "Mars/Olympus"),
    ],
)
def test_what_is_refused(sync: psycopg.Connection[Any], arguments: str, says: str) -> None:
    _stores(sync, 1, None)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=says):
        sync.execute(f"SELECT generate_resync_tasks({arguments})".encode())
    assert _plan(sync) == {}
