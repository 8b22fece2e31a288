"""How it is known that a restore was begun and not ended: a file in the storage folder, and a table in the database.

    nothing ──► file ──► file, table "begun" ──► file, table "loaded" (in the transaction that brings the rows) ──► table ──► nothing

Both name the backup. Nothing else works with an installation while the file is there.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from psycopg import sql as compose

from menuwatch.backup.dump import Connection, q
from menuwatch.backup.folder import write_whole
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import Refused

_NAME = ".restore.json"
TABLE = "menuwatch_restore"


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that was begun: of which backup, from which folder."""

    backup: str
    folder: str


def read(storage: Path) -> Mark | None:
    """The file's word."""
    try:
        return msgspec.json.decode((storage / _NAME).read_bytes(), type=Mark)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as error:
        raise Refused(f"{storage / _NAME} is damaged: remove it if no restore was begun there") from error


def write(storage: Path, mark: Mark) -> None:
    """Says in the storage folder that a restore is under way."""
    write_whole(storage / _NAME, msgspec.json.encode(mark))


def remove(storage: Path) -> None:
    """Says that it is done."""
    (storage / _NAME).unlink(missing_ok=True)
    sync_folder(storage)


def refuse_unfinished(storage: Path) -> None:
    """Raises Refused where a restore was begun and not ended: half of an installation is none."""
    mark = read(storage)
    if mark is not None:
        raise Refused(
            f"a restore into {storage} was begun and is not finished: `menuwatch restore {mark.folder}` goes on with it"
        )


def in_database(conn: Connection) -> tuple[str, bool] | None:
    """The table's word: the backup, and whether its rows are in."""
    row = conn.execute(q.restoring).fetchone()
    if row is None or not isinstance(row[0], str):
        return None
    backup, _, state = row[0].partition(" ")
    return backup, state == "loaded"


def begin(conn: Connection, backup: str) -> None:
    """Makes the table."""
    with conn.transaction():
        conn.execute(compose.SQL("CREATE TABLE {} ()").format(compose.Identifier(TABLE)))
        _say(conn, f"{backup} begun")


def loaded(conn: Connection, backup: str) -> None:
    """For the transaction that brings the rows."""
    _say(conn, f"{backup} loaded")


def _say(conn: Connection, text: str) -> None:
    conn.execute(compose.SQL("COMMENT ON TABLE {} IS {}").format(compose.Identifier(TABLE), compose.Literal(text)))


def end(conn: Connection) -> None:
    """Drops the table."""
    conn.execute(compose.SQL("DROP TABLE IF EXISTS {}").format(compose.Identifier(TABLE)))
