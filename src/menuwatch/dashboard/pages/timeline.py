"""The timeline of the job queue: tasks of each worker, queue depth and events on one time axis, which the address holds."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.core.format import timestamp
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts import lanes as drawing
from menuwatch.db.clock import database_now
from menuwatch.queue.depth import queue_depth
from menuwatch.queue.task_list import store_names
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.workers import pods
from menuwatch.workers.timeline import LONGEST, list_events, timeline

router = APIRouter(prefix="/job-queue", dependencies=[require(Permission.READ)])

_LANES = 150
"""Most workers of a timeline."""
_SLOWEST = 10
"""Tasks in the table of the longest ones."""
_SHORTEST = timedelta(seconds=10)
PERIODS = (1, 3, 6, 12, 24)
"""Hours to choose from."""


@router.get("/timeline")
async def show_timeline(
    request: Request,
    conn: ReadConn,
    hours: Annotated[int, Query(ge=1, le=24)] = 3,
    pod: Annotated[str, Query(max_length=200)] = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> Response:
    """Timelines of all workers in the last hours, which go on by themselves, or of a fixed time from `since` to `until`."""
    now = await database_now(conn)
    span = parse_span(since, until, now)
    found = await timeline(conn, hours=hours, span=span, pod=pod or None)
    shown = found.lanes[:_LANES]
    depth = await queue_depth(conn, found.since, found.until)
    events, more_events = await list_events(conn, found.since, found.until, pod=pod or None)
    slowest = drawing.longest(shown, found.until, _SLOWEST)
    stores = await store_names(conn, {bar.dispensary_id for lane in shown for bar in lane.bars})
    names = {number: row["name"] for number, row in stores.items()}
    lanes = [
        (one, drawing.draw_lane(one, found.since, found.until), drawing.lane_figures(one, found.since, found.until))
        for one in shown
    ]
    root = screen.root(request)

    def href(zoomed: tuple[datetime, datetime]) -> str:
        return screen.query(
            request, hours=None, **{name: _iso(at) for name, at in zip(("since", "until"), zoomed, strict=True)}
        )

    context = {
        "found": found,
        "by_pod": [(name, list(group)) for name, group in itertools.groupby(lanes, lambda one: one[0].pod)],
        "hidden": len(found.lanes) - len(shown),
        "kinds": drawing.KINDS,
        "pods": await pods.names(conn),
        "pod": pod,
        "fixed": span is not None,
        "hours": hours,
        "periods": [(n, screen.query(request, hours=n, since=None, until=None)) for n in PERIODS],
        "moves": [
            (name, label, href(moved))
            for name, label, moved in moves(*(span or (now - timedelta(hours=hours), now)), now)
        ],
        "ended": f"ended:>={_iso(found.since)} ended:<{_iso(found.until)}",
        "depth": depth,
        "depth_picture": None if depth is None else drawing.draw_depth(depth),
        "events": events,
        "more_events": more_events,
        "event_names": drawing.EVENTS,
        "events_picture": drawing.draw_events(events, found.since, found.until, root),
        "event_path": lambda event: drawing.event_path(event, root),
        "slowest": slowest,
        "stores": names,
        "data": drawing.bar_data(shown, found.since, found.until, depth, names, root),
        "may_enqueue": screen.may(request, Permission.TASKS),
        "tab": "timeline",
    }
    # A time that is past does not change.
    return screen.render(request, "job_queue/timeline.html", context, live="" if span else "tasks,workers,hosts")


def parse_span(since: datetime | None, until: datetime | None, now: datetime) -> tuple[datetime, datetime] | None:
    """The time that the address fixes, None for none; raises InvalidField. Times without a zone are UTC; what has not come yet is left
    out."""
    if since is None and until is None:
        return None
    if since is None or until is None:
        raise InvalidField("since" if since is None else "until", "give both `since` and `until`, or `hours`")
    begin, end = (at if at.tzinfo else at.replace(tzinfo=UTC) for at in (since, until))
    end = min(end, now)
    if not timedelta() < end - begin <= LONGEST:
        raise InvalidField(
            "since",
            f"`since` must be before `until`, by at most 24 hours, and not in the future; got {timestamp(begin)} and {timestamp(end)}",
        )
    return begin, end


def moves(since: datetime, until: datetime, now: datetime) -> list[tuple[str, str, tuple[datetime, datetime]]]:
    """Links that zoom and move: name, label, and the time that they lead to. Only those that change something; pure."""
    width = until - since
    middle = since + width / 2

    def around(length: timedelta) -> tuple[datetime, datetime]:
        end = min(middle + length / 2, now)
        return end - length, end

    found = [("earlier", "← Earlier", (since - width / 2, until - width / 2))]
    if until < now - timedelta(seconds=1):
        end = min(until + width / 2, now)
        found.append(("later", "Later →", (end - width, end)))
    if width > _SHORTEST:
        found.append(("in", "Zoom in", around(max(width / 2, _SHORTEST))))
    if width < LONGEST:
        found.append(("out", "Zoom out", around(min(width * 2, LONGEST))))
    return found


def _iso(at: datetime) -> str:
    """To the second, or finer if it is."""
    text = at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return text.removesuffix(".000") + "Z"
