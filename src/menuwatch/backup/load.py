"""The rows of a backup into a database of its schema: all of them, compared with what they were, or none."""

from __future__ import annotations

import graphlib
import zlib
from collections.abc import Iterator
from typing import LiteralString

from psycopg import sql as compose

from menuwatch.backup import marker
from menuwatch.backup.dump import VERSIONS, Connection, connect, copy_in, q, rows, tables_of
from menuwatch.backup.folder import Folder, pieces
from menuwatch.backup.manifest import Manifest, Table
from menuwatch.backup.progress import Step, Told
from menuwatch.backup.rows import Digest
from menuwatch.core.errors import MenuwatchError, Refused

_GZIP = 31
"""What zlib calls a window of 32 KiB in a gzip file."""


class NotTheSame(MenuwatchError):
    """The database holds something else than was put in; nothing of it is kept."""


def load(url: str, folder: Folder, manifest: Manifest, told: Told) -> None:
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
        _make_parts(conn, manifest)
        # What migrations put in, secrets for example, is in the backup as it became.
        names = [name for name in there if name not in (VERSIONS, marker.TABLE)]
        conn.execute(_of("TRUNCATE {}", *names))
        by_name = {table.name: table for table in manifest.tables}
        for number, name in enumerate(_in_order(conn, by_name), 1):
            told(Step(what=f"Filling {name}", done=number, total=len(by_name)))
            _fill(conn, folder, by_name[name])
        for name, last in manifest.sequences.items():
            conn.execute(q.set_sequence, {"name": name, "last": last})
        marker.loaded(conn, manifest.sha256)
    told(Step(what="The database is filled"))


def _of(statement: LiteralString, *tables: str) -> compose.Composed:
    return compose.SQL(statement).format(compose.SQL(", ").join(map(compose.Identifier, tables)))


def _make_parts(conn: Connection, manifest: Manifest) -> None:
    for part in manifest.parts:
        ensure = compose.Identifier(f"ensure_{part.parent}_partition")
        conn.execute(compose.SQL("SELECT {}({}::timestamptz)").format(ensure, compose.Literal(part.lower)))


def _in_order(conn: Connection, tables: dict[str, Table]) -> Iterator[str]:
    """Tables after those that they refer to."""
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter(dict.fromkeys(tables, ()))
    for child, parent in conn.execute(q.foreign_keys):
        if child in tables and parent in tables:
            order.add(str(child), str(parent))
    yield from order.static_order()


def _fill(conn: Connection, folder: Folder, table: Table) -> None:
    conn.execute(_of("ALTER TABLE {} DISABLE TRIGGER USER", table.name))
    with conn.cursor() as cursor, cursor.copy(copy_in(table.name, table.columns)) as copy:
        for lines in _unpacked(folder, table):
            copy.write(lines)
    conn.execute(_of("ALTER TABLE {} ENABLE TRIGGER USER", table.name))
    digest = Digest()
    for lines in rows(conn, table.name, table.columns):
        digest.add(lines)
    if (digest.rows, digest.value) != (table.rows, table.digest):
        raise NotTheSame(
            f"table {table.name} has {digest.rows:,} rows that are not the {table.rows:,} of the backup; nothing of it was kept"
        )


def _unpacked(folder: Folder, table: Table) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    with folder.place(table.sha256).open("rb") as file:
        for piece in pieces(file):
            if lines := unpacker.decompress(piece):
                yield lines
    if rest := unpacker.flush():
        yield rest
