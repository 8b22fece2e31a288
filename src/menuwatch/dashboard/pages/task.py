"""One task: its state with the reason, history, arguments and result; retry, cancel, reorder and clone it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core import strict_json
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.dashboard import screen
from menuwatch.dashboard.api_examples import base_url
from menuwatch.dashboard.charts.attempts import timeline
from menuwatch.dashboard.decode import plain
from menuwatch.dashboard.json_tree import tree
from menuwatch.dashboard.log_section import task_log
from menuwatch.db.pool import Connection
from menuwatch.fetch.retry_policy import Action
from menuwatch.queue import service
from menuwatch.queue.enqueue import clone
from menuwatch.queue.explain.service import explain_with_trace
from menuwatch.queue.model import PRIORITY_CHAINED, PRIORITY_MAX, PRIORITY_MIN, Status
from menuwatch.queue.task_list import TaskRow, get_task, last_task_id, store_names
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(dependencies=[require(Permission.READ)])

REQUESTS = 100
"""Newest requests that the page lists."""
_JSON_SHOWN = 200_000
"""Characters of a payload or result that the page shows."""
_LAST_LINES = timedelta(seconds=5)
"""Time within which the last log lines of a finished task are stored."""

ACTIONS = {
    Action.RETURN: "response used",
    Action.RETRY: "retry",
    Action.ROTATE_IDENTITY: "rotated identity",
    Action.CHANGE_PROXY: "changed proxy",
    Action.GIVE_UP: "abort",
}
"""What was done after a request."""

_writes: Any = [require(Permission.TASKS)]

_OUTCOMES = {
    "created": ("Enqueued again: this is the new task.", "good"),
    "joined": ("The same work is already queued: this is the task.", "warn"),
    "pulled": ("Task rescheduled to now.", "good"),
    "raised": ("The task was already due; its priority was raised.", "good"),
    "waiting": ("No change: the task is already due with this priority or a higher one.", "warn"),
}


@router.get("/tasks/{task_id:int}")
async def show(request: Request, system: AppDep, conn: ReadConn, task_id: int) -> Response:
    """One task; a removed task gets another message than an unknown one."""
    try:
        task = await get_task(conn, task_id)
    except NotFound:
        return await _gone(request, system, conn, task_id)
    why = await explain_with_trace(conn, task_id, requests=REQUESTS)
    status = Status(task.status)
    may = screen.may(request, Permission.TASKS)
    context = {
        "task": task,
        "why": why,
        "story": why.story,
        "steps": timeline(task, why, why.story, datetime.now(UTC)),
        "workers": {one.worker_id: one.worker for one in why.story.attempts if one.worker is not None},
        "actions": ACTIONS,
        "store": (await store_names(conn, [task.dispensary_id])).get(task.dispensary_id or 0),
        "payload": shown_json(task.payload),
        "payload_tree": json_tree(task.payload, "asked"),
        "result": shown_json(task.result),
        "result_tree": json_tree(task.result, "came"),
        "commands": _commands(base_url(request), task_id, may=may),
        "over": status in service.FINAL,
        "may_retry": may and not task.is_active,
        "may_cancel": may and status not in service.FINAL,
        "may_order": may and status is Status.PENDING,
        "may_clone": may,
        **await task_log(request, conn, task_id),
    }
    # The last lines of a task are stored after its end.
    over = task.completed_at is not None and datetime.now(UTC) - task.completed_at > _LAST_LINES
    return screen.render(request, "tasks/task.html", context, live="" if over else "tasks,workers,logs")


def shown_json(value: Any) -> str | None:
    """A JSON column formatted for display, with exact numbers; None if empty."""
    if value is None or bytes(value) in (b"{}", b"null"):
        return None
    try:
        text = msgspec.json.format(bytes(value)).decode()
    except RecursionError:
        text = bytes(value).decode()
    return text if len(text) <= _JSON_SHOWN else text[:_JSON_SHOWN] + "\n… (truncated; the API returns all of it)"


def json_tree(value: Any, name: str) -> Markup | None:
    """A JSON column as a tree; None if empty."""
    if shown_json(value) is None:
        return None
    try:
        return tree(plain(value), name)
    except RecursionError:
        return Markup('<p class="soft">It is nested too deeply to be shown as a tree.</p>')


def _commands(api: str, task_id: int, *, may: bool) -> list[tuple[str, str]]:
    """The actions of the page as API requests. The token stays in the environment."""
    by = '-H "Authorization: Bearer $MENUWATCH_TOKEN"'
    of = f"{api}/api/tasks/{task_id}"
    found = [
        ("Get", f"curl {by} {of}"),
        ("Explain", f"curl {by} {of}/explain"),
        ("Logs", f"curl {by} {of}/logs"),
    ]
    if may:
        body = """-H 'Content-Type: application/json' -d '{"priority": 10}'"""
        found += [("Retry", f"curl -X POST {by} {body} {of}/retry"), ("Cancel", f"curl -X POST {by} {of}/cancel")]
    return found


async def _gone(request: Request, system: AppContext, conn: Connection, task_id: int) -> Response:
    newest = await last_task_id(conn)
    days = system.settings.task_history_days
    if 0 < task_id <= newest:
        detail = (
            f"Task {task_id} finished and was removed: finished tasks are kept for {days} days (TASK_HISTORY_DAYS). Its "
            "payload and product changes are kept."
        )
    else:
        detail = f"Task {task_id} does not exist yet: the newest is {newest}." if newest else "There are no tasks yet."
    return screen.render(
        request, "tasks/gone.html", {"title": f"Task {task_id} not found", "detail": detail}, status=404
    )


@router.post("/tasks/{task_id:int}/retry", dependencies=_writes)
async def retry(
    request: Request,
    conn: WriteConn,
    task_id: int,
    priority: Annotated[int, Form(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = PRIORITY_CHAINED,
) -> Response:
    """Retries the task, or makes it due; redirects to the task that now does the work."""
    result = await service.retry(conn, task_id, priority=priority)
    message, kind = _OUTCOMES[result.outcome]
    return screen.flash_to(request, f"/tasks/{result.task.id}", message, kind)


@router.post("/tasks/{task_id:int}/cancel", dependencies=_writes)
async def cancel(
    request: Request, conn: WriteConn, task_id: int, reason: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Cancels it; a worker that runs it loses it."""
    await service.cancel(conn, task_id, reason=reason.replace("\x00", "").strip() or None)
    return screen.flash_to(request, f"/tasks/{task_id}", f"Task {task_id} cancelled.")


@router.post("/tasks/{task_id:int}/priority", dependencies=_writes)
async def set_priority(
    request: Request, conn: WriteConn, task_id: int, priority: Annotated[int, Form(ge=PRIORITY_MIN, le=PRIORITY_MAX)]
) -> Response:
    before = (await service.set_priority(conn, task_id, priority)).priority
    return screen.flash_to(request, f"/tasks/{task_id}", f"Priority changed from {before} to {priority}.")


_FIELDS = ("dispensary_id", "priority", "scheduled_for", "payload")


@router.get("/tasks/{task_id:int}/clone", dependencies=_writes)
async def clone_form(request: Request, conn: ReadConn, task_id: int) -> Response:
    """The form for a copy, filled with the task's values."""
    task = await get_task(conn, task_id)
    values = {
        "dispensary_id": str(task.dispensary_id or ""),
        "priority": str(max(task.priority, PRIORITY_CHAINED)),
        "scheduled_for": "",
        "payload": shown_json(task.payload) or "",
    }
    return await _clone_page(request, conn, task, FormInput(values))


async def _clone_page(request: Request, conn: Any, task: TaskRow, form: FormInput, *, status: int = 200) -> Response:
    store = (await store_names(conn, [task.dispensary_id])).get(task.dispensary_id or 0)
    return screen.render(request, "tasks/clone.html", {"task": task, "form": form, "store": store}, status=status)


@router.post("/tasks/{task_id:int}/clone", dependencies=_writes)
async def clone_task(
    request: Request,
    form: Annotated[FormInput, fields(*_FIELDS, longest=100_000)],
    system: AppDep,
    conn: WriteConn,
    task_id: int,
) -> Response:
    """Enqueues it; errors are shown at their fields."""
    task = await get_task(conn, task_id)
    level = form.parse_int("priority", low=PRIORITY_MIN, high=PRIORITY_MAX)
    changes = {
        "dispensary_id": form.parse_int("dispensary_id", low=1, high=2**31 - 1),
        "priority": PRIORITY_CHAINED if level is None else level,
        "scheduled_for": form.parse_time("scheduled_for"),
        "payload": _object(form, "payload"),
    }
    if form.ok:
        try:
            enqueued = await clone(conn, task_id, changes, platforms=tuple(system.platforms))
        except InvalidField as error:
            form.add_error(error.field if error.field in _FIELDS else "", str(error))
        else:
            message, kind = f"Cloned from task {task_id}.", "good"
            if not enqueued.created:
                message, kind = _OUTCOMES["joined"]
            return screen.flash_to(request, f"/tasks/{enqueued.task.id}", message, kind)
    return await _clone_page(request, conn, task, form, status=422)


def _object(form: FormInput, name: str) -> dict[str, Any] | None:
    """A JSON object; numbers keep their digits as far as Python's do."""
    text = form.text(name)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" in line {error.lineno}, character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        form.add_error(name, f'invalid JSON{place}: enter an object such as {{"payload_id": 5}}')
        return None
    if not isinstance(value, dict):
        form.add_error(name, 'enter a JSON object such as {"payload_id": 5}')
        return None
    try:
        kept = strict_json.is_strict(msgspec.json.encode(value)) and "\\u0000" not in text
    except (msgspec.MsgspecError, OverflowError, ValueError):
        kept = True
    if not kept:
        form.add_error(name, "contains a character that cannot be stored, or is nested too deeply")
        return None
    return value
