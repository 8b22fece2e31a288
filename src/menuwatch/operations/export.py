"""Whole tables for other programs: read as a stream, so that an export of any size takes the same memory.

The server writes each row as the format needs it (COPY), and rows are encoded some thousands at a time. An export is of one moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from psycopg import AsyncClientCursor, AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.exports.encoders import encoder, expression
from menuwatch.exports.packs import Packs
from menuwatch.exports.sheets import SHEETS, Column, Format, What
from menuwatch.exports.target import whole_file, whole_folder
from menuwatch.operations import packed

_q = sql.load(__package__, "export.sql")
_MOST_BYTES = 16_000_000
"""Of rows that are encoded at once, however many rows that is."""


class Cut(StrEnum):
    """What an export is cut into files by."""

    STATE = "state"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to export; None takes all. `since` (among it) and `until` (not among it) are of when a product was last changed, a
    snapshot or change was made, a state lasted. `states` are those the stores lie in."""

    what: What
    fmt: Format
    since: datetime | None = None
    until: datetime | None = None
    stores: Sequence[int] | None = None
    states: Sequence[str] | None = None
    platforms: Sequence[str] | None = None
    stateless: bool = False
    """Only stores that lie in no known state."""
    part_from: datetime | None = None
    part_until: datetime | None = None
    without: str | None = None
    """A column that is left out, because the name of the file says it."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the file, in order."""
        return tuple(column for column in SHEETS[self.what] if column.name != self.without)

    def values(self) -> dict[str, Any]:
        """The query's parameters."""
        names = ("since", "until", "stateless", "part_from", "part_until")
        values = {name: getattr(self, name) for name in names}
        for name in ("stores", "states", "platforms"):
            chosen = getattr(self, name)
            values[name] = None if chosen is None else list(chosen)
        return values


Told = Callable[[int, int], None]
"""Told how many rows and bytes more there are."""


def _silent(rows: int, size: int) -> None:
    pass


@asynccontextmanager
async def one_moment(
    conn: AsyncConnection[Any], wanted: Wanted, packs: Packs, *, most_seconds: float | None = None
) -> AsyncIterator[None]:
    """A transaction in which everything is read as it is now, months that are packed among it; with `most_seconds` no statement takes
    longer."""
    while True:
        async with AsyncExitStack() as room:
            files = await asyncio.to_thread(packs.files) if wanted.what is not What.PRODUCTS else None
            with_packs = bool(files)
            if with_packs:
                await room.enter_async_context(packed.laid_open(conn))
            await room.enter_async_context(conn.transaction())
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if most_seconds is not None:
                await conn.execute(
                    "SELECT set_config('statement_timeout', %s, true)", [f"{int(most_seconds * 1000)}ms"]
                )
            await conn.execute("SELECT FROM past_states LIMIT 1")  # from here on it is one moment
            if with_packs:
                await packed.read_in(conn, packs, since=wanted.since, stores=wanted.stores)
            elif files is not None and await asyncio.to_thread(packs.files) != files:
                continue  # the first month ever was packed just now
            yield
            return


def _copy(wanted: Wanted) -> str:
    inner = _q[wanted.what.value]
    columns = ", ".join(expression(column, wanted.fmt) for column in wanted.columns)
    rows = f"SELECT {columns} FROM ({inner}) x"  # noqa: S608  # names of our own
    if wanted.fmt is Format.JSONL:
        return f"COPY (SELECT row_to_json(r) FROM ({rows}) r) TO STDOUT"  # noqa: S608
    return f"COPY ({rows}) TO STDOUT (FORMAT csv)"


async def stream(conn: AsyncConnection[Any], wanted: Wanted, *, told: Told = _silent) -> AsyncIterator[bytes]:
    """The bytes of the file, as they become ready. The caller keeps `one_moment`."""
    file = await asyncio.to_thread(encoder, wanted.fmt, wanted.columns)
    if first := file.begin():
        told(0, len(first))
        yield first
    lines: list[bytes] = []
    size = 0

    async def encoded() -> bytes:
        nonlocal lines, size
        ready, lines, size = lines, [], 0
        made = file.lines(ready) if file.batch < 10_000 else await asyncio.to_thread(file.lines, ready)
        told(len(ready), len(made))
        return made

    # COPY takes no parameters: they are quoted into the statement on this side.
    async with AsyncClientCursor(conn) as cursor, cursor.copy(_copy(wanted), wanted.values()) as copy:
        # The server sends every row as a message of its own.
        async for line in copy:
            lines.append(bytes(line))
            size += len(line)
            if (len(lines) >= file.batch or size >= _MOST_BYTES) and (made := await encoded()):
                yield made
    if lines and (made := await encoded()):
        yield made
    last = await asyncio.to_thread(file.end)
    told(0, len(last))
    if last:
        yield last


async def write(conn: AsyncConnection[Any], wanted: Wanted, file: BinaryIO, *, told: Told = _silent) -> None:
    """All of it into a file that is open."""
    async for piece in stream(conn, wanted, told=told):
        await asyncio.to_thread(file.write, piece)


async def to_file(
    conn: AsyncConnection[Any],
    wanted: Wanted,
    final: Path,
    packs: Packs,
    *,
    overwrite: bool = False,
    told: Told = _silent,
) -> None:
    """One file. Raises Refused where it is there already, NotWritten where the disk fails."""
    with whole_file(final, overwrite=overwrite) as file:
        async with one_moment(conn, wanted, packs):
            await write(conn, wanted, file, told=told)


async def to_folder(
    conn: AsyncConnection[Any],
    wanted: Wanted,
    cut: Cut,
    final: Path,
    packs: Packs,
    *,
    overwrite: bool = False,
    told: Told = _silent,
) -> int:
    """A folder with a file for each state or month, named as Hive does (`state=AZ/part-0.parquet`); returns how many files.

    Raises as `to_file`.
    """
    if wanted.fmt is not Format.PARQUET:
        raise Refused(f"--partition {cut} makes a folder of Parquet files; --format {wanted.fmt} is one file")
    if cut is Cut.MONTH and wanted.what is What.PRODUCTS:
        raise Refused("--partition month: products are as they are now; cut them by state")
    with whole_folder(final, overwrite=overwrite) as folder:
        async with one_moment(conn, wanted, packs):
            parts = await _parts(conn, wanted, cut)
            for name, part in parts:
                with folder.file(f"{cut}={name}/part-0.parquet") as file:
                    await write(conn, part, file, told=told)
    return len(parts)


NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What readers of such folders take for null."""


async def _parts(conn: AsyncConnection[Any], wanted: Wanted, cut: Cut) -> list[tuple[str, Wanted]]:
    if cut is Cut.STATE:
        cursor = await conn.execute(_q.states_of_stores, {k: wanted.values()[k] for k in ("stores", "states")})
        return [
            (NO_VALUE, replace(wanted, stateless=True, without="state"))
            if state is None
            else (quote(state, safe=" "), replace(wanted, states=(state,), without="state"))
            for (state,) in await cursor.fetchall()
        ]
    cursor = await conn.execute(_q.months_of_crawls, {k: wanted.values()[k] for k in ("stores", "states", "until")})
    months = [row[0].astimezone(UTC) for row in await cursor.fetchall()]
    # A state that began before the span belongs to an earlier month than any other row of the span.
    first = None if wanted.since is None or wanted.what is What.STATES else wanted.since
    return [
        (f"{month:%Y-%m}", replace(wanted, part_from=month, part_until=_next(month)))
        for month in months
        if first is None or _next(month) > first
    ]


def _next(month: datetime) -> datetime:
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


async def unknown_stores(conn: AsyncConnection[Any], ids: Sequence[int]) -> list[int]:
    """Which of these stores do not exist."""
    cursor = await conn.execute(_q.known_stores, {"ids": list(ids)})
    return sorted(set(ids) - {row[0] for row in await cursor.fetchall()})
