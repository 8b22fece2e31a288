"""What fails: failed tasks grouped by cause and role. A cause is a reason without what differs from case to case: numbers, ids, names
in quotes, what stands in parentheses (`error_kind` of migration 0021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.task_search import TaskSearch
from menuwatch.tasks.model import Role, Status

_q = sql.load(__package__, "failures.sql")

BARS = 24
"""Stretches that a window is cut into, for a small chart."""

GROUPS = 200
"""Most groups of one read: those with the most failures."""


class Window(StrEnum):
    """The times that people look back on."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    KEPT = "all"
    """As long as finished tasks are kept."""

    @property
    def length(self) -> timedelta | None:
        """How long it is; None where that is a setting."""
        return _LENGTHS.get(self)


_LENGTHS: Mapping[Window, timedelta] = {
    Window.HOUR: timedelta(hours=1),
    Window.DAY: timedelta(hours=24),
    Window.WEEK: timedelta(days=7),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """One cause in one role: `count` failures in the window at so many `stores`, of which `last_hour` and `last_day`; `kind` is the
    reason without what differs, `example` the last reason as it was, of task `example_id`. `bars` are the failures of each of BARS
    equal parts of the window, oldest first."""

    cause: str
    role: str
    kind: str
    count: int
    stores: int
    last_hour: int
    last_day: int
    first_at: datetime
    last_at: datetime
    example_id: int
    example: str
    bars: Sequence[int]
    window: Window

    @property
    def search(self) -> str:
        """The search (task_search.py) that selects exactly these, for lists and for doing all of them again."""
        return TaskSearch(
            roles=(Role(self.role),), states=(Status.FAILED,), ended_after=self.window.length, cause=self.cause
        ).text


async def failures(
    conn: Connection,
    window: Window = Window.DAY,
    *,
    roles: Sequence[Role] | None = None,
    cause: str | None = None,
    limit: int = 50,
    kept_days: int = 30,
) -> list[Failures]:
    """The causes with the most failures in the window, at most GROUPS. Finished tasks are kept for `kept_days`."""
    now: datetime = (await rows(conn, "SELECT now() AS at", {}))[0]["at"]
    # Whole days of the history are removed, so there is up to one more.
    length = window.length or timedelta(days=kept_days + 1)
    since = now.astimezone(UTC) - length
    values = {
        "since": since,
        "roles": None if roles is None else [str(role) for role in roles],
        "cause": cause,
        "limit": min(limit, GROUPS),
    }
    found = await rows(conn, _q.failure_groups, values, prepare=False)
    step = length / BARS
    bars = await rows(
        conn,
        _q.failures_by_time,
        {"since": since, "step": step, "causes": sorted({one["cause"] for one in found})},
        prepare=False,
    )
    return [_group(one, [bar for bar in bars if _same(bar, one)], since, window, step) for one in found]


def _same(bar: Row, group: Row) -> bool:
    return (bar["cause"], bar["role"]) == (group["cause"], group["role"])


def _group(found: Row, bars: Sequence[Row], since: datetime, window: Window, step: timedelta) -> Failures:
    counts = [0] * BARS
    for bar in bars:
        # What failed after `since` was told counts for the last part.
        counts[min(int((bar["start"] - since) / step), BARS - 1)] += bar["n"]
    names = ("cause", "role", "kind", "stores", "last_hour", "last_day", "first_at", "last_at", "example_id", "example")
    return Failures(**{name: found[name] for name in names}, count=found["n"], bars=counts, window=window)
