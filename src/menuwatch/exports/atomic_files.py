"""Atomic writes of files and folders: to a hidden name beside the final one, which is renamed when all of it is on disk. A full disk,
Ctrl-C or a crash leaves nothing incomplete under the final name."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.fsync import sync_folder

_PART_FOLDER = re.compile(r"(state|month)=[^/]+", re.DOTALL)
_PART_FILE = re.compile(r"part-[0-9]+\.parquet")
"""Names in an export by state or month."""
_NAMED = 3
"""Other entries of a folder that an error names."""


class NotWritten(MenuwatchError):
    """The disk refused the write; what was there before is unchanged."""


@contextlib.contextmanager
def atomic_file(final: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to; of a link, the file that it leads to. Raises Refused where it cannot be, NotWritten where the disk fails."""
    target = _resolve(final)
    if target.is_dir():
        raise Refused(f"{final} is a directory: give a file name")
    if target.exists():
        if not target.is_file():
            raise Refused(f"{final} is not a regular file")
        if not overwrite:
            raise Refused(f"{final} already exists: choose another name, or pass --overwrite")
    hidden = _hidden(target)
    with _removed_on_error(final, target, hidden):
        with hidden.open("xb") as file:
            yield file
            _fsync(file)
        hidden.replace(target)
        sync_folder(target.parent)


class Folder:
    """A folder to write files to."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[BinaryIO]:
        """A new file in it; `path` has `/` between its folders."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            yield file
            _fsync(file)
        sync_folder(target.parent)


@contextlib.contextmanager
def atomic_folder(final: Path, *, overwrite: bool = False) -> Iterator[Folder]:
    """A folder to fill; of a link, the folder that it leads to. It replaces an empty folder and, with `overwrite`, one that holds an
    earlier export and nothing else. Raises Refused where it cannot be, NotWritten where the disk fails."""
    target = _resolve(final)
    if target.exists() and not target.is_dir():
        raise Refused(f"{final} is a file: give a directory")
    if Path.cwd().is_relative_to(target):
        raise Refused(f"{final} is the current directory or a parent of it: give a new directory")
    if target.is_dir() and any(target.iterdir()):
        _only_an_export(final, target)
        if not overwrite:
            raise Refused(f"{final} already exists: choose another name, or pass --overwrite")
    hidden, old = _hidden(target), _hidden(target)
    with _removed_on_error(final, target, hidden):
        hidden.mkdir()
        yield Folder(hidden)
        sync_folder(hidden)
        _swap(final, target, hidden, old)
        sync_folder(target.parent)
    _remove(old)


def _swap(final: Path, target: Path, hidden: Path, old: Path) -> None:
    try:
        target.rename(old)
    except FileNotFoundError:
        hidden.rename(target)
        return
    try:
        # Check again, now that the folder is no longer reachable by name: an export takes a while, and files may have been added.
        _only_an_export(final, old)
        hidden.rename(target)
    except BaseException:
        old.rename(target)
        raise


def _only_an_export(final: Path, folder: Path) -> None:
    """Raises Refused for a folder that holds anything that no export by state or month writes."""
    others = list(itertools.islice(_others(folder), _NAMED + 1))
    if others:
        named = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
        raise Refused(
            f"{final} contains other files than an earlier export ({named}) and is not replaced: choose another directory"
        )


def _others(folder: Path) -> Iterator[str]:
    for part in sorted(folder.iterdir()):
        if not _PART_FOLDER.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
            yield part.name
            continue
        for file in sorted(part.iterdir()):
            if not _PART_FILE.fullmatch(file.name) or file.is_symlink() or not file.is_file():
                yield f"{part.name}/{file.name}"


def _resolve(final: Path) -> Path:
    """The path with links followed. Raises Refused if its folder does not exist."""
    try:
        target = final.resolve(strict=final.is_symlink())
        if not target.parent.is_dir():
            raise Refused(f"{final}: directory {final.parent} does not exist")
        target.exists()
    except (OSError, RuntimeError) as error:
        if final.is_symlink():
            raise Refused(f"{final} is a dangling symbolic link") from error
        raise Refused(f"{final} cannot be: {getattr(error, 'strerror', None) or error}") from error
    return target


def _hidden(final: Path) -> Path:
    return final.parent / f".{final.name}.{uuid.uuid4().hex[:12]}.part"


@contextlib.contextmanager
def _removed_on_error(final: Path, target: Path, hidden: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _remove(hidden)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = "no space left" if full else error.strerror or str(error)
        rest = "the existing file is unchanged" if target.exists() else "no file was created"
        raise NotWritten(f"{final} was not written: {why}; {rest}") from error
    except BaseException:
        _remove(hidden)
        raise


def _remove(target: Path) -> None:
    with contextlib.suppress(OSError):
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


def _fsync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
