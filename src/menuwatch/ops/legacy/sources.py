"""Sources of former rows: CSV files, the tables of a database (`find_tables`), or a plain dump of one; row by row, however many there
are."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg import sql as compose

from menuwatch.core import csv_cells
from menuwatch.core.errors import Conflict, Refused
from menuwatch.db import sql
from menuwatch.db.pool import connect
from menuwatch.db.query import fetch_all
from menuwatch.ops.legacy.columns import TABLES, Record, mapping

_q = sql.load(__package__)

_FIELD = 10_000_000
"""Most characters of one field of a CSV file."""


class Line(Struct, frozen=True):
    """One row: where it stands, for people, and what it holds; or why it cannot be read."""

    place: str
    record: Record
    wrong: str | None = None


class Source(Protocol):
    """Former tables."""

    @property
    def has(self) -> frozenset[str]:
        """The tables that it has rows of."""
        ...

    def lines(self, table: str) -> AsyncIterator[Line]:
        """The rows of a table; raises Refused, naming the column, where a needed one is missing."""
        ...


def _read(path: Path) -> contextlib.AbstractContextManager[IO[str]]:
    """The file as UTF-8, decompressed if needed. Invalid UTF-8 is reported by line."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise Refused(f"{path} is UTF-16: save it as UTF-8")
        packed = start[:2] == b"\x1f\x8b"
        raw: IO[bytes] = gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[assignment]  # noqa: SIM115
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}") from error
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _broken(values: Sequence[str | None]) -> bool:
    """Whether any of them holds bytes that are no UTF-8."""
    return any(value is not None and not value.isascii() and not _encodes(value) for value in values)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class CsvFiles(Struct, frozen=True):
    """CSV files with a line of headings, by table; several files of one table are read one after the other."""

    files: Mapping[str, Sequence[Path]]

    @property
    def has(self) -> frozenset[str]:
        return frozenset(table for table, files in self.files.items() if files)

    async def lines(self, table: str) -> AsyncIterator[Line]:
        """The rows of the files, in their order."""
        for path in self.files.get(table, ()):
            for line in _csv_lines(path, table):
                yield line


def _csv_lines(path: Path, table: str) -> Iterator[Line]:
    csv.field_size_limit(_FIELD)
    with _read(path) as file:
        found = csv.reader(line.replace("\0", "\ufffd") for line in file)
        headings = next(found, None)
        if not headings:
            raise Refused(f"{path} is empty: its first line must name the columns")
        try:
            names = mapping(table, headings)
        except Refused as error:
            raise Refused(f"{path}: {error}") from None
        places = {name: headings.index(column) for name, column in names.items()}
        while True:
            place = f"{path.name}:{found.line_num + 1}"
            try:
                values = next(found)
            except StopIteration:
                return
            except csv.Error as error:
                yield Line(place, {}, f"invalid CSV: {error}")
                continue
            if not values:
                continue
            if len(values) != len(headings):
                yield Line(place, {}, f"it has {len(values)} fields instead of {len(headings)}")
            elif _broken(values):
                yield Line(place, {}, "it is not UTF-8")
            else:
                # An export of ours may be among the files: its texts come back as they were.
                yield Line(place, {name: csv_cells.original(values[at]) for name, at in places.items()})


_COPY = re.compile(r'COPY\s+(?:"?(\w+)"?\.)?"?(\w+)"?\s*\((.*)\)\s+FROM\s+stdin;\s*', re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def _plain(value: str) -> str | None:
    if value == "\\N":
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), value) if "\\" in value else value


@dataclass(frozen=True, slots=True)
class Dump:
    """A plain dump of a database (`pg_dump`, not with --inserts): its COPY sections."""

    path: Path
    has: frozenset[str] = field(default_factory=lambda: frozenset(TABLES))

    async def lines(self, table: str) -> AsyncIterator[Line]:
        """The rows of the table's section; the file is read from its beginning."""
        with _read(self.path) as file:
            names: dict[str, int] | None = None
            columns: list[str] = []
            for number, line in enumerate(file, 1):
                if names is None:
                    found = _COPY.fullmatch(line) if line[:4].upper() == "COPY" else None
                    if found and found[2] == table:
                        columns = [one.strip().strip('"') for one in found[3].split(",")]
                        names = {name: columns.index(column) for name, column in mapping(table, columns).items()}
                    continue
                text = line.rstrip("\r\n")
                if text == "\\.":
                    names = None
                    continue
                place, values = f"{self.path.name}:{number}", text.split("\t")
                if len(values) != len(columns):
                    yield Line(place, {}, f"it has {len(values)} fields instead of {len(columns)}")
                elif _broken(values):
                    yield Line(place, {}, "it is not UTF-8")
                else:
                    yield Line(place, {name: _plain(values[at]) for name, at in names.items()})


SCHEDULES, RUNS, JOBS = "job_schedules", "job_run_logs", "dispensary_crawl_jobs"
NAMES = (SCHEDULES, RUNS, JOBS)
"""The tables by which a database of the former system is known."""


class Table(Struct, frozen=True, kw_only=True):
    """One former table."""

    name: str
    schema: str
    columns: frozenset[str]
    readable: bool
    writable: bool

    @property
    def qualified_name(self) -> compose.Composed:
        """Its name, quoted, with that of its schema."""
        return compose.SQL("{}.{}").format(compose.Identifier(self.schema), compose.Identifier(self.name))

    def first_of(self, *names: str) -> str | None:
        """The first of these columns that it has."""
        return next((name for name in names if name in self.columns), None)

    def need(self, *names: str) -> str:
        """The first of these columns that it has; raises Conflict, naming the column, where it has none of them."""
        name = self.first_of(*names)
        if name is None:
            raise Conflict(f"table {self.schema}.{self.name} has no column {' or '.join(names)}")
        return name


async def find_tables(
    conn: AsyncConnection[Any], names: Sequence[str] = NAMES, schema: str | None = None
) -> dict[str, Table]:
    """Those of the tables that there are, by name; in that schema alone where one is named."""
    tables: dict[str, Table] = {}
    for row in await fetch_all(conn, _q.tables, {"names": list(names), "schema": schema}):
        tables.setdefault(row["name"], Table(**{**row, "columns": frozenset(row["columns"])}))
    return tables


class Database(Struct, frozen=True):
    """The tables of a database."""

    url: str
    schema: str | None
    has: frozenset[str]

    async def lines(self, table: str) -> AsyncIterator[Line]:
        """The rows of the table, in the order in which they lie."""
        async with await connect(self.url, name="menuwatch legacy import") as conn, conn.transaction():
            # Times without a zone come as they are, and others in UTC; nothing is written there.
            await conn.execute("SET TRANSACTION READ ONLY")
            await conn.execute("SET LOCAL TimeZone = 'UTC'")
            await conn.execute("SET LOCAL DateStyle = 'ISO'")
            there = (await find_tables(conn, [table], self.schema))[table]
            names = mapping(table, there.columns)
            columns = compose.SQL(", ").join(
                compose.SQL("{}::text").format(compose.Identifier(column)) for column in names.values()
            )
            async with conn.cursor(name="former_rows") as cursor:
                cursor.itersize = 2000
                await cursor.execute(compose.SQL("SELECT {} FROM {}").format(columns, there.qualified_name))
                number = 0
                async for row in cursor:
                    number += 1
                    record = dict(zip(names, row, strict=True))
                    yield Line(f"{table} row {record.get('id') or number}", record)


async def of_database(conn: AsyncConnection[object], url: str, schema: str | None) -> Database:
    """The former tables of the database that `conn` is of; raises Refused where there are none."""
    there = await find_tables(conn, TABLES, schema)
    if not there:
        where = f"schema {schema}" if schema else "the database"
        raise Refused(f"{where} has none of the tables {', '.join(TABLES)}: there is nothing to import")
    return Database(url, schema, frozenset(there))
