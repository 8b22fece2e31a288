"""Restores a backup into an empty installation: verifies everything first, then copies the files, then loads all rows at once.

An unfinished restore is marked by a file in the storage folder, and by a table in the database:

    nothing ──► file ──► file, table "begun" ──► file, table "loaded" (in the transaction that loads the rows) ──► table ──► nothing

Both name the backup. All other commands refuse to run while the file exists.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from psycopg import sql as compose

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.fsync import sync_folder
from menuwatch.core.logging import get_logger
from menuwatch.db import migrate
from menuwatch.db.file_lock import FileLock
from menuwatch.ops.backup.folder import (
    Fault,
    Folder,
    OnProgress,
    Step,
    faults,
    hash_content,
    hash_of,
    no_progress,
    on_disk,
    pieces,
)
from menuwatch.ops.backup.manifest import File, Manifest, readable
from menuwatch.ops.backup.mark import MARK, Mark, read_mark
from menuwatch.ops.backup.tables import RESTORE_MARK, Connection, connect, load, q, set_restore_mark, tables_of
from menuwatch.storage.base import Storage
from menuwatch.storage.local import LocalStorage
from menuwatch.storage.service import as_storage

log = get_logger(__name__)
_LOCK = ".restore.lock"
_NAMED = 5
_CACHE = "cache"


class Faulty(MenuwatchError):
    """The backup is damaged."""

    def __init__(self, message: str, found: Sequence[Fault]) -> None:
        super().__init__(message)
        self.faults = found


def _restoring(conn: Connection) -> tuple[str, bool] | None:
    """The mark in the database: the backup, and whether its rows are in."""
    row = conn.execute(q.restoring).fetchone()
    if row is None or not isinstance(row[0], str):
        return None
    backup, _, state = row[0].partition(" ")
    return backup, state == "loaded"


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


def describe_faults(found: Sequence[Fault], place: Path) -> str:
    """Faults as a sentence."""
    few = "; ".join(f"{fault.path}: {fault.kind}, {fault.detail}" for fault in found[:_NAMED])
    more = f"; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return f"the backup in {place} has {len(found):,} {'fault' if len(found) == 1 else 'faults'}: {few}{more}"


def restore(
    url: str, storage: Storage | Path, source: Path, *, settings: Sequence[str] = (), progress: OnProgress = no_progress
) -> Restored:
    """Fills the empty database at `url` and the empty `storage` from the backup in `source`.

    `settings` are names of those that are set. Raises Refused where it cannot be, Faulty for a backup that is damaged, NotDone where
    a disk fails, NotTheSame where the database did not keep what it was given.
    """
    folder, storage = Folder(source), as_storage(storage)
    with folder.reading(), on_disk(f"the restore into {storage.where}", f"`menuwatch restore {source}`"):
        manifest = folder.finished()
        readable(manifest)
        with _locked(storage), connect(url) as conn:
            _all(conn, url, storage, source, folder, manifest, progress)
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


@contextlib.contextmanager
def _locked(storage: Storage) -> Iterator[None]:
    """Keeps other restores out of a folder. Of a bucket, the marks alone tell that a restore was begun."""
    if not isinstance(storage, LocalStorage):
        yield
        return
    storage.root.mkdir(parents=True, exist_ok=True)
    with FileLock(storage.root / _LOCK) as lock:
        if not lock.try_exclusive():
            raise Refused(f"another restore into {storage.where} is under way")
        try:
            yield
        finally:
            (storage.root / _LOCK).unlink()


def _all(
    conn: Connection, url: str, storage: Storage, source: Path, folder: Folder, manifest: Manifest, progress: OnProgress
) -> None:
    if _finish(conn, storage, manifest):
        return
    _begin(conn, storage, source, folder, manifest, progress)
    _files(storage, folder, manifest, progress)
    if _restoring(conn) != (manifest.sha256, True):
        from menuwatch.db.upgrade import upgrade  # loading it takes longer than most commands

        upgrade(url, manifest.revision)
        load(url, folder, manifest, progress)
    progress(Step(what="Bringing the database to this version's schema"))
    migrate.migrate(url)
    conn.execute("ANALYZE")
    storage.remove(MARK)
    if isinstance(storage, LocalStorage):
        sync_folder(storage.root)
    progress(Step(what="Done"))
    _finish(conn, storage, manifest)


def _finish(conn: Connection, storage: Storage, manifest: Manifest) -> bool:
    """Whether all was done but to say so in the database."""
    if read_mark(storage) is None and _restoring(conn) == (manifest.sha256, True):
        conn.execute(compose.SQL("DROP TABLE IF EXISTS {}").format(compose.Identifier(RESTORE_MARK)))
        return True
    return False


def _begin(
    conn: Connection, storage: Storage, source: Path, folder: Folder, manifest: Manifest, progress: OnProgress
) -> None:
    """Goes on with this backup's restore, or begins it where nothing lies. Raises Refused where something does, Faulty for a backup
    that is not whole."""
    mark, within = read_mark(storage), _restoring(conn)
    for backup in {mark.backup if mark else None, within[0] if within else None} - {None, manifest.sha256}:
        raise Refused(
            f"a restore of another backup ({str(backup)[:12]}) is unfinished here: complete it, or empty database and storage"
        )
    if mark is None and (lies := _files_there(storage)):
        raise Refused(
            f"{storage.where} is not empty, so nothing is restored into it: {lies}; empty it, or set {storage.setting}"
        )
    if within is None and (lies := _rows_there(conn)):
        raise Refused(
            f"the database is not empty, so nothing is restored into it: {lies}; set DATABASE_URL to an empty database, or "
            "MENUWATCH_HOME to an empty directory"
        )
    damage = list(faults(folder, manifest, progress))
    if damage:
        raise Faulty(f"{describe_faults(damage, source)}. Nothing was restored", damage)
    storage.put(MARK, msgspec.json.encode(Mark(backup=manifest.sha256, folder=str(source.resolve()))))
    if within is None:
        with conn.transaction():
            conn.execute(compose.SQL("CREATE TABLE {} ()").format(compose.Identifier(RESTORE_MARK)))
            set_restore_mark(conn, f"{manifest.sha256} begun")


def _files_there(storage: Storage) -> str | None:
    """Describes what the storage holds, ignoring empty folders and caches."""
    found: list[str] = []
    if isinstance(storage, LocalStorage):
        for place, folders, files in os.walk(storage.root):
            if Path(place) == storage.root:
                folders[:] = [one for one in folders if one != _CACHE]
                files = [one for one in files if one != _LOCK]
            found += (str(Path(place, one).relative_to(storage.root)) for one in files)
            if len(found) > _NAMED:
                break
    else:
        found += (entry.path for entry in itertools.islice(storage.walk(""), _NAMED + 1))
    return (
        f"it holds {', '.join(sorted(found)[:_NAMED])}{' and more' if len(found) > _NAMED else ''}" if found else None
    )


def _rows_there(conn: Connection) -> str | None:
    """Describes what the database holds of Menuwatch."""
    ours = migrate.tables() & tables_of(conn).keys()
    if not ours:
        return None
    row = conn.execute("SELECT count(*) FROM dispensaries").fetchone() if "dispensaries" in ours else None
    return f"it has {len(ours)} tables of Menuwatch, and {row[0] if row else 0} stores in them"


def _files(storage: Storage, folder: Folder, manifest: Manifest, progress: OnProgress) -> None:
    """Every file in its place, read back. What an earlier try has brought stays, if it is whole."""
    if isinstance(storage, LocalStorage):
        _local_files(storage.root, folder, manifest, progress)
    else:
        for number, file in enumerate(manifest.files, 1):
            if not _is_stored(storage, file):
                with folder.place(file.sha256).open("rb") as content:
                    storage.put(file.path, content)
                if not _is_stored(storage, file):
                    raise MenuwatchError(
                        f"{file.path} does not match after writing: the backup or {storage.where} is damaged"
                    )
            progress(Step(what="Restoring files", done=number, total=len(manifest.files)))
    progress(Step(what="Files restored"))


def _is_stored(storage: Storage, file: File) -> bool:
    entry = storage.stat(file.path)
    if entry is None or entry.size != file.size:
        return False
    with storage.open(file.path) as content:
        return hash_content(content) == file.sha256


def _local_files(storage: Path, folder: Folder, manifest: Manifest, progress: OnProgress) -> None:
    links: dict[str, Path] = {}
    folders: set[Path] = set()
    for number, file in enumerate(manifest.files, 1):
        place = storage / file.path
        if not _is_there(place, file):
            _bring(place, folder, file, links.get(file.sha256))
        folders.update(place.parents)  # also of what an earlier try has brought
        links[file.sha256] = place
        progress(Step(what="Restoring files", done=number, total=len(manifest.files)))
    for one in folders - set(storage.parents):
        sync_folder(one)


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
        raise MenuwatchError(f"{place} does not match after writing: the backup or this disk is damaged")
    part.rename(place)


def _linked(same: Path, part: Path, file: File) -> bool:
    """Whether the file could be another name of one that is there, as it was where the backup was made."""
    if same.stat().st_mtime_ns != file.mtime_ns:
        return False
    with contextlib.suppress(OSError):
        os.link(same, part)
        return True
    return False
