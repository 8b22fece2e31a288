"""What ended last: the newest completed and failed tasks, for a first screen."""

from __future__ import annotations

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import Row, rows

_q = sql.load(__package__, "lately.sql")


async def ended(conn: Connection, *, limit: int = 8) -> list[Row]:
    """The tasks of the last day that ended last, newest first, with their stores and workers by name."""
    return await rows(conn, _q.ended_lately, {"limit": limit})
