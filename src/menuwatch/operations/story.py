"""The story of a task: what enqueued it, each of its requests, what befell the hosts meanwhile, and what followed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import attempts
from menuwatch.operations.attempts import AttemptFilter, AttemptView
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import NotFound
from menuwatch.tasks.model import Role

_q = sql.load(__package__, "story.sql")

MOST = 500
"""Requests that are told, the newest: one task in trouble for days may have thousands."""
_EVENTS = 100
_AFTER = timedelta(seconds=5)
"""What a request brought about at its host is written down by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What enqueued a task: another one (`task`), a `schedule`, a day's `plan`, or somebody (`request`). `text` says it for people."""

    kind: Literal["task", "schedule", "plan", "request"]
    text: str
    task_id: int | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A task that followed from it."""

    id: int
    role: str
    dispensary_id: int | None
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Befell:
    """Something that befell a host while the task asked it."""

    host: str
    kind: str
    reason: str
    until: datetime | None
    happened_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """`requests` are the newest MOST, the oldest first; the sums are of all that are kept: `troubles` those that were not answered as
    asked, `rotations` changes of the identity, `waited_ms` for hosts' budgets, `elapsed_ms` under way, `bytes` decoded."""

    enqueued_at: datetime
    origin: Origin
    requests: Sequence[AttemptView]
    requests_total: int
    troubles: int
    rotations: int
    waited_ms: float
    elapsed_ms: float
    bytes: int
    events: Sequence[Befell]
    payload_id: int | None
    followed: Sequence[Followed]


async def story(conn: Connection, task_id: int, *, most: int = MOST) -> Story:
    """The story as far as it is kept; raises NotFound."""
    task = await row(conn, _q.task, {"id": task_id})
    if task is None:
        raise NotFound(f"task {task_id} does not exist")
    task["payload"] = msgspec.json.decode(task["payload"])
    sums: Any = await row(conn, _q.sums, {"id": task_id})
    requests = (await attempts.page(conn, AttemptFilter(task_id=task_id), limit=most))[::-1]
    payload_id, followed = await _followed(conn, task)
    return Story(
        enqueued_at=task["created_at"],
        origin=await _origin(conn, task),
        requests=requests,
        requests_total=sums["requests"],
        **{name: sums[name] for name in ("troubles", "rotations", "bytes")},
        **{name: round(sums[name], 1) for name in ("waited_ms", "elapsed_ms")},
        events=await _events(conn, requests, task["completed_at"]),
        payload_id=payload_id,
        followed=followed,
    )


async def _origin(conn: Connection, task: Row) -> Origin:
    found = await _parent(conn, task)
    if found is not None:
        role = found["role"]
        text = f"by task {found['task_id']}" + (f" ({role})" if role else "")
        return Origin(kind="task", text=text, task_id=found["task_id"], role=role)
    if (planned := await row(conn, _q.planned_by, task)) is not None:
        day: date = planned["day"]
        return Origin(kind="plan", text=f"by the plan of {day:%Y-%m-%d}")
    if (fired := await row(conn, _q.fired_by, task)) is not None:
        return Origin(kind="schedule", text=f"by the schedule {fired['name']}")
    return Origin(kind="request", text="on demand")


async def _parent(conn: Connection, task: Row) -> Row | None:
    payload_id = task["payload"].get("payload_id")
    if task["role"] == Role.PRODUCT_REFRESH and isinstance(payload_id, int) and 0 < payload_id < 2**63:
        return await row(conn, _q.task_of_payload, {"payload_id": payload_id})
    if task["role"] == Role.PRODUCT_DISCOVERY and task["dispensary_id"] is not None:
        return await row(conn, _q.before_first_crawl, task)
    return None


async def _followed(conn: Connection, task: Row) -> tuple[int | None, list[Followed]]:
    """The payload that it archived, and the tasks that followed."""
    if task["dispensary_id"] is None or task["claimed_at"] is None:
        return None, []
    if task["role"] == Role.ENTRY_POINT_DISCOVERY and task["status"] == "completed":
        return None, [Followed(**one) for one in await rows(conn, _q.first_crawl, task)]
    if task["role"] not in (Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY):
        return None, []
    payload = await row(conn, _q.payload_of_task, task)
    if payload is None:
        return None, []
    which = {"dispensary_id": task["dispensary_id"], "payload_id": payload["id"], "since": task["created_at"]}
    return payload["id"], [Followed(**one) for one in await rows(conn, _q.refreshes, which)]


async def _events(conn: Connection, requests: Sequence[AttemptView], over: datetime | None) -> list[Befell]:
    if not requests:
        return []
    until = requests[-1].attempted_at + timedelta(milliseconds=requests[-1].elapsed_ms) + _AFTER
    which = {
        "hosts": sorted({request.host for request in requests}),
        "since": requests[0].attempted_at,
        "until": until if over is None else min(until, over),
        "limit": _EVENTS,
    }
    return [Befell(**one) for one in await rows(conn, _q.events, which)]
