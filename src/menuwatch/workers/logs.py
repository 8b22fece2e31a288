"""Stored log lines of workers: by worker and by task. `engine/log_writer.py` writes them.

Kept are lines of level info and above, for KEPT, and the newest LINES of each worker. A log says what is missing: lines that a worker
dropped, because there were too many or the database was away, and lines that were deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.core.errors import NotFound
from menuwatch.core.shapes import Instant, JsonObject, doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.query import fetch_one, fetch_structs
from menuwatch.queue.task_attempts import list_task_attempts
from menuwatch.queue.task_list import get_task
from menuwatch.workers import registry

_q = sql.load(__package__, "logs.sql")
_Conn = AsyncConnection[Any]

KEPT = timedelta(days=7)
"""As long as a worker stays in the registry after its last heartbeat."""
LINES = 50_000
"""Lines that are kept of one worker."""

Level = Literal["info", "warning", "error"]
_LEVELS = ("info", "warning", "error", "critical")


class LogLine(Struct, kw_only=True, frozen=True):
    """One line of a worker's log."""

    worker_id: Annotated[str, doc("Worker that logged it.")]
    seq: Annotated[int, doc("Number of the line in the worker's log.")]
    at: Instant
    level: Annotated[str, doc("`info`, `warning`, `error` or `critical`.")]
    action: Annotated[str | None, doc("Code of the event; null if it has none.")]
    message: str
    task_id: Annotated[int | None, doc("Task that it is about; null for lines about the worker.")]
    attempt: Annotated[int | None, doc("Attempt at that task; null if it is not about one attempt.")]
    details: Annotated[
        JsonObject, doc("Other fields of the line; `exception` is a traceback. Logins in URLs are removed.")
    ]
    dropped: Annotated[
        int, doc("Number of lines that were dropped before this line, which only says so; 0 for all other lines.")
    ]


class LogGaps(Struct, kw_only=True, frozen=True):
    """What is missing of a log."""

    dropped: Annotated[
        int,
        doc(
            "Lines that the worker dropped: too many at once, or the database was away. Of a task: while it ran, so not all "
            "of them need be about it."
        ),
    ]
    deleted: Annotated[
        bool, doc("Whether older lines were deleted: lines are kept for 7 days, and the newest 50,000 of each worker.")
    ]


class NewLine(Struct, frozen=True, kw_only=True):
    """A line to store. `details` is a JSON object; `dropped` lines were not stored between `dropped_since` and `at`."""

    at: datetime
    level: str
    action: str | None
    message: str
    task_id: int | None = None
    attempt: int | None = None
    details: str = "{}"
    dropped: int = 0
    dropped_since: datetime | None = None


TaskKey = tuple[datetime, str, int]
"""Place of a line in a task's log: its time, worker and number."""


def split_details(line: LogLine) -> tuple[list[tuple[str, str]], str | None]:
    """The other fields of a line as names and texts, and its traceback if it has one."""
    details = msgspec.json.decode(line.details)
    trace = details.pop("exception", None)
    texts = [
        (name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for name, value in details.items()
    ]
    return texts, trace


async def insert(conn: _Conn, worker_id: str, lines: Sequence[NewLine]) -> None:
    """Appends lines to the worker's log, in one statement."""
    columns = {name: [getattr(line, name) for line in lines] for name in NewLine.__struct_fields__}
    await conn.execute(_q.insert_lines, {"worker": worker_id, **columns})


async def list_worker_lines(
    conn: _Conn,
    worker_id: str,
    *,
    level: Level = "info",
    before: int | None = None,
    after: int | None = None,
    limit: int | None = 50,
) -> list[LogLine]:
    """Lines of that level and above, newest first, older than `before` and newer than `after` (numbers of lines)."""
    values = {"worker": worker_id, "levels": _from(level), "before": before, "after": after, "limit": limit}
    return await fetch_structs(conn, LogLine, _q.lines_of_worker, values)


async def list_task_lines(
    conn: _Conn,
    task_id: int,
    *,
    level: Level = "info",
    before: TaskKey | None = None,
    after: TaskKey | None = None,
    limit: int | None = 50,
) -> list[LogLine]:
    """Lines about all attempts at the task, of that level and above, newest first, older than `before` and newer than `after`."""
    values: dict[str, Any] = {"task": task_id, "levels": _from(level), "limit": limit}
    for name, key in (("before", before), ("after", after)):
        values |= dict(zip((f"{name}_at", f"{name}_worker", f"{name}_seq"), key or (None, None, None), strict=True))
    return await fetch_structs(conn, LogLine, _q.lines_of_task, values, prepare=False)


def _from(level: Level) -> list[str]:
    return list(_LEVELS[_LEVELS.index(level) :])


def task_key(line: LogLine) -> TaskKey:
    """The place of a line in its task's log."""
    return line.at, line.worker_id, line.seq


async def worker_gaps(conn: _Conn, worker_id: str) -> LogGaps:
    """What is missing of a worker's log since the oldest line that is kept. Raises NotFound for an unknown worker without lines."""
    first = await fetch_one(conn, _q.first_line, {"worker": worker_id})
    if first is None and await registry.get(conn, worker_id) is None:
        raise NotFound(f"unknown worker {worker_id!r}")
    gaps = await _gaps(conn, [(worker_id, None if first is None else first["at"], None)])
    return LogGaps(dropped=gaps.dropped, deleted=first is not None and first["seq"] > 1)


async def task_gaps(conn: _Conn, task_id: int) -> LogGaps:
    """What is missing of the lines of the task's attempts. Raises NotFound for an unknown task."""
    attempts = await list_task_attempts(conn, await get_task(conn, task_id))
    return await _gaps(conn, [(one.worker_id, one.claimed_at, one.ended_at) for one in attempts])


async def _gaps(conn: _Conn, attempts: Sequence[tuple[str, datetime | None, datetime | None]]) -> LogGaps:
    workers, began, ended = ([one[place] for one in attempts] for place in range(3))
    values = {"workers": workers, "began": began, "ended": ended, "kept_since": await database_now(conn) - KEPT}
    row = await fetch_one(conn, _q.gaps, values)
    assert row is not None, "an aggregate gives a row"
    return LogGaps(**row)


async def prune(conn: _Conn, now: datetime) -> int:
    """Deletes what is not kept; returns how many lines."""
    expired = await conn.execute(_q.delete_expired, {"before": now - KEPT})
    surplus = await conn.execute(_q.delete_surplus, {"lines": LINES})
    return expired.rowcount + surplus.rowcount
