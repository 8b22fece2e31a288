"""Fires schedules when they are due."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import ClassVar

import psycopg

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.logging import get_logger
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.queue.schedules import due
from menuwatch.queue.schedules import store as schedules
from menuwatch.queue.schedules.model import STORE_LOCAL

log = get_logger(__name__)


class Scheduler(Loop):
    """Any number of schedulers may run: the first one takes a due schedule, the others skip it.

    A failed firing is recorded on its schedule, does not affect others, and is retried at the next poll.
    """

    name: ClassVar[str] = "scheduler"

    def __init__(self, pool: Pool, *, clock: Clock | None = None, interval: float = 60.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._clock = clock or SystemClock()

    async def step(self) -> float | None:
        done: list[int] = []
        async with self._pool.connection() as conn:
            await self._correct_next_runs(conn)
            while not self.stopping and (schedule_id := await self._fire_one(conn, done)) is not None:
                done.append(schedule_id)
        return None

    async def _correct_next_runs(self, conn: Connection) -> None:
        """Reschedule what a wrong clock put further ahead than one interval, which would not fire until then."""
        now = self._clock.now()
        for corrected in await schedules.correct_next_runs(conn, now):
            _log_corrected(*corrected)
        for schedule_id in await schedules.far_cron(conn, now):
            await self.attend(
                "schedule",
                schedule_id,
                self._correct_cron(conn, schedule_id, now),
                partial(schedules.record_error, conn, schedule_id),
            )

    async def _correct_cron(self, conn: Connection, schedule_id: int, now: datetime) -> None:
        async with conn.transaction():
            corrected = await schedules.correct_cron(conn, schedule_id, now)
        if corrected is not None:
            _log_corrected(*corrected)

    async def _fire_one(self, conn: Connection, done: list[int]) -> int | None:
        """Id of the schedule that was processed, None if none is due."""
        now = self._clock.now()
        async with conn.transaction():
            schedule_id = await schedules.take_due(conn, now, done=done)
            if schedule_id is not None:
                await self.attend(
                    "schedule",
                    schedule_id,
                    self._fire(conn, schedule_id, now),
                    partial(schedules.record_error, conn, schedule_id),
                )
        return schedule_id

    async def _fire(self, conn: Connection, schedule_id: int, now: datetime) -> None:
        """Fire a due schedule, or record why that failed."""
        async with conn.transaction():
            schedule = await schedules.lock(conn, schedule_id)
            assert schedule is not None, "the caller holds the row"
            planned, zones, missed = schedule.next_run_at, None, 0
            if schedule.cron is None:
                every = due.interval(schedule.interval_hours)
                fire_at, next_run_at = due.last_due(planned, every, now), due.next_due(planned, every, now)
                missed = due.missed_count(planned, every, now)
            else:
                cron = await schedules.timing(conn, schedule)
                fire_at, local = cron.last_due(planned, now)
                zones, next_run_at = local if schedule.timezone == STORE_LOCAL else None, cron.next_due(now)
            try:
                async with conn.transaction():
                    created = await schedules.fire(
                        conn, schedule.id, fire_at=fire_at, now=now, next_run_at=next_run_at, zones=zones
                    )
            except psycopg.Error as error:
                if conn.closed:
                    raise
                reason = f"{type(error).__name__}: {error.diag.message_primary or error}"
                await schedules.record_failure(conn, schedule.id, fire_at=fire_at, now=now, error=reason)
                log.error(
                    "schedule failed",
                    action="schedule_failed",
                    schedule_id=schedule.id,
                    schedule=schedule.name,
                    error=reason,
                )
                return
        if created is not None:
            log.info(
                "schedule fired",
                action="schedule_fired",
                schedule_id=schedule.id,
                schedule=schedule.name,
                fire_at=fire_at.isoformat(),
                tasks=created,
                missed=missed,
            )


def _log_corrected(schedule_id: int, name: str, planned: str, next_run_at: datetime) -> None:
    log.warning(
        "next run was further away than the interval; rescheduled",
        action="schedule_corrected",
        schedule_id=schedule_id,
        schedule=name,
        planned=planned,
        next_run_at=next_run_at.isoformat(),
    )
