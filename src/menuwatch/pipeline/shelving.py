"""Rows and their files: together or not at all outside of a task, and one file for the same answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive, Staged
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.payloads import store as payloads
from menuwatch.payloads.store import NewPayload

log = get_logger(__name__)


class Shelf:
    """Where a transaction puts its document."""

    def __init__(self, archive: FileArchive) -> None:
        self._archive = archive
        self.staged: Staged | None = None

    async def put(self, dispensary_id: int, doc: Document) -> Staged:
        """Stages the document; once for each transaction."""
        assert self.staged is None, "one transaction, one document"
        self.staged = await asyncio.to_thread(self._archive.stage, dispensary_id, doc)
        return self.staged


class OneFile:
    """A staged file that is only kept where no earlier payload of the store has the same answers."""

    def __init__(self, archive: FileArchive, staged: Staged) -> None:
        self._archive = archive
        self._staged = staged
        self._needed = True

    async def insert(self, conn: AsyncConnection[Any], new: NewPayload) -> int:
        """Adds the payload's row, with whichever file it has; returns its id. May be called again when its transaction is."""
        shared = await payloads.sharing(conn, new)
        self._needed = shared is new or not self._archive.has(shared.path, shared.bytes)
        return await payloads.insert(conn, new if self._needed else shared)

    def settle(self, committed: bool) -> None:
        """To be called when the fate of the row's transaction is known."""
        self._archive.settle(self._staged)(committed and self._needed)


@asynccontextmanager
async def shelving(pool: Pool, archive: FileArchive) -> AsyncIterator[tuple[AsyncConnection[Any], Shelf]]:
    """A transaction and its shelf. The file is published after a commit and removed after a rollback; where nobody can tell
    which it was (the connection was lost or the task cancelled during COMMIT) it stays, and the next start decides."""
    shelf = Shelf(archive)
    committing = False
    try:
        async with pool.connection() as conn, conn.transaction():
            yield conn, shelf
            committing = True
    except BaseException as error:
        if shelf.staged is not None and (not committing or _refused(error)):
            archive.discard(shelf.staged)
        raise
    if shelf.staged is not None:
        try:
            archive.publish(shelf.staged)
        except OSError as error:
            # The row is there and readers find the file where it is; the next start tries again.
            log.warning(
                "a payload was not published", action="publish_failed", path=shelf.staged.path, error=str(error)
            )


def _refused(error: BaseException) -> bool:
    """Whether the server answered COMMIT with an error, which means that it rolled back."""
    return (
        isinstance(error, psycopg.DatabaseError)
        and not isinstance(error, psycopg.OperationalError)
        and error.sqlstate is not None
    )
