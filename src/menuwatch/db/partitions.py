"""Drops expired partitions of a table while other transactions write to it.

A partition is marked, detached and dropped, each step in its own transaction, because DETACH CONCURRENTLY cannot run inside one.
After a crash the next call continues where the last one stopped:

    attached ──mark──► marked ──detach──► detach pending ──(all possible readers are done)──► separate table ──► dropped
                                              └── interrupted here: its rows are invisible; FINALIZE completes it
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import class_row

from menuwatch.db import sql as files

_q = files.load(__package__)
_Conn = AsyncConnection[Any]

MARK = "menuwatch: expired, to be dropped"
"""Table comment of a partition that is being removed; a table that an operator detached to keep does not have it."""

FIRST_WITH_ANALYZE_ONLY = 180_000


class Part(Struct, frozen=True, kw_only=True):
    """One partition: its name, quoted as needed; the end of its range; whether detaching it was begun."""

    name: str
    pending: bool
    upper: datetime | None


async def parts(conn: _Conn, parent: str) -> list[Part]:
    """The partitions of `parent`, the oldest first."""
    async with conn.cursor(row_factory=class_row(Part)) as cursor:
        await cursor.execute(_q.partitions, {"parent": parent})
        return await cursor.fetchall()


async def drop_expired(conn: _Conn, parent: str, before: datetime) -> list[str]:
    """Drops the partitions of `parent` that end at or before `before`; returns the names of the dropped tables.

    Drops none unless a newer partition holds a row: otherwise either nothing was written for that long, or `before` is wrong. Needs
    a connection outside any transaction. Raises LockNotAvailable when an open transaction blocks it for longer than the session's
    lock_timeout: nothing is lost, and the next call continues from there."""
    for part in await parts(conn, parent):
        if part.pending:
            await _do(conn, "ALTER TABLE {} DETACH PARTITION {} FINALIZE", parent, part.name)
    gone = await _drop_condemned(conn)
    there = await parts(conn, parent)
    expired = [part for part in there if part.upper is not None and part.upper <= before]
    if not expired or not await _any_row(conn, [part for part in there if part not in expired]):
        return gone
    for part in expired:
        await _do(conn, f"COMMENT ON TABLE {{}} IS '{MARK}'", part.name)
        await _do(conn, "ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY", parent, part.name)
        gone += await _drop_condemned(conn)
    return gone


async def _any_row(conn: _Conn, found: Sequence[Part]) -> bool:
    for part in reversed(found):
        if await (await _do(conn, "SELECT 1 FROM {} LIMIT 1", part.name)).fetchone() is not None:
            return True
    return False


async def _drop_condemned(conn: _Conn) -> list[str]:
    names = [row[0] for row in await (await conn.execute(_q.condemned, {"mark": MARK})).fetchall()]
    for name in names:
        await _do(conn, "DROP TABLE {}", name)
    return names


async def analyze_parents(conn: _Conn) -> list[str]:
    """Renews the statistics of whole partitioned tables, which autovacuum looks after part by part only; returns their names."""
    names = [row[0] for row in await (await conn.execute(_q.partitioned_tables)).fetchall()]
    only = "ONLY " if conn.info.server_version >= FIRST_WITH_ANALYZE_ONLY else ""
    for name in names:
        await _do(conn, f"ANALYZE {only}{{}}", name)
    return names


async def _do(conn: _Conn, statement: str, *names: str) -> AsyncCursor[Any]:
    """`names` come from the catalog, quoted already: they are put in as they are."""
    return await conn.execute(statement.format(*names))


@asynccontextmanager
async def patience(conn: _Conn, *, lock_seconds: float, statement_seconds: float) -> AsyncIterator[None]:
    """Limits this session's lock waits and statement times within the context."""
    for name, seconds in (("lock_timeout", lock_seconds), ("statement_timeout", statement_seconds)):
        await conn.execute("SELECT set_config(%s, %s, false)", [name, f"{int(seconds * 1000)}ms"])
    try:
        yield
    finally:
        if not conn.closed:
            await conn.execute("RESET lock_timeout")
            await conn.execute("RESET statement_timeout")


class Holder(Struct, frozen=True, kw_only=True):
    """An open transaction that holds back vacuum; `pid` is None for a prepared one."""

    pid: int | None
    state: str
    application: str
    seconds: float


async def horizon(conn: _Conn) -> list[Holder]:
    """Transactions that hold back the xmin horizon, oldest first."""
    async with conn.cursor(row_factory=class_row(Holder)) as cursor:
        await cursor.execute(_q.horizon)
        return await cursor.fetchall()
