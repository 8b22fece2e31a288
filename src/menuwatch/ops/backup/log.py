"""When and where the installation was last backed up.

A backup is self-contained; this is only a record of it here. A backup cannot contain its own record: a restored installation knows
only the one before.
"""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path

from menuwatch.accounts import audit
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all

_q = sql.load(__package__, "log.sql")


async def note(
    conn: Connection, folder: Path, *, backup: str, made_at: datetime, count: int, files: int, size: int, missing: int
) -> None:
    """Records the backup in `folder` (absolute): `count` rows, `files` files of `size` bytes, and `missing` files that rows name
    but do not exist. Records nothing when the schema predates this table, as for a backup before an upgrade."""
    (found,) = await fetch_all(conn, _q.known, {})
    if not found["known"]:
        return
    said = {"backup": backup, "made_at": made_at, "rows": count, "files": files, "bytes": size, "missing": missing}
    await conn.execute(_q.note, {"host": socket.gethostname(), "folder": str(folder), **said})
    await audit.record(
        conn, "backup_made", None, folder=str(folder), rows=count, files=files, bytes=size, missing=missing
    )


async def newest(conn: Connection, limit: int = 3) -> list[Row]:
    """The latest backup of each folder, newest first."""
    return await fetch_all(conn, _q.newest, {"limit": limit})
