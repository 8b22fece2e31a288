"""An installation whose process has a wrong clock, while the database's is right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from menuwatch import bootstrap
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock, SystemClock
from menuwatch.db.pool import Pool, open_pool
from menuwatch.ops import doctor
from menuwatch.system import open_system
from tests.workers.test_retention import ROWS, TABLES
from tests.workers.waiting import until


@pytest.fixture(params=[20 * 365, 3 * 365, -3 * 365])
def off(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> timedelta:
    """By how much the clock of this process is off."""
    by = timedelta(days=request.param)
    monkeypatch.setattr(SystemClock, "now", lambda self: datetime.now(UTC) + by)
    return by


@pytest.fixture
async def outside(database_url: str) -> AsyncIterator[Pool]:
    async with open_pool(database_url, max_size=1) as opened:
        yield opened


async def _do(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        cursor = await conn.execute(query.encode())
        return await cursor.fetchall() if cursor.description else []


async def test_schedules_fire_in_time_and_nothing_is_deleted(
    off: timedelta, outside: Pool, database_url: str, tmp_path: Path
) -> None:
    for row in ROWS:
        await _do(outside, row)
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in TABLES)
    before = dict(await _do(outside, counts))
    settings = Settings(home=tmp_path, storage_path=tmp_path, database_url=database_url)
    async with open_system(settings) as system:
        assert abs(system.clock.now() - datetime.now(UTC)) < timedelta(seconds=10)
        async with bootstrap.run_scheduler(system), bootstrap.run_maintenance(system):
            await until(
                lambda: _do(
                    outside, "SELECT 1 FROM maintenance_runs WHERE job = 'records' AND succeeded_at IS NOT NULL"
                )
            )
    assert dict(await _do(outside, counts)) == before | {"schedule_runs": before["schedule_runs"] + 3}, (
        "one for each enabled schedule"
    )
    in_time = "next_run_at BETWEEN now() AND now() + make_interval(hours => interval_hours::integer)"
    assert await _do(outside, f"SELECT bool_and({in_time}) FROM task_schedules WHERE enabled") == [(True,)]


@pytest.mark.parametrize(
    ("ahead", "level"),
    [(2, "ok"), (-2, "ok"), (10, "warning"), (-10, "warning"), (90, "problem"), (-94_608_000, "problem")],
)
async def test_the_doctor_compares_both_clocks(pool: Pool, ahead: int, level: str) -> None:
    machine = ManualClock(datetime.now(UTC) + timedelta(seconds=ahead))
    found = {one.check: one for one in await doctor.work(pool, Settings(), machine_clock=machine)}
    assert found["clocks"].level == level
    assert (found["clocks"].mend is None) == (level == "ok")


async def test_the_doctor_names_a_schedule_that_is_too_far_away_and_maintenance_that_is_refused(pool: Pool) -> None:
    before = {one.check: one.level for one in await doctor.work(pool, Settings())}
    assert (before["schedules"], before.get("maintenance")) == ("ok", None)
    await _do(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at)"
        " VALUES ('far', 'payload_fetch', 4, now() + interval '5 hours')",
    )
    await _do(pool, "INSERT INTO maintenance_runs (job, error) VALUES ('records', 'refused'), ('history', 'refused')")
    after = {one.check: one for one in await doctor.work(pool, Settings())}
    assert (after["schedules"].level, after["maintenance"].level) == ("warning", "warning")
    assert "far" in after["schedules"].detail
    assert after["maintenance"].detail == "history, records: refused"
