"""The job queue: who works on what at this moment, and what comes next."""

from __future__ import annotations

import itertools
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.svg import lane
from menuwatch.dashboard.svg import pods as drawing
from menuwatch.operations import pods
from menuwatch.operations import timeline as history
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(prefix="/job-queue", dependencies=[allowed(Permission.READ)])

_HELD = 60
"""Most running tasks that are shown."""

_LANES = 150
"""Most workers of a timeline."""


@router.get("")
async def job_queue(request: Request, conn: Reading, pod: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The pods around the queue, and the tasks that one of them, or all, have in hand."""
    crew = await pods.pods(conn)
    chosen = next((one for one in crew if one.name == pod), None)
    workers = None if chosen is None else [worker.worker_id for worker in chosen.workers]
    held = await pods.held(conn, workers, limit=_HELD + 1)
    counts = await pods.waiting(conn)

    def href(name: str | None) -> str:
        return screen.query(request, pod=name)

    context = {
        "pods": crew,
        "chosen": chosen,
        "missing": pod if pod and chosen is None else "",
        "picture": drawing.picture(crew, counts.ready, href, None if chosen is None else chosen.name),
        "key": drawing.KEY,
        "states": drawing.STATES,
        "href": href,
        "counts": counts,
        "held": held[:_HELD],
        "held_more": len(held) > _HELD,
        "next": await pods.next_ready(conn),
        "busy": sum(one.busy for one in crew),
        "slots": sum(one.slots for one in crew),
        "may_enqueue": screen.principal(request).may(Permission.TASKS),
        "tab": "now",
    }
    return screen.show(request, "job_queue/now.html", context, live="tasks,workers")


@router.get("/timeline")
async def timeline(
    request: Request,
    conn: Reading,
    hours: Annotated[int, Query(ge=1, le=24)] = 3,
    pod: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """What every worker did in the last hours: convoys, gaps and stragglers are seen at a glance."""
    found = await history.timeline(conn, hours=hours, pod=pod or None)
    shown = found.lanes[:_LANES]
    lanes = [
        (one, lane.drawn(one, found.since, found.until), lane.said(one, found.since, found.until)) for one in shown
    ]
    context = {
        "found": found,
        "by_pod": [(name, list(group)) for name, group in itertools.groupby(lanes, lambda one: one[0].pod)],
        "hidden": len(found.lanes) - len(shown),
        "kinds": lane.KINDS,
        "pods": await pods.names(conn),
        "pod": pod,
        "hours": hours,
        "may_enqueue": screen.principal(request).may(Permission.TASKS),
        "tab": "timeline",
    }
    return screen.show(request, "job_queue/timeline.html", context)
