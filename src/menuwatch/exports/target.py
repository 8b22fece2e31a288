"""Files and folders that are there whole or not at all.

What is written goes to a hidden name beside the final one and is renamed when all of it is on disk, so a full disk, Ctrl-C or a crash
leaves nothing half under the final name.
"""

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

from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import MenuwatchError, Refused

_PART_FOLDER = re.compile(r"(state|month)=[^/]+", re.DOTALL)
_PART_FILE = re.compile(r"part-[0-9]+\.parquet")
"""What an export that is cut into files consists of."""
_NAMED = 3
"""How much of what else is in a folder a refusal names."""


class NotWritten(MenuwatchError):
    """The disk would not take it; what is under the final name is what was there before, if anything."""


@contextlib.contextmanager
def whole_file(final: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to; of a link, the file that it leads to. Raises Refused where it cannot be, NotWritten where the disk fails."""
    place = _place(final)
    if place.is_dir():
        raise Refused(f"{final} is a folder, and a file is to be written: name a file in it")
    if place.exists():
        if not place.is_file():
            raise Refused(f"{final} is no plain file: name another")
        if not overwrite:
            raise Refused(f"{final} is there already: name another, or say --overwrite")
    hidden = _hidden(place)
    with _cleaned(final, place, hidden):
        with hidden.open("xb") as file:
            yield file
            _synced(file)
        hidden.replace(place)
        sync_folder(place.parent)


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
        sync_folder(place.parent)


@contextlib.contextmanager
def whole_folder(final: Path, *, overwrite: bool = False) -> Iterator[Folder]:
    """A folder to fill; of a link, the folder that it leads to. It replaces an empty folder and, with `overwrite`, one that holds an
    earlier export and nothing else. Raises Refused where it cannot be, NotWritten where the disk fails."""
    place = _place(final)
    if place.exists() and not place.is_dir():
        raise Refused(f"{final} is a file, and a folder is to be written: name another")
    if Path.cwd().is_relative_to(place):
        raise Refused(f"{final} is the folder that this runs in, or one above it: name a new one in it")
    if place.is_dir() and any(place.iterdir()):
        _only_an_export(final, place)
        if not overwrite:
            raise Refused(f"{final} is there already: name another, or say --overwrite")
    hidden, old = _hidden(place), _hidden(place)
    with _cleaned(final, place, hidden):
        hidden.mkdir()
        yield Folder(hidden)
        sync_folder(hidden)
        _swap(final, place, hidden, old)
        sync_folder(place.parent)
    _remove(old)


def _swap(final: Path, place: Path, hidden: Path, old: Path) -> None:
    try:
        place.rename(old)
    except FileNotFoundError:
        hidden.rename(place)
        return
    try:
        # Once more, of what nobody can reach by its name now: an export takes a while, and people put files where they like.
        _only_an_export(final, old)
        hidden.rename(place)
    except BaseException:
        old.rename(place)
        raise


def _only_an_export(final: Path, folder: Path) -> None:
    """Raises Refused for a folder that holds anything that no export by state or month writes."""
    others = list(itertools.islice(_others(folder), _NAMED + 1))
    if others:
        named = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
        raise Refused(
            f"{final} is there and is not only an earlier export, so it is not replaced: it holds {named}; name another"
        )


def _others(folder: Path) -> Iterator[str]:
    for part in sorted(folder.iterdir()):
        if not _PART_FOLDER.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
            yield part.name
            continue
        for file in sorted(part.iterdir()):
            if not _PART_FILE.fullmatch(file.name) or file.is_symlink() or not file.is_file():
                yield f"{part.name}/{file.name}"


def _place(final: Path) -> Path:
    """Where it is to lie, links followed. Raises Refused where that is nowhere."""
    try:
        place = final.resolve(strict=final.is_symlink())
        if not place.parent.is_dir():
            raise Refused(f"{final}: there is no folder {final.parent}; make it first")
        place.exists()
    except (OSError, RuntimeError) as error:
        if final.is_symlink():
            raise Refused(f"{final} is a link that leads nowhere: name another") from error
        raise Refused(f"{final} cannot be: {getattr(error, 'strerror', None) or error}") from error
    return place


def _hidden(final: Path) -> Path:
    return final.parent / f".{final.name}.{uuid.uuid4().hex[:12]}.part"


@contextlib.contextmanager
def _cleaned(final: Path, place: Path, hidden: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _remove(hidden)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = "there is no room for it" if full else error.strerror or str(error)
        rest = "what was there is as it was" if place.exists() else "nothing is there under that name"
        raise NotWritten(f"{final} was not written: {why}; {rest}") from error
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
