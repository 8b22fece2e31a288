"""Work that people start for many stores at once: a day's crawls, and the search for stores."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.operations import schedule_day, schedules
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.wording import many
from menuwatch.schedules.model import PRIORITIES
from menuwatch.tasks.model import PRIORITY_DISCOVERY
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(dependencies=[allowed(Permission.SCHEDULES)])

_BATCHES = 6
_MOST_BATCHES = 1440
ZONES = (
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Phoenix",
    "America/Los_Angeles",
    "America/Toronto",
    "UTC",
)
"""Suggested; any other that exists is taken."""


@router.get("/schedules/resync")
async def resync_form(request: Request, conn: Reading) -> Response:
    """The form for a day's crawls."""
    values = {"batches": str(_BATCHES), "day": datetime.now(UTC).date().isoformat(), "timezone": ""}
    return await _resync(request, conn, Form(values))


async def _resync(request: Request, conn: Connection, form: Form, *, status: int = 200) -> Response:
    context = {"form": form, "stores": await schedule_day.crawlable(conn), "zones": ZONES}
    return screen.show(request, "schedules/resync.html", context, status=status)


@router.post("/schedules/resync")
async def resync(
    request: Request,
    conn: Writing,
    batches: Annotated[str, Field(max_length=20)] = "",
    day: Annotated[str, Field(max_length=20)] = "",
    timezone: Annotated[str, Field(max_length=80)] = "",
) -> Response:
    """Plans it; what is wrong is said beside its field."""
    form = Form({"batches": batches, "day": day, "timezone": timezone})
    now = datetime.now(UTC)
    count = form.whole("batches", low=1, high=_MOST_BATCHES)
    if count is None:
        form.refuse("batches", "how many parts the day is cut into is needed")
    wanted = _day(form)
    if form.ok and count is not None and wanted is not None:
        zone = form.text("timezone")
        try:
            # A zone that does not exist is found out by the database: what was begun is undone, and the page can still be read.
            async with conn.transaction():
                made = await schedules.generate_resync(conn, batches_per_day=count, day=wanted, timezone=zone, now=now)
        except Unusable as error:
            form.refuse("day" if error.field == "date" else error.field, str(error))
        else:
            said = f"{many(made, 'crawl')} planned for {wanted:%Y-%m-%d} in {many(count, 'batch')}".replace(
                "batchs", "batches"
            )
            if made:
                return screen.back(request, "/schedules", f"{said}.")
            why = "all stores have a crawl planned for that day, or one waiting"
            return screen.back(request, "/schedules", f"Nothing was planned for {wanted:%Y-%m-%d}: {why}.", "warn")
    return await _resync(request, conn, form, status=422)


def _day(form: Form) -> date | None:
    text = form.text("day")
    if text is None:
        form.refuse("day", "a day is needed")
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        form.refuse("day", f"{text!r} is no date: write it as 2026-11-22")
        return None


@router.get("/schedules/discovery")
async def discovery_form(request: Request, system: Sys) -> Response:
    """The form for a search for stores."""
    values = {"platform": next(iter(system.platforms), ""), "state_code": "", "priority": str(PRIORITY_DISCOVERY)}
    return _discovery(request, system, Form(values))


def _discovery(request: Request, system: System, form: Form, *, status: int = 200) -> Response:
    context = {"form": form, "platforms": [(name, name) for name in system.platforms]}
    return screen.show(request, "schedules/discovery.html", context, status=status)


@router.post("/schedules/discovery")
async def discovery(
    request: Request,
    system: Sys,
    conn: Writing,
    platform: Annotated[str, Field(max_length=80)] = "",
    state_code: Annotated[str, Field(max_length=80)] = "",
    priority: Annotated[str, Field(max_length=20)] = "",
) -> Response:
    """Enqueues it, and goes to its task."""
    form = Form({"platform": platform, "state_code": state_code, "priority": priority})
    level = form.whole("priority", low=0, high=PRIORITIES[1])
    if form.ok:
        try:
            number, created = await schedules.generate_discovery(
                conn,
                platforms=tuple(system.platforms),
                platform=form.text("platform"),
                state_code=form.text("state_code"),
                priority=PRIORITY_DISCOVERY if level is None else level,
            )
        except Unusable as error:
            form.refuse(error.field, str(error))
        else:
            said = "The search for stores is enqueued." if created else "Such a search waits already: this is it."
            return screen.back(request, f"/tasks/{quote(str(number))}", said, "good" if created else "warn")
    return _discovery(request, system, form, status=422)
