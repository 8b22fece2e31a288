"""When the installation was backed up last, and where to.

A backup is a folder and needs no database to be one; this is only what is remembered of it here. A backup cannot hold the note of
itself: a restored installation knows of the one before.
"""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, rows

_q = sql.load(__package__, "backups.sql")


async def note(
    conn: Connection, folder: Path, *, backup: str, made_at: datetime, count: int, files: int, size: int, missing: int
) -> None:
    """Remembers the backup in `folder` (absolute): `count` rows and `files` files, of `size` bytes; `missing` are files that rows name
    and nobody has. Nothing is remembered where the schema is older than this memory: a backup is made before an upgrade, too."""
    (found,) = await rows(conn, _q.known, {})
    if not found["known"]:
        return
    said = {"backup": backup, "made_at": made_at, "rows": count, "files": files, "bytes": size, "missing": missing}
    await conn.execute(_q.note, {"host": socket.gethostname(), "folder": str(folder), **said})
    await audit.record(
        conn, "backup_made", None, folder=str(folder), rows=count, files=files, bytes=size, missing=missing
    )


async def newest(conn: Connection, limit: int = 3) -> list[Row]:
    """The newest of each folder, newest first."""
    return await rows(conn, _q.newest, {"limit": limit})
