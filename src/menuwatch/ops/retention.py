"""How long things are kept, and whether the clock can be trusted enough to delete by it. The janitor (`ops.janitor`) runs the rules.

| what | kept for | setting or rule |
|------|----------|-----------------|
| finished tasks | 30 days | TASK_HISTORY_DAYS |
| log of requests | 14 days | FETCH_ATTEMPT_DAYS |
| raw payloads but the first and last of each day | for good | PAYLOAD_DAYS |
| past states, batches and lab values of products | for good | PRODUCT_HISTORY_DAYS |
| ended search crawls, their products and archived pages | for good | CRAWL_HISTORY_DAYS |
| runs of schedules, events of hosts, alerts, measures and closed findings of data quality | 90 days | SCHEDULE_RUN_DAYS |
| audit log, audit samples of data quality | 730 days | AUDIT_DAYS |
| stopped and lost workers | 7 days | `Retention.workers` |
| log lines of workers | 7 days, and the newest 50,000 of each worker | `workers.logs` |
| sessions and login failures, idempotency keys | until they expire, a day | `accounts` |
| merges and splits of canonical products and locations | for good | old numbers lead to new ones |
| price watches | until they end | `storefront.watches` |
| salts of visitors, their page counts | 46 hours, 400 days | `visitors.store` |

Rules compare dates with the database's clock. One wrong reading (a dead battery, a resumed virtual machine, a typing error)
must not delete years of data, so every reading is compared with the previous one, which is stored in the database:

    at most GAP after the last trusted reading ─────────────────► trusted
    later: a jump, or no process ran for that long ─────────────► doubted: nothing is deleted
    more than GAP before the last trusted reading ──────────────► doubted
    back within GAP of the last trusted reading ────────────────► trusted: it was a jump
    processes have run for RUNNING since, still doubted ────────► trusted: it is the time
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from menuwatch.accounts import credentials, idempotency
from menuwatch.alerts import store as alerts
from menuwatch.archive import retention as payloads
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db import partitions, sql
from menuwatch.db.pool import Connection
from menuwatch.hosts import store as hosts
from menuwatch.quality import audit as quality_audit
from menuwatch.quality import check as quality
from menuwatch.queue.schedules import store as schedules
from menuwatch.search_crawl import service as search_crawl
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.storefront.watches import store as watches
from menuwatch.visitors import store as visitors
from menuwatch.workers import logs, registry

_q = sql.load(__package__, "maintenance.sql")

GAP = timedelta(days=1)
RUNNING = timedelta(days=1)
STEP = timedelta(hours=1)
"""The longest time between two looks that counts as running. Janitors look every five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """A reading of the clock, the last trusted reading, and how long processes have run since."""

    trusted_at: datetime
    seen_at: datetime
    ran: timedelta = timedelta(0)

    @property
    def doubt(self) -> str | None:
        """Why the clock is not trusted; None where it is."""
        if self.trusted_at == self.seen_at:
            return None
        hours = (RUNNING - self.ran) / timedelta(hours=1)
        return (
            f"retention refused: the database's clock shows {self.seen_at:%Y-%m-%d %H:%M} UTC; when last trusted, it showed "
            f"{self.trusted_at:%Y-%m-%d %H:%M} UTC. If it is wrong, correct it and retention resumes immediately. If it is right, "
            f"retention resumes after {hours:.1f} more hours of running"
        )


def next_reading(before: ClockReading | None, now: datetime) -> ClockReading:
    """The state after a reading of `now`; `before` is None for the first. Pure."""
    if before is None or abs(now - before.trusted_at) <= GAP:
        return ClockReading(trusted_at=now, seen_at=now)
    step = now - before.seen_at
    ran = before.ran + step if timedelta(0) <= step <= STEP else before.ran
    return ClockReading(trusted_at=now, seen_at=now) if ran >= RUNNING else replace(before, seen_at=now, ran=ran)


async def read_clock(conn: Connection, now: datetime) -> ClockReading:
    """Reads the clock and stores the reading. The caller holds the janitors' lock."""
    row = await (await conn.execute(_q.last_look)).fetchone()
    before = None if row is None else ClockReading(trusted_at=row[0], seen_at=row[1], ran=row[2])
    reading = next_reading(before, now)
    await conn.execute(_q.keep_look, {"trusted_at": reading.trusted_at, "seen_at": reading.seen_at, "ran": reading.ran})
    return reading


class Retention(Struct, frozen=True, kw_only=True):
    """How long data is kept; None: forever."""

    history: timedelta = timedelta(days=30)
    """Finished tasks."""
    attempts: timedelta = timedelta(days=14)
    """The log of requests."""
    states: timedelta | None = None
    """Past states of products."""
    runs: timedelta = timedelta(days=90)
    """Runs of schedules, events of hosts, alerts, data quality."""
    workers: timedelta = timedelta(days=7)
    audit: timedelta | None = timedelta(days=730)
    """Who changed what."""
    payloads: timedelta | None = None
    """Raw payloads other than the first and last of each day."""
    crawls: timedelta | None = None
    """Ended search crawls with their archived pages."""

    @classmethod
    def configured(cls, settings: Settings) -> Retention:
        """As the settings say."""
        return cls(
            history=timedelta(days=settings.task_history_days),
            attempts=timedelta(days=settings.fetch_attempt_days),
            states=timedelta(days=days) if (days := settings.product_history_days) else None,
            runs=timedelta(days=settings.schedule_run_days),
            audit=timedelta(days=days) if (days := settings.audit_days) else None,
            payloads=timedelta(days=days) if (days := settings.payload_days) else None,
            crawls=timedelta(days=days) if (days := settings.crawl_history_days) else None,
        )

    async def drop_partitions(self, conn: Connection, now: datetime) -> list[str]:
        """Drops the partitions of histories that are past their time; returns their names."""
        ages = {
            "task_history": self.history,
            "fetch_attempts": self.attempts,
            "product_history": self.states,
            "product_detail_history": self.states,
        }
        names: list[str] = []
        for table, age in ages.items():
            if age is not None:
                names += await partitions.drop_expired(conn, table, now - age)
        return names

    async def prune_payloads(self, conn: Connection, now: datetime, archive: FileArchive) -> Mapping[str, int]:
        """Thins payloads past their time; returns how many rows and files were deleted."""
        counts = (0, 0) if self.payloads is None else await payloads.prune(conn, archive, now - self.payloads)
        return {"payloads": counts[0], "files": counts[1]}

    async def prune_crawls(self, conn: Connection, now: datetime, pages: PageArchive) -> Mapping[str, int]:
        """Deletes search crawls past their time with their archived pages; returns how many of each."""
        crawls, files = (0, 0) if self.crawls is None else await search_crawl.prune(conn, pages, now - self.crawls)
        return {"crawls": crawls, "pages": files}

    async def prune(self, conn: Connection, now: datetime) -> Mapping[str, int]:
        """Deletes rows past their time; returns how many of each kind."""
        return {
            "runs": await schedules.prune(conn, now - self.runs),
            "workers": await registry.prune(conn, self.workers),
            "log_lines": await logs.prune(conn, now),
            "host_events": await hosts.prune(conn, now - self.runs),
            "alerts": await alerts.prune(conn, now - self.runs),
            "quality": await quality.prune(conn, now - self.runs),
            "audits": await quality_audit.prune(conn, now - self.audit) if self.audit else 0,
            "sessions": await credentials.prune(conn),
            "idempotency_keys": await idempotency.prune(conn),
            "audit": await credentials.prune_audit(conn, now - self.audit) if self.audit else 0,
            "watches": await watches.prune(conn, now),
        }


async def forget_visitors(conn: Connection, reading: ClockReading) -> Mapping[str, Any] | None:
    """Deletes salts in time whatever the clock does: that is what visitors are promised. Page counts only by a trusted clock."""
    salts = await visitors.forget_salts(conn, reading.seen_at)
    pages = await visitors.forget_pages(conn, reading.seen_at) if reading.doubt is None else 0
    return {"salts": salts, "pages": pages} if salts or pages else None
