"""The folder that a backup lies in.

    manifest.json     what the backup consists of; replaced whole, when all of it is there
    objects/ab/ab…    contents, each named by its SHA-256 and there only when it is whole
    journal           what an unfinished backup has copied: the next one goes on from there
    lock              held by whoever makes a backup there

Contents are never changed, so the backup that a manifest describes stays usable while the next one is made.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from menuwatch.backup import manifest as manifests
from menuwatch.backup.manifest import File, Manifest
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.db.file_lock import FileLock

_OBJECTS, _JOURNAL, _LOCK = "objects", "journal", "lock"
_OURS = frozenset({manifests.NAME, f".{manifests.NAME}.part", _OBJECTS, _JOURNAL, _LOCK})
_PIECE = 1 << 20
_NAMED = 3


class NotDone(MenuwatchError):
    """A disk would not take it; the message says what was being done and how it goes on."""


@contextlib.contextmanager
def on_disk(what: str, again: str) -> Iterator[None]:
    """Says in words what went wrong with the disk while `what`, and that `again` goes on from there."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        where = f" ({error.filename})" if error.filename else ""
        why = "there is no room left" if full else f"{error.strerror or error}{where}"
        raise NotDone(f"{what} stopped: {why}. {again} goes on from there") from error


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, bit by bit."""
    while piece := file.read(_PIECE):
        yield piece


def hash_of(place: Path) -> str:
    """SHA-256 of a file."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(place: Path, content: bytes) -> None:
    """Replaces a file so that it is the old one or the new one, whatever happens."""
    part = place.with_name(f".{place.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
    sync_folder(place.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A content that is in the folder now; `new` where it was not before."""

    sha256: str
    size: int
    new: bool


class Folder:
    """A backup's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects = root / _OBJECTS
        self._journal = root / _JOURNAL

    def place(self, sha256: str) -> Path:
        """Where the content with that hash lies, if it is there."""
        return self._objects / sha256[:2] / sha256

    def has(self, sha256: str, size: int) -> bool:
        """Whether a content of that hash and size is there. It was whole when it came; whether it still is, only reading it tells."""
        with contextlib.suppress(FileNotFoundError):
            return self.place(sha256).stat().st_size == size
        return False

    def manifest(self) -> Manifest | None:
        """What lies there, None where no backup was finished. Raises Refused for one that cannot be read."""
        place = self.root / manifests.NAME
        try:
            data = place.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Refused(f"{place} cannot be read: {error.strerror}") from error
        return manifests.decode(data, place)

    def finished(self) -> Manifest:
        """The backup that lies there. Raises Refused where none was finished, in words that say which case it is."""
        found = self.manifest()
        if found is not None:
            return found
        if not self.root.is_dir():
            raise Refused(f"{self.root} is no folder: name the folder of a backup")
        if self._objects.is_dir() or self._journal.exists():
            raise Refused(
                f"the backup in {self.root} was not finished: it has no {manifests.NAME}. "
                f"`menuwatch backup {self.root}`, where the installation is, goes on with it"
            )
        raise Refused(f"{self.root} holds no backup: it has no {manifests.NAME}")

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """The folder, made where it is missing, for one backup at a time. Raises Refused where it holds anything else."""
        if not self.root.parent.is_dir():
            raise Refused(f"{self.root}: there is no folder {self.root.parent}; make it first")
        try:
            # It holds hashes of passwords, and passwords of proxies where SECRET_KEY is not set.
            self.root.mkdir(mode=0o700, exist_ok=True)
            others = sorted(one.name for one in self.root.iterdir() if one.name not in _OURS)
            if others:
                named = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
                raise Refused(
                    f"{self.root} holds something else ({named}): name an empty folder, or one with an earlier backup"
                )
            lock = FileLock(self.root / _LOCK)
        except FileExistsError:
            raise Refused(f"{self.root} is a file, and a folder is to be written: name another") from None
        except OSError as error:
            raise Refused(f"{self.root} cannot be written: {error.strerror}") from error
        with lock:
            if not lock.try_exclusive():
                raise Refused(f"{self.root} is in use by another backup or a restore: wait until that is done")
            self._objects.mkdir(exist_ok=True)
            for part in self._objects.glob(".*.part"):
                part.unlink()
            yield

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keeps backups from changing the folder meanwhile; where it cannot be written, nobody else does either. Raises Refused while
        one is being made."""
        try:
            handle = os.open(self.root / _LOCK, os.O_RDONLY)
        except OSError:
            yield
            return
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(f"a backup is being made in {self.root}: wait until it is done") from None
            yield
        finally:
            os.close(handle)

    def put(self, fill: Callable[[Callable[[bytes], object]], object]) -> Written:
        """Takes in a content: `fill` is given what to call with each piece of it. On disk when this returns."""
        part = self._objects / f".{uuid.uuid4().hex}.part"
        digest, size = hashlib.sha256(), 0
        try:
            with _private(part) as file:

                def take(piece: bytes) -> None:
                    nonlocal size
                    digest.update(piece)
                    size += len(piece)
                    file.write(piece)

                fill(take)
                sha256 = digest.hexdigest()
                if self.has(sha256, size):
                    part.unlink()
                    return Written(sha256=sha256, size=size, new=False)
                file.flush()
                os.fsync(file.fileno())
            final = self.place(sha256)
            final.parent.mkdir(exist_ok=True)
            part.rename(final)
            sync_folder(final.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        return Written(sha256=sha256, size=size, new=True)

    def known(self) -> dict[str, File]:
        """Files whose content came in before, by path: with the last backup, or with one that was not finished since."""
        last = self.manifest()
        found = {file.path: file for file in (last.files if last else ())}
        if self._journal.exists():
            for line in self._journal.read_bytes().split(b"\n"):
                # The last line may be half of one.
                with contextlib.suppress(msgspec.DecodeError):
                    file = msgspec.json.decode(line, type=File)
                    found[file.path] = file
        return found

    @contextlib.contextmanager
    def journal(self) -> Iterator[Callable[[File], None]]:
        """What to call with each file whose content is in the folder."""
        with self._journal.open("ab") as file:
            file.write(b"\n")

            def note(one: File) -> None:
                file.write(msgspec.json.encode(one) + b"\n")
                file.flush()

            yield note

    def finish(self, manifest: Manifest) -> None:
        """Makes it the backup that lies here."""
        # Those too that a backup brought which was killed before it could say so to the disk.
        for folder in sorted({place.parent for place in self.objects()}):
            sync_folder(folder)
        sync_folder(self._objects)
        write_whole(self.root / manifests.NAME, manifest.encoded())
        self._journal.unlink(missing_ok=True)

    def drop_all_but(self, kept: Mapping[str, int]) -> int:
        """Removes contents that the backup does not need any more; returns how many."""
        gone = 0
        for place in self.objects():
            if place.name not in kept:
                place.unlink()
                gone += 1
        return gone

    def drop_damaged(self) -> Iterator[int]:
        """Removes contents that are not what their names say; gives how many it has read."""
        for number, place in enumerate(self.objects(), 1):
            if hash_of(place) != place.name:
                place.unlink()
            yield number

    def objects(self) -> Iterator[Path]:
        """Every file among the contents."""
        yield from (place for place in sorted(self._objects.glob("*/*")))


def _private(place: Path) -> BinaryIO:
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
