"""Every row of a database as it is at one moment, whatever its schema and while others write to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql as compose
from psycopg.rows import dict_row

from menuwatch.archive import gzip
from menuwatch.backup.folder import Folder
from menuwatch.backup.manifest import Part, Table
from menuwatch.backup.progress import Step, Told
from menuwatch.backup.rows import Digest
from menuwatch.core.errors import Refused
from menuwatch.db import migrate, sql
from menuwatch.db.address import with_settings

q = sql.load(__package__)

VERSIONS = "alembic_version"
"""Its row is the manifest's `revision`."""
FORGOTTEN = frozenset({"visitor_salts", "visitor_marks", "login_failure_key", "login_failures"})
"""Tables of a day, whose rows are promised to be gone after two: a backup would keep them for years, so it has none of them."""
_NEED_FILES = (("raw_crawl_payloads", "path"), ("image_uses", "path"), ("crawl_attempts", "path"))
_NAME_FILES = (("images", "path"),)  # the first name that a picture had: where that is gone, it is written again
"""Columns that name a file below the storage root."""
_LEVEL = 1

Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """What the database held at its moment."""

    postgresql: str
    revision: str
    tables: list[Table]
    parts: list[Part]
    sequences: dict[str, int]
    left_out: list[str]
    named: set[str]
    """Paths of files that its rows name."""
    needed: set[str]
    """Of these, those that rows cannot do without."""


def connect(url: str) -> Connection:
    """A connection outside any transaction."""
    return psycopg.connect(with_settings(url), autocommit=True, application_name="menuwatch backup")


def tables_of(conn: Connection) -> dict[str, list[str]]:
    """The columns of each table."""
    return {str(name): list(columns) for name, columns in conn.execute(q.tables)}  # type: ignore[call-overload]


def copy_out(table: str, columns: list[str]) -> compose.Composed:
    """The statement that says all rows of a table, those of its parts too."""
    # A table without columns has rows all the same; ours have some.
    return compose.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(_list(columns), compose.Identifier(table))


def copy_in(table: str, columns: list[str]) -> compose.Composed:
    """The statement that takes them in."""
    return compose.SQL("COPY {} ({}) FROM STDIN").format(compose.Identifier(table), _list(columns))


def _list(columns: list[str]) -> compose.Composed:
    return compose.SQL(", ").join(map(compose.Identifier, columns))


def rows(conn: Connection, table: str, columns: list[str]) -> Iterator[bytes]:
    """All rows of a table as lines; the server sends whole ones."""
    with conn.cursor() as cursor, cursor.copy(copy_out(table, columns)) as copy:
        for data in copy:
            yield bytes(data)


def dump(url: str, folder: Folder, told: Told) -> Dumped:
    """Puts every table into the folder. Raises Refused for a database that holds no Menuwatch, or that of a newer version."""
    with connect(url) as conn, _one_moment(conn) as there:
        ours = migrate.tables()
        if VERSIONS not in there or (row := conn.execute("SELECT version_num FROM alembic_version").fetchone()) is None:
            raise Refused("the database holds no Menuwatch: there is nothing to back up")
        revision = str(row[0])
        if not migrate.knows(revision):
            raise Refused(
                f"the database is at schema {revision}, which this version does not know (it knows up to {migrate.newest()}): "
                "make the backup with the newer Menuwatch that migrated it"
            )
        wanted = {name: columns for name, columns in there.items() if name in ours and name != VERSIONS}
        tables = []
        for number, (name, columns) in enumerate(wanted.items(), 1):
            tables.append(_table(conn, folder, name, columns))
            told(Step(what=f"Reading {name}", done=number, total=len(wanted)))
        needed = _named(conn, wanted, _NEED_FILES)
        with conn.cursor(row_factory=dict_row) as cursor:
            parts = [Part(**row) for row in cursor.execute(q.parts) if row["parent"] in wanted and row["lower"]]
        return Dumped(
            postgresql=_text(conn, q.server_version),
            revision=revision,
            tables=tables,
            parts=parts,
            # What was given is never less than what is in rows: a number is taken before its row is.
            sequences={str(name): int(last) for name, last in conn.execute(q.sequences) if last is not None},  # type: ignore[call-overload]
            left_out=sorted(name for name in there if name not in ours),
            named=needed | _named(conn, wanted, _NAME_FILES),
            needed=needed,
        )


@contextlib.contextmanager
def _one_moment(conn: Connection) -> Iterator[dict[str, list[str]]]:
    """A transaction that sees the database as it is when it begins, and the tables there are. Nobody drops or cuts off one of them
    meanwhile: the locks come first, the moment after them."""
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    conn.read_only = True
    while True:
        listed = tables_of(conn)
        with conn.transaction(force_rollback=True):
            if listed:
                names = compose.SQL(", ").join(map(compose.Identifier, listed))
                try:
                    conn.execute(compose.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
                except psycopg.errors.UndefinedTable:
                    continue
            conn.execute(q.settled)
            if tables_of(conn) == listed:
                yield listed
                return


def _table(conn: Connection, folder: Folder, name: str, columns: list[str]) -> Table:
    digest = Digest()

    def fill(take: Callable[[bytes], object]) -> None:
        packer = gzip.packer(_LEVEL)
        for lines in () if name in FORGOTTEN else rows(conn, name, columns):
            digest.add(lines)
            if packed := packer.compress(lines):
                take(packed)
        take(packer.flush())

    written = folder.put(fill)
    return Table(
        name=name, columns=columns, rows=digest.rows, digest=digest.value, size=written.size, sha256=written.sha256
    )


def _named(conn: Connection, tables: dict[str, list[str]], by: tuple[tuple[str, str], ...]) -> set[str]:
    found: set[str] = set()
    for table, column in by:
        if column in tables.get(table, ()):
            statement = compose.SQL("SELECT DISTINCT {0} FROM {1} WHERE {0} IS NOT NULL")
            asked = statement.format(compose.Identifier(column), compose.Identifier(table))
            with conn.cursor() as cursor:
                found.update(str(row[0]) for row in cursor.execute(asked))
    return found


def _text(conn: Connection, statement: LiteralString) -> str:
    row = conn.execute(statement).fetchone()
    assert row is not None, "a SELECT without FROM gives a row"
    return str(row[0])
