"""What has changed lately, by topic, for whoever shows it: a mark per topic that differs when something of that kind was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql

_q = sql.load(__package__, "live.sql")

TOPICS = frozenset({
    "tasks", "workers", "schedules", "payloads", "stores", "products", "proxies", "hosts", "images", "alerts", "visitors", "accounts",
    "crawls",
})  # fmt: skip
"""What one can listen for."""


async def marks(conn: AsyncConnection[Any]) -> Mapping[str, str]:
    """The mark of every topic."""
    async with conn.cursor() as cur:
        await cur.execute(_q.live_marks)
        return dict(await cur.fetchall())
