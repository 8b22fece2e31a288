"""Pages that search crawls brought, as they came: `crawls/{job}/{item}-{attempt}.html.gz` below the storage root.

A page is written before the rows that name it. Where these are rolled back, or the process dies between, the same attempt is read
again and writes the same file; so nothing is staged, and what is there is whole.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from menuwatch.archive import gzip
from menuwatch.archive.files import LEVEL, Missing
from menuwatch.core.errors import Refused, Transient
from menuwatch.search_crawl.protocols import LARGEST_PAGE
from menuwatch.storage.base import Storage
from menuwatch.storage.service import as_storage, describe_failure


class PageArchive:
    """The pages in a storage."""

    def __init__(self, storage: Storage | Path, *, level: int = LEVEL) -> None:
        self._storage = as_storage(storage)
        self._level = level

    def put(self, job_id: int, item_id: int, attempt: int, body: bytes) -> str:
        """Keeps a page; returns its path below the root. Raises Transient when the storage is full or fails."""
        path = f"crawls/{job_id}/{item_id}-{attempt}.html.gz"
        packer = gzip.packer(self._level)
        try:
            self._storage.put(path, packer.compress(body) + packer.flush())
        except OSError as error:
            raise Transient(f"the page could not be archived: {describe_failure(error)}") from error
        return path

    def remove(self, path: str) -> None:
        """Removes a page, where it exists. Raises OSError."""
        self._storage.remove(path)

    def remove_job(self, job_id: int) -> int:
        """Removes all pages of a job; returns how many files they were. Raises OSError."""
        return self._storage.remove_folder(f"crawls/{job_id}")

    def read(self, path: str) -> bytes:
        """The page of that path. Raises Missing, and Refused where it is damaged."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or pure.parts[:1] != ("crawls",):
            raise Refused(f"{path!r} is not the path of a crawled page")
        try:
            return gzip.unpack(self._storage.get(path, LARGEST_PAGE + 1_000_000), LARGEST_PAGE)
        except FileNotFoundError:
            raise Missing(
                f"the archive has no page {path!r}: it was removed, or {self._storage.setting} points elsewhere"
            ) from None
        except gzip.Damaged as error:
            raise Refused(f"the archived page {path!r} is damaged: {error}") from error
