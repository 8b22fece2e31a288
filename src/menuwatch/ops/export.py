"""Whole tables for other programs: read as a stream, so that an export of any size takes the same memory.

The server writes each row as the format needs it (COPY), and rows are encoded some thousands at a time. An export is of one moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from msgspec import Struct
from psycopg import AsyncClientCursor, AsyncConnection

from menuwatch.catalog import changes, cold_storage, match_changes
from menuwatch.catalog import service as products
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.service import ProductFilter
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.exports.atomic_files import atomic_file, atomic_folder
from menuwatch.exports.encoders import encoder, expression
from menuwatch.exports.tables import MATCHING, TABLES, Column, ExportTable, Format

_q = sql.load(__package__, "export.sql")
_MOST_BYTES = 16_000_000
"""Of rows that are encoded at once, however many rows that is."""


class PartitionBy(StrEnum):
    """What an export is cut into files by."""

    STATE = "state"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What to export; None takes all. `since` (among it) and `until` (not among it) are of when a product was last changed, a
    snapshot or change was made, a state lasted. `states` are those the stores lie in."""

    what: ExportTable
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
    """Column to leave out because the file name holds its value."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the file, in order."""
        return tuple(column for column in TABLES[self.what] if column.name != self.without)

    def values(self) -> dict[str, Any]:
        """The query's parameters."""
        names = ("since", "until", "stateless", "part_from", "part_until")
        values = {name: getattr(self, name) for name in names}
        for name in ("stores", "states", "platforms"):
            chosen = getattr(self, name)
            values[name] = None if chosen is None else list(chosen)
        return values


class RowExport(Struct, frozen=True, kw_only=True):
    """The rows of a list with its filters: a statement with the columns in any order, and its parameters."""

    columns: tuple[Column, ...]
    statement: str
    parameters: Mapping[str, Any]
    fmt: Format

    def values(self) -> Mapping[str, Any]:
        """The query's parameters."""
        return self.parameters


def products_of(where: ProductFilter, fmt: Format) -> RowExport:
    """The products of a list, as `ExportTable.PRODUCTS` has them."""
    everything = ExportRequest(what=ExportTable.PRODUCTS, fmt=fmt)
    keys, values = products.select_keys(where)
    statement = f"SELECT e.* FROM ({_q.products}) e WHERE e.product_id IN (SELECT k.id FROM ({keys}) k)"  # noqa: S608
    return RowExport(
        columns=everything.columns, statement=statement, parameters={**everything.values(), **values}, fmt=fmt
    )


def changes_of(where: ChangeFilter, fmt: Format, *, newest_first: bool = False, limit: int | None = None) -> RowExport:
    """The changes of a list whose filter is resolved (`changes.resolve`), as `ExportTable.CHANGES` has them; of merged and split
    products as `ExportTable.MATCH_EVENTS` has those. Without a kind, changes of listings alone: a file has one kind of row. A `limit`
    takes the newest ones."""
    if where.kind in changes.MATCHING:
        return _match_events_of(where, fmt, newest_first=newest_first, limit=limit)
    everything = ExportRequest(what=ExportTable.CHANGES, fmt=fmt)
    keys, values = changes.select_keys(where, limit)
    order = " ORDER BY e.changed_at DESC, e.product_id DESC" if newest_first else ""
    match = "k.product_id = e.product_id AND k.changed_at = e.changed_at"
    statement = f"SELECT e.* FROM ({_q.changes}) e JOIN ({keys}) k ON {match}{order}"  # noqa: S608
    return RowExport(
        columns=everything.columns, statement=statement, parameters={**everything.values(), **values}, fmt=fmt
    )


def _match_events_of(where: ChangeFilter, fmt: Format, *, newest_first: bool, limit: int | None) -> RowExport:
    everything = ExportRequest(what=ExportTable.MATCH_EVENTS, fmt=fmt)
    keys, values = match_changes.select_keys(where.values(), limit)
    some = "true" if where.with_matching else "false"
    order = " ORDER BY e.at DESC, e.id" if newest_first else ""
    statement = (
        f"SELECT e.* FROM ({_q.match_events}) e WHERE {some} AND -e.id IN (SELECT k.product_id FROM ({keys}) k){order}"  # noqa: S608
    )
    return RowExport(
        columns=everything.columns, statement=statement, parameters={**everything.values(), **values}, fmt=fmt
    )


_WITH_PACKS = (ExportTable.SNAPSHOTS, ExportTable.STATES, ExportTable.CHANGES)
"""Tables of the history, months that are packed among it."""
_CURRENT = (ExportTable.PRODUCTS, ExportTable.OFFERS, ExportTable.STORES)
"""Tables of what is now, which belongs to no month."""
_SPANS = (ExportTable.STATES, ExportTable.DETAILS)
"""Tables whose rows are periods: one may have begun before the span of an export."""
Progress = Callable[[int, int], None]
"""Progress how many rows and bytes more there are."""


def _silent(rows: int, size: int) -> None:
    pass


@asynccontextmanager
async def read_snapshot(
    conn: AsyncConnection[Any],
    request: ExportRequest | RowExport,
    archived: ParquetPartitions,
    *,
    max_seconds: float | None = None,
) -> AsyncIterator[None]:
    """A transaction in which everything is read as it is now, months that are packed among it; with `max_seconds` no statement takes
    longer."""
    while True:
        async with AsyncExitStack() as room:
            packed = isinstance(request, ExportRequest) and request.what in _WITH_PACKS
            files = await asyncio.to_thread(archived.files) if packed else None
            with_packs = bool(files)
            if with_packs:
                await room.enter_async_context(cold_storage.archived_views(conn))
            await room.enter_async_context(conn.transaction())
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if max_seconds is not None:
                await conn.execute("SELECT set_config('statement_timeout', %s, true)", [f"{int(max_seconds * 1000)}ms"])
            await conn.execute("SELECT FROM product_history LIMIT 1")  # from here on it is one moment
            if with_packs and isinstance(request, ExportRequest):
                await cold_storage.load_archived(conn, archived, since=request.since, stores=request.stores)
            elif files is not None and await asyncio.to_thread(archived.files) != files:
                continue  # the first month ever was packed just now
            yield
            return


def _copy(request: ExportRequest | RowExport, *, packed: bool) -> str:
    inner = str(_q[request.what.value.replace("-", "_")]) if isinstance(request, ExportRequest) else request.statement
    if packed:  # the views that `read_snapshot` made of the same names
        inner = inner.replace("FROM analyst.", "FROM pg_temp.")
    columns = ", ".join(expression(column, request.fmt) for column in request.columns)
    rows = f"SELECT {columns} FROM ({inner}) x"  # noqa: S608  # names of our own
    if request.fmt is Format.JSONL:
        return f"COPY (SELECT row_to_json(r) FROM ({rows}) r) TO STDOUT"  # noqa: S608
    return f"COPY ({rows}) TO STDOUT (FORMAT csv)"


async def stream(
    conn: AsyncConnection[Any], request: ExportRequest | RowExport, *, on_progress: Progress = _silent
) -> AsyncIterator[bytes]:
    """The bytes of the file, as they become ready. The caller keeps `read_snapshot`."""
    file = await asyncio.to_thread(encoder, request.fmt, request.columns)
    if first := file.begin():
        on_progress(0, len(first))
        yield first
    lines: list[bytes] = []
    size = 0

    async def encoded() -> bytes:
        nonlocal lines, size
        ready, lines, size = lines, [], 0
        made = file.lines(ready) if file.batch < 10_000 else await asyncio.to_thread(file.lines, ready)
        on_progress(len(ready), len(made))
        return made

    statement = _copy(request, packed=await cold_storage.has_archived_views(conn))
    # COPY takes no parameters: they are quoted into the statement on this side.
    async with AsyncClientCursor(conn) as cursor, cursor.copy(statement, request.values()) as copy:
        # The server sends every row as a message of its own.
        async for line in copy:
            lines.append(bytes(line))
            size += len(line)
            if (len(lines) >= file.batch or size >= _MOST_BYTES) and (made := await encoded()):
                yield made
    if lines and (made := await encoded()):
        yield made
    last = await asyncio.to_thread(file.end)
    on_progress(0, len(last))
    if last:
        yield last


async def write(
    conn: AsyncConnection[Any], request: ExportRequest | RowExport, file: BinaryIO, *, on_progress: Progress = _silent
) -> None:
    """All of it into a file that is open."""
    async for piece in stream(conn, request, on_progress=on_progress):
        await asyncio.to_thread(file.write, piece)


async def to_file(
    conn: AsyncConnection[Any],
    request: ExportRequest,
    final: Path,
    archived: ParquetPartitions,
    *,
    overwrite: bool = False,
    on_progress: Progress = _silent,
) -> None:
    """One file. Raises Refused where it is there already, NotWritten where the disk fails."""
    with atomic_file(final, overwrite=overwrite) as file:
        async with read_snapshot(conn, request, archived):
            await write(conn, request, file, on_progress=on_progress)


async def to_folder(
    conn: AsyncConnection[Any],
    request: ExportRequest,
    by: PartitionBy,
    final: Path,
    archived: ParquetPartitions,
    *,
    overwrite: bool = False,
    on_progress: Progress = _silent,
) -> int:
    """A folder with a file for each state or month, named as Hive does (`state=AZ/part-0.parquet`); returns how many files.

    Raises as `to_file`.
    """
    if request.fmt is not Format.PARQUET:
        raise Refused(f"--partition {by} writes Parquet files: omit --format {request.fmt}")
    if request.what in MATCHING:
        raise Refused(
            f"--partition is not possible for {request.what.replace('-', ' ')}: they belong to no state or month; omit it"
        )
    if by is PartitionBy.MONTH and request.what in _CURRENT:
        raise Refused(f"--partition month is not possible for {request.what}: use --partition state")
    with atomic_folder(final, overwrite=overwrite) as folder:
        async with read_snapshot(conn, request, archived):
            parts = await _parts(conn, request, by)
            for name, part in parts:
                with folder.file(f"{by}={name}/part-0.parquet") as file:
                    await write(conn, part, file, on_progress=on_progress)
    return len(parts)


NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What readers of such folders take for null."""


async def _parts(
    conn: AsyncConnection[Any], request: ExportRequest, by: PartitionBy
) -> list[tuple[str, ExportRequest]]:
    if by is PartitionBy.STATE:
        cursor = await conn.execute(_q.states_of_stores, {k: request.values()[k] for k in ("stores", "states")})
        return [
            (NO_VALUE, replace(request, stateless=True, without="state"))
            if state is None
            else (quote(state, safe=" "), replace(request, states=(state,), without="state"))
            for (state,) in await cursor.fetchall()
        ]
    cursor = await conn.execute(_q.months_of_crawls, {k: request.values()[k] for k in ("stores", "states", "until")})
    months = [row[0].astimezone(UTC) for row in await cursor.fetchall()]
    # A state that began before the span belongs to an earlier month than any other row of the span.
    first = None if request.since is None or request.what in _SPANS else request.since
    return [
        (f"{month:%Y-%m}", replace(request, part_from=month, part_until=_next(month)))
        for month in months
        if first is None or _next(month) > first
    ]


def _next(month: datetime) -> datetime:
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


async def unknown_stores(conn: AsyncConnection[Any], ids: Sequence[int]) -> list[int]:
    """Which of these stores do not exist."""
    cursor = await conn.execute(_q.known_stores, {"ids": list(ids)})
    return sorted(set(ids) - {row[0] for row in await cursor.fetchall()})
