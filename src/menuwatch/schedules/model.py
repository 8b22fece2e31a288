"""Schedules as values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from menuwatch.core.errors import Refused

PRIORITIES = (-1000, 1000)
INTERVALS = (Decimal("0.01"), Decimal(8760))
"""Shortest and longest interval, in hours: 36 seconds, a year."""

LATE_AFTER = timedelta(minutes=2)
"""A schedule that has been due for longer than this is late: somebody looks every minute, if a server runs."""

ROLES = ("payload_fetch", "store_discovery", "analytics_refresh")
"""What a schedule can enqueue by itself: work that needs no more than a store, and work without one."""

STATES = frozenset(
    re.findall(
        "[A-Z]{2}",
        "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA "
        "PR RI SC SD TN TX UT VT VA VI GU WA WV WI WY AB BC MB NB NL NS NT NU ON PE QC SK YT",
    )
)
"""States of the USA with the federal district and territories, and provinces of Canada (ISO 3166-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One row of `task_schedules`. `last_task_count` counts the tasks that the last run added."""

    id: int
    name: str
    role: str
    platform: str
    enabled: bool
    interval_hours: Decimal
    priority: int
    state_code: str | None
    catch_up: str
    last_run_at: datetime | None
    next_run_at: datetime
    last_task_count: int | None
    last_error: str | None
    created_at: datetime
    updated_at: datetime

    def late(self, now: datetime) -> timedelta:
        """How long it has been due, where that is longer than anybody needs to see it; else, and while it is disabled, nothing."""
        due = now - self.next_run_at
        return due if self.enabled and due > LATE_AFTER else timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule to create."""

    name: str
    role: str
    interval_hours: Decimal
    priority: int = 0
    platform: str = "dutchie"


DEFAULTS = (
    NewSchedule(name="payload_fetch_all", role="payload_fetch", interval_hours=Decimal(4)),
    NewSchedule(name="store_discovery_dutchie", role="store_discovery", interval_hours=Decimal(24), priority=5),
    NewSchedule(name="analytics_refresh", role="analytics_refresh", interval_hours=Decimal(6)),
)
"""Created where they are missing."""


def wanted(platforms: Iterable[str]) -> tuple[NewSchedule, ...]:
    """The schedules that are created where they are missing, when these platforms are asked: `DEFAULTS`, which are of the first one,
    and for each further one its own."""
    more = [
        new
        for name in platforms
        if name not in {default.platform for default in DEFAULTS}
        for new in (
            NewSchedule(name=f"payload_fetch_{name}", role="payload_fetch", interval_hours=Decimal(4), platform=name),
            NewSchedule(
                name=f"store_discovery_{name}",
                role="store_discovery",
                interval_hours=Decimal(24),
                priority=5,
                platform=name,
            ),
        )
    ]
    return (*DEFAULTS, *more)


def parse_state(text: str) -> str:
    """A state or province by its two letters, in any case; raises Refused."""
    code = text.strip().upper()
    if code not in STATES:
        known = ", ".join(sorted(STATES))
        raise Refused(f"state {text!r} does not exist: name it by two letters, as AZ or ON; it is one of {known}")
    return code
