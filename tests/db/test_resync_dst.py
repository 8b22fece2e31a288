"""A day's crawls on days that are not 24 hours long, against the time zones that Python knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

STORES = 240


@pytest.fixture
def sync(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dispensaries (platform_dispensary_id, name, name_raw) SELECT n::text, 's', 's' FROM generate_series(1, %s) n",
            [STORES],
        )
        yield conn


def _plan(sync: psycopg.Connection[Any], batches: int, day: date, zone: str) -> dict[int, datetime]:
    """The moment of each store; the queue and the plan are empty again afterwards."""
    sync.execute("SELECT generate_resync_tasks(%s, %s, %s)", [batches, day, zone])
    found = dict(sync.execute("SELECT dispensary_id, scheduled_for FROM resync_plan").fetchall())
    assert len(found) == STORES
    sync.execute("TRUNCATE task_live, resync_plan")
    return found


def _instants(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The first instant of a local day, and that of the next, found by walking: no arithmetic on wall clocks."""
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=16)
    edges = []
    while len(edges) < 2:
        if (at - timedelta(minutes=15)).astimezone(zone).date() != at.astimezone(zone).date() >= day:
            edges.append(at)
        at += timedelta(minutes=15)
    return edges[0], edges[1]


# fmt: off
DAYS = [
    ("America/New_York", date(2027, 3, 14), 23),
    ("America/New_York", date(2027, 11, 7), 25),
    ("America/Phoenix", date(2027, 3, 14), 24),         # knows no summer time
    ("Australia/Lord_Howe", date(2027, 4, 4), 24.5),    # half an hour
    ("America/Havana", date(2027, 3, 14), 23),          # midnight itself is missing
    ("America/Havana", date(2027, 11, 7), 25),
]
# fmt: on


@pytest.mark.parametrize(("name", "day", "hours"), DAYS)
@pytest.mark.parametrize("batches", [6, 24])
def test_the_hours_are_those_of_the_wall_clock(
    sync: psycopg.Connection[Any], name: str, day: date, hours: float, batches: int
) -> None:
    zone = ZoneInfo(name)
    begin, end = _instants(day, zone)
    assert (end - begin) / timedelta(hours=1) == hours
    walls, plan = _plan(sync, batches, day, "UTC"), _plan(sync, batches, day, name)
    for store, wall in walls.items():
        naive = wall.replace(tzinfo=None)
        # What the clocks show twice counts as the second time, what they skip is as much later: in both cases standard time counts.
        assert plan[store] in {naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        shown = plan[store].astimezone(zone).replace(tzinfo=None)
        assert shown == naive or shown - naive == timedelta(hours=24 - hours), "only what is skipped is moved"
    assert begin <= min(plan.values()) < max(plan.values()) < end, "all of it within the local day"
    by_batch = Counter(int(at.astimezone(zone).hour * batches // 24) for at in plan.values())
    if batches == 6:
        assert by_batch == dict.fromkeys(range(6), STORES // 6), "every batch keeps its share"
    else:
        assert sum(by_batch.values()) == STORES
        assert max(by_batch.values()) <= 2 * STORES // batches, "the skipped hour's share joins the next one"


def test_each_store_by_its_own_clock_on_a_short_day(sync: psycopg.Connection[Any]) -> None:
    day = date(2027, 3, 14)
    zones = ["America/New_York", "America/Phoenix", "America/Los_Angeles"]
    sync.execute("UPDATE dispensaries SET timezone = (%s::text[])[1 + mod(id, 3)]", [zones])
    assert sync.execute("SELECT generate_resync_tasks(6, %s)", [day]).fetchone() == (STORES,)
    rows = sync.execute(
        "SELECT d.timezone, p.scheduled_for FROM resync_plan p JOIN dispensaries d ON d.id = p.dispensary_id"
    ).fetchall()
    for name in zones:
        begin, end = _instants(day, ZoneInfo(name))
        mine = [at for zone, at in rows if zone == name]
        assert begin <= min(mine) <= max(mine) < end
        share = Counter(at.astimezone(ZoneInfo(name)).hour // 4 for at in mine)
        assert set(share.values()) <= {13, 14}, "80 stores over 6 batches"
        assert len(share) == 6
