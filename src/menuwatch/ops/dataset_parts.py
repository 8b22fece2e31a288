"""The files of the published dataset: which there are, which of them are as before, and how they are written from the database.

A part has the fingerprint of what it is made of (`Part.source`). Equal fingerprints mean equal content, so such a part is neither
read nor written again:

    price_history, changes   the revisions of their stores in that month, from the triggers of the history (`history_revisions`)
    menus, products          those of what is now, their stores, and a hash over all matches, which the server computes
    other tables             a hash over all rows, which the server computes: they are small beside the listings

The fingerprint also holds the statement, the columns, the release and the version of the encoder.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from psycopg import AsyncClientCursor

from menuwatch import __version__
from menuwatch.catalog import cold_storage
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_one, fetch_structs
from menuwatch.exports.datapackage import DataFile
from menuwatch.exports.dataset import CURRENT, DATASET, DatasetTable
from menuwatch.exports.encoders import Parquet, expression
from menuwatch.exports.tables import Format

_q = sql.load(__package__, "publish.sql")
_LISTINGS = {"menus", "products"}
_PACKED_VIEWS = {view.rpartition(".")[2] for view in cold_storage.VIEWS if view.startswith("analyst.")}
_UNKNOWN = "unknown"
"""Folder of stores whose state is not known."""
_EMPTY = "empty"
"""File name of a table by month that has no rows."""
Progress = Callable[[int], None]
"""Called with how many rows more were read."""


class Part(Struct, frozen=True, kw_only=True):
    """One file of a table. `month` and `state` are empty for a table of one file, `state` also where it is not known."""

    table: DatasetTable
    month: str
    state: str
    source: str

    @property
    def begins(self) -> datetime:
        """The beginning of its month; of what lasts, and of a table of one file, the end of time."""
        if self.month in ("", CURRENT):
            return datetime.max.replace(tzinfo=UTC)
        return datetime.fromisoformat(f"{self.month}-01T00:00:00+00:00")


class _MonthSource(msgspec.Struct, kw_only=True, frozen=True):
    month: date | None
    state: str
    source: str


async def list_parts(conn: Connection, archived: ParquetPartitions) -> list[Part]:
    """All parts with their fingerprints, as of the transaction's snapshot; in the order of the tables."""
    months = await fetch_structs(conn, _MonthSource, _q.history_sources, {})
    packed: dict[str, list[str]] = defaultdict(list)
    for path in await asyncio.to_thread(archived.files):
        packed[cold_storage.month_of(path)].append(path)
    parts: list[Part] = []
    for table in DATASET:
        statements = [str(_q[name]) for name in (table.name, f"{table.name}_now") if name in _q]
        made = [__version__, metadata.version("pyarrow"), repr(table.columns), repr(table.order), *statements]
        if not table.monthly:
            source = await _listings(conn) if table.name in _LISTINGS else await _content(conn, statements[0])
            parts.append(Part(table=table, month="", state="", source=_digest(*made, source)))
            continue
        for row in months:
            month = CURRENT if row.month is None else f"{row.month:%Y-%m}"
            if month != CURRENT or table.lasting:
                source = _digest(*made, month, row.state, row.source, *packed.get(month, ()))
                parts.append(Part(table=table, month=month, state=row.state, source=source))
    return parts


async def _listings(conn: Connection) -> str:
    row = await fetch_one(conn, _q.listings_source, {})
    return str(row["source"]) if row else ""


async def _content(conn: Connection, statement: str) -> str:
    """A hash over all rows of a statement. A key makes each row unique, else equal ones would cancel each other out."""
    await conn.execute("SELECT set_config('TimeZone', 'UTC', true)")
    hashed = "md5(concat_ws(' ', count(*), bit_xor(('x' || md5(x::text))::bit(128))))"
    cursor = await conn.execute(f"SELECT {hashed} FROM ({statement}) x")  # noqa: S608  # ours
    row = await cursor.fetchone()
    return str(row[0]) if row else ""


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


async def write_parts(
    conn: Connection,
    archived: ParquetPartitions,
    parts: Sequence[Part],
    root: Path,
    *,
    on_progress: Progress = lambda rows: None,
) -> dict[str, DataFile]:
    """Writes these parts below `root`; returns them by fingerprint. A month and state without rows has none."""
    packed = await cold_storage.has_archived_views(conn)
    if packed and (since := min((part.begins for part in parts), default=None)):
        # A state that ended in a month, and those that followed it, are in the files of that month and later ones.
        await cold_storage.load_archived(conn, archived, since=since, stores=None)
    written: dict[str, DataFile] = {}
    for (table, month), group in groupby(parts, key=lambda part: (part.table.name, part.month)):
        states = {part.state: part for part in group}
        first = next(iter(states.values()))
        statement: str = _q[f"{table}_now" if month == CURRENT else table]
        if packed and first.table.view in _PACKED_VIEWS:  # the views that `read_snapshot` made of the same names
            statement = statement.replace("FROM analyst.", "FROM pg_temp.")
        values = {"month": first.begins.date(), "states": list(states)} if month else None
        for state, file in (await _write(conn, first.table, month, statement, values, root, on_progress)).items():
            written[states[state].source] = file
    return written


async def write_empty(table: DatasetTable, root: Path) -> DataFile:
    """The file of a table without rows."""
    return await asyncio.to_thread(_PartFile(table, root, _EMPTY, "").finish)


async def _write(
    conn: Connection,
    table: DatasetTable,
    month: str,
    statement: str,
    values: Mapping[str, Any] | None,
    root: Path,
    on_progress: Progress,
) -> dict[str, DataFile]:
    """Writes the files of one month, or of a table of one file; returns them by state."""
    columns = ", ".join(expression(column, Format.PARQUET) for column in table.columns)
    order = ", ".join(f"x.{name}" for name in table.order)
    query = f"COPY (SELECT {columns} FROM ({statement}) x ORDER BY {order}) TO STDOUT (FORMAT csv)"  # noqa: S608  # names of our own
    files: dict[str, DataFile] = {}
    part = None if table.monthly else _PartFile(table, root, "", "")
    async with AsyncClientCursor(conn) as cursor, cursor.copy(query, values) as copy:
        async for row in copy:
            line = bytes(row)
            if table.monthly and (part is None or not line.startswith(part.prefix)):
                state = next(csv.reader([line.decode()]))[1]
                if part is None or state != part.state:
                    if part is not None:
                        on_progress(len(part.lines))
                        files[part.state] = await asyncio.to_thread(part.finish)
                    part = _PartFile(table, root, month, state)
            assert part is not None
            part.lines.append(line)
            if len(part.lines) == Parquet.batch:
                on_progress(len(part.lines))
                await asyncio.to_thread(part.flush)
    if part is not None:
        on_progress(len(part.lines))
        files[part.state] = await asyncio.to_thread(part.finish)
    return files


class _PartFile:
    """One file that is being written."""

    def __init__(self, table: DatasetTable, root: Path, month: str, state: str) -> None:
        self.state = state
        self.prefix = f"{month},{state},".encode()
        """How its lines begin; lines that are quoted begin otherwise."""
        self.lines: list[bytes] = []
        self._rows = 0
        self._root = root
        self._folder = f"data/{table.name}"
        if table.monthly and month != _EMPTY:
            self._folder += "/" + (quote(state, safe=" ") or _UNKNOWN)
        (root / self._folder).mkdir(parents=True, exist_ok=True)
        self._path = root / self._folder / f"{month or 'all'}.part"
        self._file: IO[bytes] = self._path.open("xb")
        self._encoder = Parquet(table.columns)
        self._file.write(self._encoder.begin())

    def flush(self) -> None:
        """Encodes the lines."""
        if self.lines:
            self._file.write(self._encoder.lines(self.lines))
            self._rows += len(self.lines)
            self.lines = []

    def finish(self) -> DataFile:
        """Ends the file and names it after its content."""
        self.flush()
        self._file.write(self._encoder.end())
        self._file.close()
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{self._folder}/{self._path.stem}-{digest[:16]}.parquet"
        self._path.rename(self._root / name)
        size = (self._root / name).stat().st_size
        return DataFile(path=name, rows=self._rows, bytes=size, hash=f"sha256:{digest}")
