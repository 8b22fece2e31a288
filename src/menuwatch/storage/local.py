"""A folder of the local file system, or of one that is mounted."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from menuwatch.core.errors import Refused
from menuwatch.core.fsync import sync_folder
from menuwatch.storage.base import Entry, Incoming, flat, place_of, staged_path, staging_folder

_CACHES = ("cache",)


class LocalStorage:
    """Files below `root` (`STORAGE_PATH`)."""

    setting = "STORAGE_PATH"

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def where(self) -> str:
        return f"the storage folder {self.root}"

    def check(self) -> None:
        probe = self.root / "payloads/.incoming" / f"probe-{uuid.uuid4().hex}"
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"probe")
            probe.rename(probe.with_suffix(".renamed")).unlink()
        except OSError as error:
            raise Refused(f"{self.where} cannot be written: {error}") from error

    def get(self, path: str, limit: int | None = None, *, evict: bool = False) -> bytes:
        with self.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            # A little more than there is: a growing file is read to the size it had.
            data = file.read(size + 1 if limit is None else min(limit, size + 1))
            if evict and hasattr(os, "posix_fadvise"):
                with contextlib.suppress(OSError):  # advice, which not every file system takes
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return data

    def open(self, path: str) -> IO[bytes]:
        return (self.root / path).open("rb")

    def put(self, path: str, data: bytes | IO[bytes]) -> None:
        final = self.root / path
        part = final.with_name(f".{final.name}~{uuid.uuid4().hex}")
        folders = self._make(final.parent)
        self._write(part, data)
        try:
            part.rename(final)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        _sync(folders)

    def _make(self, folder: Path) -> list[Path]:
        """Creates a folder. Returns the folders to sync once it has its file, so that a power cut loses neither name."""
        new = [one for one in (folder, *folder.parents) if one.is_relative_to(self.root) and not one.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        return [folder, *(one.parent for one in new)]

    def _write(self, target: Path, data: bytes | IO[bytes]) -> None:
        try:
            with target.open("xb") as file:
                if isinstance(data, bytes):
                    file.write(data)
                else:
                    shutil.copyfileobj(data, file)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
            raise

    def copy(self, source: str, path: str) -> None:
        final = self.root / path
        folders = self._make(final.parent)
        try:
            os.link(self.root / source, final)
        except FileNotFoundError:
            raise
        except OSError:
            self.put(path, (self.root / source).read_bytes())
        _sync(folders)

    def move(self, source: str, path: str) -> None:
        before, final = self.root / source, self.root / path
        folders = self._make(final.parent)
        before.replace(final)
        _sync([*folders, before.parent])

    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    def remove_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.remove(path)

    def remove_folder(self, folder: str) -> int:
        count = 0
        for place, _, names in os.walk(self.root / folder, topdown=False):
            for name in names:
                Path(place, name).unlink(missing_ok=True)
            count += len(names)
            Path(place).rmdir()
        return count

    def stat(self, path: str) -> Entry | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(self.root / path)
            if stat.S_ISREG(status.st_mode):
                return _entry(path, status)
        return None

    def walk(self, folder: str, *, hidden: bool = False) -> Iterator[Entry]:
        """Of links only those right below the root are followed: an operator put them there."""
        waiting = [f"{folder}/" if folder else ""]
        while waiting:
            below = waiting.pop()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.root / below) as entries:
                for one in sorted(entries, key=lambda entry: entry.name):
                    path = f"{below}{one.name}"
                    if path in _CACHES or (one.name.startswith(".") and not hidden):
                        continue
                    if one.is_dir(follow_symlinks=not below):
                        waiting.append(f"{path}/")
                    elif one.is_file(follow_symlinks=False):
                        with contextlib.suppress(FileNotFoundError):
                            yield _entry(path, one.stat(follow_symlinks=False))

    def stage(self, path: str, data: bytes) -> Incoming:
        file = Incoming(path=path, name=f"{flat(path)}~{uuid.uuid4().hex}")
        target = self.root / place_of(file)
        folders = self._make(target.parent)
        self._write(target, data)
        _sync(folders)
        return file

    def publish(self, file: Incoming) -> None:
        final = self.root / file.path
        folders = self._make(final.parent)
        try:
            (self.root / place_of(file)).rename(final)
        except FileNotFoundError:
            if not final.exists():
                raise
            return
        _sync(folders)

    def discard(self, file: Incoming, *, unused: bool = False) -> None:
        (self.root / place_of(file)).unlink(missing_ok=True)

    def staged(self, folder: str) -> Iterator[tuple[Incoming, float]]:
        now = time.time()
        waiting = self.root / staging_folder(folder)
        for file in sorted(waiting.iterdir()) if waiting.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):
                if "~" in file.name:
                    yield Incoming(path=staged_path(file.name), name=file.name), now - file.stat().st_mtime

    def staged_at(self, path: str) -> list[Entry]:
        folder = staging_folder(path)
        names = sorted((self.root / folder).iterdir()) if (self.root / folder).is_dir() else []
        entries = (self.stat(f"{folder}/{one.name}") for one in names if one.name.startswith(f"{flat(path)}~"))
        return [entry for entry in entries if entry is not None]


def _sync(folders: list[Path]) -> None:
    for folder in folders:
        sync_folder(folder)


def _entry(path: str, status: os.stat_result) -> Entry:
    return Entry(
        path=path,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        changed=max(status.st_mtime, status.st_ctime),
        identity=(status.st_dev, status.st_ino),
    )
