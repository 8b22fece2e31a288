"""Requests of the last 24 hours by hour: accepted, refused or failed.

The counts of past hours no longer change, so `HourBook` caches them and queries only the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from msgspec import Struct, structs

from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all

_q = sql.load(__package__, "hourly.sql")

HOURS = 24
HOUR = timedelta(hours=1)
_SETTLED = timedelta(minutes=10)
"""Requests are written in batches, so an hour's counts may change for this long after its end."""
_ANSWERED = frozenset({"ok", "empty_suspect", "schema_changed"})
_REFUSED = frozenset({"blocked", "challenge", "rate_limited"})
_MOST_PROXIES = 200
"""Proxies whose past hours are kept; the page of a proxy refreshes itself while it is open."""


class RequestHour(Struct, kw_only=True, frozen=True):
    """Requests of one hour (UTC)."""

    start: Annotated[Instant, doc("Start of the hour. The last hour has not ended.")]
    succeeded: Annotated[int, doc("Requests with a usable response.")] = 0
    refused: Annotated[int, doc("Requests that were blocked, challenged or rate limited.")] = 0
    failed: Annotated[int, doc("All other requests.")] = 0
    bytes: Annotated[int, doc("Received response bodies, decoded.")] = 0
    average_ms: Annotated[
        float | None, doc("Average response time of successful requests, in ms; null without any.")
    ] = None
    peak_per_second: Annotated[float, doc("Requests per second in the busiest minute.")] = 0.0

    @property
    def total(self) -> int:
        return self.succeeded + self.refused + self.failed


class Day(Struct, frozen=True, kw_only=True):
    """The last 24 hours including the current one, oldest first; and the totals by verdict."""

    hours: Sequence[RequestHour]
    verdicts: Mapping[str, int] = {}

    def sum(self, name: str) -> int:
        """Total of `succeeded`, `refused`, `failed`, `total` or `bytes`."""
        return sum(getattr(hour, name) for hour in self.hours)

    @property
    def block_rate(self) -> float | None:
        """Refused requests of all; None without requests."""
        return self.sum("refused") / self.sum("total") if self.sum("total") else None


_Counts = Mapping[str, Mapping[str, Row]]
"""What the statement says of an hour, by host and verdict."""


def hour_starts(now: datetime) -> list[datetime]:
    """The starts of the last 24 hours, oldest first."""
    this = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return [this - n * HOUR for n in reversed(range(HOURS))]


def empty_day(now: datetime | None = None) -> Day:
    """A day without requests."""
    return Day(hours=[RequestHour(start=start) for start in hour_starts(now or datetime.now(UTC))])


class HourBook:
    """Cache of past hours of one database. One per process."""

    def __init__(self) -> None:
        self._past: dict[int | None, dict[datetime, _Counts]] = {}

    async def day(
        self, conn: Connection, now: datetime | None = None, *, proxy_id: int | None = None
    ) -> Mapping[str, Day]:
        """The last 24 hours of each host that had requests in them: all requests, or those through one proxy."""
        moment = now or datetime.now(UTC)
        hours = hour_starts(moment)
        past = self._past.pop(proxy_id, {})
        since = next((hour for hour in hours if hour not in past), hours[-1])
        known = {**past, **await _read(conn, [hour for hour in hours if hour >= since], proxy_id=proxy_id)}
        self._past[proxy_id] = {hour: known[hour] for hour in hours if hour + HOUR + _SETTLED <= moment}
        proxies = [key for key in self._past if key is not None]
        for key in proxies[: len(proxies) - _MOST_PROXIES]:
            self._past.pop(key, None)
        return _days(hours, known)


async def host_day(conn: Connection, host: str, now: datetime | None = None) -> Day:
    """The last 24 hours of one host, without a cache."""
    hours = hour_starts(now or datetime.now(UTC))
    return _days(hours, await _read(conn, hours, host=host)).get(host) or empty_day(now)


async def _read(
    conn: Connection, hours: Sequence[datetime], *, host: str | None = None, proxy_id: int | None = None
) -> dict[datetime, _Counts]:
    counts: dict[datetime, dict[str, dict[str, Row]]] = {hour: {} for hour in hours}
    values = {"since": hours[0], "host": host, "proxy_id": proxy_id}
    for row in await fetch_all(conn, _q.hours, values, prepare=False):
        if (of_hour := counts.get(row["hour"])) is not None:
            of_hour.setdefault(row["host"], {})[row["verdict"]] = row
    return dict(counts)


def _days(hours: Sequence[datetime], counts: Mapping[datetime, _Counts]) -> dict[str, Day]:
    hosts = {host for hour in hours for host in counts[hour]}
    return {host: _day({hour: counts[hour].get(host, {}) for hour in hours}) for host in sorted(hosts)}


def _day(counts: Mapping[datetime, Mapping[str, Row]]) -> Day:
    verdicts: dict[str, int] = {}
    for of_hour in counts.values():
        for verdict, row in of_hour.items():
            verdicts[verdict] = verdicts.get(verdict, 0) + row["requests"]
    return Day(hours=[_hour(start, of_hour) for start, of_hour in counts.items()], verdicts=verdicts)


def _hour(start: datetime, rows: Mapping[str, Row]) -> RequestHour:
    succeeded = sum(row["requests"] for verdict, row in rows.items() if verdict in _ANSWERED)
    refused = sum(row["requests"] for verdict, row in rows.items() if verdict in _REFUSED)
    took = sum(row["elapsed_ms"] for verdict, row in rows.items() if verdict in _ANSWERED)
    return RequestHour(
        start=start,
        succeeded=succeeded,
        refused=refused,
        failed=sum(row["requests"] for row in rows.values()) - succeeded - refused,
        bytes=sum(row["bytes"] for row in rows.values()),
        average_ms=round(took / succeeded, 1) if succeeded else None,
        peak_per_second=round(max((row["peak"] for row in rows.values()), default=0) / 60, 3),
    )


def total_day(days: Iterable[Day], now: datetime | None = None) -> Day:
    """The sum of days of several hosts. The peak is that of the busiest host."""
    hours = list(empty_day(now).hours)
    verdicts: dict[str, int] = {}
    for day in days:
        hours = [_add(one, other) for one, other in zip(hours, day.hours, strict=True)]
        for verdict, requests in day.verdicts.items():
            verdicts[verdict] = verdicts.get(verdict, 0) + requests
    return Day(hours=hours, verdicts=verdicts)


def _add(one: RequestHour, other: RequestHour) -> RequestHour:
    succeeded = one.succeeded + other.succeeded
    took = one.succeeded * (one.average_ms or 0) + other.succeeded * (other.average_ms or 0)
    return structs.replace(
        one,
        succeeded=succeeded,
        refused=one.refused + other.refused,
        failed=one.failed + other.failed,
        bytes=one.bytes + other.bytes,
        average_ms=round(took / succeeded, 1) if succeeded else None,
        peak_per_second=max(one.peak_per_second, other.peak_per_second),
    )
