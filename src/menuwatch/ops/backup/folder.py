"""The folder of a backup.

    manifest.json     content of the backup; replaced atomically once everything is there
    objects/ab/ab…    contents, each named by its SHA-256 and written atomically
    journal           what an unfinished backup has copied: the next one continues from there
    lock              held by the process that makes a backup there

Contents never change, so the backup of the current manifest stays usable while the next one is made.
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
from typing import IO

import msgspec
from msgspec import Struct

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.fsync import sync_folder
from menuwatch.db.file_lock import FileLock
from menuwatch.ops.backup import manifest as manifests
from menuwatch.ops.backup.manifest import File, Manifest

_OBJECTS, _JOURNAL, _LOCK = "objects", "journal", "lock"
_OURS = frozenset({manifests.NAME, f".{manifests.NAME}.part", _OBJECTS, _JOURNAL, _LOCK})
_PIECE = 1 << 20
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a backup or restore. `what` describes it; `done` of `total` units, `total` 0 if unknown."""

    what: str
    done: int = 0
    total: int = 0


OnProgress = Callable[[Step], object]


def no_progress(_: Step) -> None:
    """Ignores progress."""


class NotDone(MenuwatchError):
    """A disk error; the message names the operation and how to continue."""


@contextlib.contextmanager
def on_disk(what: str, again: str) -> Iterator[None]:
    """Turns disk errors during `what` into NotDone, saying that the command `again` continues."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        where = f" ({error.filename})" if error.filename else ""
        why = "no space left" if full else f"{error.strerror or error}{where}"
        raise NotDone(f"{what} stopped: {why}. Run {again} again to continue") from error


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file in chunks."""
    while piece := file.read(_PIECE):
        yield piece


def hash_of(place: Path) -> str:
    """SHA-256 of a file."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_content(file: IO[bytes]) -> str:
    """SHA-256 of a stored content."""
    digest = hashlib.sha256()
    for piece in pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def write_whole(place: Path, content: bytes) -> None:
    """Replaces a file atomically."""
    part = place.with_name(f".{place.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
    sync_folder(place.parent)


class Written(Struct, frozen=True, kw_only=True):
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
        """Path of the content with that hash, if it exists."""
        return self._objects / sha256[:2] / sha256

    def has(self, sha256: str, size: int) -> bool:
        """Whether a content with that hash and size exists. It was complete when written; only reading it shows whether it still
        is."""
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
        """The finished backup in the folder. Raises Refused if there is none, naming the case."""
        manifest = self.manifest()
        if manifest is not None:
            return manifest
        if not self.root.is_dir():
            raise Refused(f"{self.root} is not a directory")
        if self._objects.is_dir() or self._journal.exists():
            raise Refused(
                f"the backup in {self.root} is unfinished, {manifests.NAME} is missing: "
                f"run `menuwatch backup {self.root}` on that installation to complete it"
            )
        raise Refused(f"{self.root} is not a backup: {manifests.NAME} is missing")

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """The folder, made where it is missing, for one backup at a time. Raises Refused where it holds anything else."""
        if not self.root.parent.is_dir():
            raise Refused(f"{self.root}: the folder {self.root.parent} does not exist; create it first")
        try:
            # It holds hashes of passwords, and passwords of proxies where SECRET_KEY is not set.
            self.root.mkdir(mode=0o700, exist_ok=True)
            others = sorted(one.name for one in self.root.iterdir() if one.name not in _OURS)
            if others:
                named = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
                raise Refused(
                    f"{self.root} contains other files ({named}): choose an empty directory, or one with an earlier backup"
                )
            lock = FileLock(self.root / _LOCK)
        except FileExistsError:
            raise Refused(f"{self.root} is a file, not a directory") from None
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
        """Keeps backups from changing the folder meanwhile; takes no lock on a read-only folder. Raises Refused while a backup is
        being made."""
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
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:

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
        files = {file.path: file for file in (last.files if last else ())}
        if self._journal.exists():
            for line in self._journal.read_bytes().split(b"\n"):
                # The last line may be half of one.
                with contextlib.suppress(msgspec.DecodeError):
                    file = msgspec.json.decode(line, type=File)
                    files[file.path] = file
        return files

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
        """Completes the backup by writing its manifest."""
        # Those too that a backup brought which was killed before it could say so to the disk.
        for folder in sorted({place.parent for place in self.objects()}):
            sync_folder(folder)
        sync_folder(self._objects)
        write_whole(self.root / manifests.NAME, manifest.encoded())
        self._journal.unlink(missing_ok=True)

    def drop_all_but(self, kept: Mapping[str, int]) -> int:
        """Removes contents that the backup does not need; returns how many."""
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
        yield from sorted(self._objects.glob("*/*"))


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `kind` is missing, damaged, or extra (nothing is wrong but that it is not needed); `path` is what it
    is a fault of: a file of the installation, a table, or a file of the folder."""

    kind: str
    path: str
    object: str
    detail: str


def faults(folder: Folder, manifest: Manifest, progress: OnProgress = no_progress) -> Iterator[Fault]:
    """Faults in the contents that the manifest names."""
    owners: dict[str, str] = {}
    for table in manifest.tables:
        owners.setdefault(table.sha256, f"table {table.name}")
    for file in manifest.files:
        owners.setdefault(file.sha256, file.path)
    for number, (sha256, size) in enumerate(manifest.objects().items(), 1):
        place = folder.place(sha256)
        where = str(place.relative_to(folder.root))
        progress(Step(what="Reading the backup", done=number, total=len(owners)))
        try:
            there = place.stat().st_size
            if there != size:
                detail = f"size is {there:,} bytes, expected {size:,}"
            elif hash_of(place) != sha256:
                detail = "its content is not what was backed up (sha256)"
            else:
                continue
            yield Fault(kind="damaged", path=owners[sha256], object=where, detail=detail)
        except FileNotFoundError:
            yield Fault(kind="missing", path=owners[sha256], object=where, detail=f"{where} is missing")
        except OSError as error:
            yield Fault(
                kind="damaged", path=owners[sha256], object=where, detail=f"it cannot be read: {error.strerror}"
            )


def extras(folder: Folder, manifest: Manifest) -> Iterator[Fault]:
    """Contents that the manifest does not name, usually of a newer unfinished backup."""
    needed = manifest.objects()
    for place in folder.objects():
        if place.name not in needed:
            where = str(place.relative_to(folder.root))
            yield Fault(
                kind="extra", path=where, object=where, detail="the backup does not need it; the next one removes it"
            )
