"""Files and folders that are there whole or not at all.

What is written goes to a hidden name beside the final one and is renamed when all of it is on disk, so a full disk, Ctrl-C or a crash
leaves nothing half under the final name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from menuwatch.core.errors import MenuwatchError, Refused


class NotWritten(MenuwatchError):
    """The disk would not take it; nothing is there under the final name."""


@contextlib.contextmanager
def whole_file(final: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to. Raises Refused where it cannot be, NotWritten where the disk fails."""
    _check(final, overwrite=overwrite)
    hidden = _hidden(final)
    with _cleaned(final, hidden):
        with hidden.open("xb") as file:
            yield file
            _synced(file)
        hidden.replace(final)
        _sync_folder(final.parent)


class Folder:
    """A folder that is being filled."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[BinaryIO]:
        """A new file in it; `path` has `/` between its folders."""
        place = self._root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            yield file
            _synced(file)
        _sync_folder(place.parent)


@contextlib.contextmanager
def whole_folder(final: Path, *, overwrite: bool = False) -> Iterator[Folder]:
    """A folder to fill. Raises Refused where it cannot be, NotWritten where the disk fails."""
    _check(final, overwrite=overwrite)
    hidden, old = _hidden(final), _hidden(final)
    with _cleaned(final, hidden):
        hidden.mkdir()
        yield Folder(hidden)
        _sync_folder(hidden)
        with contextlib.suppress(FileNotFoundError):
            final.rename(old)
        hidden.rename(final)
        _sync_folder(final.parent)
    _remove(old)


def _check(final: Path, *, overwrite: bool) -> None:
    if not final.parent.is_dir():
        raise Refused(f"{final}: there is no folder {final.parent}; make it first")
    if final.exists() and not overwrite and not (final.is_dir() and not any(final.iterdir())):
        raise Refused(f"{final} is there already: name another, or say --overwrite")


def _hidden(final: Path) -> Path:
    return final.parent / f".{final.name}.{uuid.uuid4().hex[:12]}.part"


@contextlib.contextmanager
def _cleaned(final: Path, hidden: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _remove(hidden)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = "there is no room for it" if full else error.strerror or str(error)
        raise NotWritten(f"{final} was not written: {why}; nothing is there under that name") from error
    except BaseException:
        _remove(hidden)
        raise


def _remove(place: Path) -> None:
    with contextlib.suppress(OSError):
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def _synced(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
