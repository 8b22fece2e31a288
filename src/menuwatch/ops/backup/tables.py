"""The tables of a backup: which of them, which of their rows, and in which order. Dumps every row of a database from one snapshot,
whatever its schema, while others write to it; and loads them into a database of that schema and compares them, all or none."""

from __future__ import annotations

import contextlib
import graphlib
import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import LiteralString

import psycopg
from msgspec import Struct
from psycopg import sql as compose
from psycopg.rows import dict_row

from menuwatch.archive import gzip
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.db import migrate, sql
from menuwatch.db.address import with_settings
from menuwatch.ops.backup.folder import Folder, OnProgress, Step, pieces
from menuwatch.ops.backup.manifest import Manifest, Part, Table

q = sql.load(__package__)

VERSIONS = "alembic_version"
"""Its row is the manifest's `revision`."""
FORGOTTEN = frozenset({"visitor_salts", "visitor_marks", "login_failures"})
"""Tables of a day, whose rows are promised to be gone after two: a backup would keep them for years, so it has none of them."""
_KEPT_ROWS: dict[str, compose.SQL] = {"app_secrets": compose.SQL(" WHERE name <> 'login_failures'")}
"""Of these tables a backup has some rows only, for the same reason."""
_NEED_FILES = (("raw_crawl_payloads", "path"), ("image_references", "path"), ("crawl_attempts", "path"))
_NAME_FILES = (("images", "path"),)  # the first name that a picture had: where that is gone, it is written again
"""Columns that name a file below the storage root."""
_LEVEL = 1
_GZIP = 31
"""What zlib calls a window of 32 KiB in a gzip file."""
_DIGEST_BYTES = 16
RESTORE_MARK = "menuwatch_restore"
"""Table that exists during a restore; its comment is the backup and how far the restore is."""

Connection = psycopg.Connection[tuple[object, ...]]


class NotTheSame(MenuwatchError):
    """The loaded rows differ from the backup; the transaction is rolled back."""


class Digest:
    """Of a set of rows, each a line of COPY's text format: the sum of their hashes, and how many there are. Their order does not
    matter: PostgreSQL promises none."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, lines: bytes) -> None:
        """Whole lines, one or more."""
        for line in lines.split(b"\n")[:-1]:
            self._sum += int.from_bytes(hashlib.blake2b(line, digest_size=_DIGEST_BYTES).digest())
            self.rows += 1

    @property
    def value(self) -> str:
        """As the manifest has it."""
        return f"{self._sum % (1 << (8 * _DIGEST_BYTES)):0{2 * _DIGEST_BYTES}x}"


class Dumped(Struct, frozen=True, kw_only=True):
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
    """The statement that reads the rows of a table that a backup has, those of its partitions too."""
    # A table without columns has rows all the same; ours have some.
    return compose.SQL("COPY (SELECT {} FROM {}{}) TO STDOUT").format(
        _names("{}", *columns), compose.Identifier(table), _KEPT_ROWS.get(table, compose.SQL(""))
    )


def _names(statement: LiteralString, *names: str) -> compose.Composed:
    """The statement with quoted names, separated by commas."""
    return compose.SQL(statement).format(compose.SQL(", ").join(map(compose.Identifier, names)))


def rows(conn: Connection, table: str, columns: list[str]) -> Iterator[bytes]:
    """All rows of a table as lines; the server sends whole ones."""
    with conn.cursor() as cursor, cursor.copy(copy_out(table, columns)) as copy:
        for data in copy:
            yield bytes(data)


def dump(url: str, folder: Folder, progress: OnProgress) -> Dumped:
    """Puts every table into the folder. Raises Refused for a database that holds no Menuwatch, or that of a newer version."""
    with connect(url) as conn, _one_moment(conn) as there:
        ours = migrate.tables()
        if VERSIONS not in there or (row := conn.execute("SELECT version_num FROM alembic_version").fetchone()) is None:
            raise Refused("the database contains no Menuwatch installation: nothing to back up")
        revision = str(row[0])
        if not migrate.knows(revision):
            raise Refused(
                f"the database is at schema {revision}, which this version does not know (it knows up to {migrate.newest()}): "
                "make the backup with the newer Menuwatch that migrated it"
            )
        dumped = {name: columns for name, columns in there.items() if name in ours and name != VERSIONS}
        tables = []
        for number, (name, columns) in enumerate(dumped.items(), 1):
            tables.append(_table(conn, folder, name, columns))
            progress(Step(what=f"Reading {name}", done=number, total=len(dumped)))
        needed = _paths(conn, dumped, _NEED_FILES)
        with conn.cursor(row_factory=dict_row) as cursor:
            parts = [Part(**row) for row in cursor.execute(q.parts) if row["parent"] in dumped and row["lower"]]
        return Dumped(
            postgresql=conn.info.parameter_status("server_version") or "",
            revision=revision,
            tables=tables,
            parts=parts,
            # What was given is never less than what is in rows: a number is taken before its row is.
            sequences={str(name): int(last) for name, last in conn.execute(q.sequences) if last is not None},  # type: ignore[call-overload]
            left_out=sorted(name for name in there if name not in ours),
            named=needed | _paths(conn, dumped, _NAME_FILES),
            needed=needed,
        )


@contextlib.contextmanager
def _one_moment(conn: Connection) -> Iterator[dict[str, list[str]]]:
    """A snapshot transaction, and the tables in it. Tables cannot be dropped or truncated meanwhile: the locks are taken before
    the snapshot."""
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    conn.read_only = True
    while True:
        listed = tables_of(conn)
        with conn.transaction(force_rollback=True):
            if listed:
                try:
                    conn.execute(_names("LOCK TABLE {} IN ACCESS SHARE MODE", *listed))
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


def _paths(conn: Connection, tables: dict[str, list[str]], columns: tuple[tuple[str, str], ...]) -> set[str]:
    paths: set[str] = set()
    for table, column in columns:
        if column in tables.get(table, ()):
            statement = compose.SQL("SELECT DISTINCT {0} FROM {1} WHERE {0} IS NOT NULL")
            with conn.cursor() as cursor:
                cursor.execute(statement.format(compose.Identifier(column), compose.Identifier(table)))
                paths.update(str(row[0]) for row in cursor)
    return paths


def set_restore_mark(conn: Connection, state: str) -> None:
    """Says in the database how far a restore is."""
    conn.execute(_names("COMMENT ON TABLE {} IS ", RESTORE_MARK) + compose.Literal(state))


def load(url: str, folder: Folder, manifest: Manifest, progress: OnProgress) -> None:
    """Fills every table in one transaction, reads it back and compares. Raises Refused where a table or a column is not there,
    NotTheSame where the rows are not what they were."""
    with connect(url) as conn, conn.transaction():
        conn.execute(q.settled)
        there = tables_of(conn)
        for table in manifest.tables:
            lacking = [f"{table.name}.{name}" for name in table.columns if name not in there.get(table.name, ())]
            if lacking:
                raise Refused(
                    f"schema {manifest.revision} of this version has no {lacking[0]}, which the backup holds: "
                    f"restore it with Menuwatch {manifest.menuwatch}"
                )
        for part in manifest.parts:
            ensure = compose.Identifier(f"ensure_{part.parent}_partition")
            conn.execute(compose.SQL("SELECT {}({}::timestamptz)").format(ensure, compose.Literal(part.lower)))
        # What migrations put in, secrets for example, is in the backup as it became.
        conn.execute(_names("TRUNCATE {}", *(name for name in there if name not in (VERSIONS, RESTORE_MARK))))
        by_name = {table.name: table for table in manifest.tables}
        for number, name in enumerate(_in_order(conn, by_name), 1):
            progress(Step(what=f"Filling {name}", done=number, total=len(by_name)))
            _fill(conn, folder, by_name[name])
        for name, last in manifest.sequences.items():
            conn.execute(q.set_sequence, {"name": name, "last": last})
        set_restore_mark(conn, f"{manifest.sha256} loaded")
    progress(Step(what="The database is filled"))


def _in_order(conn: Connection, tables: dict[str, Table]) -> Iterator[str]:
    """Tables in dependency order of their foreign keys."""
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter(dict.fromkeys(tables, ()))
    for child, parent in conn.execute(q.foreign_keys):
        if child in tables and parent in tables:
            order.add(str(child), str(parent))
    yield from order.static_order()


def _fill(conn: Connection, folder: Folder, table: Table) -> None:
    conn.execute(_names("ALTER TABLE {} DISABLE TRIGGER USER", table.name))
    copy_in = compose.SQL("COPY {} ({}) FROM STDIN").format(
        compose.Identifier(table.name), _names("{}", *table.columns)
    )
    with conn.cursor() as cursor, cursor.copy(copy_in) as copy:
        for lines in _unpacked(folder, table):
            copy.write(lines)
    conn.execute(_names("ALTER TABLE {} ENABLE TRIGGER USER", table.name))
    digest = Digest()
    for lines in rows(conn, table.name, table.columns):
        digest.add(lines)
    if (digest.rows, digest.value) != (table.rows, table.digest):
        raise NotTheSame(
            f"table {table.name} has {digest.rows:,} rows that differ from the {table.rows:,} in the backup; rolled back"
        )


def _unpacked(folder: Folder, table: Table) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    with folder.place(table.sha256).open("rb") as file:
        for piece in pieces(file):
            if lines := unpacker.decompress(piece):
                yield lines
    if rest := unpacker.flush():
        yield rest
