"""A jump of the database's clock deletes nothing; an installation that was off for long continues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import GAP, RUNNING, STEP, ClockReading, Retention, next_reading

T0 = datetime(2026, 3, 1, tzinfo=UTC)
MINUTES = timedelta(minutes=5)
YEARS = timedelta(days=20 * 365)


def _looks(before: ClockReading, *, first: datetime, count: int, every: timedelta = MINUTES) -> ClockReading:
    for n in range(count):
        before = next_reading(before, first + n * every)
    return before


def test_the_first_look_and_those_of_a_running_installation_are_trusted() -> None:
    look = next_reading(None, T0)
    for step in (MINUTES, timedelta(hours=16), GAP, -timedelta(hours=1)):
        look = next_reading(look, look.seen_at + step)
        assert look.doubt is None


@pytest.mark.parametrize("jump", [GAP + MINUTES, timedelta(days=90), YEARS, -YEARS, -GAP - 600 * MINUTES])
def test_a_jump_is_doubted_until_it_is_over(jump: timedelta) -> None:
    look = _looks(next_reading(None, T0), first=T0 + jump, count=100)
    assert look.doubt is not None
    assert look.trusted_at == T0
    assert next_reading(look, T0 + 100 * MINUTES) == ClockReading(
        trusted_at=T0 + 100 * MINUTES, seen_at=T0 + 100 * MINUTES
    )


def test_an_installation_that_was_off_goes_on_after_a_day_of_running() -> None:
    ran = RUNNING // MINUTES
    look = _looks(next_reading(None, T0), first=T0 + timedelta(days=90), count=ran)
    assert look.doubt is not None
    look = next_reading(look, look.seen_at + MINUTES)
    assert look.doubt is None
    assert next_reading(look, look.seen_at + MINUTES).doubt is None


def test_only_running_counts_also_when_it_is_switched_off_in_between() -> None:
    off = timedelta(days=7)
    look, running = next_reading(None, T0), 0
    while (look := next_reading(look, look.seen_at + (off if running % 96 == 0 else MINUTES))).doubt is not None:
        running += 1
    assert running == RUNNING // MINUTES + 3, "a day of steps, and three times of being off"
    look = _looks(next_reading(None, T0), first=T0 + off, count=1000, every=STEP + timedelta(seconds=1))
    assert look.ran == timedelta(0)


ROWS = (
    "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('x', 'payload_fetch', 4, now())",
    (
        "INSERT INTO schedule_runs (schedule_id, fire_at, ran_at)"
        " SELECT 1, now() - n * interval '4 hours', now() FROM generate_series(1, 9) n"
    ),
    "INSERT INTO audit_log (actor, actor_kind, via, action) VALUES ('a', 'user', 'api', 'login')",
    "INSERT INTO visitor_pages (day, kind, page, views, uniques) VALUES (current_date, 'human', '/', 1, 1)",
    "INSERT INTO storefront_items (id, name, category, first_seen) VALUES (1, 'n', 'c', 0)",
    (
        "INSERT INTO price_watches (token_hash, channel, subject, item_id, condition, phase, currency, created_at, confirmed_at,"
        " ends_at)"
        " SELECT sha256('x'), 'feed', 'item', id, 'any_drop', 'armed', 'USD', now(), now(), now() + interval '7 days'"
        " FROM storefront_items"
    ),
    (
        "INSERT INTO worker_registry (worker_id, friendly_name, host, status, last_heartbeat_at)"
        " VALUES ('w', 'n', 'h', 'stopped', now())"
    ),
    (
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
        " postpone_count, role, platform, status, worker_id, payload)"
        " SELECT nextval('task_ids'), now(), now(), now(), now(), 0, 1, 0, 3, 0, 'store_discovery', 'dutchie', 'completed', 'w', '{}'"
    ),
)
TABLES = ("schedule_runs", "audit_log", "visitor_pages", "price_watches", "worker_registry", "task_history")


class Installation:
    """Rows of every kind that is deleted one day, all of today."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.clock = ManualClock(datetime.now(UTC))
        retention = Retention(history=timedelta(days=30), states=timedelta(days=365))
        self.janitor = Janitor(pool, retention=retention, clock=self.clock)

    async def do(self, query: str) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(query.encode())
            return await cursor.fetchall() if cursor.description else []

    async def fill(self) -> None:
        for query in ROWS:
            await self.do(query)

    async def left(self) -> dict[str, int]:
        counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in TABLES)
        return dict(await self.do(counts))  # type: ignore[arg-type]

    async def step(self, by: timedelta, *, due: bool = True) -> list[Any]:
        """Maintenance at another time, of every job if it is `due`; returns what it logged about retention."""
        self.clock = ManualClock(self.clock.now() + by)
        self.janitor._clock = self.clock
        if due:
            await self.do("UPDATE maintenance_runs SET succeeded_at = now() - interval '1 day'")
        with capture_logs() as logs:
            await self.janitor.step()
        return [line["action"] for line in logs if str(line["action"]).startswith("retention_")]

    async def failing(self) -> set[str]:
        return {row[0] for row in await self.do("SELECT job FROM maintenance_runs WHERE error IS NOT NULL")}


@pytest.fixture
async def installation(pool: Pool) -> Installation:
    made = Installation(pool)
    await made.fill()
    assert await made.step(MINUTES) == []
    return made


async def test_a_jump_deletes_nothing_and_maintenance_goes_on_when_it_is_over(installation: Installation) -> None:
    full = await installation.left()
    assert await installation.step(YEARS) == ["retention_refused"]
    for _ in range(3):
        # Tasks go on ending meanwhile, dated by the clock that is wrong.
        await installation.do("SELECT ensure_task_history_partition(now() + interval '20 years')")
        assert await installation.step(MINUTES) == [], "it is said once"
    assert await installation.left() == full
    assert await installation.failing() == {"history", "records", "crawls", "payloads"}
    # Duties that were done in the future are due, and so are those that were refused.
    await installation.do(
        "UPDATE maintenance_runs SET succeeded_at = now() + CASE WHEN error IS NULL THEN interval '20 years' ELSE '0' END"
    )
    assert await installation.step(-YEARS, due=False) == ["retention_resumed"]
    assert (await installation.left(), await installation.failing()) == (full, set())
    assert await installation.do("SELECT job FROM maintenance_runs WHERE succeeded_at > now()") == []


async def test_after_three_months_off_old_rows_go_once_it_has_run_for_a_day(installation: Installation) -> None:
    full = await installation.left()
    assert await installation.step(timedelta(days=95)) == ["retention_refused"]
    assert await installation.left() == full
    await installation.do("UPDATE retention_clock SET ran = '23 hours 57 minutes'")
    assert await installation.step(MINUTES) == ["retention_resumed"]
    left = await installation.left()
    assert left == full | {"schedule_runs": 1, "price_watches": 0}, "tasks: nothing younger is there"


async def test_the_last_parts_that_hold_rows_stay_until_there_are_younger_rows(installation: Installation) -> None:
    await installation.do("UPDATE retention_clock SET trusted_at = now() + interval '95 days'")
    await installation.step(timedelta(days=95))
    assert await installation.failing() == set(), "the time is trusted"
    assert (await installation.left())["task_history"] == 1
    await installation.do("SELECT ensure_task_history_partition(now() + interval '95 days')")
    await installation.do(ROWS[-1].replace("now()", "now() + interval '95 days'"))
    await installation.step(MINUTES)
    assert await installation.do("SELECT count(*) FROM task_history WHERE completed_at < now() + interval '1 day'") == [
        (0,)
    ]
