"""How many tasks of each state a search finds, as far as that is known soon: what the tabs of a list say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from psycopg.errors import QueryCanceled

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.tasks import TaskFilter
from menuwatch.tasks.model import Status

_q = sql.load(__package__, "task_tabs.sql")

MOST = 10_000
"""Up to here it is counted; one more stands for all that are beyond."""

SECONDS = 0.06
"""How long may be counted for one page. A search that no index helps would read everything there is."""

_AT_WORK = (Status.CLAIMED, Status.RUNNING, Status.STALE)
_OVER = (Status.FAILED, Status.CANCELLED, Status.COMPLETED)


async def counts(conn: Connection, where: TaskFilter) -> dict[Status, int | None]:
    """How many there are of each state, MOST + 1 where there are more, None where that would take too long. The states that the filter
    names do not count."""
    values = {**replace(where, statuses=None).values(), "most": MOST + 1}
    until = time.monotonic() + SECONDS
    at_work = await _counted(conn, _q.count_at_work, values, until)
    found: dict[Status, int | None] = dict.fromkeys(_AT_WORK, None if at_work is None else 0)
    found |= {Status(one["status"]): one["n"] for one in at_work or ()}
    waiting = await _counted(conn, _q.count_waiting, values, until)
    found[Status.PENDING] = waiting[0]["n"] if waiting else None
    for status in _OVER:
        over = await _counted(conn, _q.count_over, {**values, "status": str(status)}, until)
        found[status] = over[0]["n"] if over else None
    return {status: found[status] for status in Status}


async def _counted(conn: Connection, query: Any, values: Mapping[str, Any], until: float) -> list[Row] | None:
    left = round((until - time.monotonic()) * 1000)
    if left < 1:
        return None
    try:
        async with conn.transaction():
            await conn.execute(_q.limit_time, {"ms": left})
            return await rows(conn, query, values, prepare=False)
    except QueryCanceled:
        return None


async def store_names(conn: Connection, ids: Iterable[int | None]) -> dict[int, Row]:
    """`name`, `slug` and `state` of stores, by their number; those that are gone are missing."""
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    return {one["id"]: one for one in await rows(conn, _q.stores_named, {"ids": wanted})}


async def worker_names(conn: Connection, ids: Iterable[str | None]) -> dict[str, str]:
    """What workers are called, by their id; those that the registry has forgotten are missing."""
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    return {one["worker_id"]: one["friendly_name"] for one in await rows(conn, _q.workers_named, {"ids": wanted})}
