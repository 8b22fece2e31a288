"""Values that describe schedules."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from msgspec import Struct

from menuwatch.core.format import duration
from menuwatch.core.shapes import Instant, doc

PRIORITIES = (-1000, 1000)
INTERVALS = (Decimal("0.01"), Decimal(8760))
"""Shortest and longest interval, in hours: 36 seconds, a year."""

STORE_LOCAL = "store"
"""As a time zone: that of each store."""

LATE_AFTER = timedelta(minutes=2)
"""A schedule that has been due for longer than this is late: a running server checks every minute."""

ROLES = ("payload_fetch", "store_discovery", "analytics_refresh")
"""Roles that a schedule can enqueue: those that need only a store, or none."""


class Schedule(Struct, kw_only=True, frozen=True):
    """A recurring schedule."""

    id: int
    name: str
    role: Annotated[str, doc("Role of its tasks; `payload_fetch` creates one task per due store.")]
    platform: str
    enabled: bool
    interval_hours: Annotated[Decimal, doc("Time between two runs; with `cron` the shortest one.")]
    cron: Annotated[str | None, doc("It runs by this cron line; null: by the interval.")]
    timezone: Annotated[
        str | None, doc("Time zone of `cron`; `store`: each store's own, so it runs once for the stores of each zone.")
    ]
    priority: Annotated[int, doc("Priority of its tasks.")]
    state_code: Annotated[str | None, doc("Only this state or province (two letters); null for all.")]
    catch_up: Annotated[str, doc("How missed runs are handled. `once`: they are combined into one.")]
    last_run_at: Annotated[Instant | None, doc("Null if it has never run.")]
    next_run_at: Annotated[Instant, doc("Time of the next run; in the past while it is due and has not run.")]
    late_seconds: Annotated[
        int, doc("Delay of the next run in seconds if it exceeds two minutes (no server runs it), else 0.")
    ]
    last_task_count: Annotated[int | None, doc("Tasks that the last run created; null if it has never run.")]
    last_error: Annotated[
        str | None,
        doc(
            "Why the last run failed (it is retried every minute), or how a wrong next run was corrected; null if all is well."
        ),
    ]
    paused_at: Annotated[Instant | None, doc("Disabled together with all others then; null otherwise.")]
    created_at: Instant
    updated_at: Instant

    @property
    def timing(self) -> str:
        """When it runs: `every 4 h`, `daily at 02:00 store-local time`, `0 2 * * 1 (UTC)`."""
        if self.cron is None:
            return f"every {duration(float(self.interval_hours) * 3600)}"
        zone = "store-local time" if self.timezone == STORE_LOCAL else str(self.timezone)
        minute, hour, *rest = self.cron.split()
        if minute.isdecimal() and hour.isdecimal() and rest == ["*", "*", "*"]:
            return f"daily at {int(hour):02}:{int(minute):02} {zone}"
        return f"{self.cron} ({zone})"

    @property
    def subject(self) -> str:
        """What it does and where; reports cover all platforms."""
        where = "" if self.role == "analytics_refresh" else f" on {self.platform}"
        return f"{self.role}{where}" + (f", {self.state_code}" if self.state_code else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule to create."""

    name: str
    role: str
    interval_hours: Decimal
    priority: int = 0
    platform: str = "dutchie"
    state_code: str | None = None
    enabled: bool = True
    cron: str | None = None
    timezone: str | None = None


DEFAULTS = (
    NewSchedule(name="payload_fetch_all", role="payload_fetch", interval_hours=Decimal(4)),
    NewSchedule(
        name="store_discovery_dutchie", role="store_discovery", interval_hours=Decimal(24), priority=5, enabled=False
    ),
    NewSchedule(name="analytics_refresh", role="analytics_refresh", interval_hours=Decimal(6)),
)
"""Created if missing. Discovery is disabled until states are chosen (discovery.py)."""


def default_schedules(platforms: Iterable[str], without_lists: Collection[str] = ()) -> tuple[NewSchedule, ...]:
    """The schedules to create if missing, for these platforms: `DEFAULTS` for the first, and separate ones for each further
    platform; those `without_lists` of stores get no discovery."""
    more: list[NewSchedule] = []
    for name in platforms:
        if name in {default.platform for default in DEFAULTS}:
            continue
        more.append(
            NewSchedule(name=f"payload_fetch_{name}", role="payload_fetch", interval_hours=Decimal(4), platform=name)
        )
        if name not in without_lists:
            more.append(
                NewSchedule(
                    name=f"store_discovery_{name}",
                    role="store_discovery",
                    interval_hours=Decimal(24),
                    priority=5,
                    platform=name,
                    enabled=False,
                )
            )
    return (*DEFAULTS, *more)
