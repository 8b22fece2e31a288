"""Files of the archive that a crash left without their row, or not in their place."""

from __future__ import annotations

from menuwatch.archive.files import FileArchive
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.payloads import store as payloads

log = get_logger(__name__)

ORPHAN_AGE_SECONDS = 3600.0
"""A staged file without a row is another worker's, still in its transaction, until it is older than any task can be."""


async def recover_archive(
    pool: Pool, archive: FileArchive, *, older_than: float = ORPHAN_AGE_SECONDS
) -> tuple[int, int]:
    """Finishes what a crash left between a payload's row and its file; returns how many files were (published, removed).

    `older_than` is in seconds; a file without a row that is younger may belong to a transaction that is still open.
    """
    staged = list(archive.staged())
    async with pool.connection() as conn:
        rows = await payloads.hashes(conn, [file.path for file, _ in staged])
    published = removed = 0
    for file, age in staged:
        # Two attempts may have staged one path; the row is of one of them.
        if file.path in rows and archive.holds(file, rows[file.path]):
            archive.publish(file)
            published += 1
        elif age >= older_than:
            archive.discard(file)
            removed += 1
    if published or removed:
        log.info("archive recovered", action="archive_recovered", published=published, removed=removed)
    return published, removed
