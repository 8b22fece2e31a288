"""The former system, where the database has its tables: what is left of it, and putting it to rest."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.operations.legacy import jobs
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Writing

router = APIRouter(prefix="/system/former", dependencies=[allowed(Permission.READ)])


@router.get("")
async def former(request: Request, conn: Reading) -> Response:
    """What there is, and what each step would do."""
    context = {"status": await jobs.status(conn), "may": screen.principal(request).may(Permission.TASKS)}
    return screen.show(request, "system/former.html", context)


@router.post("/{step}", dependencies=[allowed(Permission.TASKS)])
async def carry_out(
    request: Request,
    conn: Writing,
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
    return screen.back(request, "/system/former", done.message, "good" if done.found else "warn")
