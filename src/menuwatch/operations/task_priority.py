"""Another priority for a task that waits: what is urgent goes first, what can wait goes last."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import row
from menuwatch.operations.refusals import Conflict, Unusable
from menuwatch.operations.tasks import one
from menuwatch.operations.terms import PRIORITY_MAX, PRIORITY_MIN

_q = sql.load(__package__, "task_priority.sql")


async def set_priority(conn: AsyncConnection[Any], task_id: int, priority: int) -> int:
    """Gives a waiting task that priority, higher or lower; returns the one that it had.

    Raises NotFound, Unusable for a number out of range, and Conflict where it does not wait: then priority decides nothing any more.
    """
    if not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise Unusable("priority", f"a priority lies between {PRIORITY_MIN:,} and {PRIORITY_MAX:,}")
    try:
        async with conn.transaction():
            await conn.execute(_q.limit_waits)
            held = await row(conn, _q.hold_waiting, {"id": task_id})
            if held is None or held["state"] == "a":
                now = await one(conn, task_id)
                raise Conflict(f"task {task_id} is {now['status']}: only of one that waits the priority can be changed")
            await conn.execute(_q.set_priority, {"id": task_id, "priority": priority})
            if held["dispensary_id"] is not None:
                await conn.execute(_q.reorder, held)
    except LockNotAvailable:
        raise Conflict(f"task {task_id} is being claimed at this moment: look again") from None
    before = int(held["priority"])
    await audit.record(conn, "task_priority_changed", ("task", task_id), priority=[before, priority])
    return before
