"""The overview: health, current activity, and what needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.format import duration
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.bars import lines
from menuwatch.dashboard.charts.time_chart import Color, Series, TimeChart
from menuwatch.ops import overview as reading
from menuwatch.ops.assessment import assess
from menuwatch.ops.key_figures import Daily, key_figures
from menuwatch.ops.setup import get_setup
from menuwatch.queue.failures import FailureStatus, FailureWindow, list_failures
from menuwatch.queue.task_list import recently_finished
from menuwatch.queue.throughput import Interval, Part, Split, throughput, throughput_by
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn

router = APIRouter(dependencies=[require(Permission.READ)])

SHOWN_HOURS = 3
_DISMISSED = "menuwatch_setup_dismissed"
_SET_UP = {"workers", "proxies"}
RANGES = ((1, "1 h"), (3, "3 h"), (12, "12 h"), (24, "24 h"))


@router.get("/")
async def overview(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    hours: Annotated[int, Query(ge=1, le=24)] = SHOWN_HOURS,
    by: Split = Split.STATE,
) -> Response:
    """The first page."""
    seen = await reading.overview(conn)
    figures = await key_figures(conn, system.settings, system.host_hours)
    root = screen.root(request)
    charts = (
        queue_charts(await throughput(conn, hours), root)
        if by is Split.STATE
        else split_charts(by, *await throughput_by(conn, by, hours), root)
    )
    steps = await get_setup(conn, system.settings)
    setup = None if _DISMISSED in request.cookies or steps.done == len(steps.steps) else steps
    health = assess(seen)
    # Until there is a store to crawl, the checklist says what the alarms about proxies and workers would say.
    alarms = setup is None or seen.stores.known or any(one.check not in _SET_UP for one in health.findings)
    groups = await list_failures(conn, FailureWindow.DAY, status=FailureStatus.OPEN, limit=5)
    context = {
        "seen": seen,
        "health": health if alarms else None,
        "setup": setup,
        "failures": groups,
        "ended": await recently_finished(conn),
        "figures": figures,
        "compared": compared,
        "spark": spark,
        "charts": charts,
        "roles": [role for role in seen.roles if _matters(role)],
        "idle": [role.role for role in seen.roles if not _matters(role)],
        "ranges": [(name, screen.query(request, hours=n), n == hours) for n, name in RANGES],
        "splits": [
            (str(one), screen.query(request, by=None if one is Split.STATE else one), one is by) for one in Split
        ],
        "may_enqueue": screen.may(request, Permission.TASKS),
    }
    return screen.render(
        request, "overview.html", context, live="tasks,workers,schedules,hosts,proxies,payloads,products"
    )


@router.post("/setup/dismiss")
async def dismiss_setup(request: Request) -> Response:
    """Hides the checklist in this browser."""
    response = screen.redirect(request, "/")
    response.set_cookie(
        _DISMISSED, "1", max_age=365 * 86_400, path=screen.root(request) or "/", httponly=True, samesite="lax"
    )
    return response


def _matters(role: reading.RoleLoad) -> bool:
    speed = role.capacity
    return bool(
        role.ready
        + role.blocked
        + role.scheduled
        + role.claimed
        + role.running
        + speed.completed_last_hour
        + speed.failed_last_hour
    )


_ENDED = "/tasks?q=ended:%3E%3D{from}+ended:%3C{to}"
"""The tasks that ended in an interval."""


def queue_charts(series: Sequence[Interval], root: str) -> list[tuple[str, TimeChart]]:
    """Charts of the queue by their headings; pure. A click lists the tasks that ended in the interval."""
    times, step = [one.start for one in series], series[1].start - series[0].start

    def values(name: str) -> list[float | None]:
        return [getattr(one, name) for one in series]

    def chart(name: str, label: str, lines: Sequence[Series], **more: Any) -> TimeChart:
        return TimeChart(name, label, times, lines, step=step, href=root + _ENDED, group="queue", **more)

    counts = [
        Series("Completed", values("completed"), "good"),
        Series("Failed", values("failed"), "bad"),
        Series("Enqueued", values("enqueued"), "info", line=True),
    ]
    each = duration(step.total_seconds())
    charts = [("Throughput", chart("throughput", f"Tasks enqueued and finished per {each}", counts, kind="stack"))]
    for name, (title, label) in _PERCENTILES.items():
        lines = [Series("p95", values(f"{name}_p95"), "amber"), Series("p50 (median)", values(f"{name}_p50"), "info")]
        charts.append((title, chart(name, label, lines, unit="seconds")))
    return charts


_PERCENTILES = {
    "wait": ("Queue wait", "Time from due to claimed, of tasks that ended"),
    "duration": ("Task duration", "Time from start to end, of completed tasks"),
}
_COLORS: tuple[Color, ...] = ("c1", "c2", "c3", "c4", "c5", "c6")
_NOTHING = {Split.HOST: "no host", Split.POD: "no pod, or unknown"}


def split_charts(
    by: Split, times: Sequence[datetime], step: timedelta, parts: Sequence[Part], root: str
) -> list[tuple[str, TimeChart]]:
    """The same charts with a series for each part; pure. Percentiles of the small parts together are not known."""
    named = [("other" if part.other else part.name or _NOTHING.get(by, "none"), part) for part in parts]
    shown = [(name, color, part) for (name, part), color in zip(named, _COLORS, strict=False)]

    def chart(name: str, label: str, lines: Sequence[Series], **more: Any) -> TimeChart:
        label = f"{label}, by {by}"
        return TimeChart(name, label, times, lines, step=step, href=root + _ENDED, group="queue", **more)

    counts = [Series(name, part.ended, color) for name, color, part in shown]
    each = duration(step.total_seconds())
    charts = [("Throughput", chart("throughput", f"Tasks finished per {each}", counts, kind="stack"))]
    for key, (title, label) in _PERCENTILES.items():
        lines = [Series(name, getattr(part, f"{key}_p95"), color) for name, color, part in shown if not part.other]
        charts.append((f"{title}, p95", chart(key, label, lines, unit="seconds")))
    return charts


def compared(figure: Daily, at: datetime) -> str:
    """The change against the same hours of the same weekday a week earlier."""
    day = f"last {at:%A}"
    if not figure.week_ago:
        return f"none by this time {day}"
    change = figure.today / figure.week_ago - 1
    return f"{change:+.0%} on {day} ({figure.week_ago:,})".replace("-", "−")


def spark(name: str, values: Sequence[float]) -> Markup:
    """A small line of the last 24 hours; empty if all are zero."""
    return lines([("", values)], f"{name} by hour, last 24 hours") if any(values) else Markup("")
