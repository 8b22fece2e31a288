"""The files of an installation: which of them belong to a moment of the database."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_STAGED = "payloads/.incoming/"
_CACHE = "cache"
"""Below the root: made again by whoever asks."""
_PACKED = "history/"
_PARQUET = b"PAR1"
ORPHAN_SECONDS = 3600.0
"""A file that no row names and that is younger may belong to a transaction that was open at the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file that is there. `path` is relative to the root, `inode` tells names of one file."""

    path: str
    size: int
    mtime_ns: int
    changed: float
    inode: tuple[int, int]


class Tree:
    """The storage root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entry(self, path: str) -> Entry | None:
        """The file of that path; None where there is none."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(self.root / path)
            if stat.S_ISREG(status.st_mode):
                return _entry(path, status)
        return None

    def of_moment(self, named: set[str], began: float) -> Iterator[Entry]:
        """Files that rows of that moment name, and those that no row has named for long. Files that are published meanwhile may be
        missed: whoever looks for a name afterwards finds them."""
        for entry in self._walk():
            if entry.path in named or entry.changed < began - ORPHAN_SECONDS or self._is_pack(entry.path):
                yield entry

    def staged(self, path: str) -> list[Entry]:
        """Files that a worker wrote for that path of the archive and has not moved there yet."""
        flat = path.replace("/", "__")
        folder = self.root / _STAGED
        names = sorted(folder.iterdir()) if folder.is_dir() else []
        found = (self.entry(f"{_STAGED}{one.name}") for one in names if one.name.partition("~")[0] == flat)
        return [one for one in found if one is not None]

    def _is_pack(self, path: str) -> bool:
        """Whether it is a whole file of packed history: no row names these. Half of one has no end yet."""
        if not path.startswith(_PACKED):
            return False
        with contextlib.suppress(OSError), (self.root / path).open("rb") as file:
            file.seek(-len(_PARQUET), os.SEEK_END)
            return file.read() == _PARQUET
        return False

    def _walk(self) -> Iterator[Entry]:
        """Every file. Of links only those right below the root are followed: an operator put them there."""
        waiting = [""]
        while waiting:
            below = waiting.pop()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.root / below) as entries:
                for one in entries:
                    path = f"{below}{one.name}"
                    # Hidden ones are half written, or staged: these are taken by the name that a row has for them.
                    if path == _CACHE or one.name.startswith("."):
                        continue
                    if one.is_dir(follow_symlinks=not below):
                        waiting.append(f"{path}/")
                    elif one.is_file(follow_symlinks=False):
                        with contextlib.suppress(FileNotFoundError):
                            yield _entry(path, one.stat(follow_symlinks=False))


def _entry(path: str, status: os.stat_result) -> Entry:
    return Entry(
        path=path,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        changed=max(status.st_mtime, status.st_ctime),
        inode=(status.st_dev, status.st_ino),
    )
