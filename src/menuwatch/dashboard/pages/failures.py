"""Failures by cause, role and platform: open, muted or resolved, with links to retry and forms to mute them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.format import pluralize, timestamp
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.bars import count_bars
from menuwatch.dashboard.pages.views import saved
from menuwatch.queue.failures import MAX_GROUPS, FailureGroup, FailureStatus, FailureWindow, list_failures, mute, unmute
from menuwatch.queue.model import Role
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(dependencies=[require(Permission.READ)])

MUTES = {"3600": "1 hour", "86400": "1 day", "604800": "1 week", "2592000": "30 days"}
"""Lengths of a mute, in seconds; without one it lasts until it is ended."""
NAMES = {
    FailureWindow.HOUR: "Last hour",
    FailureWindow.DAY: "Last 24 hours",
    FailureWindow.WEEK: "Last 7 days",
    FailureWindow.KEPT: "All",
}


@router.get("/failures")
async def list_failure_groups(
    request: Request, system: AppDep, conn: ReadConn, window: str = FailureWindow.DAY, role: str = "", status: str = ""
) -> Response:
    """A window, role or status that does not exist is marked at its field."""
    form = FormInput({"window": window, "role": role, "status": status})
    selected = form.parse_choice("window", tuple(FailureWindow))
    only_role = form.parse_choice("role", tuple(Role))
    only_status = form.parse_choice("status", tuple(FailureStatus))
    context = {
        "form": form,
        "windows": [(str(value), name) for value, name in NAMES.items()],
        "roles": [(str(name), str(name)) for name in Role],
        "statuses": [],
        "mutes": MUTES,
        "may": screen.may(request, Permission.TASKS),
        "most": MAX_GROUPS,
        "groups": (),
        "name": "",
        **await saved(request, conn),
    }
    if not form.ok:
        return screen.render(request, "failures.html", context, status=422)
    length = FailureWindow(selected or FailureWindow.DAY)
    groups = await list_failures(
        conn,
        length,
        roles=None if only_role is None else [Role(only_role)],
        limit=MAX_GROUPS,
        kept_days=system.settings.task_history_days,
    )
    counts = Counter(group.status for group in groups)
    shown = [group for group in groups if only_status is None or group.status == only_status]
    context |= {
        "groups": [(group, count_bars(group.histogram, _label(group))) for group in shown],
        "name": NAMES[length].lower(),
        "total": sum(group.count for group in shown),
        "statuses": [
            ("All", screen.query(request, status=None), len(groups), only_status is None),
            *(
                (str(one).capitalize(), screen.query(request, status=str(one)), counts[one], only_status == one)
                for one in FailureStatus
            ),
        ],
        "more": len(groups) == MAX_GROUPS,
    }
    return screen.render(request, "failures.html", context, live="tasks")


@router.post("/failures/mute", dependencies=[require(Permission.TASKS)])
async def mute_failure(
    request: Request,
    form: Annotated[FormInput, fields("cause", "role", "platform", "reason", "length", longest=500)],
    conn: WriteConn,
) -> Response:
    """Leaves a failure out of health checks for a time, or until it is unmuted."""
    length, role = form.parse_choice("length", MUTES), form.parse_choice("role", tuple(Role))
    if not form.text("reason"):
        form.add_error("reason", "give a reason for the mute")
    if not form.ok or role is None:
        return screen.flash_back(request, f"Not muted: {next(iter(form.errors.values()), 'role is missing')}.", "bad")
    muted = await mute(
        conn,
        cause=form.value("cause"),
        role=Role(role),
        platform=form.value("platform"),
        reason=form.value("reason"),
        until=timedelta(seconds=int(length)) if length else None,
    )
    end = f" until {timestamp(muted.until)}" if muted.until else ""
    return screen.flash_back(request, f"Failure muted{end}: it no longer counts in health checks.")


@router.post("/failures/unmute", dependencies=[require(Permission.TASKS)])
async def unmute_failure(
    request: Request, form: Annotated[FormInput, fields("cause", "role", "platform", longest=500)], conn: WriteConn
) -> Response:
    """Counts a failure in health checks again."""
    if (role := form.parse_choice("role", tuple(Role))) is None:
        return screen.flash_back(request, f"Not unmuted: role {form.error('role') or 'is missing'}.", "bad")
    await unmute(conn, cause=form.value("cause"), role=Role(role), platform=form.value("platform"))
    return screen.flash_back(request, "Failure unmuted.")


def _label(group: FailureGroup) -> str:
    """Text alternative of the bars."""
    top = max(group.histogram, default=0)
    return f"{pluralize(group.count, 'failure')} in the window, at most {top:,} per interval"
