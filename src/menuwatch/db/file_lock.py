"""Locks between processes that the kernel gives back when their holder dies. Not available on Windows."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """A lock on a file, which is created where it is missing. Every object is a holder of its own, also within one process.

    Raises OSError where the file cannot be opened. `close` gives up what is held.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def exclusive(self) -> None:
        """Waits for an exclusive lock."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def shared(self) -> None:
        """Waits for a shared lock; downgrades an exclusive one."""
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Takes an exclusive lock if no other process holds the file; returns whether it did."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            return False
        return True

    def close(self) -> None:
        """Gives up what is held; may be called more than once."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
