"""Results that were made once, kept on disk as long as there is room: the least recently used go first.

Any number of processes may share the folder: it is counted anew whenever it may be too full. A file begins with the hash of the
rest, so that one that a power cut left cut short is made anew and not sent. Nothing here is the only copy of anything, so nothing is
synced.
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

from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)

_DIGEST = 16
_TOUCH_SECONDS = 60.0
"""A use is noted no more often than this: the order among files used within a minute does not matter."""
_LEFT_OVER_SECONDS = 3600.0
_FULL = 0.9
"""Share of the room that is left in use when something had to go."""


class Derived:
    """`room` in bytes; 0: nothing is kept. Called from threads."""

    def __init__(self, folder: Path, room: int) -> None:
        self._folder = folder
        self._room = room
        self._lock = threading.Lock()
        self._used: int | None = None
        """Bytes, as far as this process knows."""
        self._counting = threading.Lock()
        self.hits = 0
        """Times that something was there."""
        self.misses = 0
        """Times that nothing was."""

    @property
    def room(self) -> int:
        """Bytes that it may take."""
        return self._room

    def used(self) -> int:
        """Bytes that it takes, as far as this process knows; counted on disk the first time."""
        with self._lock:
            if self._used is None:
                self._used = self._count()
            return self._used

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """What was kept under that key (hexadecimal), None for nothing."""
        found = self._get(key)
        with self._counting:
            if found is None:
                self.misses += 1
            else:
                self.hits += 1
        return found

    def _get(self, key: str) -> bytes | None:
        if not self._room:
            return None
        place = self._place(key)
        try:
            with place.open("rb") as file:
                whole = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        data = whole[_DIGEST:]
        if blake2b(data, digest_size=_DIGEST).digest() != whole[:_DIGEST]:
            place.unlink(missing_ok=True)
            return None
        if age > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(place)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps it. Where the disk is full it does not, and says so in the log."""
        size = len(data) + _DIGEST
        if size > self._room:
            return
        place = self._place(key)
        temporary = place.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(blake2b(data, digest_size=_DIGEST).digest())
                file.write(data)
            temporary.rename(place)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            log.warning("a resized picture was not kept", action="image_cache_failed", error=str(error))
            return
        with self._lock:
            self._used = self._count() if self._used is None else self._used + size
            if self._used > self._room:
                self._used = self._make_room()

    def _count(self) -> int:
        return sum(size for _, size, _ in self._every())

    def _every(self) -> Iterator[tuple[float, int, Path]]:
        """(last use, bytes, path) of each file."""
        with contextlib.suppress(FileNotFoundError):
            for folder in self._folder.iterdir():
                with contextlib.suppress(OSError), os.scandir(folder) as entries:
                    for entry in entries:
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            yield status.st_mtime, status.st_size, Path(entry.path)

    def _make_room(self) -> int:
        now = time.time()
        found = sorted(self._every(), key=lambda entry: entry[0])
        used = sum(size for _, size, _ in found)
        gone = 0
        for last, size, path in found:
            left_over = path.name.startswith(".")
            if left_over and now - last < _LEFT_OVER_SECONDS:
                continue
            if used <= self._room * _FULL and not left_over:
                break
            path.unlink(missing_ok=True)
            used -= size
            gone += 1
        log.info("resized pictures made room for others", action="image_cache_evicted", files=gone, bytes=used)
        return used
