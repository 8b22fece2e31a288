"""The log of a task or worker as a section of its page: a page of lines, oldest first, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from fastapi import Request

from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.web import paging
from menuwatch.workers import logs
from menuwatch.workers.logs import Level, LogGaps, LogLine

SHOWN = 200
"""Most lines of a page."""
_CURSOR = "log"


async def task_log(request: Request, conn: Connection, task_id: int) -> dict[str, Any]:
    """Template context with the section of a task's page; `log` in the address leads to older lines."""
    before = screen.parse_cursor(request, request.query_params.get(_CURSOR), tuple[datetime, str, int])
    level = _level(request)
    lines = await logs.list_task_lines(conn, task_id, level=level, before=before, limit=SHOWN + 1)
    return _section(request, lines, await logs.task_gaps(conn, task_id), logs.task_key)


async def worker_log(request: Request, conn: Connection, worker_id: str) -> dict[str, Any]:
    """Template context with the section of a worker's page; `log` in the address leads to older lines."""
    after = screen.parse_cursor(request, request.query_params.get(_CURSOR), tuple[int])
    level = _level(request)
    lines = await logs.list_worker_lines(
        conn, worker_id, level=level, before=after[0] if after else None, limit=SHOWN + 1
    )
    return _section(request, lines, await logs.worker_gaps(conn, worker_id), lambda line: (line.seq,))


def _level(request: Request) -> Level:
    return "warning" if request.query_params.get("level") == "warning" else "info"


def _section(
    request: Request, lines: Sequence[LogLine], gaps: LogGaps, key: Callable[[LogLine], tuple[Any, ...]]
) -> dict[str, Any]:
    shown = lines[:SHOWN]
    older = paging.encode(*key(shown[-1])) if len(lines) > SHOWN else None
    paged = request.query_params.get(_CURSOR) and not getattr(request.state, "lost_place", False)
    return {
        "log": [(line, *logs.split_details(line)) for line in reversed(shown)],
        "log_gaps": gaps,
        "log_level": _level(request),
        "log_levels": [
            (name, level, screen.query(request, log=None, level=level if level == "warning" else None))
            for name, level in (("All", "info"), ("Warnings and errors", "warning"))
        ],
        "log_older_href": screen.query(request, log=older) if older else None,
        "log_newest_href": screen.query(request, log=None) if paged else None,
    }
