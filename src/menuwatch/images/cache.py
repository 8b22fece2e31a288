"""A cache of resized images on disk; the least recently used are evicted first.

Any number of processes may share the folder: its size is counted again whenever it may be too full. A file begins with the hash of
the rest, so that one that was truncated by a power cut is not sent. Nothing here is the only copy of anything, so nothing is synced.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from menuwatch.core.logging import get_logger

log = get_logger(__name__)

OTHER_SIZES = "images-other"
"""The folder for sizes that unsigned URLs request, beside that for the presets."""
_DIGEST = 16
_TOUCH_SECONDS = 60.0
"""The time of the last use is written at most this often."""
_TEMPORARY_FILE_SECONDS = 3600.0
_FILL_AFTER_EVICTION = 0.9
"""Share of the room that stays in use after an eviction."""


class ImageCache:
    """`room` in bytes; 0: nothing is cached. Thread-safe."""

    def __init__(self, folder: Path, room: int) -> None:
        self._folder = folder
        self._room = room
        self._lock = threading.Lock()
        self._used: int | None = None
        self._counter_lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    @property
    def room(self) -> int:
        """Maximum size in bytes."""
        return self._room

    def used(self) -> int:
        """Size in bytes as far as this process knows; counted on disk the first time."""
        with self._lock:
            if self._used is None:
                self._used = self._count()
            return self._used

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """The result under that key (hexadecimal), None if there is none."""
        data = self._get(key)
        with self._counter_lock:
            if data is None:
                self.misses += 1
            else:
                self.hits += 1
        return data

    def _get(self, key: str) -> bytes | None:
        if not self._room:
            return None
        path = self._path(key)
        try:
            with path.open("rb") as file:
                whole = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        data = whole[_DIGEST:]
        if blake2b(data, digest_size=_DIGEST).digest() != whole[:_DIGEST]:
            path.unlink(missing_ok=True)
            return None
        if age > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores a result; logs a warning if the disk is full."""
        size = len(data) + _DIGEST
        if size > self._room:
            return
        path = self._path(key)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(blake2b(data, digest_size=_DIGEST).digest())
                file.write(data)
            temporary.rename(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            log.warning("resized image could not be cached", action="image_cache_failed", error=str(error))
            return
        with self._lock:
            self._used = self._count() if self._used is None else self._used + size
            if self._used > self._room:
                self._used = self._evict()

    def _count(self) -> int:
        return sum(size for _, size, _ in self._entries())

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """(last use, bytes, path) of each file."""
        with contextlib.suppress(FileNotFoundError):
            for folder in self._folder.iterdir():
                with contextlib.suppress(OSError), os.scandir(folder) as entries:
                    for entry in entries:
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            yield status.st_mtime, status.st_size, Path(entry.path)

    def _evict(self) -> int:
        now = time.time()
        entries = sorted(self._entries(), key=lambda entry: entry[0])
        used = sum(size for _, size, _ in entries)
        evicted = 0
        for last, size, path in entries:
            temporary = path.name.startswith(".")
            if temporary and now - last < _TEMPORARY_FILE_SECONDS:
                continue
            if used <= self._room * _FILL_AFTER_EVICTION and not temporary:
                break
            path.unlink(missing_ok=True)
            used -= size
            evicted += 1
        log.info("resized images evicted from cache", action="image_cache_evicted", files=evicted, bytes=used)
        return used
