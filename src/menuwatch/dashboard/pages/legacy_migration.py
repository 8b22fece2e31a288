"""Migration from the legacy system, if the database has its tables: remaining data and the steps to shut it down."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.ops.legacy import jobs
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn

router = APIRouter(prefix="/system/former", dependencies=[require(Permission.READ)])


@router.get("")
async def former(request: Request, conn: ReadConn) -> Response:
    """Remaining data, and what each step would do."""
    context = {"status": await jobs.status(conn), "may": screen.may(request, Permission.TASKS)}
    return screen.render(request, "system/legacy_migration.html", context)


@router.post("/{step}", dependencies=[require(Permission.TASKS)])
async def carry_out(
    request: Request,
    conn: WriteConn,
    step: Literal["disable", "cancel", "create", "all"],
    state_code: Annotated[str, Field(max_length=80)] = "",
) -> Response:
    """One step, or all of them."""
    state = state_code.strip() or None
    match step:
        case "disable":
            done = await jobs.disable_schedules(conn)
        case "cancel":
            done = await jobs.cancel_jobs(conn)
        case "create":
            done = await jobs.create_resync(conn, state)
        case "all":
            done = await jobs.migrate(conn, state)
    return screen.flash_to(request, "/system/former", done.message, "good" if done.found else "warn")
