"""The database's clock, used for every stored or planned time.

Processes on several machines share one database, so its clock is the only one they have in common. A machine with a wrong clock
still crawls, plans and deletes at the right time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from psycopg import AsyncConnection

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool

log = get_logger(__name__)
_q = sql.load(__package__)

READINGS = 3
"""Most questions for one reading; the one answered fastest counts."""
PRECISE_SECONDS = 0.01
"""A round trip as short as this needs no second question."""
JUMP = timedelta(seconds=60)
"""A reading that is further from the expected time than this is a jump: of the database's clock, or of this machine's uptime."""
SETTLED_SECONDS = 600.0
"""How long a jump must last before it is followed. A clock that is wrong for a few minutes dates nothing."""


async def database_now(conn: AsyncConnection[Any]) -> datetime:
    """The time by the database's clock, in UTC."""
    row = await (await conn.execute(_q.now)).fetchone()
    assert row is not None, "a SELECT without FROM gives a row"
    at: datetime = row[0]
    return at.astimezone(UTC)


class DatabaseClock:
    """A `Clock` that shows the database's time. Between two readings it goes on by this machine's uptime, so setting the machine's
    clock does not move it.

        first reading ──► follows ──(reading off by more than JUMP)──► doubts: goes on as before
                             ▲                                            │ readings as expected again, or
                             └────────────────────────────────────────────┘ the jump has lasted SETTLED_SECONDS: it is followed
    """

    def __init__(self, machine: Clock | None = None) -> None:
        self._machine = machine or SystemClock()
        self._read: datetime | None = None
        self._ticks = 0.0
        self._jumped: tuple[timedelta, float] | None = None
        """How far the readings are off, and since when."""

    def now(self) -> datetime:
        if self._read is None:
            return self._machine.now()
        return self._read + timedelta(seconds=self._machine.monotonic() - self._ticks)

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def read(self, conn: AsyncConnection[Any]) -> None:
        """Compares with the database's clock, and sets itself by it."""
        best: tuple[float, datetime, float] | None = None
        for _ in range(READINGS):
            began = self._machine.monotonic()
            reading = await database_now(conn)
            ticks = self._machine.monotonic()
            if best is None or ticks - began < best[0]:
                best = (ticks - began, reading, ticks)
            if best[0] <= PRECISE_SECONDS:
                break
        assert best is not None, "the loop runs at least once"
        half = timedelta(seconds=best[0] / 2)
        self.take(best[1] + half, best[2], uncertainty=half)

    def take(self, reading: datetime, ticks: float, *, uncertainty: timedelta = timedelta(0)) -> None:
        """Takes a reading of the database's clock, made when `monotonic` showed `ticks`. A clock that agrees with it within the
        uncertainty stays as it is: a slow answer on a busy machine must not move it."""
        if self._read is None:
            off = self._machine.now() - reading
            if abs(off) > JUMP:
                log.warning(
                    "clocks of this machine and the database differ; using the database's",
                    action="clocks_differ",
                    seconds=round(off.total_seconds()),
                )
        else:
            off = reading - (self._read + timedelta(seconds=ticks - self._ticks))
            if abs(off) <= uncertainty:
                self._jumped = None
                return
            if abs(off) > JUMP and not self._lasts(off, ticks):
                return
        self._read, self._ticks, self._jumped = reading, ticks, None

    def _lasts(self, off: timedelta, ticks: float) -> bool:
        """Whether readings have been off by that much for long enough to be followed."""
        if self._jumped is None or abs(off - self._jumped[0]) > JUMP:
            self._jumped = (off, ticks)
            log.warning(
                "database clock jumped; adopted if it persists",
                action="clock_jumped",
                seconds=round(off.total_seconds()),
                followed_after_seconds=SETTLED_SECONDS,
            )
        if ticks - self._jumped[1] < SETTLED_SECONDS:
            return False
        log.warning("new database time adopted", action="clock_followed", seconds=round(off.total_seconds()))
        return True


class ClockReader(Loop):
    """Keeps the clock of a process in step with the database's."""

    name: ClassVar[str] = "clock_reader"

    def __init__(self, pool: Pool, clock: DatabaseClock, *, interval: float = 30.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._clock = clock

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            await self._clock.read(conn)
        return None
