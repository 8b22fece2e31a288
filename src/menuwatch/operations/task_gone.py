"""Tasks that are not there: whether they ever were."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import row

_q = sql.load(__package__, "task_gone.sql")


async def newest(conn: AsyncConnection[Any]) -> int:
    """The highest number that a task was given, 0 where there was none."""
    found = await row(conn, _q.newest_task, {})
    return int(found["id"]) if found else 0
