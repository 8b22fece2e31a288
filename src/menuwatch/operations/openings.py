"""Whether work that goes out to platforms can be begun at all just now. Asked by workers before they claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.hosts import store as hosts
from menuwatch.hosts.rules import all_closed
from menuwatch.platforms.base import Platform
from menuwatch.proxies import store as proxies

_q = sql.load(__package__, "openings.sql")


async def closed(conn: AsyncConnection[Any], platforms: Mapping[str, Platform]) -> tuple[str, float | None] | None:
    """Why nobody can be asked now, and in how many seconds to look again where that is a matter of moments; None where somebody can.

    Only platforms that there is work for count: one that nobody uses is always open.
    """
    if not await proxies.active_count(conn):
        return "no proxy is active", None
    rows = await (await conn.execute(_q.platforms_in_use, {"platforms": sorted(platforms)})).fetchall()
    asked = frozenset().union(*(platforms[name].hosts for (name,) in rows))
    return all_closed(asked, await hosts.outlook(conn, asked)) if asked else None
