"""What fails and why: failed tasks by cause and role, and each group done again at once."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.saved import saved
from menuwatch.dashboard.svg.bars import bars
from menuwatch.operations import failures
from menuwatch.operations.failures import Failures, Window
from menuwatch.operations.wording import many
from menuwatch.tasks.model import Role
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys

router = APIRouter(dependencies=[allowed(Permission.READ)])

MOST = 100
"""Groups of one page: those with the most failures."""
NAMES = {
    Window.HOUR: "Last hour",
    Window.DAY: "Last 24 hours",
    Window.WEEK: "Last 7 days",
    Window.KEPT: "All",
}


@router.get("/failures")
async def listing(request: Request, system: Sys, conn: Reading, window: str = Window.DAY, role: str = "") -> Response:
    """The groups. A window or role that does not exist is said beside its field."""
    form = Form({"window": window, "role": role})
    chosen = form.one_of("window", tuple(Window))
    of = form.one_of("role", tuple(Role))
    context = {
        "form": form,
        "windows": [(str(one), name, str(one) == window) for one, name in NAMES.items()],
        "roles": [(str(one), str(one)) for one in Role],
        "may": screen.principal(request).may(Permission.TASKS),
        "most": MOST,
        "groups": (),
        "name": "",
        **await saved(request, conn, "/failures"),
    }
    if not form.ok:
        return screen.show(request, "failures.html", context, status=422)
    span = Window(chosen or Window.DAY)
    found = await failures.failures(
        conn,
        span,
        roles=None if of is None else [Role(of)],
        limit=MOST,
        kept_days=system.settings.task_history_days,
    )
    context |= {
        "groups": [(one, bars(one.bars, _label(one))) for one in found],
        "name": NAMES[span].lower(),
        "total": sum(one.count for one in found),
        "windows": [(str(one), name, one is span) for one, name in NAMES.items()],
    }
    return screen.show(request, "failures.html", context, live="tasks")


def _label(group: Failures) -> str:
    """What the bars show, in words."""
    top = max(group.bars, default=0)
    return f"{many(group.count, 'failure')} over the window, at most {top:,} in a twenty-fourth of it"
