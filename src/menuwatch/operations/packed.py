"""Packed months beside the database, for whoever reads all of history at one moment.

For the length of a connection's `laid_open` the views of history also show the states that lie in files: they are read into
a temporary
table, and temporary views of the same names stand before the lasting ones. A state that is in both places is there once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from psycopg import AsyncConnection, sql

from menuwatch.db import sql as files
from menuwatch.exports import packs as packed_files
from menuwatch.exports.packs import Packs

_q = files.load(__package__, "packed.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
T = TypeVar("T")
VIEWS = ("product_states", "store_product_snapshots", "product_changes")
"""In the order in which they build on `past_states` and on each other."""


async def beside(
    packs: Packs | None, find: Callable[[Packs], list[dict[str, Any]]], ask: Callable[[str], Awaitable[T]]
) -> T:
    """What `ask` makes of the database and of the packed states that `find` finds (as rows for `jsonb_populate_recordset`).

    Asked again where a month was packed meanwhile: its file is there before its rows are gone, so that files which are the same before
    and after are all there was to read.
    """
    if packs is None:
        return await ask("[]")
    while True:
        before = await asyncio.to_thread(packs.files)
        found = await asyncio.to_thread(find, packs) if before else []
        answer = await ask(_encode(found).decode())
        if await asyncio.to_thread(packs.files) == before:
            return answer


@asynccontextmanager
async def laid_open(conn: AsyncConnection[Any]) -> AsyncIterator[None]:
    """Makes room for packed states, empty yet; outside of any transaction. A connection that cannot be cleared is closed."""
    # What the lasting views say, before other names stand before theirs.
    definitions = [
        (name, (await (await conn.execute(_q.definition, {"view": name})).fetchone() or ("",))[0]) for name in VIEWS
    ]
    try:
        async with conn.transaction():
            await conn.execute(_q.create_unpacked)
            await conn.execute(_q.create_past_states)
            for name, definition in definitions:
                view = sql.SQL("CREATE TEMPORARY VIEW {} AS ").format(sql.Identifier(name))
                await conn.execute(view + sql.SQL(definition))
        yield
    finally:
        try:
            await conn.execute(_q.clear)
        except Exception:
            await conn.close()
            raise


async def read_in(
    conn: AsyncConnection[Any], packs: Packs, *, since: datetime | None, stores: Sequence[int] | None
) -> int:
    """Reads the states that ended at `since` or later into the room; returns how many. Within the reader's own transaction, after
    whose first statement a month that is packed is still in the database for it."""
    first = "" if since is None else f"month={since.astimezone(UTC):%Y-%m}"
    values = {"since": since, "stores": None if stores is None else list(stores)}
    count = 0
    for file in await asyncio.to_thread(packs.files):
        if file.parent.name < first:
            continue
        batches = packed_files.batches(file)
        while batch := await asyncio.to_thread(next, batches, None):
            cursor = await conn.execute(_q.read_in, {**values, "rows": _encode(batch).decode()})
            count += cursor.rowcount
    await conn.execute("ANALYZE unpacked_states")
    return count
