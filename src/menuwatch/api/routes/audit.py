"""The audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts import audit
from menuwatch.accounts.audit import AuditEntry, AuditFilter
from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Search, SpanQuery
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import InvalidRequest
from menuwatch.api.responses import returns_page
from menuwatch.core.errors import InvalidField
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/audit", tags=["accounts"], dependencies=[require(Permission.ACCOUNTS)])

Code = Annotated[Search, Field(pattern="^[a-z][a-z0-9_]*$")]


class AuditQuery(SpanQuery):
    """Filter of audit entries."""

    actor: Search | None = Field(None, description="Only entries of this actor.")
    action: Code | None = Field(None, description="Only this action, for example `user_added`.")
    subject_kind: Code | None = Field(
        None, description="Only objects of this kind, for example `user` or `alert_rule`."
    )
    subject_id: Search | None = Field(None, description="Only the object with this id or name.")


@router.get("", **returns_page(AuditEntry), summary="List audit entries, newest first")
async def list_audit(request: Request, conn: ReadConn, query: Annotated[AuditQuery, Query()]) -> Response:
    """Lists all changes made by users and their programs through the API, the dashboard and the command line."""
    try:
        where = AuditFilter(**query.model_dump(exclude={"limit", "cursor"}))
    except InvalidField as error:
        raise InvalidRequest.parameter(error.field, str(error)) from None
    keys = Keyset(query, int, "audit", where)
    entries = await audit.list_entries(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, entries, lambda entry: entry.id)
