"""The installation: versions, sizes, maintenance, settings, and the doctor."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.ops import doctor, installation
from menuwatch.ops.assessment import Level
from menuwatch.ops.legacy.sources import find_tables
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn

router = APIRouter(prefix="/system", dependencies=[require(Permission.READ)])

MAINTENANCE_JOBS = {
    "names": "updates the list of names for search and filters",
    "quality": "measures new menus and compares them with what is usual for their stores",
    "audit": "traces a sample of values back to their archived payloads",
    "totals": "counts the brands and categories of a large catalog",
    "horizon": "warns of long transactions that block vacuum",
    "history": "drops expired tasks, requests and states; creates new partitions; counts the tasks of past days",
    "records": "drops expired runs, workers, messages, sessions, keys and audit entries",
    "payloads": "deletes expired payloads except the first and last of each day and store",
    "crawls": "deletes expired search crawls with their archived pages",
    "visitors": "deletes salts of visitors before they are 48 hours old",
    "statistics": "updates the statistics of the query planner",
}
"""Description of each job of the janitor."""


@router.get("")
async def about(request: Request, conn: ReadConn, system: AppDep) -> Response:
    """Versions, sizes and maintenance."""
    settings = system.settings
    kept = (
        ("Finished tasks", "TASK_HISTORY_DAYS", settings.task_history_days),
        ("Requests", "FETCH_ATTEMPT_DAYS", settings.fetch_attempt_days),
        ("Schedule runs", "SCHEDULE_RUN_DAYS", settings.schedule_run_days),
        ("Audit log", "AUDIT_DAYS", settings.audit_days),
        ("Price and stock history", "PRODUCT_HISTORY_DAYS", settings.product_history_days),
        ("All raw payloads", "PAYLOAD_DAYS", settings.payload_days),
        ("Search crawls", "CRAWL_HISTORY_DAYS", settings.crawl_history_days),
    )
    context = {
        "about": await installation.about(conn, settings),
        "kept": kept,
        "jobs": MAINTENANCE_JOBS,
        **await _former(conn),
    }
    return screen.render(request, "system/about.html", context)


@router.get("/settings")
async def settings(
    request: Request,
    conn: ReadConn,
    system: AppDep,
    q: Annotated[str, Query(max_length=200)] = "",
    changed: Literal["", "1"] = "",
) -> Response:
    """All settings by group, without secrets; those that contain the search text, or that were changed."""
    found = installation.settings_shown(system.settings)
    words = q.casefold().split()
    shown = [
        one
        for one in found
        if (one.changed or not changed)
        and all(word in f"{one.variable} {one.group} {one.meaning} {one.value}".casefold() for word in words)
    ]
    context = {
        "groups": [(name, list(rows)) for name, rows in groupby(shown, key=lambda one: one.group)],
        "count": len(shown),
        "total": len(found),
        "changed": sum(one.changed for one in found),
        "only_changed": changed,
        "q": q,
        "env": installation.settings_as_env(system.settings),
        **await _former(conn),
    }
    return screen.render(request, "system/settings.html", context)


@router.get("/doctor")
async def examine(request: Request, system: AppDep) -> Response:
    """Runs the checks. They open their own connections, so the route holds none."""
    found = await doctor.everything(system.pool, system.settings)
    count = {level: sum(one.level == level for one in found) for level in Level}
    async with system.pool.connection() as conn:
        former = await _former(conn)
    return screen.render(request, "system/doctor.html", {"findings": found, "count": count, **former})


async def _former(conn: Connection) -> dict[str, bool]:
    """Whether there is a tab for the former system."""
    return {"former": bool(await find_tables(conn))}
