"""The interface that both drivers implement. Paths are relative to the root, with `/` between their parts.

An object and its row are created together:

    stage()        the object exists, and the storage knows that its row may be missing      no row
    (transaction)  the row is inserted and committed                                         row and staged object
    publish()      the object is at its path                                                 row and object

After a rollback `discard` removes the staged object. After a crash `staged` lists what was left, so that it can be published if
its row was committed, and removed otherwise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from msgspec import Struct

from menuwatch.core.errors import Transient

INCOMING = ".incoming"
"""Folder of staged objects, below the first part of their paths."""


class StorageUnavailable(Transient, OSError):
    """The object store did not answer, or answered with an error. Transient for tasks, an OSError for callers that handle disks."""


class Entry(Struct, frozen=True, kw_only=True):
    """A stored object. `size` in bytes; times of the last change, in nanoseconds and in seconds since 1970. Paths with the same
    `identity` are one object."""

    path: str
    size: int
    mtime_ns: int
    changed: float
    identity: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A staged object. `path` is its final path, `name` its unique name. `placed`: it is at its final path already."""

    path: str
    name: str
    placed: bool = False


class Storage(Protocol):
    """A storage. Unless stated otherwise, methods raise FileNotFoundError for a path without an object, and OSError if the disk or
    the object store fails. They block: call them from a thread."""

    @property
    def where(self) -> str:
        """The storage for messages: `the storage folder …` or `the bucket …`."""
        ...

    @property
    def setting(self) -> str:
        """The setting that names it."""
        ...

    def check(self) -> None:
        """Checks that objects can be written and removed; raises Refused with the reason."""
        ...

    def get(self, path: str, limit: int | None = None, *, evict: bool = False) -> bytes:
        """The content, of which at most `limit` bytes are read. `evict`: it is unlikely to be read again soon, so the operating system
        need not keep it in memory."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """The content as a file that can be read at any place."""
        ...

    def put(self, path: str, data: bytes | IO[bytes]) -> None:
        """Writes or replaces an object atomically; durable when this returns."""
        ...

    def copy(self, source: str, path: str) -> None:
        """Gives an object a second path, if possible without a second content."""
        ...

    def move(self, source: str, path: str) -> None:
        """Renames an object, and replaces one at `path`."""
        ...

    def remove(self, path: str) -> None:
        """Removes an object; idempotent."""
        ...

    def remove_all(self, paths: Sequence[str]) -> None:
        """Removes many objects, in few requests if possible; idempotent."""
        ...

    def remove_folder(self, folder: str) -> int:
        """Removes a folder with all its objects, also hidden ones; returns how many they were."""
        ...

    def stat(self, path: str) -> Entry | None:
        """The object at that path, None if there is none."""
        ...

    def walk(self, folder: str, *, hidden: bool = False) -> Iterator[Entry]:
        """Every object below a folder (empty: the root), except caches; also `hidden` ones, which are staged or half written, if
        asked for."""
        ...

    def stage(self, path: str, data: bytes) -> Incoming:
        """Writes an object whose row is not committed yet, durably and with a unique name: attempts at the same path do not affect
        each other."""
        ...

    def publish(self, file: Incoming) -> None:
        """Makes a staged object final; idempotent."""
        ...

    def discard(self, file: Incoming, *, unused: bool = False) -> None:
        """Removes a staged object. `unused`: it is certain that no row has or will get its path."""
        ...

    def staged(self, folder: str) -> Iterator[tuple[Incoming, float]]:
        """Every staged object below a folder, and its age in seconds."""
        ...

    def staged_at(self, path: str) -> list[Entry]:
        """The staged contents for a path that are not at that path."""
        ...


def flat(path: str) -> str:
    """The path as part of a staged object's name."""
    return path.replace("/", "__")


def staging_folder(path: str) -> str:
    """The folder of the staged objects of that path."""
    return f"{path.partition('/')[0]}/{INCOMING}"


def staged_path(name: str) -> str:
    """The final path of a staged object."""
    return name.partition("~")[0].replace("__", "/")


def place_of(file: Incoming) -> str:
    """Where the content of a staged object is."""
    return file.path if file.placed else f"{staging_folder(file.path)}/{file.name}"
