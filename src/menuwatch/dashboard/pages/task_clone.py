"""A new task like one that is there, with what shall be different."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from fastapi import Form as Field
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core import strict
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.task import shown_json
from menuwatch.operations import task_tabs, tasks, wishes
from menuwatch.operations.reading import Row
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.terms import PRIORITY_MAX, PRIORITY_MIN
from menuwatch.operations.wishes import Wish
from menuwatch.tasks.model import PRIORITY_CHAINED, Role
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(dependencies=[allowed(Permission.TASKS)])

_FIELDS = ("dispensary_id", "priority", "scheduled_for", "payload")
_LONGEST = 100_000


@router.get("/tasks/{task_id:int}/clone")
async def form(request: Request, conn: Reading, task_id: int) -> Response:
    """The form, filled with what that task has."""
    task = await tasks.one(conn, task_id)
    values = {
        "dispensary_id": str(task["dispensary_id"] or ""),
        "priority": str(max(task["priority"], PRIORITY_CHAINED)),
        "scheduled_for": "",
        "payload": shown_json(task["payload"]) or "",
    }
    return await _page(request, conn, task, Form(values))


async def _page(request: Request, conn: Any, task: Row, filled: Form, *, status: int = 200) -> Response:
    store = (await task_tabs.store_names(conn, [task["dispensary_id"]])).get(task["dispensary_id"] or 0)
    return screen.show(request, "tasks/clone.html", {"task": task, "form": filled, "store": store}, status=status)


@router.post("/tasks/{task_id:int}/clone")
async def clone(
    request: Request,
    system: Sys,
    conn: Writing,
    task_id: int,
    dispensary_id: Annotated[str, Field(max_length=40)] = "",
    priority: Annotated[str, Field(max_length=40)] = "",
    scheduled_for: Annotated[str, Field(max_length=40)] = "",
    payload: Annotated[str, Field(max_length=_LONGEST)] = "",
) -> Response:
    """Enqueues it; what is wrong is said beside its field."""
    task = await tasks.one(conn, task_id)
    filled = Form(dict(zip(_FIELDS, (dispensary_id, priority, scheduled_for, payload), strict=True)))
    wish = Wish(
        role=Role(task["role"]),
        dispensary_id=filled.whole("dispensary_id", low=1, high=2**31 - 1),
        platform=None if dispensary_id.strip() else task["platform"],
        priority=_or(filled.whole("priority", low=PRIORITY_MIN, high=PRIORITY_MAX), PRIORITY_CHAINED),
        scheduled_for=_moment(filled, "scheduled_for"),
        payload=_object(filled, "payload"),
    )
    if filled.ok:
        try:
            number, created = await wishes.enqueue(conn, wish, platforms=tuple(system.platforms))
        except Unusable as error:
            filled.refuse(error.field if error.field in _FIELDS else "", str(error))
        else:
            said = (
                f"This is the new task, like task {task_id}." if created else "The same work waits already: this is it."
            )
            return screen.back(request, f"/tasks/{number}", said, "good" if created else "warn")
    return await _page(request, conn, task, filled, status=422)


def _or(value: int | None, other: int) -> int:
    return other if value is None else value


def _moment(filled: Form, name: str) -> datetime | None:
    """A date and time of day in UTC, as the browser's field writes it."""
    text = filled.text(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        filled.refuse(name, f"{text!r} is no date with a time: write it as 2026-11-22T14:30")
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    if not 2000 <= found.year < 2100:
        filled.refuse(name, "it must lie between the years 2000 and 2100")
        return None
    return found.astimezone(UTC)


def _object(filled: Form, name: str) -> dict[str, Any] | None:
    """A JSON object; numbers keep their digits as far as Python's do."""
    text = filled.text(name)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" in line {error.lineno}, character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        filled.refuse(name, f'this is no JSON{place}: write an object, as {{"payload_id": 5}}')
        return None
    if not isinstance(found, dict):
        filled.refuse(name, 'an object is needed, as {"payload_id": 5}')
        return None
    try:
        kept = strict.is_strict(msgspec.json.encode(found)) and "\\u0000" not in text
    except (msgspec.MsgspecError, OverflowError, ValueError):
        kept = True
    if not kept:
        filled.refuse(name, "it holds a character that cannot be stored, or is nested too deeply")
        return None
    return found
