"""Requests of the last 24 hours by the hour: answered, refused, or come to nothing.

What became of an hour that is over changes no more, so whoever looks keeps those counts (`HourBook`) and asks for the rest alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import rows

_q = sql.load(__package__, "host_hours.sql")

HOURS = 24
_HOUR = timedelta(hours=1)
_SETTLED = timedelta(minutes=10)
"""Requests are written down in batches: so long after its end an hour may still get some."""
_ANSWERED = frozenset({"ok", "empty_suspect", "schema_changed"})
_REFUSED = frozenset({"blocked", "challenge", "rate_limited"})

_Counts = dict[str, Counter[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """Requests of one hour. `refused`: blocked, challenged or asked to slow down; `failed`: no answer for another reason."""

    answered: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.answered + self.refused + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A host's last 24 hours, that which runs now included, the oldest first; and all of them by what came of the requests."""

    hours: Sequence[Hour] = ()
    verdicts: Mapping[str, int]


class HourBook:
    """The hours of one database that are over. One per process; those of others say the same."""

    def __init__(self) -> None:
        self._over: dict[datetime, _Counts] = {}

    async def day(self, conn: Connection, now: datetime | None = None) -> Mapping[str, Day]:
        """The last 24 hours of each host that was asked in them."""
        moment = now or datetime.now(UTC)
        this = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        hours = [this - n * _HOUR for n in reversed(range(HOURS))]
        since = next((hour for hour in hours if hour not in self._over), this)
        fresh: dict[datetime, _Counts] = {hour: {} for hour in hours if hour >= since}
        for row in await rows(conn, _q.hours, {"since": since}, prepare=False):
            if (counts := fresh.get(row["hour"])) is not None:
                counts.setdefault(row["host"], Counter())[row["verdict"]] += row["requests"]
        known = {**self._over, **fresh}
        self._over = {hour: known[hour] for hour in hours if hour + _HOUR + _SETTLED <= moment}
        hosts = {host for hour in hours for host in known[hour]}
        return {host: _day([known[hour].get(host, Counter()) for hour in hours]) for host in sorted(hosts)}


def _day(counts: Sequence[Counter[str]]) -> Day:
    return Day(hours=[_hour(one) for one in counts], verdicts=sum(counts, Counter()))


def _hour(counts: Mapping[str, int]) -> Hour:
    answered = sum(n for verdict, n in counts.items() if verdict in _ANSWERED)
    refused = sum(n for verdict, n in counts.items() if verdict in _REFUSED)
    return Hour(answered=answered, refused=refused, failed=sum(counts.values()) - answered - refused)
