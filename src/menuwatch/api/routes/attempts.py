"""Requests that were made: whom, through whom, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import page
from menuwatch.api.schemas.attempts import AttemptPage, AttemptQuery, TaskAttemptQuery
from menuwatch.api.schemas.common import PageQuery, TaskPath
from menuwatch.db.pool import Connection
from menuwatch.operations import attempts, tasks
from menuwatch.operations.attempts import AttemptFilter
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(tags=["attempts"], dependencies=[allowed(Permission.READ)])


async def _page(request: Request, conn: Connection, where: AttemptFilter, query: PageQuery) -> Response:
    mark = paging.mark("attempts", where)
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[datetime, int])
    found = await attempts.page(conn, where, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    more = len(found) > query.limit
    return page(request, shown, paging.encode(mark, shown[-1].attempted_at, shown[-1].id) if more else None)


@router.get("/api/attempts", response_model=AttemptPage, summary="List requests, newest first")
async def list_attempts(request: Request, conn: Reading, query: Annotated[AttemptQuery, Query()]) -> Response:
    """Every request that was made, as long as they are kept: through whom, how long it waited and took, what came of it."""
    where = AttemptFilter(
        task_id=query.task_id,
        dispensary_id=query.dispensary_id,
        host=None if query.host is None else query.host.strip().lower(),
        proxy_id=query.proxy_id,
        verdicts=query.verdict,
        since=query.since,
        until=query.until,
    )
    return await _page(request, conn, where, query)


@router.get("/api/tasks/{task_id}/attempts", response_model=AttemptPage, summary="A task's requests, newest first")
async def list_task_attempts(
    request: Request, conn: Reading, task_id: TaskPath, query: Annotated[TaskAttemptQuery, Query()]
) -> Response:
    """Every request of all its attempts."""
    await tasks.one(conn, task_id)
    return await _page(request, conn, AttemptFilter(task_id=task_id), query)
