"""Figures of the whole database, for scrapes: depth and age of the queue, what ended, who works, what is late, how hosts are.

Reading them cannot hurt: many askers at once share one reading, which then serves for a while (the longer it took, the longer),
and what has ended is counted minute by minute, each minute once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg

from menuwatch.core.telemetry import get_logger
from menuwatch.db import partitions, sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.operations.reading import row, rows
from menuwatch.schedules.model import LATE_AFTER

log = get_logger(__name__)
_q = sql.load(__package__, "figures.sql")

FRESH_SECONDS = 2.0
"""How long a reading serves, at least."""
SHARE = 20.0
"""A reading serves for this many times as long as it took, so that scrapes take a twentieth of one connection at most."""
SILENT_SECONDS = 120.0
"""Silence from which a worker no longer counts as working, as in `v_worker_capacity`."""

_STATEMENT_MS = 5000
_SETTLING = timedelta(minutes=2)
"""A minute is counted for good once it is older than this: whoever ends a task dates it before the commit."""
_HOUR = timedelta(hours=1)
_LONG_AGO = datetime.fromisoformat("2000-01-01T00:00:00+00:00")

Ended = tuple[str, str]
"""Role and outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Live tasks of one role in one state: ready, scheduled, parked or active. `oldest_ready` in seconds."""

    role: str
    state: str
    n: int
    retrying: int
    stale: int
    oldest_ready: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """The enabled schedules. `next_due` in seconds since the epoch."""

    late: int
    late_seconds: float
    failing: int
    next_due: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The registered workers."""

    by_status: Mapping[str, int]
    silent: int
    oldest_heartbeat: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """One duty of upkeep. `done_at` in seconds since the epoch, None before the first time."""

    duty: str
    done_at: float | None
    failing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Analytics:
    """The figures for analysts: `refreshed` in seconds since the epoch, None before the first time; `failing` is of the last try."""

    refreshed: float | None
    seconds: float | None
    failing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """All requests to one host that ended so. `waited` for its budget and `took` in seconds."""

    host: str
    verdict: str
    requests: int
    bytes: int
    waited: float
    took: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNow:
    """A host at this moment: `pace` in requests a second, `code` why it is not asked (None: it is)."""

    host: str
    pace: float
    code: str | None
    leases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Pictures that are not there yet: `queued` by menus and not looked at, addresses that are `waiting` for a download, those that
    were given up (`failed`). `oldest_due`: for how many seconds the first of the addresses has been due."""

    queued: int
    waiting: int
    failed: int
    oldest_due: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """`events` that wait for the time at which they are told; messages that are `pending`, the `oldest` for so many seconds; all that
    are kept, `by_status`."""

    events: int
    pending: int
    oldest: float | None
    by_status: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawls:
    """Search crawls that run, pages of theirs that are `under_way`, and what came for them and was not read (`waiting`). How long the
    first of them has been due to be looked at (`late`), and the first of these to be read (`oldest`), in seconds; None: none is."""

    running: int
    under_way: int
    late: float | None
    waiting: int
    oldest: float | None


@dataclass(slots=True, kw_only=True)
class Figures:
    """One reading. What could not be read is None, or empty; `seconds` is how long it took."""

    up: bool = False
    seconds: float = 0.0
    queue: list[Queue] = field(default_factory=list)
    ended: Mapping[Ended, int] = field(default_factory=dict)
    workers: Workers | None = None
    schedules: Schedules | None = None
    recent_payloads: Mapping[str, int] = field(default_factory=dict)
    quarantined: int | None = None
    holders: list[partitions.Holder] | None = None
    upkeep: list[Duty] = field(default_factory=list)
    analytics: Analytics | None = None
    fetched: list[Fetched] = field(default_factory=list)
    hosts: list[HostNow] = field(default_factory=list)
    proxies: Mapping[str, int] = field(default_factory=dict)
    images: Images | None = None
    alerts: Alerts | None = None
    crawls: Crawls | None = None
    missing: list[str] = field(default_factory=list)


class Reader:
    """Reads the figures of one database for one process."""

    def __init__(
        self,
        pool: Pool,
        *,
        stale_after: timedelta,
        fresh_seconds: float = FRESH_SECONDS,
        share: float = SHARE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._fresh = fresh_seconds
        self._share = share
        self._stale = stale_after.total_seconds()
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
        found = Figures()
        try:
            async with self._pool.connection(timeout=3) as conn:
                await self._fill(conn, found)
                found.up = True
        except (psycopg.Error, OSError) as error:
            log.warning(
                "the figures could not be read", action="figures_failed", error=f"{type(error).__name__}: {error}"
            )
            found = Figures()
        found.seconds = self._monotonic() - began
        self._last = found
        self._until = self._monotonic() + max(self._fresh, self._share * found.seconds)
        return found

    async def _fill(self, conn: Connection, found: Figures) -> None:
        parts: tuple[tuple[str, Callable[[Connection, Figures], Awaitable[None]]], ...] = (
            ("queue", self._queue),
            ("ended", self._ended),
            ("workers", _workers),
            ("schedules", _schedules),
            ("payloads", _payloads),
            ("horizon", _horizon),
            ("upkeep", _upkeep),
            ("analytics", _analytics),
            ("fetched", _fetched),
            ("hosts", _hosts),
            ("proxies", _proxies),
            ("images", _images),
            ("alerts", _alerts),
            ("crawls", _crawls),
        )
        for name, part in parts:
            try:
                # Read committed: each statement has a snapshot of its own, so that reading holds nothing back.
                async with conn.transaction():
                    await conn.execute(f"SET LOCAL statement_timeout = {_STATEMENT_MS}")
                    await part(conn, found)
            except (
                psycopg.errors.QueryCanceled,
                psycopg.errors.InsufficientPrivilege,
                psycopg.ProgrammingError,
            ) as error:
                found.missing.append(name)
                log.warning(
                    "some figures could not be read", action="figures_missing", part=name, error=str(error).strip()
                )

    async def _queue(self, conn: Connection, found: Figures) -> None:
        found.queue = [Queue(**one) for one in await rows(conn, _q.queue, {"stale": self._stale})]

    async def _ended(self, conn: Connection, found: Figures) -> None:
        read = await rows(conn, _q.ended, {"since": self._counted_until})
        now: datetime = read[0]["at"]
        fresh: dict[datetime, Counter[Ended]] = {}
        for one in read:
            if one["minute"] is not None:
                fresh.setdefault(one["minute"], Counter())[one["role"], one["status"]] = one["n"]
        start = (now - _HOUR).replace(second=0, microsecond=0)
        kept = {minute: n for minute, n in self._minutes.items() if start <= minute < self._counted_until}
        self._minutes = {**kept, **fresh}
        self._counted_until = (now - _SETTLING).replace(second=0, microsecond=0)
        found.ended = sum(self._minutes.values(), Counter[Ended]())


async def _workers(conn: Connection, found: Figures) -> None:
    read = await rows(conn, _q.workers, {"silent": SILENT_SECONDS})
    beats = [one["oldest_heartbeat"] for one in read if one["oldest_heartbeat"] is not None]
    found.workers = Workers(
        by_status={one["status"]: one["n"] for one in read},
        silent=sum(one["silent"] for one in read),
        oldest_heartbeat=max(beats, default=None),
    )


async def _schedules(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.schedules, {"late": LATE_AFTER.total_seconds()})
    found.schedules = Schedules(**read)


async def _payloads(conn: Connection, found: Figures) -> None:
    found.recent_payloads = {one["status"]: one["n"] for one in await rows(conn, _q.recent_payloads, {})}
    read: Any = await row(conn, _q.quarantined_payloads, {})
    found.quarantined = read["n"]


async def _horizon(conn: Connection, found: Figures) -> None:
    found.holders = await partitions.horizon(conn)


async def _upkeep(conn: Connection, found: Figures) -> None:
    found.upkeep = [Duty(**one) for one in await rows(conn, _q.upkeep, {})]


async def _analytics(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.analytics, {})
    found.analytics = Analytics(**read)


async def _fetched(conn: Connection, found: Figures) -> None:
    found.fetched = [Fetched(**one) for one in await rows(conn, _q.fetched, {})]


async def _hosts(conn: Connection, found: Figures) -> None:
    found.hosts = [HostNow(**one) for one in await rows(conn, _q.hosts, {})]


async def _proxies(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.proxies, {})
    found.proxies = read


async def _images(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.images, {})
    found.images = Images(**read)


async def _alerts(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.alerts, {})
    by_status = {one["status"]: one["n"] for one in await rows(conn, _q.alert_deliveries, {})}
    found.alerts = Alerts(**read, by_status=by_status)


async def _crawls(conn: Connection, found: Figures) -> None:
    read: Any = await row(conn, _q.crawls, {})
    found.crawls = Crawls(**read)
