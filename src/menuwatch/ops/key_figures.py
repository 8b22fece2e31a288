"""Key figures: how current menus are, what came in today, how often requests are refused, and how long the disk lasts."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from menuwatch.config.settings import Settings
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.hosts.hourly import HOURS, HourBook
from menuwatch.stores.service import Freshness, count_by_freshness

_q = sql.load(__package__, "key_figures.sql")

_HOUR, _WEEK = timedelta(hours=1), timedelta(days=7)
_CURRENT = (Freshness.FRESH, Freshness.LATE)
_CRAWLED = (*_CURRENT, Freshness.STALE, Freshness.NEVER)

Hours = Annotated[list[int], doc("The last 24 hours in UTC, oldest first; the last one is incomplete.")]


class StoreFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Stores by the age of their menu."""

    known: Annotated[int, doc("All stores.")]
    crawled: Annotated[int, doc("Stores that are crawled: enabled, and resolved on their platform.")]
    fresh: int
    late: Annotated[int, doc("Menu older than 1.25 times the crawl interval.")]
    stale: Annotated[int, doc("Menu older than twice the crawl interval.")]
    never: Annotated[int, doc("Crawled stores without a menu yet.")]

    @property
    def current(self) -> int:
        """Stores whose menu is not stale."""
        return self.fresh + self.late


class Daily(msgspec.Struct, frozen=True, kw_only=True):
    """A count of the current day."""

    today: Annotated[int, doc("Since 00:00 UTC.")]
    week_ago: Annotated[int, doc("In the same hours of the same weekday a week earlier.")]
    hours: Hours


class RequestFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of the last 24 hours. Refused: blocked, challenged or rate-limited."""

    requests: int
    refused: int
    bytes: Annotated[int, doc("Received response bodies, decoded.")]
    hours: Hours
    refused_hours: Hours
    bytes_hours: Hours

    @property
    def block_rate(self) -> float | None:
        """Refused requests of all; None without requests."""
        return self.refused / self.requests if self.requests else None


class ProxyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies, without disabled ones."""

    usable: int
    active: int


class DiskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Local disk of the storage."""

    free_bytes: Annotated[int | None, doc("Null if payloads are kept in an object store.")]
    payload_bytes: Annotated[
        int, doc("Payloads archived in the last 24 hours; equal payloads share a file and count twice.")
    ]

    @property
    def days_left(self) -> float | None:
        """Days until payloads alone fill the disk at the rate of the last 24 hours; None if unknown."""
        return None if self.free_bytes is None or not self.payload_bytes else self.free_bytes / self.payload_bytes


class KeyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Key figures at one time."""

    at: Instant
    stores: StoreFigures
    payloads: Daily
    price_changes: Daily
    requests: RequestFigures
    proxies: ProxyFigures
    disk: DiskFigures


async def key_figures(conn: Connection, settings: Settings, book: HourBook) -> KeyFigures:
    """The figures now; `book` caches requests by the hour."""
    (now,) = await fetch_all(conn, _q.now, {})
    at: datetime = now["at"].astimezone(UTC)
    hours = [at.replace(minute=0, second=0, microsecond=0) - n * _HOUR for n in reversed(range(HOURS))]
    midnight = next(n for n, hour in enumerate(hours) if hour.hour == 0)
    span = {"since": hours[0], "until": at}
    payloads = await fetch_all(conn, _q.payload_hours, span, prepare=False)
    changes = await fetch_all(conn, _q.change_hours, span, prepare=False)
    week = {"since": hours[midnight] - _WEEK, "until": at - _WEEK}
    (earlier,) = await fetch_all(conn, _q.between, week, prepare=False)
    payload_hours, change_hours = _by_hour(payloads, hours), _by_hour(changes, hours)
    return KeyFigures(
        at=at,
        stores=await _stores(conn),
        payloads=Daily(today=sum(payload_hours[midnight:]), week_ago=earlier["payloads"], hours=payload_hours),
        price_changes=Daily(today=sum(change_hours[midnight:]), week_ago=earlier["price_changes"], hours=change_hours),
        requests=await _requests(conn, book, at),
        proxies=ProxyFigures(usable=now["usable"], active=now["active"]),
        disk=DiskFigures(
            free_bytes=await asyncio.to_thread(_free, settings) if settings.storage_driver == "local" else None,
            payload_bytes=sum(row["bytes"] for row in payloads),
        ),
    )


def _by_hour(rows: Sequence[Row], hours: Sequence[datetime]) -> list[int]:
    counts = {row["hour"]: row["n"] for row in rows}
    return [counts.get(hour, 0) for hour in hours]


async def _stores(conn: Connection) -> StoreFigures:
    counts: Counter[Freshness] = Counter()
    for of_state in (await count_by_freshness(conn)).values():
        counts.update(of_state)
    return StoreFigures(
        known=counts.total(),
        crawled=sum(counts[one] for one in _CRAWLED),
        fresh=counts[Freshness.FRESH],
        late=counts[Freshness.LATE],
        stale=counts[Freshness.STALE],
        never=counts[Freshness.NEVER],
    )


async def _requests(conn: Connection, book: HourBook, at: datetime) -> RequestFigures:
    days = (await book.day(conn, at)).values()
    columns = [[day.hours[n] for day in days] for n in range(HOURS)]
    requests, refused, volume = (
        [sum(getattr(hour, name) for hour in column) for column in columns] for name in ("total", "refused", "bytes")
    )
    return RequestFigures(
        requests=sum(requests),
        refused=sum(refused),
        bytes=sum(volume),
        hours=requests,
        refused_hours=refused,
        bytes_hours=volume,
    )


def _free(settings: Settings) -> int | None:
    path: Path = settings.storage.resolve()
    there = next((one for one in (path, *path.parents) if one.exists()), None)
    return None if there is None else shutil.disk_usage(there).free
