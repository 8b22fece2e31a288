"""Connections: how every part of Menuwatch opens them."""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from menuwatch.db.address import with_settings

Connection = AsyncConnection[TupleRow]
Pool = AsyncConnectionPool[AsyncConnection[TupleRow]]

_RECONNECT_SECONDS = 10.0
"""The pool tries a lost connection again after 1, 2, 4 … seconds, and makes no other meanwhile. Once it gives up, the next request
tries at once: without a limit a server that was away for minutes would be found up again only minutes later."""


async def _check(conn: Connection) -> None:
    """Detects connections that died while idle in the pool (server restart), before they are handed out.

    A server that shuts down sends a message, and nothing else is sent to an idle connection: the round trip is made only when there
    is data to read."""
    if conn.closed or _has_something_to_read(conn):
        await AsyncConnectionPool.check_connection(conn)


def _has_something_to_read(conn: Connection) -> bool:
    look = select.poll()
    look.register(conn.pgconn.socket, select.POLLIN)
    return bool(look.poll(0))


class _Pool(AsyncConnectionPool[AsyncConnection[TupleRow]]):
    async def putconn(self, conn: Connection) -> None:
        """Goes on when the task that returns the connection is cancelled meanwhile: while psycopg_pool 3.3 hands the connection to a
        waiting client, a cancellation loses both, and the client waits for its timeout."""
        await asyncio.shield(super().putconn(conn))


@asynccontextmanager
async def open_pool(url: str, *, max_size: int = 10, name: str = "menuwatch") -> AsyncIterator[Pool]:
    """A pool of autocommit connections; use `conn.transaction()` for more than one statement."""
    pool: Pool = _Pool(
        with_settings(url),
        kwargs={"autocommit": True, "application_name": name},
        min_size=1,
        max_size=max_size,
        open=False,
        check=_check,
        reconnect_timeout=_RECONNECT_SECONDS,
        name=name,
    )
    # Closed even if its opening is cancelled: a worker of the pool that is connecting may swallow a cancellation, and the event loop
    # would wait for it forever.
    try:
        task = asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        await pool.open(wait=True, timeout=30)
        # Python before 3.12: asyncio.wait_for swallows a cancellation that comes in the moment when the pool is ready.
        if task and task.cancelling() > cancelled:
            raise asyncio.CancelledError
        yield pool
    finally:
        await pool.close()


async def connect(url: str, *, name: str = "menuwatch") -> Connection:
    """One connection outside any pool, for LISTEN and for one-shot commands."""
    return await AsyncConnection.connect(with_settings(url), autocommit=True, application_name=name)


def gone(error: psycopg.OperationalError) -> bool:
    """Whether the database is unreachable, rather than this one transaction in conflict (deadlock, lock timeout, serialization)."""
    state = error.sqlstate
    return state is None or state[:2] in {"08", "53", "58"} or state in {"57P01", "57P02", "57P03"}
