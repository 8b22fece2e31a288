"""Transactions that commit a payload row together with its file outside of tasks; equal answers share one file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive, Staged
from menuwatch.archive.store import NewPayload
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Pool

log = get_logger(__name__)


class ArchiveTransaction:
    """Accepts the document of a transaction."""

    def __init__(self, archive: FileArchive) -> None:
        self._archive = archive
        self.staged: Staged | None = None

    async def put(self, dispensary_id: int, doc: Document) -> Staged:
        """Stages the document; at most once per transaction."""
        assert self.staged is None, "one transaction, one document"
        self.staged = await asyncio.to_thread(self._archive.stage, dispensary_id, doc)
        return self.staged


class DeduplicatedFile:
    """A staged file that is kept only if no earlier payload of the store has the same answers."""

    def __init__(self, archive: FileArchive, staged: Staged) -> None:
        self._archive = archive
        self._staged = staged
        self._needed = True

    async def insert(self, conn: AsyncConnection[Any], new: NewPayload) -> int:
        """Inserts the payload's row with its own or the shared file; returns its id. Repeatable if the transaction is retried."""
        shared = await payloads.sharing(conn, new)
        self._needed = shared is new or not await asyncio.to_thread(self._archive.has, shared.path, shared.bytes)
        return await payloads.insert(conn, new if self._needed else shared)

    def settle(self, committed: bool) -> None:
        """Publishes or discards the file, once the outcome of the transaction is known."""
        if committed and self._needed:
            self._archive.publish(self._staged)
        else:
            # Committed: the store has a payload with that time and another file, so no other attempt can get this path.
            self._archive.discard(self._staged, unused=committed)


@asynccontextmanager
async def archive_transaction(
    pool: Pool, archive: FileArchive
) -> AsyncIterator[tuple[AsyncConnection[Any], ArchiveTransaction]]:
    """A database transaction with one archived file. The file is published after a commit and removed after a rollback; where the
    outcome is unknown (the connection was lost or the task cancelled during COMMIT) it stays, and the next start decides."""
    transaction = ArchiveTransaction(archive)
    committing = False
    try:
        async with pool.connection() as conn, conn.transaction():
            yield conn, transaction
            committing = True
    except BaseException as error:
        if transaction.staged is not None and (not committing or commit_refused(error)):
            await asyncio.to_thread(archive.discard, transaction.staged)
        raise
    if transaction.staged is not None:
        try:
            await asyncio.to_thread(archive.publish, transaction.staged)
        except OSError as error:
            # The row exists and readers find the staged file; the next start publishes it.
            log.warning(
                "publishing a payload failed", action="publish_failed", path=transaction.staged.path, error=str(error)
            )


def commit_refused(error: BaseException) -> bool:
    """Whether the server answered COMMIT with an error, so the transaction was rolled back."""
    return (
        isinstance(error, psycopg.DatabaseError)
        and not isinstance(error, psycopg.OperationalError)
        and error.sqlstate is not None
    )
