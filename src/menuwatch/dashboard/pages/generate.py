"""Work that users start for many stores: a day's crawls, and the search for stores."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.geo.states import NAMES, PROVINCES
from menuwatch.queue.model import PRIORITY_DISCOVERY
from menuwatch.queue.schedules import service as schedules
from menuwatch.queue.schedules import timetable as schedule_day
from menuwatch.queue.schedules.discovery import choose_states, get_discovery
from menuwatch.queue.schedules.model import PRIORITIES
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(dependencies=[require(Permission.SCHEDULES)])

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
"""Suggestions; any other IANA name is accepted."""


@router.get("/schedules/resync")
async def resync_form(request: Request, conn: ReadConn) -> Response:
    """The form for a day's crawls."""
    values = {"batches": str(_BATCHES), "day": (await database_now(conn)).date().isoformat(), "timezone": ""}
    return await _resync(request, conn, FormInput(values))


async def _resync(request: Request, conn: Connection, form: FormInput, *, status: int = 200) -> Response:
    context = {"form": form, "stores": await schedule_day.crawlable(conn), "zones": ZONES}
    return screen.render(request, "schedules/resync.html", context, status=status)


@router.post("/schedules/resync")
async def resync(
    request: Request, form: Annotated[FormInput, fields("batches", "day", "timezone", longest=80)], conn: WriteConn
) -> Response:
    """Plans a resync; errors are shown beside their fields."""
    now = await database_now(conn)
    count = form.parse_int("batches", low=1, high=_MOST_BATCHES)
    if count is None:
        form.add_error("batches", "enter the number of batches per day")
    day = form.parse_date("day")
    if day is None:
        form.add_error("day", "enter a date")
    if form.ok and count is not None and day is not None:
        zone = form.text("timezone")
        try:
            # The database detects an unknown time zone: the change is rolled back, and the page can still be read.
            async with conn.transaction():
                made = await schedules.generate_resync(conn, batches_per_day=count, day=day, timezone=zone, now=now)
        except InvalidField as error:
            form.add_error("day" if error.field == "date" else error.field, str(error))
        else:
            said = f"{pluralize(made, 'crawl')} planned for {day:%Y-%m-%d} in {pluralize(count, 'batch', 'batches')}"
            if made:
                return screen.flash_to(request, "/schedules", f"{said}.")
            why = "all stores already have a crawl planned for that day or queued"
            return screen.flash_to(request, "/schedules", f"Nothing was planned for {day:%Y-%m-%d}: {why}.", "warn")
    return await _resync(request, conn, form, status=422)


@router.get("/schedules/discovery")
async def discovery_form(
    request: Request, system: AppDep, conn: ReadConn, platform: Annotated[str, Query(max_length=80)] = ""
) -> Response:
    """States in which stores are discovered, and the form for a single search."""
    platform = platform if platform in _listed(system) else _listed(system)[0]
    values = {"platform": platform, "state_code": "", "priority": str(PRIORITY_DISCOVERY)}
    return await _discovery(request, system, conn, FormInput(values))


def _listed(system: AppContext) -> tuple[str, ...]:
    """The platforms whose stores can be discovered; all, where none is configured."""
    listed = tuple(name for name, one in system.platforms.items() if one.requested and one.lists_stores)
    return listed or tuple(system.platforms)


async def _discovery(
    request: Request, system: AppContext, conn: Connection, form: FormInput, *, status: int = 200
) -> Response:
    platforms = _listed(system)
    platform = form.value("platform") if form.value("platform") in platforms else platforms[0]
    context = {
        "form": form,
        "platforms": screen.platform_choices(request, platforms),
        "states": [(code, f"{name} ({code})") for code, name in (NAMES | PROVINCES).items()],
        "choice": await get_discovery(conn, platform, platforms=platforms),
    }
    return screen.render(request, "schedules/discovery.html", context, status=status)


@router.post("/schedules/discovery/states")
async def discovery_states(
    request: Request,
    system: AppDep,
    conn: WriteConn,
    platform: Annotated[str, Form(max_length=80)],
    where: Annotated[Literal["chosen", "all", "off"], Form()],
    state: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Sets the states in which stores are discovered."""
    back = f"/schedules/discovery?platform={quote(platform)}"
    if where == "chosen" and not state:
        return screen.flash_to(request, back, "Nothing was changed: select at least one state.", "bad")
    choice = await choose_states(
        conn,
        platform,
        state if where == "chosen" and state else [],
        all_states=where == "all",
        platforms=tuple(system.platforms),
        now=await database_now(conn),
    )
    return screen.flash_to(request, back, choice.summary)


@router.post("/schedules/discovery")
async def discovery(
    request: Request,
    form: Annotated[FormInput, fields("platform", "state_code", "priority", longest=80)],
    system: AppDep,
    conn: WriteConn,
) -> Response:
    """Enqueues a discovery, and redirects to its task."""
    level = form.parse_int("priority", low=0, high=PRIORITIES[1])
    if form.ok:
        try:
            generated = await schedules.generate_discovery(
                conn,
                platforms=tuple(system.platforms),
                platform=form.text("platform"),
                state_code=form.text("state_code"),
                priority=PRIORITY_DISCOVERY if level is None else level,
            )
        except InvalidField as error:
            form.add_error(error.field, str(error))
        else:
            said = (
                "Store discovery enqueued."
                if generated.tasks_created
                else "Discovery is already queued: this is the task."
            )
            return screen.flash_to(
                request, f"/tasks/{generated.task.id}", said, "good" if generated.tasks_created else "warn"
            )
    return await _discovery(request, system, conn, form, status=422)
