"""Reads rows of `hosts`, and changes them as an operator does."""

from __future__ import annotations

from types import SimpleNamespace

from psycopg.rows import dict_row

from menuwatch.config.settings import Settings
from menuwatch.db.pool import Connection
from menuwatch.hosts import service

COLUMNS = "SELECT *, jsonb_array_length(blocked_identities) AS blocked_identities FROM hosts WHERE host = %s"


async def read_host(conn: Connection, host: str) -> SimpleNamespace:
    """The columns of a host that has a row; `blocked_identities` is their number."""
    async with conn.cursor(row_factory=dict_row) as cur:
        row = await (await cur.execute(COLUMNS, [host])).fetchone()
    assert row is not None
    return SimpleNamespace(**row)


async def change_limits(conn: Connection, host: str, **limits: float) -> None:
    """As an operator."""
    await service.change(conn, host, Settings(), **limits)


async def pause(conn: Connection, host: str, reason: str | None = None) -> None:
    """As an operator."""
    await service.pause(conn, host, Settings(), reason)
