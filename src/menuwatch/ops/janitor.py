"""Database maintenance: drops expired rows and partitions, refreshes statistics, and reports what holds back vacuum."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import psycopg
from msgspec import Struct

from menuwatch.archive.files import FileArchive
from menuwatch.catalog import store as catalog
from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db import partitions, sql
from menuwatch.db.clock import database_now
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.ops import retention as rules
from menuwatch.ops.retention import ClockReading, Retention
from menuwatch.platforms.base import Platform
from menuwatch.quality import check as quality
from menuwatch.quality.audit import audit_sample
from menuwatch.queue import store as tasks
from menuwatch.search_crawl.pages import PageArchive

log = get_logger(__name__)
_q = sql.load(__package__, "maintenance.sql")

LOCK_SECONDS = 1.0
"""Lock timeout: other sessions queue behind it no longer than this; when an open transaction blocks it, it retries on the next
run."""

LONG_TRANSACTION = timedelta(minutes=15)
LONG_IDLE_TRANSACTION = timedelta(minutes=5)
"""Ages from which a transaction that holds the horizon back is worth a warning: each claim then steps over all that ended since."""


class _Job(Struct, frozen=True, kw_only=True):
    every: timedelta
    run: Callable[[Connection, ClockReading], Awaitable[Mapping[str, Any] | None]]
    rest: int = 0
    """After a run, the job rests for this many times the duration of that run."""
    statement_seconds: float = 120.0
    """Time limit of a statement."""
    deletes: bool = False
    """It deletes what is past its time: not done while the time is in doubt."""


class Janitor(Loop):
    """Any number of them may run: each job is run by the first of them when it is due. What fails is tried at the next step.

    It goes by the database's clock; `clock` is one in place of that, for tests.
    """

    name: ClassVar[str] = "janitor"

    def __init__(
        self,
        pool: Pool,
        *,
        retention: Retention | None = None,
        archive: FileArchive | None = None,
        pages: PageArchive | None = None,
        platforms: Mapping[str, Platform] | None = None,
        clock: Clock | None = None,
        interval: float = 300.0,
    ) -> None:
        """`archive` has the payloads and `pages` those of search crawls; without them, these are not pruned. `platforms` have the
        normalizers, by which data quality is checked and audited."""
        super().__init__(interval=interval)
        self._pool = pool
        self._retention = retention or Retention()
        self._archive = archive
        self._pages = pages
        self._platforms = platforms or {}
        self._clock = clock
        self._doubted = False
        self.jobs: Mapping[str, _Job] = {
            "names": _Job(every=timedelta(seconds=interval * 0.9), run=self._fold_names),
            "quality": _Job(every=timedelta(seconds=interval * 0.9), run=self._check_quality),
            "audit": _Job(every=timedelta(days=7), run=self._audit_quality),
            "totals": _Job(every=timedelta(minutes=15), run=self._count_totals, rest=10, statement_seconds=600.0),
            "horizon": _Job(every=timedelta(seconds=interval * 0.9), run=self._watch_horizon),
            "history": _Job(every=timedelta(hours=1), run=self._drop_history, deletes=True),
            "records": _Job(every=timedelta(hours=1), run=self._prune_records, deletes=True),
            # Twice an hour: a salt may not become 48 hours old. Before those that remove files, which may take long.
            "visitors": _Job(every=timedelta(minutes=30), run=rules.forget_visitors),
            "payloads": _Job(every=timedelta(days=1), run=self._prune_payloads, deletes=True),
            "crawls": _Job(every=timedelta(hours=1), run=self._prune_crawls, deletes=True),
            "statistics": _Job(every=timedelta(days=1), run=self._analyze),
        }

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            row = await (await conn.execute(_q.lock_maintenance)).fetchone()
            if row is None or not row[0]:
                return None
            try:
                await self._run_due_jobs(conn)
            finally:
                if not conn.closed:
                    await conn.execute(_q.unlock_maintenance)
        return None

    async def _run_due_jobs(self, conn: Connection) -> None:
        names = list(self.jobs)
        every = [self.jobs[name].every.total_seconds() for name in names]
        rest = [self.jobs[name].rest for name in names]
        await conn.execute(_q.add_jobs, {"jobs": names})
        cursor = await conn.execute(_q.due_jobs, {"jobs": names, "every": every, "rest": rest})
        due = {row[0] for row in await cursor.fetchall()}
        reading = await rules.read_clock(conn, self._clock.now() if self._clock else await database_now(conn))
        self._log_doubt(reading)
        for name in names:
            if name in due and not self.stopping:
                await self._run(conn, name, reading)

    def _log_doubt(self, reading: ClockReading) -> None:
        """Logs when doubt about the clock begins, and when it ends."""
        if (reading.doubt is not None) == self._doubted:
            return
        self._doubted = reading.doubt is not None
        times = {"clock": reading.seen_at.isoformat(), "last_trusted": reading.trusted_at.isoformat()}
        if self._doubted:
            log.warning("retention paused", action="retention_refused", error=reading.doubt, **times)
        else:
            log.info("retention resumed", action="retention_resumed", **times)

    async def _run(self, conn: Connection, name: str, reading: ClockReading) -> None:
        job = self.jobs[name]
        if job.deletes and reading.doubt is not None:
            await conn.execute(_q.job_failed, {"job": name, "error": reading.doubt, "duration": None})
            return
        started = time.monotonic()
        try:
            async with partitions.patience(conn, lock_seconds=LOCK_SECONDS, statement_seconds=job.statement_seconds):
                result = await job.run(conn, reading)
        except Exception as error:
            if conn.closed:
                error.add_note(f"maintenance job {name}")
                raise
            message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
            reason = f"{type(error).__name__}: {message or error}"
            await conn.execute(_q.job_failed, {"job": name, "error": reason, "duration": _since(started)})
            log.warning(
                "maintenance job failed; retrying later",
                action="maintenance_failed",
                job=name,
                again_in_seconds=self.interval,
                error=reason,
            )
            return
        await conn.execute(_q.job_succeeded, {"job": name, "duration": _since(started)})
        if result:
            log.info("maintenance job completed", action="maintenance_done", job=name, **result)

    async def _fold_names(self, conn: Connection, _: ClockReading) -> Mapping[str, Any] | None:
        names = await catalog.fold_names(conn)
        return {"new": names} if names else None

    async def _check_quality(self, conn: Connection, _: ClockReading) -> Mapping[str, Any] | None:
        result = await quality.check(conn, {name: one.normalizer_version for name, one in self._platforms.items()})
        return (
            {"menus": result.menus, "opened": result.opened, "closed": result.closed}
            if result and result.menus
            else None
        )

    async def _audit_quality(self, conn: Connection, _: ClockReading) -> Mapping[str, Any] | None:
        if self._archive is None or not self._platforms:
            return None
        values = await audit_sample(conn, self._archive, self._platforms)
        odd = [value for value in values if value.result != "equal"]
        for value in odd:
            log.warning(
                "audited value differs from its payload", action="audit_differs", audit_id=value.id, result=value.result,
                product_id=value.product_id, payload_id=value.payload_id, field=value.field,
            )  # fmt: skip
        return {"audited": len(values), "not_equal": len(odd)}

    async def _count_totals(self, conn: Connection, _: ClockReading) -> Mapping[str, Any] | None:
        await catalog.count_totals(conn)
        return None

    async def _drop_history(self, conn: Connection, reading: ClockReading) -> Mapping[str, Any] | None:
        dropped = await self._retention.drop_partitions(conn, reading.seen_at)
        days = await tasks.count_days(conn)
        return {"dropped": dropped, "days_counted": days} if dropped or days else None

    async def _prune_records(self, conn: Connection, reading: ClockReading) -> Mapping[str, Any] | None:
        counts = await self._retention.prune(conn, reading.seen_at)
        return counts if any(counts.values()) else None

    async def _prune_payloads(self, conn: Connection, reading: ClockReading) -> Mapping[str, Any] | None:
        if self._archive is None:
            return None
        counts = await self._retention.prune_payloads(conn, reading.seen_at, self._archive)
        return counts if counts["payloads"] else None

    async def _prune_crawls(self, conn: Connection, reading: ClockReading) -> Mapping[str, Any] | None:
        if self._pages is None:
            return None
        counts = await self._retention.prune_crawls(conn, reading.seen_at, self._pages)
        return counts if counts["crawls"] else None

    async def _analyze(self, conn: Connection, _: ClockReading) -> Mapping[str, Any] | None:
        return {"analyzed": await partitions.analyze_parents(conn)}

    async def _watch_horizon(self, conn: Connection, _: ClockReading) -> None:
        for holder in await partitions.horizon(conn):
            idle = holder.state.startswith("idle in transaction")
            limit = LONG_IDLE_TRANSACTION if idle else LONG_TRANSACTION
            if holder.seconds >= limit.total_seconds():
                log.warning(
                    "an open transaction blocks the cleanup of finished tasks; claims get slower until it ends",
                    action="horizon_held",
                    pid=holder.pid,
                    state=holder.state,
                    application=holder.application,
                    age_seconds=round(holder.seconds),
                )


def _since(started: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - started)
