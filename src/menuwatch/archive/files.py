"""The payloads in the storage.

A payload and its row in `raw_crawl_payloads` are created together: `stage`, the row's transaction, then `publish` or `discard`
(menuwatch/storage/base.py). A reader checks staged payloads too, so every row has a file. The row's sha256 tells which of several
attempts at one path belongs to it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path, PurePosixPath

from menuwatch.archive import document, gzip
from menuwatch.archive.document import Document
from menuwatch.core.errors import Refused, Transient
from menuwatch.storage.base import Incoming, Storage, place_of
from menuwatch.storage.service import as_storage, describe_failure

FOLDER = "payloads"
"""Folder below the storage root."""
LARGEST = 400_000_000
"""Maximum unpacked bytes of a document without a row: a menu's 256 MB, and a third more for Base64."""
LEVEL = 2
"""Default compression level; see docs/decisions/0009-archive-compression-level.md."""
ORPHAN_SECONDS = 3600.0
"""A staged file without a row may belong to an open transaction until it is older than any task can be."""


class Missing(Refused):
    """A path that has no file."""


class Damaged(Refused):
    """A file whose content differs from what was archived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged(Incoming):
    """A newly staged file. Sizes in bytes; `raw_size` and `sha256` are of the document before compression."""

    size: int
    raw_size: int
    sha256: str
    content_sha256: str


class FileArchive:
    """Payloads in a storage, at payloads/{year}/{month}/{day}/store_{id}_{ts}.json.gz."""

    def __init__(self, storage: Storage | Path, *, level: int = LEVEL) -> None:
        self.storage = as_storage(storage)
        self._level = level

    def _checked(self, path: str) -> str:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or pure.parts[:1] != (FOLDER,):
            raise Refused(f"{path!r} is not an archive path")
        return path

    def stage(self, dispensary_id: int, doc: Document, *, strict: Collection[int] = ()) -> Staged:
        """Writes the document so that a crash leaves no partial file; raises Transient if the disk is full or fails. `strict` are the
        positions of pages known to be strict JSON.
        """
        composed = document.compose(doc, strict=strict)
        at = doc.fetched_at.astimezone(UTC)
        # %Y does not pad years before 1000.
        year, day, instant = f"{at.year:04d}", f"{at:%m/%d}", f"{at:%m%dT%H%M%S}{at.microsecond:06d}Z"
        path = f"payloads/{year}/{day}/store_{dispensary_id}_{year}{instant}.json.gz"
        digest = hashlib.sha256()
        packer = gzip.packer(self._level)
        packed: list[bytes] = []
        for piece in composed.answers:
            digest.update(piece)
            packed.append(packer.compress(piece))
        content = digest.hexdigest()
        digest.update(composed.about)
        packed += (packer.compress(composed.about), packer.flush())
        try:
            file = self.storage.stage(path, b"".join(packed))
        except OSError as error:
            raise Transient(f"the payload could not be archived: {describe_failure(error)}") from error
        return Staged(
            path=path,
            name=file.name,
            placed=file.placed,
            size=sum(map(len, packed)),
            raw_size=sum(map(len, composed.answers)) + len(composed.about),
            sha256=digest.hexdigest(),
            content_sha256=content,
        )

    def publish(self, file: Incoming) -> None:
        """Makes a staged file final; idempotent."""
        self._checked(file.path)
        self.storage.publish(file)

    def discard(self, file: Incoming, *, unused: bool = False) -> None:
        """Removes a staged file. `unused`: it is certain that no row has or will get its path."""
        self.storage.discard(file, unused=unused)

    def remove(self, paths: Collection[str]) -> None:
        """Removes published files; missing ones are skipped. Raises OSError."""
        self.storage.remove_all([self._checked(path) for path in paths])

    def has(self, path: str, size: int) -> bool:
        """Whether a file of that many bytes is published under that path."""
        entry = self.storage.stat(self._checked(path))
        return entry is not None and entry.size == size

    def staged(self) -> Iterator[tuple[Incoming, float]]:
        """Every staged file, and its age in seconds."""
        return self.storage.staged(FOLDER)

    def holds(self, file: Incoming, sha256: str) -> bool:
        """Whether the staged file is the document with that hash; False also if it is missing or damaged. A file at its final path
        is what its row refers to."""
        with contextlib.suppress(FileNotFoundError, Damaged):
            return file.placed or _is(self._bytes(place_of(file), LARGEST), sha256, LARGEST)
        return False

    def packed(self, path: str, sha256: str | None = None, raw_bytes: int = LARGEST) -> bytes:
        """The compressed file, byte for byte; if several are staged for that path, the one whose document has the hash
        `sha256`. Raises Missing, and Damaged if it is larger than a document of `raw_bytes` can be.
        """
        self._checked(path)
        for _ in range(2):  # it may be published during the search of the staged files
            with contextlib.suppress(FileNotFoundError):
                return self._bytes(path, raw_bytes)
            staged = list(self._candidates(path, raw_bytes))
            if staged:
                return next((found for found in staged if sha256 is None or _is(found, sha256, raw_bytes)), staged[0])
        raise Missing(f"the archive has no file {path!r}: it was removed, or {self.storage.setting} points elsewhere")

    def _candidates(self, path: str, raw_bytes: int) -> Iterator[bytes]:
        for entry in self.storage.staged_at(path):
            with contextlib.suppress(FileNotFoundError, Damaged):
                yield self._bytes(entry.path, raw_bytes)

    def _bytes(self, path: str, raw_bytes: int) -> bytes:
        """The file's bytes. Raises Damaged if they are more than a document of that size can have, compressed."""
        most = raw_bytes + raw_bytes // 100 + 1000
        # Most payloads are read once, when they are applied. A day's payloads kept in memory would push out as much of the database.
        data = self.storage.get(path, most + 1, evict=True)
        if len(data) > most:
            raise Damaged(f"the archive file {path!r} is damaged: it is larger than its document")
        return data

    def unpacked(self, path: str, sha256: str | None = None, raw_bytes: int = LARGEST) -> bytes:
        """The document's bytes. Raises Missing, and Damaged for a file that cannot be read, unpacks to more than `raw_bytes` or has
        another hash than `sha256`."""
        return self.unpack(path, self.packed(path, sha256, raw_bytes), sha256, raw_bytes)

    def unpack(self, path: str, packed: bytes, sha256: str | None = None, raw_bytes: int = LARGEST) -> bytes:
        """The document in the bytes of a file. Raises Damaged, as `unpacked`; `path` is for its message."""
        try:
            return _unpack(packed, sha256, raw_bytes)
        except _Damaged as error:
            raise Damaged(f"the archive file {path!r} is damaged: {error}") from error

    def read(self, path: str, sha256: str | None = None, raw_bytes: int = LARGEST) -> Document:
        """The document at that path. Raises Missing, and Damaged also for a file that is not a document."""
        data = self.unpacked(path, sha256, raw_bytes)
        try:
            return document.decode(data)
        except Refused as error:
            raise Damaged(str(error)) from error

    def check(self) -> None:
        """Checks that the storage is writable; raises Refused with the reason."""
        self.storage.check()


class _Damaged(Exception):
    pass


def _is(packed: bytes, expected: str, raw_bytes: int) -> bool:
    with contextlib.suppress(_Damaged):
        _unpack(packed, expected, raw_bytes)
        return True
    return False


def _unpack(packed: bytes, expected: str | None, raw_bytes: int) -> bytes:
    try:
        data = gzip.unpack(packed, raw_bytes)
    except gzip.Damaged as error:
        raise _Damaged(str(error)) from error
    if expected is not None and hashlib.sha256(data).hexdigest() != expected:
        raise _Damaged("its content is not what was archived (sha256)")
    return data
