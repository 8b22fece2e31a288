"""Requests to platforms."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BigId, PageQuery, Search, SpanQuery, StoreId, TaskPath
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import returns_page
from menuwatch.db.pool import Connection
from menuwatch.fetch import attempts
from menuwatch.fetch.attempts import AttemptFilter, FetchAttempt
from menuwatch.fetch.classify import Verdict
from menuwatch.queue.task_list import get_task
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(tags=["attempts"], dependencies=[require(Permission.READ)])


class AttemptQuery(SpanQuery):
    """Which requests."""

    task_id: BigId | None = Field(None, description="Only requests of this task.")
    dispensary_id: StoreId | None = Field(None, description="Only requests for this store.")
    host: Search | None = Field(None, description="Only requests to this host.")
    proxy_id: StoreId | None = Field(None, description="Only requests through this proxy.")
    verdict: list[Verdict] | None = Field(None, description="Only these outcomes (repeatable).")


async def _page(request: Request, conn: Connection, where: AttemptFilter, query: PageQuery) -> Response:
    keys = Keyset(query, tuple[datetime, int], "attempts", where)
    rows = await attempts.list_attempts(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda attempt: (attempt.attempted_at, attempt.id))


@router.get("/api/attempts", **returns_page(FetchAttempt), summary="List requests, newest first")
async def list_attempts(request: Request, conn: ReadConn, query: Annotated[AttemptQuery, Query()]) -> Response:
    """Lists all requests within the retention period: proxy, waiting time, duration, outcome."""
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


@router.get(
    "/api/tasks/{task_id}/attempts", **returns_page(FetchAttempt), summary="List a task's requests, newest first"
)
async def list_task_attempts(
    request: Request, conn: ReadConn, task_id: TaskPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Lists the requests of all attempts of the task."""
    await get_task(conn, task_id)
    return await _page(request, conn, AttemptFilter(task_id=task_id), query)
