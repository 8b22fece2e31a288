"""Retention of raw payloads: after PAYLOAD_DAYS, the first and last of each day and store remain."""

from __future__ import annotations

import asyncio
from datetime import datetime

from msgspec import Struct

from menuwatch.archive.files import FileArchive
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_struct

_q = sql.load(__package__, "retention.sql")

_STORES = 10
"""Stores whose payloads one statement ranks: it is repeated for each batch, so a backlog of many stores would be ranked often."""
_BATCH = 500
"""Payloads deleted per transaction."""
MAX_PRUNED = 10_000
"""Payloads that one run deletes."""


class PayloadTotals(Struct, frozen=True, kw_only=True):
    """Payloads in the archive; `bytes` on disk."""

    payloads: int
    bytes: int
    oldest: datetime | None = None


async def totals(conn: Connection) -> PayloadTotals:
    """All payloads."""
    found = await fetch_struct(conn, PayloadTotals, _q.totals, {})
    assert found is not None, "an aggregate returns one row"
    return found


async def removable(conn: Connection, before: datetime) -> PayloadTotals:
    """Payloads that `prune` would delete, with the bytes of their rows; fewer on disk where files are shared."""
    found = await fetch_struct(conn, PayloadTotals, _q.count_removable, {"stores": None, "before": before})
    assert found is not None, "an aggregate returns one row"
    return found


async def prune(conn: Connection, archive: FileArchive, before: datetime) -> tuple[int, int]:
    """Deletes payloads archived before that time except those to keep (retention.sql), with their files, in batches. A file goes with
    the last row that refers to it. Returns how many payloads and files. Raises OSError.

    Files are removed before their rows are committed: a crash in between leaves rows without a file, which the next run deletes, and
    never a file without a row, which `menuwatch verify` would take for a lost payload.
    """
    payloads = files = after = 0
    while payloads < MAX_PRUNED:
        stores = [row["id"] for row in await fetch_all(conn, _q.next_stores, {"after": after, "limit": _STORES})]
        if not stores:
            break
        while payloads < MAX_PRUNED:
            async with conn.transaction():
                values = {"stores": stores, "before": before, "limit": _BATCH}
                paths = [row["path"] for row in await fetch_all(conn, _q.delete_removable, values)]
                unused = [row["path"] for row in await fetch_all(conn, _q.unreferenced, {"paths": paths})]
                await asyncio.to_thread(archive.remove, unused)
            payloads, files = payloads + len(paths), files + len(unused)
            if not paths:
                break
        after = stores[-1]
    return payloads, files
