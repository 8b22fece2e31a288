"""Fires schedules when they are due."""

from __future__ import annotations

from typing import ClassVar

import psycopg

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.engine.loop import Loop
from menuwatch.schedules import due
from menuwatch.schedules import store as schedules

log = get_logger(__name__)


class Scheduler(Loop):
    """Any number of them may run: one that is due is taken by whoever comes first, and passed over by the others.

    A firing that fails is noted on its schedule, hinders no other one, and is tried again at the next poll.
    """

    name: ClassVar[str] = "scheduler"

    def __init__(self, pool: Pool, *, clock: Clock | None = None, interval: float = 60.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._clock = clock or SystemClock()

    async def step(self) -> float | None:
        done: list[int] = []
        async with self._pool.connection() as conn:
            while not self.stopping and (schedule_id := await self._fire_one(conn, done)) is not None:
                done.append(schedule_id)
        return None

    async def _fire_one(self, conn: Connection, done: list[int]) -> int | None:
        """The number of the schedule that was dealt with, None where none is due."""
        now = self._clock.now()
        async with conn.transaction():
            schedule = await schedules.take_due(conn, now, done=done)
            if schedule is None:
                return None
            every, planned = due.interval(schedule.interval_hours), schedule.next_run_at
            fire_at = due.latest(planned, every, now)
            try:
                async with conn.transaction():
                    made = await schedules.fire(
                        conn, schedule.id, fire_at=fire_at, now=now, next_run_at=due.following(planned, every, now)
                    )
            except psycopg.Error as error:
                if conn.closed:
                    raise
                reason = f"{type(error).__name__}: {error.diag.message_primary or error}"
                await schedules.failed(conn, schedule.id, fire_at=fire_at, now=now, error=reason)
                log.error(
                    "a schedule could not be fired",
                    action="schedule_failed",
                    schedule_id=schedule.id,
                    schedule=schedule.name,
                    error=reason,
                )
                return schedule.id
        if made is not None:
            log.info(
                "schedule fired",
                action="schedule_fired",
                schedule_id=schedule.id,
                schedule=schedule.name,
                fire_at=fire_at.isoformat(),
                tasks=made,
                missed=due.missed(planned, every, now),
            )
        return schedule.id
