"""A process goes by the database's clock, whatever its own machine's shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from menuwatch.core.clock import ManualClock
from menuwatch.db.clock import SETTLED_SECONDS, DatabaseClock, database_now
from menuwatch.db.pool import Pool

T0 = datetime(2026, 3, 1, tzinfo=UTC)
YEARS = timedelta(days=20 * 365)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("off", [YEARS, -YEARS])
async def test_a_machine_whose_clock_is_wrong_gets_the_database_s_time(pool: Pool, off: timedelta) -> None:
    clock = DatabaseClock(machine := ManualClock(datetime.now(UTC) + off))
    async with pool.connection() as conn:
        with capture_logs() as logs:
            await clock.read(conn)
        assert abs(clock.now() - await database_now(conn)) < 5 * SECOND
    (line,) = [line for line in logs if line["action"] == "clocks_differ"]
    assert line["seconds"] == pytest.approx(off.total_seconds(), abs=5)
    before = clock.now()
    machine.advance(timedelta(minutes=3))
    assert clock.now() - before == timedelta(minutes=3), "between readings it goes on by the uptime"


def _following() -> tuple[DatabaseClock, ManualClock]:
    machine = ManualClock(T0)
    clock = DatabaseClock(machine)
    clock.take(T0, 0.0)
    return clock, machine


def test_a_drift_is_followed_at_once() -> None:
    clock, machine = _following()
    for _ in range(100):
        machine.advance(30 * SECOND)
        clock.take(clock.now() + SECOND, machine.monotonic())
    assert clock.now() - T0 == 100 * 31 * SECOND


def test_a_reading_that_took_long_moves_the_clock_only_by_what_it_proves() -> None:
    clock, machine = _following()
    machine.advance(30 * SECOND)
    clock.take(machine.now() + 0.06 * SECOND, machine.monotonic(), uncertainty=0.06 * SECOND)
    assert clock.now() == machine.now(), "the true time may be what the clock shows"
    clock.take(machine.now() + 0.06 * SECOND, machine.monotonic(), uncertainty=0.05 * SECOND)
    assert clock.now() == machine.now() + 0.06 * SECOND


@pytest.mark.parametrize("jump", [YEARS, -YEARS, timedelta(minutes=2)])
def test_a_jump_is_followed_once_it_has_lasted(jump: timedelta) -> None:
    clock, machine = _following()
    with capture_logs() as logs:
        while machine.monotonic() < SETTLED_SECONDS:
            machine.advance(30 * SECOND)
            clock.take(machine.now() + jump, machine.monotonic())
            assert clock.now() == machine.now()
        machine.advance(30 * SECOND)
        clock.take(machine.now() + jump, machine.monotonic())
    assert clock.now() == machine.now() + jump
    assert [line["action"] for line in logs] == ["clock_jumped", "clock_followed"]


def test_a_jump_that_ends_again_is_never_followed() -> None:
    clock, machine = _following()
    for off in [*[timedelta(0), YEARS] * 30, *[YEARS, 2 * YEARS] * 30]:
        machine.advance(30 * SECOND)
        clock.take(machine.now() + off, machine.monotonic())
        assert clock.now() == machine.now()
