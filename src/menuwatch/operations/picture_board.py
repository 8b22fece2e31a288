"""Pictures at a glance: how many are stored, wanted and given up, why, and the newest ones. Bounded: exact where there are few,
estimated where there are hundreds of thousands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.images import store as images
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, rows

_q = sql.load(__package__, "picture_board.sql")

MOST_COUNTED = 10_000
"""Uses of a state, and failures, that are counted one by one."""
EXACT = 30_000
"""Stored pictures up to which their number and size are exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Who wants pictures, by what came of it: at most MOST_COUNTED + 1 each, `stored` all. `files` differ from each other and take
    `bytes`; `estimated` says that these two and `stored` are about right."""

    queued: int
    waiting: int
    failed: int
    stored: int
    files: int
    bytes: int
    estimated: bool
    overdue: int
    """Addresses that should have been asked by now."""


async def board(conn: Connection) -> Board:
    """The figures."""
    (found,) = await rows(conn, _q.board, {"most": MOST_COUNTED + 1, "exact": EXACT + 1})
    estimated = found["looked"] > EXACT or found["stored_looked"] > EXACT
    files = max(found["files_about"], found["looked"]) if found["looked"] > EXACT else found["looked"]
    return Board(
        queued=found["queued"],
        waiting=found["waiting"],
        failed=found["failed"],
        stored=max(found["uses_about"], found["stored_looked"])
        if found["stored_looked"] > EXACT
        else found["stored_looked"],
        files=files,
        bytes=round(found["bytes_looked"] / max(found["looked"], 1) * files),
        estimated=estimated,
        overdue=found["overdue"],
    )


async def reasons(conn: Connection, limit: int = 12) -> Sequence[Row]:
    """Why pictures were given up: `kind`, `n`, `example`, the most frequent first, of the newest MOST_COUNTED failures."""
    return await rows(conn, _q.reasons, {"most": MOST_COUNTED, "limit": limit})


async def failures(conn: Connection, *, before: int | None = None, limit: int = 20) -> list[Row]:
    """Who got no picture and why, newest first, those before the use `before`."""
    return await rows(conn, _q.failures, {"before": before, "limit": limit})


async def newest(conn: Connection, limit: int = 24) -> list[Row]:
    """Pictures that were asked for last and are there."""
    return await rows(conn, _q.newest, {"limit": limit})


async def retry_failed(conn: Connection) -> int:
    """Asks anew for everything that was given up; returns how many wait again."""
    again = await images.try_failed(conn)
    await audit.record(conn, "images_retried", retried=again)
    return again
