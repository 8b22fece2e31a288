"""Moves months of past states from the database to Parquet files, where the same functions read them.

A month is moved in one transaction, which reads the file back and deletes only rows that are equal in every value. A failure
leaves the month in the database; at worst a file remains that holds states a second time, which count once (`cold_storage`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import Any

import msgspec
import psycopg
from msgspec import Struct
from psycopg import AsyncClientCursor

from menuwatch.accounts import audit
from menuwatch.catalog import cold_storage
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import partitions, sql
from menuwatch.db.pool import Connection
from menuwatch.exports.encoders import Parquet, expression
from menuwatch.exports.tables import PACKED, Format
from menuwatch.storage.service import describe_failure

log = get_logger(__name__)
_q = sql.load(__package__, "packing.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
STATES_TABLE = "product_history"
_ROWS_IN_A_GROUP = 16_384
"""Rows per row group of a file: one product's states are in one or two groups."""
_LOCK_SECONDS = 2


class NotPacked(MenuwatchError):
    """A month could not be moved; it is unchanged in the database."""


class PackedMonth(Struct, frozen=True, kw_only=True):
    """Result for one month: number of states moved, the file, and whether its partition was dropped."""

    month: str
    states: int
    file: str | None
    dropped: bool


Progress = Callable[[str, int], None]
"""Called with the month in progress and the number of its states written."""


async def pack(
    conn: Connection,
    archived: ParquetPartitions,
    before: datetime,
    *,
    now: datetime,
    window: timedelta = timedelta(days=7),
    on_progress: Progress = lambda month, done: None,
) -> list[PackedMonth]:
    """Moves the states that ended in months before `before`, oldest month first. Months moved stay moved when a later month
    fails. `window` is the period that statistics are computed over, which needs the states in the database.

    Raises Refused for a time that is not the beginning of a month, not past or within the window; NotPacked if a file does not hold
    what was written.
    """
    before = before.astimezone(UTC)
    if before != before.replace(day=1, hour=0, minute=0, second=0, microsecond=0):
        raise Refused(f"{before:%Y-%m-%d %H:%M} UTC is not the start of a month")
    if before > now:
        raise Refused(f"{before:%Y-%m} is not over yet: only past months can be packed")
    kept = (now - window).astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if before > kept:
        raise Refused(
            f"--before {before:%Y-%m} is too late: analytics needs the last {window.days} days (ANALYTICS_WINDOW_DAYS, since "
            f"{now - window:%Y-%m-%d}) in the database. Latest possible value: --before {kept:%Y-%m}"
        )
    await audit.record(conn, "history_packed", before=before)
    return [
        await _pack_month(conn, archived, part.name, part.upper.astimezone(UTC), on_progress)
        for part in await partitions.parts(conn, STATES_TABLE)
        if part.upper is not None and part.upper <= before and not part.pending
    ]


async def _pack_month(
    conn: Connection, archived: ParquetPartitions, part: str, upper: datetime, on_progress: Progress
) -> PackedMonth:
    month = upper.replace(year=upper.year - (upper.month == 1), month=(upper.month - 2) % 12 + 1)
    span = {"month": month, "next_month": upper}
    label = f"{month:%Y-%m}"
    file = archived.new(month)
    committing = False
    try:
        async with _exclusively(conn), conn.transaction():
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            written = await _write(conn, archived, file, span, lambda count: on_progress(label, count))
            if written:
                await _check_and_delete(conn, archived, file, span, written)
            committing = True
    except BaseException:
        # If the connection is lost during COMMIT, the outcome is unknown: keep the file.
        if not committing:
            await asyncio.to_thread(archived.remove, file)
        raise
    dropped = await _drop_if_empty(conn, part)
    if written or dropped:
        log.info("history packed", action="history_packed", month=label, states=written, dropped=dropped)
    return PackedMonth(month=label, states=written, file=PurePosixPath(file).name if written else None, dropped=dropped)


@asynccontextmanager
async def _exclusively(conn: Connection) -> AsyncIterator[None]:
    """Locks out other packing and rebuilds of stores."""
    await conn.execute(_q.begin_packing)
    try:
        yield
    finally:
        if not conn.closed:
            await conn.execute(_q.end_packing)


async def _write(
    conn: Connection, archived: ParquetPartitions, path: str, span: dict[str, Any], on_progress: Callable[[int], None]
) -> int:
    """Writes the month's movable states into a file at `path`, if there are any; returns how many. Raises NotPacked if the storage
    fails."""
    columns = ", ".join(expression(column, Format.PARQUET) for column in PACKED)
    query = f"COPY (SELECT {columns} FROM ({_q.packable}) x) TO STDOUT (FORMAT csv)"  # noqa: S608  # names of our own
    encoder = await asyncio.to_thread(Parquet, PACKED)
    written = 0
    with _not_written(path), TemporaryFile() as out:
        lines: list[bytes] = []
        async with AsyncClientCursor(conn) as cursor, cursor.copy(query, span) as copy:
            async for line in copy:
                lines.append(bytes(line))
                if len(lines) == _ROWS_IN_A_GROUP:
                    out.write(await asyncio.to_thread(encoder.lines, lines))
                    written += len(lines)
                    lines = []
                    on_progress(written)
        if lines:
            out.write(await asyncio.to_thread(encoder.lines, lines))
            written += len(lines)
        out.write(encoder.end())
        if written:
            out.seek(0)
            await asyncio.to_thread(archived.add, path, out)
    on_progress(written)
    return written


@contextmanager
def _not_written(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotPacked(f"{path} could not be written: {describe_failure(error)}: nothing was moved") from error


async def _check_and_delete(
    conn: Connection, archived: ParquetPartitions, path: str, span: dict[str, Any], written: int
) -> None:
    await conn.execute(_q.create_packed)
    try:
        with await asyncio.to_thread(archived.open, path) as handle:
            batches = cold_storage.batches(handle)
            while batch := await asyncio.to_thread(next, batches, None):
                await conn.execute(_q.read_back, {"rows": _encode(batch).decode()})
    except (OSError, ValueError) as error:  # the errors that Arrow raises
        raise NotPacked(f"{path} cannot be read back: {error}: nothing was moved") from error
    await conn.execute("ANALYZE packed_states")
    await conn.execute(_q.keep_revisions)
    deleted = (await conn.execute(_q.delete_packed, span)).rowcount
    if deleted != written:
        raise NotPacked(f"{path} holds {written} states, of which {deleted} are as in the database: nothing was moved")


async def _drop_if_empty(conn: Connection, part: str) -> bool:
    """Drops an empty partition; if it is locked, the next run does it."""
    try:
        async with conn.transaction():
            await conn.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            # The name comes from the catalog, quoted already.
            await conn.execute(f"LOCK TABLE {STATES_TABLE} IN ACCESS EXCLUSIVE MODE")
            cursor = await conn.execute(f"SELECT EXISTS (SELECT FROM {part})")  # noqa: S608
            row = await cursor.fetchone()
            if row is None or row[0]:
                return False
            await conn.execute(f"DROP TABLE {part}")
    except psycopg.errors.LockNotAvailable:
        return False
    return True
