"""When a schedule fires. Pure.

Firings lie on a grid: the first one, and from there one per interval. Each is computed from the one before and never from the time
at which something was done, so they do not drift. Those that were missed collapse into the latest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

HOUR = 3_600_000_000
"""Microseconds."""


def interval(hours: Decimal) -> timedelta:
    """That many hours, exact to the microsecond."""
    return timedelta(microseconds=int((hours * HOUR).to_integral_value()))


def latest(planned: datetime, every: timedelta, now: datetime) -> datetime:
    """The firing that is due now: the last one on the grid that is not in the future. Raises ValueError when `planned` is."""
    if planned > now:
        raise ValueError(f"nothing is due before {planned}, and it is {now}")
    return planned + (now - planned) // every * every


def following(planned: datetime, every: timedelta, now: datetime) -> datetime:
    """The first firing on the grid after `now`; `planned` itself while that is in the future."""
    return planned if planned > now else latest(planned, every, now) + every


def missed(planned: datetime, every: timedelta, now: datetime) -> int:
    """How many firings collapse into the one that is due now."""
    return (latest(planned, every, now) - planned) // every


def rescheduled(planned: datetime, before: timedelta, every: timedelta, now: datetime) -> datetime:
    """When it fires next after its interval was changed: one new interval after the firing before.

    Where that is past already, now; where it was due anyway, it stays so.
    """
    return planned if planned <= now else max(planned - before + every, now)
