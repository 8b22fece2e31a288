"""Failures: list, mute, unmute."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import AnyRole, Input, Instant, Text
from menuwatch.api.responses import answer, returns
from menuwatch.queue.failures import (
    MAX_GROUPS,
    FailureList,
    FailureMute,
    FailureStatus,
    FailureWindow,
    list_failures,
    mute,
    unmute,
)
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

router = APIRouter(prefix="/api/tasks/failures", tags=["tasks"], dependencies=[require_by_method(Permission.TASKS)])


class FailureQuery(Input):
    """Which failures."""

    window: FailureWindow = Field(
        FailureWindow.DAY, description="Only tasks that failed within this time; `all`: as long as kept."
    )
    role: list[AnyRole] | None = Field(None, description="Only these roles (repeatable).")
    status: FailureStatus | None = Field(None, description="Only failures with this status.")
    limit: int = Field(50, ge=1, le=MAX_GROUPS, description="Maximum number of failures.")


class FailureKey(Input):
    """A failure."""

    cause: str = Field(pattern="^[0-9a-f]{12}$", description="`cause` of the failure.")
    role: AnyRole = Field(description="`role` of the failure.")
    platform: Text = Field("dutchie", description="`platform` of the failure.")


class MuteFailure(FailureKey):
    """A failure to mute."""

    reason: Annotated[Text, Field(max_length=500)] = Field(description="Why it is muted.")
    until: Instant | None = Field(
        None, description="End of the mute (ISO 8601 with offset), within a year; until it is unmuted if omitted."
    )


@router.get("", **returns(FailureList), summary="List failures by cause")
async def get_failures(
    request: Request, system: AppDep, conn: ReadConn, query: Annotated[FailureQuery, Query()]
) -> Response:
    """Groups failed tasks by role, platform and error message without numbers, ids and names; open ones first, those with the most
    failed tasks first."""
    groups = await list_failures(
        conn,
        query.window,
        roles=query.role,
        status=query.status,
        limit=query.limit,
        kept_days=system.settings.task_history_days,
    )
    return answer(request, FailureList(items=groups))


@router.post("/mute", **returns(FailureMute), summary="Mute a failure")
async def mute_failure(request: Request, conn: WriteConn, failure: MuteFailure) -> Response:
    """Leaves the failure out of health checks. Its tasks still run and fail."""
    return answer(request, await mute(conn, **failure.model_dump()))


@router.post("/unmute", **returns(FailureMute), summary="Unmute a failure")
async def unmute_failure(request: Request, conn: WriteConn, failure: FailureKey) -> Response:
    """Counts the failure in health checks again; returns the mute as it was."""
    return answer(request, await unmute(conn, **failure.model_dump()))
