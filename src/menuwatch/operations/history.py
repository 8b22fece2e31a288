"""History that grows cold: months of past states moved from the database to Parquet files, where the same calls find them.

A month is moved in one transaction, which reads the file back and deletes what is equal in every value. Whatever breaks leaves the
month in the database; at worst a file is left that holds states a second time, which count once (`exports.packs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncClientCursor, AsyncConnection

from menuwatch.analytics.model import WINDOW
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import partitions, sql
from menuwatch.exports import packs as files
from menuwatch.exports.encoders import Parquet, expression
from menuwatch.exports.packs import Packs
from menuwatch.exports.sheets import PACKED, Format
from menuwatch.exports.target import whole_file
from menuwatch.operations import audit, packed
from menuwatch.operations.reading import Row, row, rows

log = get_logger(__name__)
_q = sql.load(__package__, "history.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
STATES = "past_states"
_ROWS_IN_A_GROUP = 16_384
"""Of a file: one product's states are found by reading one or two groups."""
_LOCK_SECONDS = 2


class NotPacked(MenuwatchError):
    """A month that could not be moved; it is in the database as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One month that was looked at: how many states were moved to which file, and whether its partition is gone."""

    month: str
    states: int
    file: str | None
    dropped: bool


Told = Callable[[str, int], None]
"""Told the month that is under way and how many of its states are written."""


async def pack(
    conn: AsyncConnection[Any],
    packs: Packs,
    before: datetime,
    *,
    now: datetime,
    window: timedelta = WINDOW,
    told: Told = lambda month, done: None,
) -> list[Packed]:
    """Moves the states that ended in months before `before`, the oldest month first. What is moved stays moved when a later
    month fails. `window` is what figures look back on: they are made of what is in the database.

    Raises Refused for a time that is not the beginning of a month, not past or within the window, NotPacked where a file does not
    hold what it should.
    """
    before = before.astimezone(UTC)
    if before != before.replace(day=1, hour=0, minute=0, second=0, microsecond=0):
        raise Refused(f"{before:%Y-%m-%d %H:%M} UTC is not the beginning of a month")
    if before > now:
        raise Refused(f"{before:%Y-%m} is still to come or under way: what is packed must be over")
    kept = (now - window).astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if before > kept:
        raise Refused(
            f"--before {before:%Y-%m} is too late: figures look back on {window.days} days (ANALYTICS_WINDOW_DAYS), to "
            f"{now - window:%Y-%m-%d}, and need the states of that time in the database. The latest month that may be packed is "
            f"{kept - timedelta(days=1):%Y-%m}: --before {kept:%Y-%m}"
        )
    await audit.record(conn, "history_packed", before=before)
    return [
        await _pack_month(conn, packs, part.name, part.upper.astimezone(UTC), told)
        for part in await partitions.parts(conn, STATES)
        if part.upper is not None and part.upper <= before and not part.pending
    ]


async def _pack_month(conn: AsyncConnection[Any], packs: Packs, part: str, upper: datetime, told: Told) -> Packed:
    month = upper.replace(year=upper.year - (upper.month == 1), month=(upper.month - 2) % 12 + 1)
    span = {"month": month, "next_month": upper}
    label = f"{month:%Y-%m}"
    file = packs.new(month)
    committing = False
    try:
        async with _alone(conn), conn.transaction():
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            written = await _write(conn, file, span, lambda count: told(label, count))
            if written:
                await _check_and_delete(conn, file, span, written)
            committing = True
    except BaseException:
        # Where the connection goes during COMMIT nobody knows whether the states are still there: then the file stays.
        if not committing:
            packs.remove(file)
        raise
    if not written:
        packs.remove(file)
    dropped = await _drop_if_empty(conn, part)
    if written or dropped:
        log.info("history packed", action="history_packed", month=label, states=written, dropped=dropped)
    return Packed(month=label, states=written, file=file.name if written else None, dropped=dropped)


@asynccontextmanager
async def _alone(conn: AsyncConnection[Any]) -> AsyncIterator[None]:
    """While nothing else is packed, and no store is rebuilt."""
    await conn.execute(_q.begin_packing)
    try:
        yield
    finally:
        if not conn.closed:
            await conn.execute(_q.end_packing)


async def _write(conn: AsyncConnection[Any], file: Path, span: dict[str, Any], told: Callable[[int], None]) -> int:
    """The month's states that can be moved, into the file; returns how many."""
    columns = ", ".join(expression(column, Format.PARQUET) for column in PACKED)
    query = f"COPY (SELECT {columns} FROM ({_q.packable}) x) TO STDOUT (FORMAT csv)"  # noqa: S608  # names of our own
    encoder = await asyncio.to_thread(Parquet, PACKED)
    written = 0
    with whole_file(file) as out:
        lines: list[bytes] = []
        async with AsyncClientCursor(conn) as cursor, cursor.copy(query, span) as copy:
            async for line in copy:
                lines.append(bytes(line))
                if len(lines) == _ROWS_IN_A_GROUP:
                    out.write(await asyncio.to_thread(encoder.lines, lines))
                    written += len(lines)
                    lines = []
                    told(written)
        if lines:
            out.write(await asyncio.to_thread(encoder.lines, lines))
            written += len(lines)
        out.write(encoder.end())
    told(written)
    return written


async def _check_and_delete(conn: AsyncConnection[Any], file: Path, span: dict[str, Any], written: int) -> None:
    await conn.execute(_q.create_packed)
    batches = files.batches(file)
    try:
        while batch := await asyncio.to_thread(next, batches, None):
            await conn.execute(_q.read_back, {"rows": _encode(batch).decode()})
    except (OSError, ValueError) as error:  # what Arrow's errors are
        raise NotPacked(f"{file.name} cannot be read back: {error}: nothing was moved") from error
    await conn.execute("ANALYZE packed_states")
    deleted = (await conn.execute(_q.delete_packed, span)).rowcount
    if deleted != written:
        raise NotPacked(
            f"{file.name} holds {written} states, of which {deleted} are as in the database: nothing was moved"
        )


async def _drop_if_empty(conn: AsyncConnection[Any], part: str) -> bool:
    """Drops a partition that holds nothing. Where somebody is in the way it is left to the next time."""
    try:
        async with conn.transaction():
            await conn.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            # The name comes from the catalogue, quoted already.
            await conn.execute(f"LOCK TABLE {STATES} IN ACCESS EXCLUSIVE MODE")
            cursor = await conn.execute(f"SELECT EXISTS (SELECT FROM {part})")  # noqa: S608
            row = await cursor.fetchone()
            if row is None or row[0]:
                return False
            await conn.execute(f"DROP TABLE {part}")
    except psycopg.errors.LockNotAvailable:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuAt:
    """A store's menu at an instant: the newest crawl there was then (None before the first), and what it saw, by name."""

    crawl: Row | None
    items: list[Row]


async def menu_at(
    conn: AsyncConnection[Any], dispensary_id: int, instant: datetime, *, packs: Packs | None = None
) -> MenuAt:
    """What a store offered at an instant, also out of `packs`. Names and brands are those of today."""
    crawl = await row(conn, _q.crawl_at, {"dispensary_id": dispensary_id, "instant": instant})
    if crawl is None:
        return MenuAt(crawl=None, items=[])
    return MenuAt(crawl=crawl, items=await store_at(conn, dispensary_id, crawl["crawled_at"], packs=packs))


async def store_at(
    conn: AsyncConnection[Any], dispensary_id: int, instant: datetime, *, packs: Packs | None = None
) -> list[Row]:
    """The items of `menu_at`."""

    async def ask(packed_states: str) -> list[Row]:
        values = {"dispensary_id": dispensary_id, "instant": instant, "packed": packed_states}
        return await rows(conn, _q.store_at, values)

    return await packed.beside(packs, lambda files: files.states_of_store(dispensary_id, instant), ask)
