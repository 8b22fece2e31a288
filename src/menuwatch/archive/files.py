"""The archive on a file system.

A file and its row in `raw_crawl_payloads` come into being together or not at all:

    stage()        .incoming/<path>~<unique> written and synced    no row
    (transaction)  the row is inserted and committed               row, file still in .incoming
    publish()      renamed to its final path                       row and file

A rollback leaves the staged file to `discard`; a crash leaves it to the next start, which publishes it when its row was committed
and deletes it when not. A reader looks in both places, so a row always has its file. Every staged file has a name of its own: two
attempts at one path never touch each other's file, and the row's sha256 tells which of them it is the row of.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path, PurePosixPath

from menuwatch.archive import document, gzip
from menuwatch.archive.document import Document
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import Refused, Transient

_INCOMING = ".incoming"
LEVEL = 2
"""Of compression, where nothing else is said: docs/decisions/0009-archived-quickly.md says why."""


class Missing(Refused):
    """A path that has no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A file that is written but not yet published. `path` is where it belongs, relative to the storage root; `name` is its own."""

    path: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged(Incoming):
    """A file that was staged a moment ago. Sizes in bytes, `raw_size` and `sha256` of the document before compression."""

    size: int
    raw_size: int
    sha256: str
    content_sha256: str


class FileArchive:
    """Payload files below `root` (`STORAGE_PATH`), at payloads/{year}/{month}/{day}/store_{id}_{ts}.json.gz."""

    def __init__(self, root: Path, *, level: int = LEVEL) -> None:
        self._root = root
        self._level = level

    @property
    def root(self) -> Path:
        """The storage root."""
        return self._root

    def _final(self, path: str) -> Path:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or pure.parts[:1] != ("payloads",):
            raise Refused(f"{path!r} is no path of the archive")
        return self._root / pure

    @property
    def _waiting(self) -> Path:
        return self._root / "payloads" / _INCOMING

    def stage(self, dispensary_id: int, doc: Document, *, strict: Collection[int] = ()) -> Staged:
        """Writes the document where a crash cannot leave half of it; raises Transient when the disk is full or fails. `strict` are
        positions of pages that are known to be strict JSON."""
        composed = document.compose(doc, strict=strict)
        at = doc.fetched_at.astimezone(UTC)
        path = f"payloads/{at:%Y/%m/%d}/store_{dispensary_id}_{at:%Y%m%dT%H%M%S}{at.microsecond:06d}Z.json.gz"
        name = f"{_flat(path)}~{uuid.uuid4().hex}"
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
            self._write(self._waiting / name, packed)
        except OSError as error:
            why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
            raise Transient(f"the payload could not be archived: {why}") from error
        return Staged(
            path=path,
            name=name,
            size=sum(map(len, packed)),
            raw_size=sum(map(len, composed.answers)) + len(composed.about),
            sha256=digest.hexdigest(),
            content_sha256=content,
        )

    def _write(self, target: Path, pieces: Sequence[bytes]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(target.parent)
        except OSError:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
            raise

    def publish(self, file: Incoming) -> None:
        """Moves a staged file to its place; does nothing when somebody else has done so."""
        final = self._final(file.path)
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            (self._waiting / file.name).rename(final)
        except FileNotFoundError:
            if not final.exists():
                raise
            return
        sync_folder(final.parent)

    def discard(self, file: Incoming) -> None:
        """Removes a staged file whose row was rolled back."""
        (self._waiting / file.name).unlink(missing_ok=True)

    def has(self, path: str, size: int) -> bool:
        """Whether a file of that many bytes is published under that path."""
        with contextlib.suppress(FileNotFoundError):
            return self._final(path).stat().st_size == size
        return False

    def settle(self, staged: Staged) -> Callable[[bool], None]:
        """What to call when the fate of the row's transaction is known."""

        def known(committed: bool) -> None:
            if committed:
                self.publish(staged)
            else:
                self.discard(staged)

        return known

    def staged(self) -> Iterator[tuple[Incoming, float]]:
        """Every staged file, and its age in seconds."""
        now = time.time()
        for file in sorted(self._waiting.iterdir()) if self._waiting.is_dir() else ():
            flat, mark, _ = file.name.partition("~")
            with contextlib.suppress(FileNotFoundError):
                if mark:
                    yield Incoming(path=flat.replace("__", "/"), name=file.name), now - file.stat().st_mtime

    def holds(self, file: Incoming, sha256: str) -> bool:
        """Whether the staged file is the document with that hash; False also when it is gone or damaged."""
        with contextlib.suppress(FileNotFoundError):
            return _is(self._waiting.joinpath(file.name).read_bytes(), sha256)
        return False

    def packed(self, path: str, sha256: str | None = None) -> bytes:
        """The file's own bytes, gzip-compressed; of several staged ones for that path the one whose document has the hash
        `sha256`. Raises Missing when there is no such file."""
        final = self._final(path)
        for _ in range(2):  # it may be published while we look among the staged ones
            with contextlib.suppress(FileNotFoundError):
                return final.read_bytes()
            staged = list(self._candidates(path))
            if staged:
                return next((found for found in staged if sha256 is None or _is(found, sha256)), staged[0])
        raise Missing(f"the archive has no file {path!r}: it was removed, or STORAGE_PATH points elsewhere")

    def _candidates(self, path: str) -> Iterator[bytes]:
        for place in sorted(self._waiting.glob(f"{glob.escape(_flat(path))}~*")):
            with contextlib.suppress(FileNotFoundError):
                yield place.read_bytes()

    def unpacked(self, path: str, sha256: str | None = None) -> bytes:
        """The document's bytes. Raises Missing, and Refused when the file is damaged or not the one with the hash `sha256`."""
        try:
            return _unpack(self.packed(path, sha256), sha256)
        except _Damaged as error:
            raise Refused(f"the archive file {path!r} is damaged: {error}") from error

    def read(self, path: str, sha256: str | None = None) -> Document:
        """The document of that path. Raises Refused as `unpacked` does, and for a file that is no document."""
        return document.decode(self.unpacked(path, sha256))

    def check(self) -> None:
        """Proves that the root can be written and files can be renamed in it; raises Refused with the reason."""
        probe = self._waiting / f"probe-{uuid.uuid4().hex}"
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"probe")
            probe.rename(probe.with_suffix(".renamed")).unlink()
        except OSError as error:
            raise Refused(f"the storage folder {self._root} cannot be written: {error}") from error


class _Damaged(Exception):
    pass


def _flat(path: str) -> str:
    return path.replace("/", "__")


def _is(packed: bytes, expected: str) -> bool:
    with contextlib.suppress(_Damaged):
        _unpack(packed, expected)
        return True
    return False


def _unpack(packed: bytes, expected: str | None) -> bytes:
    try:
        data = gzip.unpack(packed)
    except gzip.Damaged as error:
        raise _Damaged(str(error)) from error
    if expected is not None and hashlib.sha256(data).hexdigest() != expected:
        raise _Damaged("its content is not what was archived (sha256)")
    return data
