"""The overview: is it healthy, what is going on, what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import attention, screen
from menuwatch.dashboard.svg.lines import lines
from menuwatch.operations import failures as failure_groups
from menuwatch.operations import lately
from menuwatch.operations import overview as reading
from menuwatch.operations.failures import Window
from menuwatch.operations.overview import Minutes
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading
from menuwatch.web.words import many

router = APIRouter(dependencies=[allowed(Permission.READ)])

SHOWN_HOURS = 3
_QUARTER = 3
"""Stretches of five minutes in a row of the table."""


@router.get("/")
async def overview(
    request: Request, conn: Reading, hours: Annotated[int, Query(ge=1, le=24)] = SHOWN_HOURS
) -> Response:
    """The first page."""
    seen = await reading.overview(conn, hours=hours)
    groups = await failure_groups.failures(conn, Window.DAY, limit=20)
    causes = sum(1 for group in groups if group.last_hour)
    context = {
        "seen": seen,
        "health": attention.health(seen, causes),
        "failures": groups[:5],
        "ended": await lately.ended(conn),
        "flow": flow(seen.series, hours),
        "roles": [role for role in seen.roles if _matters(role)],
        "idle": [role.role for role in seen.roles if not _matters(role)],
        "hours": hours,
        "may_enqueue": screen.principal(request).may(Permission.TASKS),
    }
    return screen.show(request, "overview.html", context, live="tasks,workers,schedules,hosts,proxies,payloads")


def _matters(role: reading.RoleLoad) -> bool:
    speed = role.capacity
    return bool(
        role.ready + role.scheduled + role.claimed + role.running + speed.completed_last_hour + speed.failed_last_hour
    )


@dataclass(frozen=True, slots=True)
class Flow:
    """What came and what ended: the picture, the same in numbers, and the sums."""

    picture: Markup
    rows: Sequence[Minutes]
    """By quarters of an hour, newest first."""
    arrived: int
    completed: int
    failed: int


def flow(series: Sequence[Minutes], hours: int) -> Flow:
    """The chart of the last hours with its alternative in numbers; pure."""
    sums = _sum(series)
    label = (
        f"In the last {many(hours, 'hour')} {many(sums.arrived, 'task')} arrived, "
        f"{sums.completed:,} were completed and {sums.failed:,} failed."
    )
    picture = lines(
        [
            ("arrived", [one.arrived for one in series]),
            ("completed", [one.completed for one in series]),
            ("failed", [one.failed for one in series]),
        ],
        label,
    )
    quarters = [_sum(series[at : at + _QUARTER]) for at in range(0, len(series), _QUARTER)]
    return Flow(picture, quarters[::-1], sums.arrived, sums.completed, sums.failed)


def _sum(series: Sequence[Minutes]) -> Minutes:
    return Minutes(
        start=series[0].start,
        arrived=sum(one.arrived for one in series),
        completed=sum(one.completed for one in series),
        failed=sum(one.failed for one in series),
    )
