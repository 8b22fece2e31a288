"""Making a backup: the rows as they are at one moment, then the files that belong to it, then the manifest.

Files are only ever added by those who work, and each is whole when its row is committed; so files that are read after the rows hold
all that the rows name. What an operator removes meanwhile (`images verify --repair`) is named in the manifest.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

import menuwatch
from menuwatch.core.errors import Refused
from menuwatch.core.logging import get_logger
from menuwatch.ops.backup.folder import Folder, OnProgress, Step, no_progress, on_disk, pieces
from menuwatch.ops.backup.manifest import FORMAT, File, Manifest
from menuwatch.ops.backup.mark import refuse_unfinished
from menuwatch.ops.backup.tables import dump
from menuwatch.storage.base import Entry, Storage
from menuwatch.storage.local import LocalStorage
from menuwatch.storage.service import as_storage

log = get_logger(__name__)
_TRIES = 3
_PACKED = "history/"
_PARQUET = b"PAR1"
ORPHAN_SECONDS = 3600.0
"""A file that no row names and that is younger may belong to a transaction that was open at the moment."""


class BackupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup consists of now. Sizes are in bytes; `copied` files were not there before."""

    backup: str
    made_at: datetime
    revision: str
    tables: int
    rows: int
    files: int
    bytes: int
    copied: int
    copied_bytes: int
    missing: list[str]
    left_out: list[str]


def make(
    url: str,
    storage: Storage | Path,
    into: Path,
    *,
    settings: Sequence[str] = (),
    reread: bool = False,
    progress: OnProgress = no_progress,
) -> BackupResult:
    """Backs up the database at `url` and the files in `storage` into the folder `into`.

    `settings` are names of those that are set. `reread` believes nothing that an earlier backup has found: every file is read again,
    and what the folder holds as well; what is damaged there is replaced. Raises Refused where it cannot be, NotDone where a disk
    fails.
    """
    storage = as_storage(storage)
    if isinstance(storage, LocalStorage):
        inside, outside = into.resolve(), storage.root.resolve()
        if inside.is_relative_to(outside) or outside.is_relative_to(inside):
            raise Refused(f"{into} overlaps {storage.where}: choose another directory, preferably on another disk")
    refuse_unfinished(storage)
    folder = Folder(into)
    with folder.filling(), on_disk(f"the backup in {into}", f"`menuwatch backup {into}`"):
        began, made_at = time.time(), datetime.now(UTC)
        if reread:
            for number in folder.drop_damaged():
                progress(Step(what="Reading what earlier backups have", done=number))
        dumped = dump(url, folder, progress)
        files = _Files(
            folder=folder,
            tree=Tree(storage),
            named=dumped.named,
            needed=dumped.needed,
            known={} if reread else folder.known(),
            progress=progress,
        )
        with folder.journal() as note:
            files.take_all(began, note)
        manifest = Manifest(
            format=FORMAT,
            made_at=made_at,
            menuwatch=menuwatch.__version__,
            postgresql=dumped.postgresql,
            revision=dumped.revision,
            tables=dumped.tables,
            parts=dumped.parts,
            sequences=dumped.sequences,
            files=sorted(files.taken.values(), key=lambda file: file.path),
            settings=sorted(settings),
            missing=sorted(files.missing),
            left_out=dumped.left_out,
        ).sealed()
        progress(Step(what="Writing the manifest"))
        folder.finish(manifest)
        progress(Step(what="Removing unused content"))
        folder.drop_all_but(manifest.objects())
    result = BackupResult(
        backup=manifest.sha256,
        made_at=made_at,
        revision=manifest.revision,
        tables=len(manifest.tables),
        rows=sum(table.rows for table in manifest.tables),
        files=len(manifest.files),
        bytes=sum(manifest.objects().values()),
        copied=files.copied,
        copied_bytes=files.copied_bytes,
        missing=manifest.missing,
        left_out=manifest.left_out,
    )
    log.info(
        "backup made",
        action="backup_made",
        backup=result.backup,
        files=result.files,
        rows=result.rows,
        copied=result.copied,
    )
    return result


class _Files(Struct, kw_only=True):
    folder: Folder
    tree: Tree
    named: set[str]
    needed: set[str]
    known: dict[str, File]
    progress: OnProgress
    taken: dict[str, File] = {}
    missing: list[str] = []
    copied: int = 0
    copied_bytes: int = 0
    _contents: dict[Hashable, File] = {}
    """One file may have many names, and is read once."""

    def take_all(self, began: float, note: Callable[[File], None]) -> None:
        for _ in range(_TRIES):
            gone = 0
            for entry in self.tree.of_moment(self.named, began):
                if entry.path not in self.taken:
                    gone += not self._take(entry, note)
            # A file renamed or assembled during the scan may be seen under neither name; a few passes are enough.
            if not gone:
                break
        self.missing = [path for path in self.needed - self.taken.keys() if not self._found(path, note)]

    def _found(self, path: str, note: Callable[[File], None]) -> bool:
        """Whether a file is there that was published since, or is staged still."""
        for _ in range(_TRIES):
            entries = [entry for entry in (self.tree.entry(path), *self.tree.staged(path)) if entry is not None]
            if entries and sum(self._take(entry, note) for entry in entries) == len(entries):
                return True
        return False

    def _take(self, entry: Entry, note: Callable[[File], None]) -> bool:
        """Whether it was still there."""
        file = self._known(entry)
        if file is None:
            with contextlib.suppress(FileNotFoundError), self.tree.storage.open(entry.path) as source:
                written = self.folder.put(lambda take: [take(piece) for piece in pieces(source)])
                file = File(path=entry.path, size=written.size, sha256=written.sha256, mtime_ns=entry.mtime_ns)
                self.copied += written.new
                self.copied_bytes += written.size * written.new
                note(file)
        if file is None:
            return False
        self.taken[file.path] = self._contents[entry.identity] = file
        self.progress(Step(what="Copying files", done=len(self.taken), total=len(self.named)))
        return True

    def _known(self, entry: Entry) -> File | None:
        """The file as it is in the folder: under its name or another, if neither its size nor its time has changed since."""
        for file in (self.known.get(entry.path), self._contents.get(entry.identity)):
            same = file is not None and (file.size, file.mtime_ns) == (entry.size, entry.mtime_ns)
            if file is not None and same and self.folder.has(file.sha256, file.size):
                return msgspec.structs.replace(file, path=entry.path)
        return None


class Tree:
    """The files of a storage."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def entry(self, path: str) -> Entry | None:
        """The file of that path; None where there is none."""
        return self.storage.stat(path)

    def of_moment(self, named: set[str], began: float) -> Iterator[Entry]:
        """Files that rows of the snapshot name, and files that no row has named for long. Files published meanwhile may be
        missed, so callers look for missing names afterwards."""
        for entry in self.storage.walk(""):
            if entry.path in named or entry.changed < began - ORPHAN_SECONDS or self._is_pack(entry.path):
                yield entry

    def staged(self, path: str) -> list[Entry]:
        """Files that a worker wrote for that path of the archive and has not moved there yet."""
        return self.storage.staged_at(path)

    def _is_pack(self, path: str) -> bool:
        """Whether it is a whole file of packed history: no row names these. Half of one has no end yet."""
        if not path.startswith(_PACKED):
            return False
        with contextlib.suppress(OSError), self.storage.open(path) as file:
            file.seek(-len(_PARQUET), os.SEEK_END)
            return file.read() == _PARQUET
        return False
