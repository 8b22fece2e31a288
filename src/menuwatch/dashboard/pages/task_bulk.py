"""Retrying and cancelling many tasks: first a page that says how many it would be, then the deed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.tasks import wanted
from menuwatch.db.pool import Connection
from menuwatch.operations import task_control, tasks
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.task_control import Bulk
from menuwatch.operations.task_search import TaskSearch
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.terms import IDS_MAX
from menuwatch.operations.wording import many
from menuwatch.tasks.model import PRIORITY_CHAINED, PRIORITY_SCHEDULED, PRIORITY_URGENT
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(dependencies=[allowed(Permission.TASKS)])

ACTS = {"retry": "Retry", "cancel": "Cancel"}
PRIORITIES = (PRIORITY_SCHEDULED, PRIORITY_CHAINED, PRIORITY_URGENT)
SKIPPED = {
    "finished": "over already",
    "active": "a worker is at it",
    "waiting": "waits for its turn already",
    "scheduled": "planned for later; search for state:pending to have these at once",
    "completed": "went well; search for state:completed to have these done again",
    "cancelled": "was cancelled; search for state:cancelled to have these done again",
    "unhandled": "nobody does this kind of work",
    "busy": "its worker is writing its end at this moment",
    "missing": "is not there any more",
}
"""Why a task is passed over, for people."""

_DRIFT = 20
"""By how many the number may differ from the one that was shown: a queue moves while one reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Which tasks: those with these ids, or all that the search finds."""

    act: str
    q: str
    ids: Sequence[int] | None
    where: TaskFilter
    search: TaskSearch

    @property
    def list_path(self) -> str:
        """The list that one came from."""
        return "/tasks" + (f"?{urlencode({'q': self.q})}" if self.q else "")


async def _chosen(conn: Connection, system: System, act: str, q: str, ids: Sequence[int], every: bool) -> _Chosen:
    if act not in ACTS:
        raise Unusable("act", f"{act[:40]!r} cannot be done to tasks: it is one of {', '.join(ACTS)}")
    asked = await wanted(conn, system, q)
    # What is ticked is ticked, whatever the search finds by now.
    where = asked.where if every else TaskFilter(ids=sorted(set(ids)))
    return _Chosen(act=act, q=asked.text, ids=None if every else sorted(set(ids)), where=where, search=asked.search)


async def _do(conn: Connection, chosen: _Chosen, *, dry_run: bool, priority: int) -> Bulk:
    where = chosen.where if chosen.ids is None else TaskFilter()
    if chosen.act == "retry":
        return await task_control.bulk_retry(conn, where, ids=chosen.ids, dry_run=dry_run, priority=priority)
    return await task_control.bulk_cancel(conn, where, ids=chosen.ids, dry_run=dry_run, reason=None)


Ids = Annotated[list[Annotated[int, Query(ge=1, le=2**63 - 1)]], Query(max_length=IDS_MAX)]


@router.get("/tasks/bulk")
async def preview(
    request: Request,
    system: Sys,
    conn: Reading,
    act: str = "",
    q: str = "",
    id: Ids = [],  # noqa: A002, B006  # its name in the address; never written to
    all: bool = False,  # noqa: A002
) -> Response:
    """How many tasks it would be, of which roles and states, and which are passed over. Nothing is done."""
    chosen = await _chosen(conn, system, act, q, id, all)
    return await _preview(request, conn, chosen)


async def _preview(request: Request, conn: Connection, chosen: _Chosen, *, moved: int | None = None) -> Response:
    found = await _do(conn, chosen, dry_run=True, priority=PRIORITY_CHAINED)
    by_role = await tasks.count(conn, chosen.where) if found.matched else {}
    context: dict[str, Any] = {
        "chosen": chosen,
        "name": ACTS[chosen.act],
        "found": found,
        "by_role": {role: by_role[role] for role in sorted(by_role)},
        "states": sorted({state for one in by_role.values() for state in one}),
        "skipped": {SKIPPED.get(why, why): n for why, n in found.skipped.items()},
        "priorities": PRIORITIES,
        "priority": PRIORITY_CHAINED,
        "moved": moved,
    }
    return screen.show(request, "tasks/bulk.html", context, status=200 if moved is None else 409)


@router.post("/tasks/bulk")
async def carry_out(
    request: Request,
    system: Sys,
    conn: Writing,
    act: Annotated[str, Form()] = "",
    q: Annotated[str, Form()] = "",
    ids: Annotated[str, Form(max_length=40_000)] = "",
    all: Annotated[bool, Form()] = False,  # noqa: A002
    expected: Annotated[int, Form(ge=0)] = 0,
    priority: Annotated[int, Form(ge=-1000, le=1000)] = PRIORITY_CHAINED,
) -> Response:
    """Does it. Where it would be far more than was shown, it is shown anew instead."""
    chosen = await _chosen(conn, system, act, q, _numbers(ids), all)
    would = (await _do(conn, chosen, dry_run=True, priority=priority)).would
    if would > expected + max(_DRIFT, expected // 10):
        return await _preview(request, conn, chosen, moved=expected)
    done = await _do(conn, chosen, dry_run=False, priority=priority)
    verb = "retried" if act == "retry" else "cancelled"
    passed = "; ".join(f"{n:,} passed over ({SKIPPED.get(why, why).split(';')[0]})" for why, n in done.skipped.items())
    said = f"{many(done.done, 'task')} {verb}" + (f"; {passed}." if passed else ".")
    return screen.back(request, chosen.list_path, said, "good" if done.done else "warn")


def _numbers(text: str) -> list[int]:
    """Numbers with commas between."""
    words = [word for word in text.split(",") if word]
    if len(words) > IDS_MAX or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise Unusable("ids", f"these are no numbers of tasks, or more than {IDS_MAX:,}")
    return [int(word) for word in words]
