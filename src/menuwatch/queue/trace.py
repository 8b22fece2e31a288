"""The trace of a task: what enqueued it, its requests, events of their hosts meanwhile, and its follow-up tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_one, fetch_structs
from menuwatch.fetch import attempts
from menuwatch.fetch.attempts import AttemptFilter, FetchAttempt
from menuwatch.queue.model import Role
from menuwatch.queue.task_attempts import TaskAttempt, list_task_attempts
from menuwatch.queue.task_list import get_task

_q = sql.load(__package__, "trace.sql")

MAX_REQUESTS = 500
"""A task that has failed for days may have thousands."""
_MAX_EVENTS = 100
_EVENT_DELAY = timedelta(seconds=5)
"""Events caused by a request are recorded within this time."""


class Origin(msgspec.Struct, kw_only=True, frozen=True):
    """What enqueued a task."""

    kind: Annotated[
        Literal["task", "schedule", "plan", "request"], doc("Another task, a schedule, a day plan, or a request.")
    ]
    text: Annotated[str, doc("Origin in words.")]
    task_id: Annotated[int | None, doc("Id of the other task; null if it was not a task.")] = None
    role: Annotated[str | None, doc("Role of the other task; null if it was not a task.")] = None


class FollowUpTask(msgspec.Struct, kw_only=True, frozen=True):
    """A follow-up task."""

    id: int
    role: str
    dispensary_id: Annotated[int | None, doc("Id of the store; null if it is not for one.")]
    status: str
    created_at: Annotated[Instant, doc("When the task was enqueued.")]


class TaskHostEvent(msgspec.Struct, kw_only=True, frozen=True):
    """An event of a host during a task."""

    host: str
    kind: Literal["cooldown", "rate_reduced", "circuit_opened", "circuit_closed"]
    reason: str
    until: Annotated[Instant | None, doc("When the state ends; null if open-ended.")]
    happened_at: Instant


class TaskTrace(msgspec.Struct, kw_only=True, frozen=True):
    """How a task reached its current state, as far as the records are kept."""

    enqueued_at: Instant
    origin: Origin
    attempts: Annotated[list[TaskAttempt], doc("Its attempts, oldest first.")]
    requests: Annotated[list[FetchAttempt], doc("Its requests, oldest first; the newest 500 if there are more.")]
    requests_total: int
    troubles: Annotated[int, doc("Number of requests that did not succeed.")]
    rotations: Annotated[int, doc("Number of changes of proxy or browser.")]
    waited_ms: Annotated[float, doc("Total time spent waiting for rate limits, in ms.")]
    elapsed_ms: Annotated[float, doc("Total duration of the requests, in ms.")]
    bytes: Annotated[int, doc("Total decoded size of the responses, in bytes.")]
    events: Annotated[list[TaskHostEvent], doc("Events of the hosts during the task.")]
    payload_id: Annotated[int | None, doc("Id of the payload it archived; null if there is none.")]
    followed: Annotated[list[FollowUpTask], doc("Follow-up tasks.")]


async def trace_task(conn: Connection, task_id: int, *, limit: int = MAX_REQUESTS) -> TaskTrace:
    """The trace with its newest `limit` requests; raises NotFound."""
    task = await fetch_one(conn, _q.task, {"id": task_id})
    if task is None:
        raise NotFound(f"task {task_id} does not exist")
    task["payload"] = msgspec.json.decode(task["payload"])
    sums: Any = await fetch_one(conn, _q.sums, {"id": task_id})
    requests = (await attempts.list_attempts(conn, AttemptFilter(task_id=task_id), limit=limit))[::-1]
    payload_id, follow_ups = await _follow_ups(conn, task)
    return TaskTrace(
        enqueued_at=task["created_at"],
        origin=await _origin(conn, task),
        attempts=await list_task_attempts(conn, await get_task(conn, task_id)),
        requests=requests,
        requests_total=sums["requests"],
        **{name: sums[name] for name in ("troubles", "rotations", "bytes")},
        **{name: round(sums[name], 1) for name in ("waited_ms", "elapsed_ms")},
        events=await _events(conn, requests, task["completed_at"]),
        payload_id=payload_id,
        followed=follow_ups,
    )


async def _origin(conn: Connection, task: Row) -> Origin:
    parent = await _parent(conn, task)
    if parent is not None:
        role = parent["role"]
        text = f"by task {parent['task_id']}" + (f" ({role})" if role else "")
        return Origin(kind="task", text=text, task_id=parent["task_id"], role=role)
    if (planned := await fetch_one(conn, _q.planned_by, task)) is not None:
        day: date = planned["day"]
        return Origin(kind="plan", text=f"by the daily plan of {day:%Y-%m-%d}")
    if (fired := await fetch_one(conn, _q.fired_by, task)) is not None:
        return Origin(kind="schedule", text=f"by the schedule {fired['name']}")
    return Origin(kind="request", text="on demand")


async def _parent(conn: Connection, task: Row) -> Row | None:
    payload_id = task["payload"].get("payload_id")
    if task["role"] == Role.PRODUCT_REFRESH and isinstance(payload_id, int) and 0 < payload_id < 2**63:
        return await fetch_one(conn, _q.task_of_payload, {"payload_id": payload_id})
    if task["role"] == Role.PRODUCT_DISCOVERY and task["dispensary_id"] is not None:
        return await fetch_one(conn, _q.before_first_crawl, task)
    return None


async def _follow_ups(conn: Connection, task: Row) -> tuple[int | None, list[FollowUpTask]]:
    """The payload that it archived, and its follow-up tasks."""
    if task["dispensary_id"] is None or task["claimed_at"] is None:
        return None, []
    if task["role"] == Role.ENTRY_POINT_DISCOVERY and task["status"] == "completed":
        return None, await fetch_structs(conn, FollowUpTask, _q.first_crawl, task)
    if task["role"] not in (Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY):
        return None, []
    payload = await fetch_one(conn, _q.payload_of_task, task)
    if payload is None:
        return None, []
    params = {"dispensary_id": task["dispensary_id"], "payload_id": payload["id"], "since": task["created_at"]}
    return payload["id"], await fetch_structs(conn, FollowUpTask, _q.refreshes, params)


async def _events(conn: Connection, requests: Sequence[FetchAttempt], over: datetime | None) -> list[TaskHostEvent]:
    if not requests:
        return []
    until = requests[-1].attempted_at + timedelta(milliseconds=requests[-1].elapsed_ms) + _EVENT_DELAY
    params = {
        "hosts": sorted({request.host for request in requests}),
        "since": requests[0].attempted_at,
        "until": until if over is None else min(until, over),
        "limit": _MAX_EVENTS,
    }
    return await fetch_structs(conn, TaskHostEvent, _q.events, params)
