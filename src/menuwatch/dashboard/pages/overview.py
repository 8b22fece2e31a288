"""The overview: is it healthy, what is going on, what needs somebody."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.operations import tasks
from menuwatch.tasks.model import Status
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(dependencies=[allowed(Permission.READ)])


@router.get("/")
async def overview(request: Request, conn: Reading) -> Response:
    """The first page."""
    by_role = await tasks.count(conn, tasks.TaskFilter())
    counts = {str(s): sum(one.get(s, 0) for one in by_role.values()) for s in Status}
    return screen.show(request, "overview.html", {"counts": counts}, live="tasks,workers")
