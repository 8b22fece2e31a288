"""Figures of the whole database, for scrapes: depth and age of the queue, what ended, who works, what is late, how hosts are.

Reading them cannot hurt: many askers at once share one reading, which then serves for a while (the longer it took, the longer),
and what has ended is counted minute by minute, each minute once.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

import psycopg
from msgspec import Struct

from menuwatch.core.logging import get_logger
from menuwatch.db import partitions, sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_all, fetch_struct, fetch_structs
from menuwatch.ops.assessment import Assessment, assess
from menuwatch.ops.overview import overview
from menuwatch.proxies import store as proxies
from menuwatch.queue.schedules.model import LATE_AFTER

log = get_logger(__name__)
_q = sql.load(__package__, "metrics.sql")

FRESH_SECONDS = 2.0
"""How long a reading serves, at least."""
SHARE = 20.0
"""A reading serves for this many times as long as it took, so that scrapes take a twentieth of one connection at most."""

_STATEMENT_MS = 5000
_SETTLING = timedelta(minutes=2)
"""Seconds after which the count of a minute is final: tasks are dated before their commit."""
_HOUR = timedelta(hours=1)
_LONG_AGO = datetime.fromisoformat("2000-01-01T00:00:00+00:00")

Ended = tuple[str, str]
"""Role and outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Live tasks of one role in one state: ready, blocked, scheduled, parked or active. `oldest_ready` in seconds."""

    role: str
    state: str
    n: int
    retrying: int
    stale: int
    oldest_ready: float | None


class Schedules(Struct, frozen=True, kw_only=True):
    """The enabled schedules. `next_due` in seconds since the epoch."""

    late: int
    late_seconds: float
    failing: int
    next_due: float | None


class Workers(Struct, frozen=True, kw_only=True):
    """The registered workers."""

    by_status: Mapping[str, int]
    silent: int
    oldest_heartbeat: float | None


class MaintenanceJob(Struct, frozen=True, kw_only=True):
    """One maintenance job. `succeeded_at` in seconds since the epoch, None before the first time."""

    job: str
    succeeded_at: float | None
    failing: bool


class Analytics(Struct, frozen=True, kw_only=True):
    """The figures for analysts: `refreshed` in seconds since the epoch, None before the first time; `failing` is of the last try."""

    refreshed: float | None
    seconds: float | None
    failing: bool


class Fetched(Struct, frozen=True, kw_only=True):
    """All requests to one host that ended so. `waited` for its budget and `took` in seconds."""

    host: str
    verdict: str
    requests: int
    bytes: int
    waited: float
    took: float


class HostNow(Struct, frozen=True, kw_only=True):
    """A host at this moment: `pace` in requests a second, `code` why it is blocked (None: it is not)."""

    host: str
    current_rate: float
    code: str | None
    leases: int


class Images(Struct, frozen=True, kw_only=True):
    """Missing images: `queued` by menus and unprocessed, addresses `waiting` for a download, and given up (`failed`).
    `oldest_due`: seconds since the first address became due."""

    queued: int
    waiting: int
    failed: int
    oldest_due: float | None


class Matching(Struct, frozen=True, kw_only=True):
    """Backlog of product matching: stores with a new menu (the oldest waiting `oldest` seconds), blocks to group, pairs to review."""

    stores: int
    oldest: float | None
    blocks: int
    reviews: int


class Alerts(Struct, frozen=True, kw_only=True):
    """Alerts: `events` waiting to be sent; `pending` messages, the `oldest` for that many seconds; all stored messages
    `by_status`."""

    events: int
    pending: int
    oldest: float | None
    by_status: Mapping[str, int]


class PriceWatches(Struct, frozen=True, kw_only=True):
    """Confirmed price watches of a channel, and its messages that wait to be sent, for the first time or again."""

    channel: str
    watches: int
    pending: int


class Crawls(Struct, frozen=True, kw_only=True):
    """Search crawls: running crawls, pages `under_way`, unread results (`waiting`). Seconds that the first crawl has been due
    (`late`) and that the first result has waited (`oldest`); None if there is none."""

    running: int
    under_way: int
    late: float | None
    waiting: int
    oldest: float | None


class Figures(Struct, kw_only=True):
    """One reading. What could not be read is None, or empty; `seconds` is how long it took."""

    up: bool = False
    seconds: float = 0.0
    queue: list[Queue] = []
    ended: Mapping[Ended, int] = {}
    workers: Workers | None = None
    schedules: Schedules | None = None
    recent_payloads: Mapping[str, int] = {}
    quarantined: int | None = None
    holders: list[partitions.Holder] | None = None
    maintenance: list[MaintenanceJob] = []
    analytics: Analytics | None = None
    fetched: list[Fetched] = []
    hosts: list[HostNow] = []
    proxies: Mapping[str, int] = {}
    images: Images | None = None
    matching: Matching | None = None
    alerts: Alerts | None = None
    price_watches: list[PriceWatches] = []
    crawls: Crawls | None = None
    assessment: Assessment | None = None
    missing: list[str] = []


class Reader:
    """Reads the figures of one database for one process."""

    def __init__(
        self,
        pool: Pool,
        *,
        fresh_seconds: float = FRESH_SECONDS,
        share: float = SHARE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._fresh = fresh_seconds
        self._share = share
        self._monotonic = monotonic
        self._last: Figures | None = None
        self._until = 0.0
        self._reading: asyncio.Task[Figures] | None = None
        self._minutes: dict[datetime, Counter[Ended]] = {}
        self._counted_until = _LONG_AGO
        self.readings = 0

    async def read(self) -> Figures:
        """The figures as of a moment ago. Never raises: a database that does not answer is a figure as well."""
        if self._last is not None and self._monotonic() < self._until:
            return self._last
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="figures")
        # An asker that goes away must not take the others' answer with it.
        return await asyncio.shield(self._reading)

    async def _read(self) -> Figures:
        self.readings += 1
        began = self._monotonic()
        figures = Figures()
        try:
            async with self._pool.connection(timeout=3) as conn:
                await self._fill(conn, figures)
                figures.up = True
        except (psycopg.Error, OSError) as error:
            log.warning("metrics could not be read", action="figures_failed", error=f"{type(error).__name__}: {error}")
            figures = Figures()
        figures.seconds = self._monotonic() - began
        self._last = figures
        self._until = self._monotonic() + max(self._fresh, self._share * figures.seconds)
        return figures

    async def _fill(self, conn: Connection, figures: Figures) -> None:
        values = {"late": LATE_AFTER.total_seconds()}
        parts: dict[str, Callable[[], Awaitable[Any]]] = {
            **{
                name: functools.partial(fetch_structs, conn, shape, query, values)
                for name, (shape, query) in _ROWS.items()
            },
            **{
                name: functools.partial(fetch_struct, conn, shape, query, values)
                for name, (shape, query) in _ROW.items()
            },
            "ended": lambda: self._ended(conn),
            "workers": lambda: _workers(conn),
            "recent_payloads": lambda: _by_status(conn, _q.recent_payloads),
            "quarantined": lambda: _quarantined(conn),
            "holders": lambda: partitions.horizon(conn),
            "proxies": lambda: _proxies(conn),
            "alerts": lambda: _alerts(conn),
            "assessment": lambda: _assessment(conn),
        }
        for name, read in parts.items():
            try:
                # Read committed: each statement has a snapshot of its own, so that reading holds nothing back.
                async with conn.transaction():
                    await conn.execute(f"SET LOCAL statement_timeout = {_STATEMENT_MS}")
                    setattr(figures, name, await read())
            except (
                psycopg.errors.QueryCanceled,
                psycopg.errors.InsufficientPrivilege,
                psycopg.ProgrammingError,
            ) as error:
                figures.missing.append(name)
                log.warning(
                    "some metrics could not be read", action="figures_missing", part=name, error=str(error).strip()
                )

    async def _ended(self, conn: Connection) -> Mapping[Ended, int]:
        rows = await fetch_all(conn, _q.ended, {"since": self._counted_until})
        now: datetime = rows[0]["at"]
        fresh: dict[datetime, Counter[Ended]] = {}
        for row in rows:
            if row["minute"] is not None:
                fresh.setdefault(row["minute"], Counter())[row["role"], row["status"]] = row["n"]
        start = (now - _HOUR).replace(second=0, microsecond=0)
        kept = {minute: n for minute, n in self._minutes.items() if start <= minute < self._counted_until}
        self._minutes = {**kept, **fresh}
        self._counted_until = (now - _SETTLING).replace(second=0, microsecond=0)
        return sum(self._minutes.values(), Counter[Ended]())


_ROWS: Mapping[str, tuple[type, LiteralString]] = {
    "queue": (Queue, _q.queue),
    "maintenance": (MaintenanceJob, _q.maintenance),
    "fetched": (Fetched, _q.fetched),
    "hosts": (HostNow, _q.hosts),
    "price_watches": (PriceWatches, _q.price_watches),
}
_ROW: Mapping[str, tuple[type, LiteralString]] = {
    "schedules": (Schedules, _q.schedules),
    "analytics": (Analytics, _q.analytics),
    "images": (Images, _q.images),
    "matching": (Matching, _q.matching),
    "crawls": (Crawls, _q.crawls),
}
"""Figures that are the rows, or the only row, of a query."""


async def _by_status(conn: Connection, query: LiteralString) -> Mapping[str, int]:
    return {row["status"]: row["n"] for row in await fetch_all(conn, query, {})}


async def _workers(conn: Connection) -> Workers:
    rows = await fetch_all(conn, _q.workers, {})
    beats = [row["oldest_heartbeat"] for row in rows if row["oldest_heartbeat"] is not None]
    return Workers(
        by_status={row["status"]: row["n"] for row in rows},
        silent=sum(row["silent"] for row in rows),
        oldest_heartbeat=max(beats, default=None),
    )


async def _quarantined(conn: Connection) -> int:
    (row,) = await fetch_all(conn, _q.quarantined_payloads, {})
    return int(row["n"])


async def _proxies(conn: Connection) -> Mapping[str, int]:
    counts = await proxies.count(conn)
    return {
        "active": counts.active,
        "untested": counts.untested,
        "inactive": counts.inactive,
        "disabled": counts.disabled,
    }


async def _assessment(conn: Connection) -> Assessment:
    return assess(await overview(conn))


async def _alerts(conn: Connection) -> Alerts:
    (row,) = await fetch_all(conn, _q.alerts, {})
    return Alerts(**row, by_status=await _by_status(conn, _q.alert_deliveries))
