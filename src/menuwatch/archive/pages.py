"""Pages that search crawls brought, as they came: `crawls/{job}/{item}-{attempt}.html.gz` below the storage root.

A page is written before the rows that name it. Where these are rolled back, or the process dies between, the same attempt is read
again and writes the same file; so nothing is staged, and what is there is whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from pathlib import Path, PurePosixPath

from menuwatch.archive import gzip
from menuwatch.archive.files import LEVEL, Missing
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import Refused, Transient


class PageArchive:
    """Files below `root` (`STORAGE_PATH`)."""

    def __init__(self, root: Path, *, level: int = LEVEL) -> None:
        self._root = root
        self._level = level

    def put(self, job_id: int, item_id: int, attempt: int, body: bytes) -> str:
        """Keeps a page; returns its path below the root. Raises Transient when the disk is full or fails."""
        path = f"crawls/{job_id}/{item_id}-{attempt}.html.gz"
        packer = gzip.packer(self._level)
        final = self._root / path
        part = final.with_name(f".{final.name}~{uuid.uuid4().hex}")
        try:
            new = not final.parent.is_dir()
            final.parent.mkdir(parents=True, exist_ok=True)
            try:
                with part.open("xb") as file:
                    file.write(packer.compress(body) + packer.flush())
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(final)
                # A power cut must not lose the name that rows are about to have.
                sync_folder(final.parent)
                if new:
                    sync_folder(final.parent.parent)
                    sync_folder(self._root)
            except OSError:
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
                raise
        except OSError as error:
            why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
            raise Transient(f"the page could not be archived: {why}") from error
        return path

    def read(self, path: str) -> bytes:
        """The page of that path. Raises Missing, and Refused where it is damaged."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or pure.parts[:1] != ("crawls",):
            raise Refused(f"{path!r} is no path of a crawled page")
        try:
            return gzip.unpack((self._root / pure).read_bytes())
        except FileNotFoundError:
            raise Missing(
                f"the archive has no page {path!r}: it was removed, or STORAGE_PATH points elsewhere"
            ) from None
        except gzip.Damaged as error:
            raise Refused(f"the archived page {path!r} is damaged: {error}") from error
