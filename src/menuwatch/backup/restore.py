"""A backup into an empty installation: everything is looked at first, the files come next, then the rows, all of them at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from menuwatch.backup import marker
from menuwatch.backup.check import Fault, faults
from menuwatch.backup.dump import Connection, connect, tables_of
from menuwatch.backup.folder import Folder, hash_of, on_disk, pieces
from menuwatch.backup.load import load
from menuwatch.backup.manifest import File, Manifest, readable
from menuwatch.backup.marker import Mark
from menuwatch.backup.progress import Step, Told, nobody
from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import migrate
from menuwatch.db.file_lock import FileLock

log = get_logger(__name__)
_LOCK = ".restore.lock"
_NAMED = 5
_CACHE = "cache"


class Faulty(MenuwatchError):
    """A backup that is not what it was."""

    def __init__(self, message: str, found: Sequence[Fault]) -> None:
        super().__init__(message)
        self.faults = found


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was brought back. `before` is the backup's schema, `revision` that of the installation now."""

    backup: str
    made_at: datetime
    before: str
    revision: str
    tables: int
    rows: int
    files: int
    unset: list[str]
    """Settings that were set where the backup was made, and are not here."""


def named(found: Sequence[Fault], place: Path) -> str:
    """Faults as a sentence."""
    few = "; ".join(f"{fault.path}: {fault.kind}, {fault.detail}" for fault in found[:_NAMED])
    more = f"; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return f"the backup in {place} has {len(found):,} {'fault' if len(found) == 1 else 'faults'}: {few}{more}"


def restore(url: str, storage: Path, source: Path, *, settings: Sequence[str] = (), told: Told = nobody) -> Restored:
    """Fills the empty database at `url` and the empty folder `storage` from the backup in `source`.

    `settings` are names of those that are set. Raises Refused where it cannot be, Faulty for a backup that is damaged, NotDone where
    a disk fails, NotTheSame where the database did not keep what it was given.
    """
    folder = Folder(source)
    with folder.reading(), on_disk(f"the restore into {storage}", f"`menuwatch restore {source}`"):
        manifest = folder.finished()
        readable(manifest)
        storage.mkdir(parents=True, exist_ok=True)
        with FileLock(storage / _LOCK) as lock, connect(url) as conn:
            if not lock.try_exclusive():
                raise Refused(f"another restore into {storage} is under way")
            try:
                _all(conn, url, storage, source, folder, manifest, told)
            finally:
                (storage / _LOCK).unlink()
    log.info("backup restored", action="backup_restored", backup=manifest.sha256, revision=migrate.newest())
    return Restored(
        backup=manifest.sha256,
        made_at=manifest.made_at,
        before=manifest.revision,
        revision=migrate.newest(),
        tables=len(manifest.tables),
        rows=sum(table.rows for table in manifest.tables),
        files=len(manifest.files),
        unset=[name for name in manifest.settings if name not in settings],
    )


def _all(
    conn: Connection, url: str, storage: Path, source: Path, folder: Folder, manifest: Manifest, told: Told
) -> None:
    if _finish(conn, storage, manifest):
        return
    _begin(conn, storage, source, folder, manifest, told)
    _files(storage, folder, manifest, told)
    if marker.in_database(conn) != (manifest.sha256, True):
        from menuwatch.db.upgrade import upgrade  # loading it takes longer than most commands

        upgrade(url, manifest.revision)
        load(url, folder, manifest, told)
    told(Step(what="Bringing the database to this version's schema"))
    migrate.migrate(url)
    conn.execute("ANALYZE")
    marker.remove(storage)
    told(Step(what="Done"))
    _finish(conn, storage, manifest)


def _finish(conn: Connection, storage: Path, manifest: Manifest) -> bool:
    """Whether all was done but to say so in the database."""
    if marker.read(storage) is None and marker.in_database(conn) == (manifest.sha256, True):
        marker.end(conn)
        return True
    return False


def _begin(conn: Connection, storage: Path, source: Path, folder: Folder, manifest: Manifest, told: Told) -> None:
    """Goes on with this backup's restore, or begins it where nothing lies. Raises Refused where something does, Faulty for a backup
    that is not whole."""
    mark, within = marker.read(storage), marker.in_database(conn)
    for backup in {mark.backup if mark else None, within[0] if within else None} - {None, manifest.sha256}:
        raise Refused(
            f"a restore of another backup ({str(backup)[:12]}) was begun here: go on with that, or empty both"
        )
    if mark is None and (lies := _files_there(storage)):
        raise Refused(f"{storage} is not empty, so nothing is restored into it: {lies}; empty it, or set STORAGE_PATH")
    if within is None and (lies := _rows_there(conn)):
        raise Refused(
            f"the database is not empty, so nothing is restored into it: {lies}; name an empty one in DATABASE_URL, or an empty "
            "folder in MENUWATCH_HOME"
        )
    found = list(faults(folder, manifest, told))
    if found:
        raise Faulty(f"{named(found, source)}. Nothing was restored", found)
    marker.write(storage, Mark(backup=manifest.sha256, folder=str(source.resolve())))
    if within is None:
        marker.begin(conn, manifest.sha256)


def _files_there(storage: Path) -> str | None:
    """What lies in the folder, in words. Empty folders are nothing, and so are pictures that are made again."""
    found: list[str] = []
    for place, folders, files in os.walk(storage):
        if Path(place) == storage:
            folders[:] = [one for one in folders if one != _CACHE]
            files = [one for one in files if one != _LOCK]
        found += (str(Path(place, one).relative_to(storage)) for one in files)
        if len(found) > _NAMED:
            break
    return (
        f"it holds {', '.join(sorted(found)[:_NAMED])}{' and more' if len(found) > _NAMED else ''}" if found else None
    )


def _rows_there(conn: Connection) -> str | None:
    """What the database holds of us, in words."""
    ours = migrate.tables() & tables_of(conn).keys()
    if not ours:
        return None
    row = conn.execute("SELECT count(*) FROM dispensaries").fetchone() if "dispensaries" in ours else None
    return f"it has {len(ours)} tables of Menuwatch, and {row[0] if row else 0} stores in them"


def _files(storage: Path, folder: Folder, manifest: Manifest, told: Told) -> None:
    """Every file in its place, read back. What an earlier try has brought stays, if it is whole."""
    links: dict[str, Path] = {}
    folders: set[Path] = set()
    for number, file in enumerate(manifest.files, 1):
        place = storage / file.path
        if not _is_there(place, file):
            _bring(place, folder, file, links.get(file.sha256))
        folders.update(place.parents)  # also of what an earlier try has brought
        links[file.sha256] = place
        told(Step(what="Restoring files", done=number, total=len(manifest.files)))
    for one in folders - set(storage.parents):
        sync_folder(one)
    told(Step(what="All files are there"))


def _is_there(place: Path, file: File) -> bool:
    with contextlib.suppress(FileNotFoundError):
        status = place.lstat()
        return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns) and hash_of(place) == file.sha256
    return False


def _bring(place: Path, folder: Folder, file: File, same: Path | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".restore-{place.name}"[:200])
    part.unlink(missing_ok=True)
    if same is None or not _linked(same, part, file):
        with folder.place(file.sha256).open("rb") as source, part.open("xb") as target:
            for piece in pieces(source):
                target.write(piece)
            target.flush()
            os.utime(target.fileno(), ns=(file.mtime_ns, file.mtime_ns))
            os.fsync(target.fileno())
    if hash_of(part) != file.sha256:
        part.unlink()
        raise MenuwatchError(f"{place} could not be written as it was: the backup or this disk has changed it")
    part.rename(place)


def _linked(same: Path, part: Path, file: File) -> bool:
    """Whether the file could be another name of one that is there, as it was where the backup was made."""
    if same.stat().st_mtime_ns != file.mtime_ns:
        return False
    with contextlib.suppress(OSError):
        os.link(same, part)
        return True
    return False
