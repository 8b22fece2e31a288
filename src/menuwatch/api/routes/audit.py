"""What was done, and by whom."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import page
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.schemas.accounts import AuditQuery, DeedPage
from menuwatch.operations import audit
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading

router = APIRouter(prefix="/api/audit", tags=["accounts"], dependencies=[allowed(Permission.ACCOUNTS)])


@router.get("", response_model=DeedPage, summary="List what was done, newest first")
async def list_audit(request: Request, conn: Reading, query: Annotated[AuditQuery, Query()]) -> Response:
    """Every change by a person or by a program of theirs, through the API, the dashboard and the command line."""
    if query.since is not None and query.until is not None and query.since >= query.until:
        why = "must be after since"
        raise InvalidRequest(f"until: {why}", [{"parameter": "until", "in": "query", "detail": why}])
    mark = paging.mark("audit", query.model_dump(exclude={"limit", "cursor"}))
    after = None if query.cursor is None else paging.decode(query.cursor, mark, tuple[int])[0]
    found = await audit.page(
        conn,
        actor=query.actor,
        action=query.action,
        subject_kind=query.subject_kind,
        subject_id=query.subject_id,
        since=query.since,
        until=query.until,
        after=after,
        limit=query.limit + 1,
    )
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1]["id"]) if len(found) > query.limit else None)
