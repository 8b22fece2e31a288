"""Making a backup: the rows as they are at one moment, then the files that belong to it, then the manifest.

Files are only ever added by those who work, and each is whole when its row is committed; so files that are read after the rows hold
all that the rows name. What an operator removes meanwhile (`images verify --repair`) is named in the manifest.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import menuwatch
from menuwatch.backup import marker
from menuwatch.backup.dump import dump
from menuwatch.backup.folder import Folder, on_disk, pieces
from menuwatch.backup.manifest import FORMAT, File, Manifest
from menuwatch.backup.progress import Step, Told, nobody
from menuwatch.backup.tree import Entry, Tree
from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)
_TRIES = 3


class Made(msgspec.Struct, frozen=True, kw_only=True):
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
    url: str, storage: Path, into: Path, *, settings: Sequence[str] = (), reread: bool = False, told: Told = nobody
) -> Made:
    """Backs up the database at `url` and the files below `storage` into the folder `into`.

    `settings` are names of those that are set. `reread` believes nothing that an earlier backup has found: every file is read again,
    and what the folder holds as well; what is damaged there is replaced. Raises Refused where it cannot be, NotDone where a disk
    fails.
    """
    _apart(storage, into)
    marker.refuse_unfinished(storage)
    folder = Folder(into)
    with folder.filling(), on_disk(f"the backup in {into}", f"`menuwatch backup {into}`"):
        began, made_at = time.time(), datetime.now(UTC)
        if reread:
            for number in folder.drop_damaged():
                told(Step(what="Reading what earlier backups have", done=number))
        dumped = dump(url, folder, told)
        files = _Files(
            folder=folder,
            tree=Tree(storage),
            named=dumped.named,
            needed=dumped.needed,
            known={} if reread else folder.known(),
            told=told,
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
        told(Step(what="Writing the manifest"))
        folder.finish(manifest)
        told(Step(what="Removing what no backup needs any more"))
        folder.drop_all_but(manifest.objects())
    made = Made(
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
        "backup made", action="backup_made", backup=made.backup, files=made.files, rows=made.rows, copied=made.copied
    )
    return made


def _apart(storage: Path, into: Path) -> None:
    inside, outside = into.resolve(), storage.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise Refused(
            f"{into} and the storage folder {storage} lie in each other: name a folder elsewhere, best on another disk"
        )


@dataclass(slots=True, kw_only=True)
class _Files:
    folder: Folder
    tree: Tree
    named: set[str]
    needed: set[str]
    known: dict[str, File]
    told: Told
    taken: dict[str, File] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    copied: int = 0
    copied_bytes: int = 0
    _inodes: dict[tuple[int, int], File] = field(default_factory=dict)
    """One file may have many names, and is read once."""

    def take_all(self, began: float, note: Callable[[File], None]) -> None:
        for _ in range(_TRIES):
            gone = 0
            for entry in self.tree.of_moment(self.named, began):
                if entry.path not in self.taken:
                    gone += not self._take(entry, note)
            # What is renamed or put together while this looks may be seen under neither name; nobody does so all the time.
            if not gone:
                break
        self.missing = [path for path in self.needed - self.taken.keys() if not self._found(path, note)]

    def _found(self, path: str, note: Callable[[File], None]) -> bool:
        """Whether a file is there that was published since, or is staged still."""
        for _ in range(_TRIES):
            entries = [one for one in (self.tree.entry(path), *self.tree.staged(path)) if one is not None]
            if entries and sum(self._take(entry, note) for entry in entries) == len(entries):
                return True
        return False

    def _take(self, entry: Entry, note: Callable[[File], None]) -> bool:
        """Whether it was still there."""
        file = self._known(entry)
        if file is None:
            with contextlib.suppress(FileNotFoundError), (self.tree.root / entry.path).open("rb") as source:
                written = self.folder.put(lambda take: [take(piece) for piece in pieces(source)])
                file = File(path=entry.path, size=written.size, sha256=written.sha256, mtime_ns=entry.mtime_ns)
                self.copied += written.new
                self.copied_bytes += written.size * written.new
                note(file)
        if file is None:
            return False
        self.taken[file.path] = self._inodes[entry.inode] = file
        self.told(Step(what="Copying files", done=len(self.taken), total=len(self.named)))
        return True

    def _known(self, entry: Entry) -> File | None:
        """The file as it is in the folder: under its name or another, if neither its size nor its time has changed since."""
        for one in (self.known.get(entry.path), self._inodes.get(entry.inode)):
            same = one is not None and (one.size, one.mtime_ns) == (entry.size, entry.mtime_ns)
            if one is not None and same and self.folder.has(one.sha256, one.size):
                return msgspec.structs.replace(one, path=entry.path)
        return None
