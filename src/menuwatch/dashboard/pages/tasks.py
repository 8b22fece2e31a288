"""The list of tasks: search, tabs by status; retry or cancel many of them, after a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from msgspec import Struct
from starlette.responses import JSONResponse, RedirectResponse, Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.known_parameters import reads
from menuwatch.dashboard.pages.exports import export_list
from menuwatch.dashboard.pages.views import saved
from menuwatch.dashboard.task_facets import facets
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import TASK_COLUMNS, Format
from menuwatch.ops.export import RowExport
from menuwatch.queue import service
from menuwatch.queue.counts import TAB_MAX, count_facets, count_tabs
from menuwatch.queue.model import (
    PRIORITY_CHAINED,
    PRIORITY_MAX,
    PRIORITY_MIN,
    PRIORITY_SCHEDULED,
    PRIORITY_URGENT,
    Status,
    WaitState,
)
from menuwatch.queue.search import MAX_QUERY, QUALIFIERS, InvalidQuery, apply_query, parse
from menuwatch.queue.search_suggestions import suggest_terms
from menuwatch.queue.search_terms import IDS_MAX, Fault
from menuwatch.queue.search_values import TaskSearch
from menuwatch.queue.service import BulkResult
from menuwatch.queue.task_list import (
    TaskFilter,
    can_sort_by_end,
    check_filter,
    count_tasks,
    list_by_end,
    list_tasks,
    select_tasks,
    store_names,
    worker_names,
)
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn

router = APIRouter(dependencies=[require(Permission.READ)])
_writes: Any = [require(Permission.TASKS)]


class Tab(Struct, frozen=True, kw_only=True):
    """One state of the list. `count` is None if counting takes too long."""

    name: str
    href: str
    count: int | None
    more: bool
    current: bool
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A search: as text, as editable parts, and as a filter."""

    text: str
    search: TaskSearch
    where: TaskFilter


async def parse_query(conn: Connection, system: AppContext, text: str) -> ParsedQuery:
    """Reads a search; raises InvalidQuery."""
    text = text.strip()
    if len(text) > MAX_QUERY or "\x00" in text:
        wrong = "it contains an invalid character" if "\x00" in text else f"it is longer than {MAX_QUERY:,} characters"
        raise InvalidQuery([Fault(start=0, end=min(len(text), 40), wrong=wrong, right="shorten it")])
    where = await apply_query(conn, TaskFilter(), text)
    try:
        await check_filter(conn, where, platforms=tuple(system.platforms))
    except InvalidField as error:
        raise InvalidQuery([Fault(start=0, end=len(text), wrong=str(error), right="use an existing one")]) from None
    search = parse(text)
    assert isinstance(search, TaskSearch), "apply_query() parsed it above"
    return ParsedQuery(text=text, search=search, where=where)


def highlight_errors(text: str, faults: Sequence[Fault]) -> list[tuple[str, bool]]:
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


@router.get("/tasks", dependencies=[reads(*(name for name in QUALIFIERS if name.isidentifier()))])
async def show_list(
    request: Request, system: AppDep, conn: ReadConn, q: str = "", cursor: Annotated[str | None, Query()] = None
) -> Response:
    """The list. For an invalid search, shows the error and keeps the input."""
    # URL parameters as in the API: `?state=failed` is the search `state:failed`.
    parameters = request.query_params.multi_items()
    guessed = " ".join(
        f'{name}:"{value}"' if " " in value else f"{name}:{value}" for name, value in parameters if name in QUALIFIERS
    )
    if guessed and not q:
        return RedirectResponse(screen.root(request) + "/tasks?" + urlencode([("q", guessed)]), status_code=303)
    who = screen.principal(request)
    context: dict[str, Any] = {
        "q": q,
        "faults": (),
        "pieces": (),
        "may": who.may(Permission.TASKS),
        **await saved(request, conn),
        "qualifiers": QUALIFIERS,
    }
    try:
        parsed = await parse_query(conn, system, q)
    except InvalidQuery as error:
        context |= {
            "faults": error.faults,
            "pieces": highlight_errors(q.strip(), error.faults),
            "tabs": (),
            "rows": (),
        }
        return screen.render(request, "tasks/list.html", context, status=422)
    by_end = can_sort_by_end(parsed.where)
    sort = tables.sorting(request, ("-id", "id", "-ended", "ended") if by_end else ("-id", "id"))
    paging: dict[str, Any] = {"limit": tables.page_size(request) + 1, "oldest_first": not sort.descending}
    if sort.key == "ended":
        behind = screen.parse_cursor(request, cursor, tuple[datetime | None, int])
        tasks = await list_by_end(conn, parsed.where, after=behind, **paging)
        rows, page = tables.page(request, tasks, "completed_at", "id")
    else:
        after = screen.parse_number_cursor(request, cursor)
        tasks = await list_tasks(conn, parsed.where, after=after, **paging)
        rows, page = tables.page(request, tasks, "id")
    counts = await count_tabs(conn, parsed.where)
    context |= {
        "tabs": _tabs(request, parsed.search, counts),
        "rows": rows,
        "stores": await store_names(conn, (task.dispensary_id for task in rows)),
        "workers": await worker_names(conn, (task.worker_id for task in rows)),
        "total": _total(parsed.search, counts),
        "narrow": facets(
            parsed.search,
            await count_facets(conn, parsed.where),
            counts,
            lambda search: screen.query(request, q=search.text or None),
        ),
        "most": TAB_MAX,
        "can_cancel": any(
            counts.get(state) != 0 for state in set(parsed.search.wanted_states or Status) - service.FINAL
        ),
        "sort": sort,
        "by_end": by_end,
        "page": page,
    }
    return screen.render(request, "tasks/list.html", context, live="tasks")


@router.get("/tasks/export", dependencies=[require(Permission.EXPORT), reads("format")])
async def export_tasks(request: Request, system: AppDep, q: str = "") -> Response:
    """The list as a file, with the same search."""

    async def rows(conn: Connection, fmt: Format) -> RowExport:
        parsed = await parse_query(conn, system, q)
        statement, values = await select_tasks(conn, parsed.where)
        return RowExport(columns=TASK_COLUMNS, statement=statement, parameters=values, fmt=fmt)

    return await export_list(request, system, "tasks", rows)


_PARTS: Mapping[Status | WaitState, str] = {
    WaitState.BLOCKED: "Among the pending ones: their host gets no requests now",
}


def _tabs(request: Request, search: TaskSearch, counts: dict[Status | WaitState, int | None]) -> list[Tab]:
    def tab(name: str, states: tuple[Status | WaitState, ...], count: int | None) -> Tab:
        text = replace(search, states=states, not_states=()).text
        return Tab(
            name=name,
            href=screen.query(request, q=text or None),
            count=None if count is None else min(count, TAB_MAX),
            more=count is not None and count > TAB_MAX,
            current=search.states == states and not search.not_states,
            title=_PARTS.get(states[0], "") if states else "",
        )

    every = tab("All", (), _sum(counts[status] for status in Status))
    return [every, *(tab(str(status).capitalize(), (status,), count) for status, count in counts.items())]


def _sum(counts: Any) -> int | None:
    known = list(counts)
    return None if None in known else sum(known)


def _total(search: TaskSearch, counts: dict[Status | WaitState, int | None]) -> int | None:
    """Number of matches, at least TAB_MAX + 1 if there are more than are counted."""
    if Status.PENDING in (wanted := search.wanted_states):
        return _sum(counts[state] for state in wanted if isinstance(state, Status))
    return _sum(counts.get(state) for state in wanted or Status)


@router.get("/tasks/suggest")
async def suggest(
    system: AppDep,
    conn: ReadConn,
    q: Annotated[str, Query(max_length=MAX_QUERY)] = "",
    at: Annotated[int, Query(ge=0, le=MAX_QUERY)] = 0,
) -> Response:
    """Completions at the cursor, for the search field."""
    text = q.replace("\x00", "")
    body = [asdict(term) for term in await suggest_terms(conn, text, at, platforms=tuple(system.platforms))]
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


ACTS = {"retry": "Retry", "cancel": "Cancel"}
PRIORITIES = (PRIORITY_SCHEDULED, PRIORITY_CHAINED, PRIORITY_URGENT)
SKIPPED = {
    "finished": "already finished",
    "active": "running",
    "waiting": "already queued",
    "scheduled": "scheduled for later; search for state:pending to run these now",
    "completed": "completed; search for state:completed to run these again",
    "cancelled": "cancelled; search for state:cancelled to run these again",
    "unhandled": "no worker handles this role",
    "busy": "being finished by its worker right now",
    "missing": "no longer exists",
}

_TOLERANCE = 20
"""By how many tasks the selection may have grown since the preview."""


class _Selection(Struct, frozen=True, kw_only=True):
    """Which tasks: those with these ids, or all that the search finds."""

    act: str
    q: str
    ids: Sequence[int] | None
    where: TaskFilter

    @property
    def list_path(self) -> str:
        """The list that the selection was made in."""
        return "/tasks" + (f"?{urlencode({'q': self.q})}" if self.q else "")


async def _select(
    conn: Connection, system: AppContext, act: str, q: str, ids: Sequence[int], every: bool
) -> _Selection:
    if act not in ACTS:
        raise InvalidField("act", f"{act[:40]!r} is not an action for tasks: use one of {', '.join(ACTS)}")
    parsed = await parse_query(conn, system, q)
    # Selected tasks stay selected, whatever the search finds by now.
    where = parsed.where if every else TaskFilter(ids=sorted(set(ids)))
    return _Selection(act=act, q=parsed.text, ids=None if every else sorted(set(ids)), where=where)


async def _run(conn: Connection, selection: _Selection, *, dry_run: bool, priority: int) -> BulkResult:
    where = selection.where if selection.ids is None else TaskFilter()
    if selection.act == "retry":
        return await service.bulk_retry(conn, where, ids=selection.ids, dry_run=dry_run, priority=priority)
    return await service.bulk_cancel(conn, where, ids=selection.ids, dry_run=dry_run, reason=None)


Ids = Annotated[list[Annotated[int, Query(ge=1, le=2**63 - 1)]], Query(max_length=IDS_MAX)]


@router.get("/tasks/bulk", dependencies=_writes)
async def preview_bulk(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    act: str = "",
    q: str = "",
    id: Ids = [],  # noqa: A002, B006  # its name in the address; never written to
    all: bool = False,  # noqa: A002
) -> Response:
    """How many tasks it would be, of which roles and statuses, and which are skipped."""
    selection = await _select(conn, system, act, q, id, all)
    if selection.ids == []:
        return screen.flash_to(request, selection.list_path, "No tasks selected: tick some first.", "warn")
    return await _preview(request, conn, selection)


async def _preview(
    request: Request, conn: Connection, selection: _Selection, *, changed_from: int | None = None
) -> Response:
    result = await _run(conn, selection, dry_run=True, priority=PRIORITY_CHAINED)
    by_role = await count_tasks(conn, selection.where) if result.matched else {}
    context: dict[str, Any] = {
        "selection": selection,
        "name": ACTS[selection.act],
        "result": result,
        "by_role": {role: by_role[role] for role in sorted(by_role)},
        "states": sorted({state for counts in by_role.values() for state in counts}),
        "skipped": {SKIPPED.get(why, why): n for why, n in result.skipped.items()},
        "priorities": PRIORITIES,
        "priority": PRIORITY_CHAINED,
        "changed_from": changed_from,
    }
    return screen.render(request, "tasks/bulk.html", context, status=200 if changed_from is None else 409)


@router.post("/tasks/bulk", dependencies=_writes)
async def apply_bulk(
    request: Request,
    system: AppDep,
    conn: WriteConn,
    act: Annotated[str, Form()] = "",
    q: Annotated[str, Form()] = "",
    ids: Annotated[str, Form(max_length=40_000)] = "",
    all: Annotated[bool, Form()] = False,  # noqa: A002
    expected: Annotated[int, Form(ge=0)] = 0,
    priority: Annotated[int, Form(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = PRIORITY_CHAINED,
) -> Response:
    """Acts. Where the selection has grown far beyond the preview, it shows a new preview instead."""
    selection = await _select(conn, system, act, q, _numbers(ids), all)
    would = (await _run(conn, selection, dry_run=True, priority=priority)).would
    if would > expected + max(_TOLERANCE, expected // 10):
        return await _preview(request, conn, selection, changed_from=expected)
    done = await _run(conn, selection, dry_run=False, priority=priority)
    verb = "retried" if act == "retry" else "cancelled"
    skipped = "; ".join(f"{n:,} skipped ({SKIPPED.get(why, why).split(';')[0]})" for why, n in done.skipped.items())
    message = f"{pluralize(done.done, 'task')} {verb}" + (f"; {skipped}." if skipped else ".")
    if act == "retry" and done.done:
        message += " What was enqueued again comes first in `menuwatch tasks list`."
    return screen.flash_to(request, selection.list_path, message, "good" if done.done else "warn")


@router.post("/tasks/recover-stale", dependencies=_writes)
async def recover_stale(request: Request, system: AppDep, conn: WriteConn) -> Response:
    """Takes tasks back from silent workers now, without waiting for the reaper."""
    result = await service.recover_stale(conn, system.settings.stale_after_minutes)
    return screen.flash_back(request, f"{result}.", "good" if result.recovered else "warn")


def _numbers(text: str) -> list[int]:
    """Numbers with commas between."""
    words = [word for word in text.split(",") if word]
    if len(words) > IDS_MAX or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise InvalidField("ids", f"invalid task IDs, or more than {IDS_MAX:,}")
    return [int(word) for word in words]
