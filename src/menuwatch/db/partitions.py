"""Dropping the old parts of a partitioned table while others write to it.

A part is marked, detached, and dropped, each step in a transaction of its own, because detaching without holding anybody up cannot be
part of one. Whoever comes next goes on where a crash stopped:

    attached ──mark──► marked ──detach──► detach pending ──(all who might still read it are done)──► a table apart ──► dropped
                                              └── cut off here: nobody sees its rows any more; FINALIZE ends it
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.db import sql as files

_q = files.load(__package__)
_Conn = AsyncConnection[Any]

MARK = "menuwatch: expired, to be dropped"
"""The comment of a part that is on its way out; a table that somebody detached to keep does not have it."""

FIRST_WITH_ANALYZE_ONLY = 180_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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
    """Drops the parts of `parent` that end at or before that time; returns the names of the tables that are gone.

    Needs a connection outside any transaction. Raises LockNotAvailable where somebody's open transaction is in the way for
    longer than the session's lock_timeout: nothing is lost by that, and the next call goes on from there.
    """
    for part in await parts(conn, parent):
        if part.pending:
            await _do(conn, "ALTER TABLE {} DETACH PARTITION {} FINALIZE", parent, part.name)
    gone = await _drop_condemned(conn)
    for part in await parts(conn, parent):
        if part.upper is None or part.upper > before:
            continue
        await _do(conn, f"COMMENT ON TABLE {{}} IS '{MARK}'", part.name)
        await _do(conn, "ALTER TABLE {} DETACH PARTITION {} CONCURRENTLY", parent, part.name)
        gone += await _drop_condemned(conn)
    return gone


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


async def _do(conn: _Conn, statement: str, *names: str) -> None:
    """`names` come from the catalogue, quoted already: they are put in as they are."""
    await conn.execute(statement.format(*names))


@asynccontextmanager
async def patience(conn: _Conn, *, lock_seconds: float, statement_seconds: float) -> AsyncIterator[None]:
    """For the length of the context this session waits no longer than that for a lock, and for any statement."""
    for name, seconds in (("lock_timeout", lock_seconds), ("statement_timeout", statement_seconds)):
        await conn.execute("SELECT set_config(%s, %s, false)", [name, f"{int(seconds * 1000)}ms"])
    try:
        yield
    finally:
        if not conn.closed:
            await conn.execute("RESET lock_timeout")
            await conn.execute("RESET statement_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An open transaction that keeps dead rows from being removed; `pid` is None where it is a prepared one."""

    pid: int | None
    state: str
    application: str
    seconds: float


async def horizon(conn: _Conn) -> list[Holder]:
    """Who holds the database's horizon back, the oldest first."""
    async with conn.cursor(row_factory=class_row(Holder)) as cursor:
        await cursor.execute(_q.horizon)
        return await cursor.fetchall()
