"""The tasks: found by a search that is typed, by state, page by page; and what is done to many of them starts here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.saved import saved
from menuwatch.db.pool import Connection
from menuwatch.operations import task_search, task_suggest, task_tabs, tasks
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.task_search import QUALIFIERS, TaskSearch, Unreadable
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.terms import Fault
from menuwatch.tasks.model import Status
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, System

router = APIRouter(dependencies=[allowed(Permission.READ)])

PAGE = 50
LONGEST = 2000
"""Most characters of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One state of the list. `count` is None where it is not known soon."""

    name: str
    href: str
    count: int | None
    more: bool
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was typed: as the queue is asked, and as a search whose parts can be changed."""

    text: str
    search: TaskSearch
    where: TaskFilter


async def wanted(conn: Connection, system: System, text: str) -> Wanted:
    """Reads a search; raises Unreadable."""
    text = text.strip()
    if len(text) > LONGEST or "\x00" in text:
        wrong = (
            "it holds a character that no text has" if "\x00" in text else f"it is longer than {LONGEST:,} characters"
        )
        raise Unreadable([Fault(start=0, end=min(len(text), 40), wrong=wrong, right="shorten it")])
    where = await task_search.narrowed(conn, TaskFilter(), text)
    try:
        await tasks.check(conn, where, platforms=tuple(system.platforms))
    except Unusable as error:
        raise Unreadable([Fault(start=0, end=len(text), wrong=str(error), right="name one that there is")]) from None
    search = task_search.parse(text)
    assert isinstance(search, TaskSearch), "it was read just now"
    return Wanted(text=text, search=search, where=where)


def marked(text: str, faults: Sequence[Fault]) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is at fault."""
    pieces, at = [], 0
    for fault in sorted(faults, key=lambda one: one.start):
        start, end = max(fault.start, at), max(fault.end, fault.start + 1)
        if start > at:
            pieces.append((text[at:start], False))
        if text[start:end]:
            pieces.append((text[start:end], True))
        at = max(at, end)
    return [*pieces, (text[at:], False)] if text[at:] else pieces


@router.get("/tasks")
async def listing(
    request: Request, system: Sys, conn: Reading, q: str = "", cursor: Annotated[str | None, Query()] = None
) -> Response:
    """The list. A search that cannot be read says what is wrong with it, and keeps what was typed."""
    # What people guess who know the API: `?state=failed` is the search `state:failed`.
    given = request.query_params.multi_items()
    guessed = " ".join(
        f'{name}:"{value}"' if " " in value else f"{name}:{value}" for name, value in given if name in QUALIFIERS
    )
    if guessed and not q:
        return RedirectResponse(screen.root(request) + "/tasks?" + urlencode([("q", guessed)]), status_code=303)
    who = screen.principal(request)
    context: dict[str, Any] = {
        "q": q,
        "faults": (),
        "pieces": (),
        "may": who.may(Permission.TASKS),
        **await saved(request, conn, "/tasks"),
        "qualifiers": QUALIFIERS,
    }
    try:
        asked = await wanted(conn, system, q)
    except Unreadable as error:
        context |= {
            "faults": error.faults,
            "pieces": marked(q.strip(), error.faults),
            "tabs": (),
            "rows": (),
            "next": None,
        }
        return screen.show(request, "tasks/list.html", context, status=422)
    after = screen.place(request, cursor, tuple[int])
    found = await tasks.page(conn, asked.where, after=after[0] if after else None, limit=PAGE + 1)
    rows = found[:PAGE]
    counts = await task_tabs.counts(conn, asked.where)
    context |= {
        "tabs": _tabs(request, asked.search, counts),
        "rows": rows,
        "stores": await task_tabs.store_names(conn, (one["dispensary_id"] for one in rows)),
        "workers": await task_tabs.worker_names(conn, (one["worker_id"] for one in rows)),
        "total": _total(asked.search, counts),
        "most": task_tabs.MOST,
        "next": screen.query(request, cursor=paging.encode(rows[-1]["id"])) if len(found) > PAGE else None,
        "first": screen.query(request) if after else None,
    }
    return screen.show(request, "tasks/list.html", context, live="tasks")


def _tabs(request: Request, search: TaskSearch, counts: dict[Status, int | None]) -> list[Tab]:
    def tab(name: str, states: tuple[Status, ...], count: int | None) -> Tab:
        text = replace(search, states=states).text
        return Tab(
            name=name,
            href=screen.query(request, q=text or None),
            count=None if count is None else min(count, task_tabs.MOST),
            more=count is not None and count > task_tabs.MOST,
            current=search.states == states,
        )

    every = tab("All", (), _sum(counts.values()))
    return [every, *(tab(str(status).capitalize(), (status,), count) for status, count in counts.items())]


def _sum(counts: Any) -> int | None:
    known = list(counts)
    return None if None in known else sum(known)


def _total(search: TaskSearch, counts: dict[Status, int | None]) -> int | None:
    """How many the search finds, at least MOST + 1 where it is more than is counted."""
    return _sum(counts[status] for status in (search.states or counts))


@router.get("/tasks/suggest")
async def suggest(
    system: Sys,
    conn: Reading,
    q: Annotated[str, Query(max_length=LONGEST)] = "",
    at: Annotated[int, Query(ge=0, le=LONGEST)] = 0,
) -> Response:
    """What could come next where the cursor stands, for the field of the search."""
    text = q.replace("\x00", "")
    found = await task_suggest.suggestions(conn, text, at, platforms=tuple(system.platforms))
    body = [{"text": one.text, "about": one.about, "start": one.start, "end": one.end} for one in found]
    return JSONResponse(body, headers={"Cache-Control": "no-store"})
