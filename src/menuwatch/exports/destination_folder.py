"""Folders that one kind of export writes again and again: they hold nothing else, and one process at a time writes to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from menuwatch.core.errors import Refused
from menuwatch.db.file_lock import FileLock

_NAMED = 3
"""Other entries of a folder that an error names."""


def check_folder(folder: Path, is_own: Callable[[str], bool], what: str) -> None:
    """Raises Refused for a folder that cannot be created, or that holds anything that is neither hidden nor, by its name, the export's
    own. `what` names the export: "a dataset"."""
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is a file: give a directory")
    if not folder.parent.is_dir():
        raise Refused(f"{folder}: directory {folder.parent} does not exist")
    names = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    others = [name for name in names if not name.startswith(".") and not is_own(name)]
    if others:
        named = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
        raise Refused(f"{folder} contains other files than {what} ({named}): choose another directory")


@contextlib.contextmanager
def lock_folder(folder: Path, name: str, what: str) -> Iterator[None]:
    """Creates the folder, and locks out other processes by the file `name` in it, also if this one is killed: the kernel gives up its
    lock. Raises Refused while another process has the lock, and for a folder that cannot be written to. `what` names the export:
    "publish"."""
    try:
        folder.mkdir(exist_ok=True)
        lock = FileLock(folder / name)
    except OSError as error:
        raise Refused(f"{folder} cannot be written to: {error.strerror or error}") from error
    with lock:
        if not lock.try_exclusive():
            raise already_running(what, str(folder))
        yield


def already_running(what: str, destination: str) -> Refused:
    """The error of a second export to one destination."""
    return Refused(f"another {what} to {destination} is running: wait until it ends")
