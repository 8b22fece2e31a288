"""One task: where it stands and why, what befell it, what it was asked with and what came of it; and what can be done to it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.json_tree import tree
from menuwatch.dashboard.reading import plain
from menuwatch.dashboard.task_steps import steps
from menuwatch.db.pool import Connection
from menuwatch.operations import explain, story, task_control, task_gone, task_priority, task_tabs, tasks
from menuwatch.operations.refusals import NotFound
from menuwatch.tasks.model import PRIORITY_CHAINED, Status
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(dependencies=[allowed(Permission.READ)])

REQUESTS = 100
"""Newest requests that the page lists."""
_JSON_SHOWN = 200_000
"""Characters of a payload or result that the page shows."""
_HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)

_writes: Any = [allowed(Permission.TASKS)]

_OUTCOMES = {
    "created": ("It is enqueued anew: this is the new task.", "good"),
    "joined": ("The same work waits already: this is the task that does it.", "warn"),
    "pulled": ("It waits no longer: it is due now.", "good"),
    "raised": ("It was due already, and comes before what is less urgent now.", "good"),
    "waiting": ("It is due already and as urgent as that: nothing but its turn keeps it.", "warn"),
}


@router.get("/tasks/{task_id:int}")
async def show(request: Request, system: Sys, conn: Reading, task_id: int) -> Response:
    """The task. One that is not kept any more is told from one that never was."""
    try:
        task = await tasks.one(conn, task_id)
    except NotFound:
        return await _gone(request, system, conn, task_id)
    who, now = screen.principal(request), datetime.now(UTC)
    told = await story.story(conn, task_id, most=REQUESTS)
    reason = await explain.explain(
        conn,
        task_id,
        heartbeat_seconds=system.settings.heartbeat_interval_ms / 1000,
        stale_minutes=system.settings.stale_after_minutes,
        asked={name: platform.hosts for name, platform in system.platforms.items()},
    )
    names = await task_tabs.worker_names(conn, [task["worker_id"], reason.worker_id])
    status = Status(task["status"])
    may = who.may(Permission.TASKS)
    context = {
        "task": task,
        "why": reason,
        "reason": _named(reason.reason, names),
        "story": told,
        "steps": steps(task, told, now),
        "workers": names,
        "store": (await task_tabs.store_names(conn, [task["dispensary_id"]])).get(task["dispensary_id"] or 0),
        "payload": shown_json(task["payload"]),
        "payload_tree": json_tree(task["payload"], "asked"),
        "result": shown_json(task["result"]),
        "result_tree": json_tree(task["result"], "came"),
        "commands": _commands(_api(request, system), task_id, may=may),
        "over": status in task_control.FINAL,
        "may_retry": may and status not in (Status.CLAIMED, Status.RUNNING, Status.STALE),
        "may_cancel": may and status not in task_control.FINAL,
        "may_order": may and status is Status.PENDING,
        "may_clone": may,
    }
    return screen.show(
        request, "tasks/task.html", context, live="" if status in task_control.FINAL else "tasks,workers"
    )


def _named(text: str, names: dict[str, str]) -> str:
    """A sentence with the names of workers in place of their ids."""
    for worker_id, name in names.items():
        text = text.replace(worker_id, name)
    return text


def shown_json(value: Any) -> str | None:
    """A JSON column as people read it, every digit as it is; None where there is nothing in it."""
    if value is None or bytes(value) in (b"{}", b"null"):
        return None
    try:
        text = msgspec.json.format(bytes(value)).decode()
    except RecursionError:
        text = bytes(value).decode()
    return text if len(text) <= _JSON_SHOWN else text[:_JSON_SHOWN] + "\n… (the rest is in the answer of the API)"


def json_tree(value: Any, name: str) -> Markup | None:
    """The same as a tree; None where there is nothing in it."""
    if shown_json(value) is None:
        return None
    try:
        return tree(plain(value), name)
    except RecursionError:
        return Markup('<p class="soft">It is nested too deeply to be shown as a tree.</p>')


def _api(request: Request, system: System) -> str:
    """Where the API is, as a command of the shell can name it."""
    if system.settings.public_url:
        return system.settings.public_url.rstrip("/")
    host = request.headers.get("host", "")
    prefix: str = request.scope.get("prefix", "")
    return f"{request.url.scheme}://{host if _HOST.fullmatch(host) else 'localhost'}{prefix}"


def _commands(api: str, task_id: int, *, may: bool) -> list[tuple[str, str]]:
    """What the page shows and does, as commands that ask the API. The token stays in the environment."""
    by = '-H "Authorization: Bearer $MENUWATCH_TOKEN"'
    of = f"{api}/api/tasks/{task_id}"
    found = [("Get", f"curl {by} {of}"), ("Explain", f"curl {by} {of}/explain")]
    if may:
        body = """-H 'Content-Type: application/json' -d '{"priority": 10}'"""
        found += [("Retry", f"curl -X POST {by} {body} {of}/retry"), ("Cancel", f"curl -X POST {by} {of}/cancel")]
    return found


async def _gone(request: Request, system: System, conn: Connection, task_id: int) -> Response:
    newest = await task_gone.newest(conn)
    days = system.settings.task_history_days
    if 0 < task_id <= newest:
        detail = (
            f"Task {task_id} is over and was removed: finished tasks are kept for {days} days (TASK_HISTORY_DAYS). What it "
            "changed, the payloads and products, is still there."
        )
    else:
        detail = (
            f"No task has the number {task_id} yet: the newest is {newest}." if newest else "There are no tasks yet."
        )
    return screen.show(
        request, "tasks/gone.html", {"title": f"Task {task_id} is not here", "detail": detail}, status=404
    )


@router.post("/tasks/{task_id:int}/retry", dependencies=_writes)
async def retry(
    request: Request,
    conn: Writing,
    task_id: int,
    priority: Annotated[int, Form(ge=-1000, le=1000)] = PRIORITY_CHAINED,
) -> Response:
    """Has it done again, or at once; goes to the task that stands for it now."""
    number, outcome = await task_control.retry(conn, task_id, priority=priority)
    said, kind = _OUTCOMES[outcome]
    return screen.back(request, f"/tasks/{number}", said, kind)


@router.post("/tasks/{task_id:int}/cancel", dependencies=_writes)
async def cancel(
    request: Request, conn: Writing, task_id: int, reason: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """It is not done any more; a worker that is at it loses it."""
    await task_control.cancel(conn, task_id, reason=reason.replace("\x00", "").strip() or None)
    return screen.back(request, f"/tasks/{task_id}", f"Task {task_id} is cancelled.")


@router.post("/tasks/{task_id:int}/priority", dependencies=_writes)
async def order(
    request: Request, conn: Writing, task_id: int, priority: Annotated[int, Form(ge=-1000, le=1000)]
) -> Response:
    """Gives it another priority while it waits."""
    before = await task_priority.set_priority(conn, task_id, priority)
    return screen.back(request, f"/tasks/{task_id}", f"Its priority is {priority} now; it was {before}.")
