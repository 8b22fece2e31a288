"""When a schedule fires. Pure.

Firings lie on a grid: the first one, and from there one per interval. Each is computed from the one before, never from the time of
execution, so they do not drift. Missed firings collapse into the latest. Or they follow a cron line, in one time zone or in several:
then each zone has its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice, pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

if TYPE_CHECKING:
    from cronsim import CronSim

HOUR = 3_600_000_000
"""Microseconds."""


def interval(hours: Decimal) -> timedelta:
    """That many hours, exact to the microsecond."""
    return timedelta(microseconds=int((hours * HOUR).to_integral_value()))


def last_due(planned: datetime, every: timedelta, now: datetime) -> datetime:
    """The firing that is due now: the last one on the grid that is not in the future. Raises ValueError when `planned` is."""
    if planned > now:
        raise ValueError(f"nothing is due before {planned}, and it is {now}")
    return planned + (now - planned) // every * every


def next_due(planned: datetime, every: timedelta, now: datetime) -> datetime:
    """The first firing on the grid after `now`; `planned` itself while that is in the future."""
    return planned if planned > now else last_due(planned, every, now) + every


def missed_count(planned: datetime, every: timedelta, now: datetime) -> int:
    """How many firings collapse into the one that is due now."""
    return (last_due(planned, every, now) - planned) // every


def rescheduled(planned: datetime, before: timedelta, every: timedelta, now: datetime) -> datetime:
    """Next firing after a change of the interval: one new interval after the previous firing.

    Now, if that is in the past; a firing that is due already stays due.
    """
    return planned if planned <= now else max(planned - before + every, now)


SLACK = timedelta(minutes=1)
"""Tolerance: a next firing more than one interval plus this ahead means that a clock was wrong."""


def too_far(planned: datetime, every: timedelta, now: datetime) -> bool:
    """Whether `planned` is further ahead than a firing can be, because it was planned by a wrong clock."""
    return planned > now + every + SLACK


_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def cron_line(text: str) -> str:
    """The cron line of `02:30` (daily at that time), and a line of five fields as it is, with single spaces. Raises ValueError."""
    if at := _TIME.fullmatch(text.strip()):
        return f"{int(at[2])} {int(at[1])} * * *"
    line = " ".join(text.split())
    if len(line.split()) != 5:
        raise ValueError(
            f"{text[:80]!r} is not a cron line: give a time of day (02:30), or minute, hour, day of month, month and day of week "
            "(0 2 * * 1-5)"
        )
    try:
        next(_firings(line, datetime(2026, 1, 1, tzinfo=UTC)))
    except StopIteration:
        raise ValueError(f"{line!r} never occurs: check day and month") from None
    except Exception as error:
        raise ValueError(f"{line!r} is not a cron line: {str(error).lower()}") from None
    return line


def _firings(line: str, after: datetime, *, reverse: bool = False) -> CronSim:
    from cronsim import CronSim  # only for schedules with a cron line

    return CronSim(line, after, reverse)


def zone_named(name: str) -> ZoneInfo:
    """The time zone; UTC for none and for an unknown one, as for stores in the database."""
    try:
        return ZoneInfo(name or "UTC")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")


def latest_in_any_zone(line: str, now: datetime) -> datetime:
    """No time zone has its first firing after `now` later than this: none is a whole day away from UTC."""
    day = timedelta(days=1)
    return Cron(line, ["UTC"]).next_due(now + day) + day


class Cron(Struct, frozen=True):
    """Firings by a cron line, in each of the time zones. Local times that a change of the clocks leaves out are made up for
    right after it; those that occur twice fire once."""

    line: str
    zones: Sequence[str]

    def next_due(self, now: datetime) -> datetime:
        """The first firing after `now` in any of the zones."""
        return min(next(_firings(self.line, now.astimezone(zone_named(zone)))).astimezone(UTC) for zone in self.zones)

    def last_due(self, planned: datetime, now: datetime) -> tuple[datetime, Sequence[str]]:
        """The latest firing from `planned` until `now`, and the zones that have one in this time."""
        latest = {zone: self._latest(zone, now) for zone in self.zones}
        due = {zone: at for zone, at in latest.items() if at is not None and at >= planned}
        return max(due.values(), default=planned), list(due)

    def _latest(self, zone: str, now: datetime) -> datetime | None:
        until = (now + timedelta(seconds=1)).replace(microsecond=0)
        found = next(_firings(self.line, until.astimezone(zone_named(zone)), reverse=True), None)
        return None if found is None else found.astimezone(UTC)

    def upcoming(self, now: datetime, count: int) -> list[datetime]:
        """The next firings."""
        each = [islice(_firings(self.line, now.astimezone(zone_named(zone))), count) for zone in self.zones]
        return sorted({at.astimezone(UTC) for some in each for at in some})[:count]

    def interval(self, now: datetime) -> Decimal:
        """Hours between two firings in one zone: the shortest of the next ones."""
        times = list(islice(_firings(self.line, now.astimezone(zone_named(self.zones[0]))), 9))
        shortest = min(b.astimezone(UTC) - a.astimezone(UTC) for a, b in pairwise(times))
        return round(Decimal(shortest // timedelta(seconds=1)) / 3600, 4)
