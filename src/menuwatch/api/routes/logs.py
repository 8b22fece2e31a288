"""Log lines of workers, by task and by worker."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from msgspec.structs import asdict
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import PageQuery, TaskPath
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import members_of, returns_page
from menuwatch.api.routes.workers import WorkerPath
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.workers import logs
from menuwatch.workers.logs import Level, LogGaps, LogLine

router = APIRouter(dependencies=[require(Permission.READ)])


class LogQuery(PageQuery):
    """Which lines."""

    level: Level = Field("info", description="Lowest level.")


@router.get(
    "/api/tasks/{task_id}/logs",
    **returns_page(LogLine, **members_of(LogGaps)),
    tags=["tasks"],
    summary="List a task's log lines, newest first",
)
async def list_task_logs(
    request: Request, conn: ReadConn, task_id: TaskPath, query: Annotated[LogQuery, Query()]
) -> Response:
    """Lists what workers logged during all attempts at the task. Lines appear within about a second."""
    gaps = await logs.task_gaps(conn, task_id)
    keys = Keyset(query, tuple[datetime, str, int], "task logs", task_id, query.level)
    lines = await logs.list_task_lines(conn, task_id, level=query.level, before=keys.after, limit=keys.limit)
    return keys.page(request, lines, logs.task_key, **asdict(gaps))


@router.get(
    "/api/worker-registry/{worker_id}/logs",
    **returns_page(LogLine, **members_of(LogGaps)),
    tags=["workers"],
    summary="List a worker's log lines, newest first",
)
async def list_worker_logs(
    request: Request, conn: ReadConn, worker_id: WorkerPath, query: Annotated[LogQuery, Query()]
) -> Response:
    """Lists what the worker logged, also while it had no task. Lines appear within about a second. Third-party workers have none."""
    gaps = await logs.worker_gaps(conn, worker_id)
    keys = Keyset(query, int, "worker logs", worker_id, query.level)
    lines = await logs.list_worker_lines(conn, worker_id, level=query.level, before=keys.after, limit=keys.limit)
    return keys.page(request, lines, lambda line: line.seq, **asdict(gaps))
