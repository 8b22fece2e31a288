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

SMALL = 16_000_000
"""Bytes of a table that is read as a whole, however busy the machine: some ten thousand tasks."""

SECONDS = 0.04
"""How long may be counted in larger ones for one page. A search that no index helps would read everything there is."""

_AT_WORK = (Status.CLAIMED, Status.RUNNING, Status.STALE)
_OVER = (Status.FAILED, Status.CANCELLED, Status.COMPLETED)


async def counts(conn: Connection, where: TaskFilter) -> dict[Status, int | None]:
    """How many there are of each state, MOST + 1 where there are more, None where that would take too long. The states that the filter
    names do not count. What workers have is few and always counted, and so is what small tables hold."""
    values = {**replace(where, statuses=None).values(), "most": MOST + 1}
    (size,) = await rows(conn, _q.sizes, {})
    found: dict[Status, int | None] = dict.fromkeys(_AT_WORK, 0)
    for one in await rows(conn, _q.count_at_work, values, prepare=False):
        found[Status(one["status"])] = one["n"]
    until = time.monotonic() + SECONDS
    waiting = await _counted(conn, _q.count_waiting, values, None if size["live"] <= SMALL else until)
    found[Status.PENDING] = waiting[0]["n"] if waiting else None
    for status in _OVER:
        of_one = {**values, "status": str(status)}
        over = await _counted(conn, _q.count_over, of_one, None if size["history"] <= SMALL else until)
        found[status] = over[0]["n"] if over else None
    return {status: found[status] for status in Status}


async def _counted(conn: Connection, query: Any, values: Mapping[str, Any], until: float | None) -> list[Row] | None:
    """What is counted, however long it takes where `until` is None; None where it is not known by then."""
    if until is None:
        return await rows(conn, query, values, prepare=False)
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
