"""The job queue: running tasks by worker, and upcoming tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts import pods as drawing
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.workers import pods

router = APIRouter(prefix="/job-queue", dependencies=[require(Permission.READ)])

_HELD = 60
"""Most running tasks that are shown."""


@router.get("")
async def job_queue(request: Request, conn: ReadConn, pod: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The pods around the queue, and the running tasks of one pod or of all."""
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
        "may_enqueue": screen.may(request, Permission.TASKS),
        "tab": "now",
    }
    return screen.render(request, "job_queue/now.html", context, live="tasks,workers")
