"""Months of past states that were moved from the database to files: `history/month=2026-03/states-….parquet` below the storage root.

Each file holds states that ended in its month, sorted by product, with the columns that identify the product, so other programs
can read it alone. If packing was interrupted, a state may be in two files, or in a file and the database: duplicates count once.

Readers of one product or store merge its archived states into their statement (`merge_with_archived`). Readers of the whole history
use temporary views of the same names, on the connection of `archived_views`, after `load_archived`.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from msgspec import Struct
from psycopg import sql

from menuwatch.db import sql as files
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import PACKED
from menuwatch.storage.base import Entry, Storage
from menuwatch.storage.service import as_storage

_q = files.load(__package__, "cold_storage.sql")
_encode = msgspec.json.Encoder(decimal_format="number").encode
T = TypeVar("T")
FOLDER = "history"
"""Folder below the storage root."""
_FILE = re.compile(rf"{FOLDER}/month=[^/]+/states-[^/]+\.parquet")
_OTHERS = ("provider", "provider_product_id")
"""Columns of a state in a file that are not in the database."""
STATE_COLUMNS = tuple(column.name for column in PACKED if column.name not in _OTHERS)
VIEWS = (
    "product_states", "store_product_snapshots", "product_changes", "analyst.snapshots", "analyst.states", "analyst.changes",
)  # fmt: skip
"""Views of the whole history, in order of dependency. Those of analysts are temporary under the name alone: `pg_temp.states`."""


class Content(Struct, frozen=True, kw_only=True):
    """One file: its month, how many states it holds, its size in bytes."""

    month: str
    states: int
    size: int
    file: str


class ParquetPartitions:
    """The archived states in a storage."""

    def __init__(self, storage: Storage | Path) -> None:
        self._storage = as_storage(storage)

    def new(self, month: datetime) -> str:
        """A path for a new file of that month."""
        return f"{FOLDER}/month={month:%Y-%m}/states-{uuid.uuid4().hex[:12]}.parquet"

    def add(self, path: str, file: IO[bytes]) -> None:
        """Stores a finished file under that path. Raises OSError if the storage fails."""
        self._storage.put(path, file)

    def remove(self, path: str) -> None:
        """Deletes a file; idempotent."""
        self._storage.remove(path)

    def files(self) -> list[str]:
        """The path of every file, by month."""
        return sorted(entry.path for entry in self._entries())

    def _entries(self) -> Iterator[Entry]:
        return (entry for entry in self._storage.walk(FOLDER) if _FILE.fullmatch(entry.path))

    def open(self, path: str) -> IO[bytes]:
        """One file, to be read at any place."""
        return self._storage.open(path)

    def contents(self) -> list[Content]:
        """Month, number of states and size of each file."""
        entries = sorted(self._entries(), key=lambda entry: entry.path)
        if not entries:
            return []
        from pyarrow import parquet

        found: list[Content] = []
        for entry in entries:
            with self.open(entry.path) as handle:
                states = parquet.read_metadata(handle).num_rows
            file = entry.path.removeprefix(f"{FOLDER}/")
            found.append(Content(month=month_of(entry.path), states=states, size=entry.size, file=file))
        return found

    def holds(self, dispensary_id: int, since: datetime | None = None) -> bool:
        """Whether any state of that store is packed, or any that ended at `since` or later."""
        files = self.files()
        filters: list[tuple[str, str, Any]] = [("dispensary_id", "=", dispensary_id)]
        if since is not None:
            files = [file for file in files if month_of(file) >= _month_of(since)]
            filters.append(("ended_at", ">=", since))
        if not files:
            return False
        from pyarrow import parquet

        for file in files:
            with self.open(file) as handle:
                if parquet.read_table(handle, columns=["product_id"], filters=filters).num_rows:
                    return True
        return False

    def states_of(self, product_id: int) -> list[dict[str, Any]]:
        """One product's packed states, as rows of `product_states`. Reads only row groups that may hold the product."""
        return self._matching(self.files(), [("product_id", "=", product_id)])

    def states_of_products(self, product_ids: Sequence[int], since: datetime | None = None) -> list[dict[str, Any]]:
        """The packed states of several products that ended at `since` or later, as rows of `product_states`."""
        first = "" if since is None else _month_of(since)
        filters: list[tuple[str, str, Any]] = [("product_id", "in", list(product_ids))]
        if since is not None:
            filters.append(("ended_at", ">=", since))
        return self._matching([file for file in self.files() if month_of(file) >= first], filters)

    def states_of_store(self, dispensary_id: int, instant: datetime) -> list[dict[str, Any]]:
        """The packed states of a store's products at an instant, as rows of `product_history`."""
        return self._matching(
            [file for file in self.files() if month_of(file) >= _month_of(instant)],
            [("dispensary_id", "=", dispensary_id), ("seen_from", "<=", instant), ("ended_at", ">", instant)],
        )

    def _matching(self, files: list[str], filters: list[tuple[str, str, Any]]) -> list[dict[str, Any]]:
        if not files:
            return []
        from pyarrow import parquet

        states: list[dict[str, Any]] = []
        for file in files:
            # A single handle: a file that is replaced meanwhile is read in its old version.
            with self.open(file) as handle:
                table = parquet.read_table(handle, columns=list(STATE_COLUMNS), filters=filters, use_threads=False)
            states += [_row(row) for row in table.to_pylist()]
        return states


def month_of(path: str) -> str:
    """The month of a file's states, as 2026-03."""
    return path.split("/")[1].removeprefix("month=")


def _month_of(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m}"


def batches(file: IO[bytes]) -> Iterator[list[dict[str, Any]]]:
    """All states of one file, as rows of `product_states`, in batches of some thousands."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(columns=list(STATE_COLUMNS), batch_size=8_192, use_threads=False):
            yield [_row(row) for row in batch.to_pylist()]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    for name, value in row.items():
        if isinstance(value, Decimal):
            row[name] = Decimal(f"{value.normalize():f}")
    row["prices"] = msgspec.Raw(row["prices"].encode())
    row["stock"] = msgspec.Raw(row["stock"].encode())
    return row


async def merge_with_archived(
    archived: ParquetPartitions | None,
    find: Callable[[ParquetPartitions], list[dict[str, Any]]],
    read: Callable[[str], Awaitable[T]],
) -> T:
    """The result of `read` for the archived states that `find` returns (as rows for `jsonb_populate_recordset`).

    Repeated if a month was packed meanwhile: its file exists before its rows are deleted, so nothing is missing if the files are
    the same before and after.
    """
    if archived is None:
        return await read("[]")
    while True:
        before = await asyncio.to_thread(archived.files)
        states = await asyncio.to_thread(find, archived) if before else []
        result = await read(_encode(states).decode())
        if await asyncio.to_thread(archived.files) == before:
            return result


@asynccontextmanager
async def archived_views(conn: Connection) -> AsyncIterator[None]:
    """Creates temporary views that include archived states, empty at first, in place of the database's views; use outside of a
    transaction. A connection that cannot be cleaned up is closed.
    """
    # Read the permanent views' definitions before temporary names hide them.
    definitions = [
        (name, (await (await conn.execute(_q.definition, {"view": name})).fetchone() or ("",))[0]) for name in VIEWS
    ]
    try:
        async with conn.transaction():
            await conn.execute(_q.create_unpacked)
            await conn.execute(_q.create_product_history)
            for name, definition in definitions:
                view = sql.SQL("CREATE TEMPORARY VIEW {} AS ").format(sql.Identifier(name.rpartition(".")[2]))
                await conn.execute(view + sql.SQL(definition))
        yield
    finally:
        try:
            await conn.execute(_q.clear)
        except Exception:
            await conn.close()
            raise


async def has_archived_views(conn: Connection) -> bool:
    """Whether the connection is that of `archived_views`."""
    row = await (await conn.execute(_q.has_archived_views)).fetchone()
    return row is not None and bool(row[0])


async def load_archived(
    conn: Connection, archived: ParquetPartitions, *, since: datetime | None, stores: Sequence[int] | None
) -> int:
    """Loads the states that ended at `since` or later for `archived_views`; returns how many. Within the
    reader's own transaction: a month that is packed after its first statement is still in the database for it."""
    first = "" if since is None else _month_of(since)
    values = {"since": since, "stores": None if stores is None else list(stores)}
    count = 0
    for file in await asyncio.to_thread(archived.files):
        if month_of(file) < first:
            continue
        with await asyncio.to_thread(archived.open, file) as handle:
            rows = batches(handle)
            while batch := await asyncio.to_thread(next, rows, None):
                cursor = await conn.execute(_q.load_archived, {**values, "rows": _encode(batch).decode()})
                count += cursor.rowcount
    await conn.execute("ANALYZE unpacked_states")
    return count
