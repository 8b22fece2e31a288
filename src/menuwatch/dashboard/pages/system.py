"""The installation: versions, sizes, upkeep, settings, and the doctor."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.operations import doctor, installation
from menuwatch.operations.legacy import tables
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys

router = APIRouter(prefix="/system", dependencies=[allowed(Permission.READ)])

DUTIES = {
    "names": "keeps the list of names that searches and filters are made of",
    "totals": "counts the brands and categories of a large catalogue",
    "days": "counts the tasks of days that are over",
    "horizon": "looks for transactions that hold old rows back",
    "history": "drops tasks, requests and states that are past their time, and makes the next partitions",
    "records": "drops old runs, workers, messages, sessions, keys and entries of the audit",
    "visitors": "deletes salts of visitors before they are 48 hours old",
    "statistics": "renews the planner's statistics",
}
"""What each duty of the janitor does."""


@router.get("")
async def about(request: Request, conn: Reading, system: Sys) -> Response:
    """Versions, sizes and upkeep."""
    settings = system.settings
    kept = (
        ("Ended tasks", "TASK_HISTORY_DAYS", settings.task_history_days),
        ("Requests, one by one", "FETCH_ATTEMPT_DAYS", settings.fetch_attempt_days),
        ("Runs of schedules", "SCHEDULE_RUN_DAYS", settings.schedule_run_days),
        ("The audit", "AUDIT_DAYS", settings.audit_days),
        ("Past prices and stock", "PRODUCT_HISTORY_DAYS", settings.product_history_days),
    )
    context = {"about": await installation.about(conn, settings), "kept": kept, "duties": DUTIES, **await _former(conn)}
    return screen.show(request, "system/about.html", context)


@router.get("/settings")
async def settings(request: Request, conn: Reading, system: Sys) -> Response:
    """Every setting, without what is secret."""
    found = installation.settings_shown(system.settings)
    context = {"settings": found, "changed": sum(one.changed for one in found), **await _former(conn)}
    return screen.show(request, "system/settings.html", context)


@router.get("/doctor")
async def examine(request: Request, system: Sys) -> Response:
    """The checks, made anew. They take connections of their own, so none is held meanwhile."""
    found = await doctor.everything(system.pool, system.settings)
    count = {level: sum(one.level == level for one in found) for level in ("problem", "warning", "ok")}
    async with system.pool.connection() as conn:
        former = await _former(conn)
    return screen.show(request, "system/doctor.html", {"findings": found, "count": count, **former})


async def _former(conn: Connection) -> dict[str, bool]:
    """Whether there is a tab for the former system."""
    return {"former": bool(await tables.find(conn))}
