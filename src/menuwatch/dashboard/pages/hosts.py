"""Hosts: rate limits, circuit state, and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.format import decimal, pluralize, timestamp
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.bars import host_hours
from menuwatch.dashboard.charts.requests import request_counts, request_rate
from menuwatch.dashboard.pages.task import ACTIONS
from menuwatch.fetch import attempts
from menuwatch.fetch.attempts import AttemptFilter
from menuwatch.fetch.classify import Verdict
from menuwatch.hosts import service as hosts
from menuwatch.hosts.hourly import Day, HourBook
from menuwatch.hosts.model import State
from menuwatch.hosts.service import Host
from menuwatch.queue import service as tasks_service
from menuwatch.queue.service import PostponedTasks, count_postponed
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/hosts", dependencies=[require(Permission.READ)])
may = require(Permission.HOSTS)

SHOWN = 25
"""Requests on a page."""
PERIODS = {"1": "Last hour", "24": "Last 24 hours", "168": "Last 7 days"}
LIMITS = ("rate", "burst", "concurrency", "min_gap")
HostPath = Annotated[str, Path(max_length=260)]

TONES = {
    State.HEALTHY: "good",
    State.THROTTLED: "warn",
    State.COOLING: "amber",
    State.CIRCUIT: "bad",
    State.HALF_OPEN: "amber",
    State.PAUSED: "",
}
"""Colour of each state."""
FIXES = {
    State.THROTTLED: (
        "nothing: the rate recovers by a tenth of the limit per minute while requests succeed. Reset restores it immediately"
    ),
    State.HALF_OPEN: "wait; the circuit closes if that request succeeds",
    State.COOLING: (
        "wait; requests continue automatically at a lower rate. If this happens often, lower the limit. Reset resumes immediately"
    ),
    State.CIRCUIT: (
        "open the site in your own browser. If it shows its menus to visitors, lower the rate or add proxies on another "
        "network; if it does not, or forbids crawling, pause the host. Reset resumes requests immediately"
    ),
    State.PAUSED: "resume the host",
}
"""What to do on this page; the command line names its commands instead."""
PAUSES = {"900": "15 minutes", "3600": "1 hour", "14400": "4 hours", "86400": "1 day", "until": "Until a time"}
"""Lengths of a pause, in seconds; without one it lasts until the host is resumed."""


def _book(request: Request) -> HourBook:
    """Counts of hours that are over, kept as long as the server runs."""
    system: AppContext = request.app.state.system
    return system.host_hours


@router.get("")
async def listed(
    request: Request, conn: ReadConn, q: Annotated[str, Query(max_length=200)] = "", cursor: str = ""
) -> Response:
    """The list."""
    everyone = await hosts.list_hosts(conn)
    word = q.strip().lower()
    found = [one for one in everyone if word in one.host]
    days = await _book(request).day(conn)
    sort, size = tables.sorting(request, _ORDERS), tables.page_size(request)
    found = _sorted(found, days, sort)
    offset = max(screen.parse_number_cursor(request, cursor) or 0, 0)
    shown = found[offset : offset + size]
    after = paging.encode(offset + size) if len(found) > offset + size else None
    context = {
        "total": len(everyone),
        "found": len(found),
        "shown": shown,
        "sort": sort,
        "page": tables.page_of(request, len(shown), after),
        "hours": {name: host_hours(day.hours) for name, day in days.items()},
        "days": days,
        "form": FormInput({"q": q}),
        "tones": TONES,
        "closed": [one for one in everyone if one.state.is_closed],
        "may": screen.may(request, Permission.HOSTS),
    }
    return screen.render(request, "hosts/list.html", context, live="hosts")


_ORDERS = (
    "host", "-host", "state", "-state", "-flight", "flight", "-day", "day", "-blocked", "blocked", "-total", "total",
    "-success", "success",
)  # fmt: skip
"""Orders of the list; by state those that get no requests come first."""


def _sorted(found: Sequence[Host], days: Mapping[str, Day], sort: tables.Sort) -> list[Host]:
    """In the order of a column, then by name. Hosts without a value come last."""
    states = list(reversed(State))

    def value(one: Host) -> Any:
        day = days.get(one.host)
        return {
            "host": one.host,
            "state": states.index(one.state),
            "flight": one.leases,
            "day": None if day is None else day.sum("total"),
            "blocked": None if day is None else day.block_rate,
            "total": one.requests,
            "success": one.last_ok_at,
        }[sort.key]

    known = [one for one in found if value(one) is not None]
    return sorted(known, key=value, reverse=sort.descending) + [one for one in found if value(one) is None]


@router.get("/{host}")
async def one(
    request: Request,
    conn: ReadConn,
    host: HostPath,
    verdict: str = "",
    proxy: str = "",
    hours: str = "24",
    cursor: str = "",
) -> Response:
    """One host."""
    return await _one(request, conn, host, FormInput({"verdict": verdict, "proxy": proxy, "hours": hours}), cursor)


async def _one(
    request: Request,
    conn: ReadConn,
    name: str,
    filters: FormInput,
    cursor: str = "",
    *,
    limits: FormInput | None = None,
    stale: bool = False,
    status: int | None = None,
) -> Response:
    found = await hosts.detail(conn, name, events=12, book=_book(request))
    host = found.host
    verdict = filters.parse_choice("verdict", [str(one) for one in Verdict])
    proxy_id = filters.parse_int("proxy", low=1, high=2_147_483_647)
    hours = filters.parse_choice("hours", PERIODS) or "24"
    where = AttemptFilter(
        host=host.host,
        verdicts=[Verdict(verdict)] if verdict else None,
        proxy_id=proxy_id,
        since=datetime.now(UTC) - timedelta(hours=int(hours)),
    )
    after = screen.parse_cursor(request, cursor, tuple[datetime, int])
    some = await attempts.list_attempts(conn, where, after=after, limit=SHOWN + 1) if filters.ok else []
    shown, links = screen.paginate(request, some, SHOWN, "attempted_at", "id")
    now = _limits(host)
    context = {
        "actions": ACTIONS,
        "detail": found,
        "host": host,
        "tone": TONES[host.state],
        "fix": FIXES.get(host.state),
        "counts": request_counts(found.hours),
        "rate": request_rate(found.hours, host.rate, datetime.now(UTC)),
        "put_off": await count_postponed(conn, host.host, by_pause=host.state is not State.PAUSED),
        "day_total": sum(one.total for one in found.hours),
        "verdicts": [(str(one), str(one).replace("_", " ")) for one in Verdict],
        "periods": list(PERIODS.items()),
        "form": filters,
        "limits": limits or FormInput(now),
        "present": now,
        "edited_from": _version(now),
        "stale": stale,
        "attempts": shown,
        **links,
        "may": screen.may(request, Permission.HOSTS),
    }
    return screen.render(request, "hosts/one.html", context, live="hosts", status=status)


def _limits(host: Host) -> dict[str, str]:
    return {name: decimal(getattr(host, name)) for name in LIMITS}


def _version(limits: dict[str, str]) -> str:
    return " ".join(limits[name] for name in LIMITS)


@router.post("/{host}", dependencies=[may])
async def change(
    request: Request,
    form: Annotated[FormInput, fields("version", *LIMITS, longest=200)],
    system: AppDep,
    conn: WriteConn,
    host: HostPath,
) -> Response:
    """Sets limits, which apply to all workers immediately."""
    before = _limits(await hosts.get_host(conn, host))
    none = FormInput({})
    if form.value("version") != _version(before):
        return await _one(request, conn, host, none, limits=form, stale=True, status=412)
    given: dict[str, Any] = {
        "rate": form.parse_decimal("rate", "a number from 0.000001 to 1,000,000", 1e-6, 1e6),
        "burst": form.parse_int("burst", low=1, high=10_000),
        "concurrency": form.parse_int("concurrency", low=1, high=10_000),
        "min_gap": form.parse_decimal("min_gap", "a number from 0 to 86,400", 0, 86_400),
    }
    for name in LIMITS:
        if form.text(name) is None:
            form.add_error(name, "required: enter a number")
    if form.ok:
        changed = {
            name: float(value) if isinstance(value, Decimal) else value
            for name, value in given.items()
            if decimal(value) != before[name]
        }
        try:
            async with conn.transaction():
                if changed:
                    await hosts.change(conn, host, system.settings, **changed)
        except Refused as error:
            form.add_error("rate", str(error))
        else:
            said = "Limits saved; they apply to all workers." if changed else "No changes."
            return screen.flash_to(request, f"/hosts/{host}", said)
    return await _one(request, conn, host, none, limits=form, status=422)


@router.get("/{host}/pause", dependencies=[may])
async def pausing(request: Request, conn: ReadConn, host: HostPath) -> Response:
    """The form that pauses a host."""
    return await _pausing(request, conn, host, FormInput({"length": "3600"}))


async def _pausing(request: Request, conn: ReadConn, host: str, form: FormInput) -> Response:
    context = {
        "host": await hosts.get_host(conn, host),
        "form": form,
        "lengths": list(PAUSES.items()),
    }
    return screen.render(request, "hosts/pause.html", context)


@router.post("/{host}/pause", dependencies=[may])
async def pause(
    request: Request,
    form: Annotated[FormInput, fields("length", "until", "reason", longest=500)],
    system: AppDep,
    conn: WriteConn,
    host: HostPath,
) -> Response:
    """Pause all requests to the host: for a time, until a time, or until it is resumed."""
    length, until = form.parse_choice("length", PAUSES), form.parse_time("until")
    if length == "until" and until is None:
        form.add_error("until", "required: enter the time at which requests resume")
    if form.ok:
        end = until if length == "until" else timedelta(seconds=int(length)) if length else None
        reason = form.text("reason") or f"paused by {screen.principal(request).name}"
        try:
            async with conn.transaction():
                paused = await hosts.pause(conn, host, system.settings, reason, until=end)
        except InvalidField as error:
            form.add_error(error.field, str(error))
        else:
            for_how_long = f" until {timestamp(paused.until)}" if paused.until else ""
            said = f"{paused.host} is paused{for_how_long}. Its tasks wait without using retries."
            undo = screen.Undo(f"/hosts/{paused.host}/resume")
            return screen.flash_to(request, f"/hosts/{paused.host}", said, undo=undo)
    return await _pausing(request, conn, host, form)


@router.post("/{host}/resume", dependencies=[may])
async def resume(
    request: Request, conn: WriteConn, host: HostPath, tasks: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    """Resume requests to the host."""
    resumed, postponed = await tasks_service.resume_host(conn, host, every=bool(tasks))
    return _again(request, resumed, postponed, "resumed")


@router.post("/{host}/reset", dependencies=[may])
async def reset(
    request: Request, conn: WriteConn, host: HostPath, tasks: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    """Reset cool-down, circuit and reduced rate."""
    opened, postponed = await tasks_service.reset_host(conn, host, every=bool(tasks))
    return _again(request, opened, postponed, "reset")


def _again(request: Request, host: Host, tasks: PostponedTasks, done: str) -> Response:
    said = f"{host.host} was {done}"
    if host.state.is_closed:
        return screen.flash_to(
            request, f"/hosts/{host.host}", f"{said}, but is still blocked: {host.state.meaning}.", "warn"
        )
    if tasks.made_due:
        said += f"; {pluralize(tasks.made_due, 'postponed task')} rescheduled to now"
    if tasks.waiting:
        said += f"; {pluralize(tasks.waiting, 'postponed task')} {'keeps its' if tasks.waiting == 1 else 'keep their'} retry time"
    return screen.flash_to(request, f"/hosts/{host.host}", said + ".")


@router.post("/{host}/remove", dependencies=[may])
async def remove(request: Request, conn: WriteConn, host: HostPath) -> Response:
    """Delete the host's limits and state."""
    await hosts.remove(conn, host)
    return screen.flash_to(request, "/hosts", f"{host} was deleted with its limits and history.")
