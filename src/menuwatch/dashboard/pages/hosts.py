"""Hosts: how often each may be asked, whether it lets anybody in, and what a person can do about it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.svg.host_hours import host_hours
from menuwatch.fetch.verdict import Verdict
from menuwatch.operations import attempts, hosts, put_off
from menuwatch.operations.attempts import AttemptFilter
from menuwatch.operations.host_hours import Day, HourBook
from menuwatch.operations.hosts import CLOSED, HostView
from menuwatch.operations.wording import plain
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Sys, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/hosts", dependencies=[allowed(Permission.READ)])
may = allowed(Permission.HOSTS)

SHOWN = 25
"""Requests on a page."""
_MOST = 200
PERIODS = {"1": "Last hour", "24": "Last 24 hours", "168": "Last 7 days"}
LIMITS = ("rate", "burst", "concurrency", "min_gap")
HostPath = Annotated[str, Path(max_length=260)]

STATES = {
    "open": ("open", "good", "it is asked as often as its limits allow", ""),
    "slow": (
        "slower",
        "warn",
        "it failed or asked to slow down lately: it is asked less often for a while",
        "nothing; the pace grows by a tenth of the rate a minute while it answers. Reset goes back to full pace at once",
    ),
    "trying": (
        "half open",
        "amber",
        "it refused everybody; one identity finds out whether it still does",
        "wait; if that one is let in, everybody is",
    ),
    "cooling": (
        "cooling down",
        "amber",
        "it asked to be left alone: nobody asks it until then",
        "wait; it is asked again by itself, more slowly. If it cools down often, lower its rate. Reset asks at once",
    ),
    "circuit": (
        "circuit open",
        "bad",
        "it refused everybody: nobody asks it until then",
        (
            "open the site in a browser of your own. If it shows its menus to people, lower the rate or add proxies of another "
            "network; if it shows none, or forbids it, stop: Pause. Reset tries again at once"
        ),
    ),
    "paused": ("paused", "", "an operator has everybody kept away", "Resume has it asked again"),
}
"""Each state's word, its colour, what it means and what a person can do about it."""


def _book(request: Request) -> HourBook:
    """Counts of hours that are over, kept as long as the server runs."""
    state = request.app.state
    if not hasattr(state, "host_hours"):
        state.host_hours = HourBook()
    book: HourBook = state.host_hours
    return book


@router.get("")
async def listed(request: Request, conn: Reading, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """All of them."""
    everyone = await hosts.all_of(conn)
    word = q.strip().lower()
    found = [one for one in everyone if word in one.host]
    days = await _book(request).day(conn)
    context = {
        "total": len(everyone),
        "found": len(found),
        "shown": found[:_MOST],
        "hours": {name: host_hours(day.hours, small=True) for name, day in days.items()},
        "refused": {name: sum(one.refused for one in day.hours) for name, day in days.items()},
        "form": Filled({"q": q}),
        "states": STATES,
        "closed": [one for one in everyone if one.state in CLOSED],
        "may": screen.principal(request).may(Permission.HOSTS),
    }
    return screen.show(request, "hosts/list.html", context, live="hosts")


@router.get("/{host}")
async def one(
    request: Request,
    conn: Reading,
    host: HostPath,
    verdict: str = "",
    proxy: str = "",
    hours: str = "24",
    cursor: str = "",
) -> Response:
    """One host."""
    return await _one(request, conn, host, Filled({"verdict": verdict, "proxy": proxy, "hours": hours}), cursor)


async def _one(
    request: Request,
    conn: Reading,
    name: str,
    filters: Filled,
    cursor: str = "",
    *,
    limits: Filled | None = None,
    stale: bool = False,
    status: int = 200,
) -> Response:
    known = await hosts.one(conn, name)
    day = (await _book(request).day(conn)).get(known.host, Day(verdicts={}))
    found = await hosts.detail(conn, known.host, events=12, lately=day.verdicts)
    host = found.host
    verdict = filters.one_of("verdict", [str(one) for one in Verdict])
    proxy_id = filters.whole("proxy", low=1, high=2_147_483_647)
    hours = filters.one_of("hours", PERIODS) or "24"
    where = AttemptFilter(
        host=host.host,
        verdicts=[Verdict(verdict)] if verdict else None,
        proxy_id=proxy_id,
        since=datetime.now(UTC) - timedelta(hours=int(hours)),
    )
    after = screen.place(request, cursor, tuple[datetime, int])
    some = await attempts.page(conn, where, after=after, limit=SHOWN + 1) if filters.ok else []
    shown = some[:SHOWN]
    more = paging.encode(shown[-1].attempted_at, shown[-1].id) if len(some) > SHOWN else None
    now = _limits(host)
    context = {
        "detail": found,
        "host": host,
        "state": STATES[host.state],
        "chart": host_hours(day.hours),
        "put_off": await put_off.by(conn, host.host),
        "day_total": sum(one.day for one in found.verdicts),
        "verdicts": [(str(one), str(one).replace("_", " ")) for one in Verdict],
        "periods": list(PERIODS.items()),
        "filters": filters,
        "limits": limits or Filled(now),
        "present": now,
        "edited_from": _version(now),
        "stale": stale,
        "attempts": shown,
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
        "may": screen.principal(request).may(Permission.HOSTS),
    }
    if not filters.ok and status == 200:
        status = 422
    return screen.show(request, "hosts/one.html", context, live="hosts", status=status)


def _limits(host: HostView) -> dict[str, str]:
    return {name: plain(getattr(host, name)) for name in LIMITS}


def _version(limits: dict[str, str]) -> str:
    return " ".join(limits[name] for name in LIMITS)


@router.post("/{host}", dependencies=[may])
async def change(
    request: Request,
    system: Sys,
    conn: Writing,
    host: HostPath,
    version: Annotated[str, Form(max_length=200)] = "",
    rate: Annotated[str, Form(max_length=40)] = "",
    burst: Annotated[str, Form(max_length=40)] = "",
    concurrency: Annotated[str, Form(max_length=40)] = "",
    min_gap: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    """New limits, in force at once for all workers."""
    form = Filled({"rate": rate, "burst": burst, "concurrency": concurrency, "min_gap": min_gap})
    before = _limits(await hosts.one(conn, host))
    none = Filled({})
    if version != _version(before):
        return await _one(request, conn, host, none, limits=form, stale=True, status=412)
    given: dict[str, Any] = {
        "rate": _number(form, "rate", 1e-6, 1e6),
        "burst": form.whole("burst", low=1, high=10_000),
        "concurrency": form.whole("concurrency", low=1, high=10_000),
        "min_gap": _number(form, "min_gap", 0, 86_400),
    }
    for name in LIMITS:
        if form.text(name) is None:
            form.refuse(name, "a host has a limit of each kind: give a number")
    if form.ok:
        changed = {name: value for name, value in given.items() if plain(value) != before[name]}
        try:
            async with conn.transaction():
                if changed:
                    await hosts.change(conn, host, system.settings, **changed)
        except Refused as error:
            form.refuse("rate", str(error))
        else:
            said = "The limits are in force for all workers." if changed else "The limits are as they were."
            return screen.back(request, f"/hosts/{host}", said)
    return await _one(request, conn, host, none, limits=form, status=422)


def _number(form: Filled, name: str, low: float, high: float) -> float | None:
    text = form.text(name)
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not low <= found <= high:
        form.refuse(name, f"a number from {plain(low)} to {high:,.0f}, not {text!r}")
        return None
    return found


@router.post("/{host}/pause", dependencies=[may])
async def pause(
    request: Request, system: Sys, conn: Writing, host: HostPath, reason: Annotated[str, Form(max_length=500)] = ""
) -> Response:
    """Nobody asks it until somebody resumes it."""
    await hosts.pause(conn, host, system.settings, reason.strip() or f"paused by {screen.principal(request).name}")
    return screen.back(request, f"/hosts/{host}", f"{host} is paused: nobody asks it. Tasks wait, and use up no retry.")


@router.post("/{host}/resume", dependencies=[may])
async def resume(
    request: Request, conn: Writing, host: HostPath, tasks: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    """It is asked again."""
    return await _again(request, conn, await hosts.resume(conn, host), bool(tasks), "resumed")


@router.post("/{host}/reset", dependencies=[may])
async def reset(
    request: Request, conn: Writing, host: HostPath, tasks: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    """Cool-down, circuit and slower pace are over."""
    return await _again(request, conn, await hosts.reset(conn, host), bool(tasks), "reset")


async def _again(request: Request, conn: Writing, host: HostView, tasks: bool, done: str) -> Response:
    said = f"{host.host} is {done}"
    if host.state in CLOSED:
        return screen.back(
            request, f"/hosts/{host.host}", f"{said}, but is not asked yet: {STATES[host.state][2]}.", "warn"
        )
    made = await put_off.make_due(conn, host.host) if tasks else await put_off.by(conn, host.host)
    if tasks:
        said += f"; {many(made.made_due, 'task')} that it had put off made due now"
    elif made.waiting:
        said += f"; {many(made.waiting, 'task')} that it had put off keep their time"
    return screen.back(request, f"/hosts/{host.host}", said + ".")


@router.post("/{host}/remove", dependencies=[may])
async def remove(request: Request, conn: Writing, host: HostPath) -> Response:
    """Forgets it."""
    await hosts.remove(conn, host)
    return screen.back(request, "/hosts", f"{host} is forgotten, with its limits and all that it said.")
