"""Image files below `storage/images`: creates their paths, and opens requested ones safely.

    images/products/<state>/<store>/<brand>/<product_id>/image-<hash>.webp
    images/brands/<brand>/logo-<hash>.webp

Each product has its own path; an image shared by several is one file with several hard links. A requested path is opened
folder by folder without following links, so nothing outside the root is ever read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from menuwatch.core.errors import MenuwatchError, Refused, Transient
from menuwatch.storage.base import Entry, Storage
from menuwatch.storage.local import LocalStorage
from menuwatch.storage.service import as_storage, describe_failure

FOLDER = "images"
"""Folder below the storage root."""
_LONGEST_PATH = 600
_LONGEST_PART = 120
_DEEPEST = 8
_HASH_CHARACTERS = 32
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.(?:webp|jpe?g|png|gif|avif)")
_HASHED = re.compile(r"(?:image|logo)-([0-9a-f]{32,64})\.webp")
_OTHERS = re.compile(r"[^a-z0-9]+")
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EACCES, errno.ENAMETOOLONG)


class BadPath(MenuwatchError):
    """A path that cannot be one of ours, whatever is stored."""


class NoFile(MenuwatchError):
    """There is no file of that path."""


def slug(text: str | None) -> str:
    """Path segment for a name: 1 to 80 of a-z, 0-9 and hyphens; `unknown` if nothing is left."""
    plain = unicodedata.normalize("NFKD", text or "").encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("-", plain).strip("-")[:80].strip("-") or "unknown"


def product_path(*, state: str | None, store: str | None, brand: str | None, product_id: int, sha256: bytes) -> str:
    """Path of a product's image, relative to the storage root."""
    folder = "/".join(slug(part) for part in (state, store, brand))
    return f"{FOLDER}/products/{folder}/{product_id}/image-{sha256.hex()[:_HASH_CHARACTERS]}.webp"


def brand_path(*, brand: str, sha256: bytes) -> str:
    """Path of a brand's logo, relative to the storage root."""
    return f"{FOLDER}/brands/{slug(brand)}/logo-{sha256.hex()[:_HASH_CHARACTERS]}.webp"


def parts_of(path: str) -> tuple[str, ...]:
    """The segments of a requested path, relative to the images folder. Raises BadPath with the reason.

    A leading `images/` is accepted, because a product's `local_image_path` begins with it.
    """
    if not path:
        raise BadPath("path is empty")
    if len(path) > _LONGEST_PATH:
        raise BadPath(f"path has {len(path)} characters; {_LONGEST_PATH} are allowed")
    parts = path.split("/")
    if parts[0] == FOLDER and len(parts) > 1:
        parts = parts[1:]
    if len(parts) > _DEEPEST:
        raise BadPath(f"path is deeper than {_DEEPEST} folders")
    for part in parts:
        if part in ("", ".", ".."):
            raise BadPath(f"invalid path component {part!r}" if part else "path has an empty component")
        if len(part) > _LONGEST_PART:
            raise BadPath(f"a path component has more than {_LONGEST_PART} characters")
        if _PART.fullmatch(part) is None:
            raise BadPath("only letters, digits, `-`, `_`, `.` and `/` are allowed, and no component begins with a dot")
    if _NAME.fullmatch(parts[-1]) is None:
        raise BadPath("it must end in .webp, .jpg, .png, .gif or .avif")
    return tuple(parts)


class Found(Struct, frozen=True):
    """A file that exists, not yet read. `identity` differs where its content does; `hashed`: its name says so for ever."""

    identity: str
    hashed: bool
    size: int
    read: Callable[[], bytes]


class ImageFiles:
    """The images in a storage."""

    def __init__(self, storage: Storage | Path) -> None:
        self._storage = as_storage(storage)

    @contextlib.contextmanager
    def find(self, path: str) -> Iterator[Found]:
        """Opens a requested file while the context is open. Raises BadPath, NoFile."""
        parts = parts_of(path)
        hashed = _HASHED.fullmatch(parts[-1])
        if not isinstance(self._storage, LocalStorage):
            yield self._find_object(f"{FOLDER}/{'/'.join(parts)}", hashed)
            return
        handle = _walk(self._storage.root / FOLDER, parts)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise NoFile("image not found")
            identity = hashed[1] if hashed else f"{status.st_ino:x}.{status.st_mtime_ns:x}.{status.st_size:x}"
            yield Found(identity, hashed is not None, status.st_size, partial(_read, handle))
        finally:
            os.close(handle)

    def _find_object(self, path: str, hashed: re.Match[str] | None) -> Found:
        entry = self._storage.stat(path)
        if entry is None:
            raise NoFile("image not found")

        def read() -> bytes:
            try:
                return self._storage.get(path)
            except FileNotFoundError:
                raise NoFile("image not found") from None

        identity = hashed[1] if hashed else f"{str(entry.identity).strip(chr(34))}.{entry.size:x}"
        return Found(identity, hashed is not None, entry.size, read)

    def place(self, path: str) -> str:
        """The path of a stored file below the storage root; raises Refused for an invalid one."""
        try:
            return f"{FOLDER}/{'/'.join(parts_of(path))}"
        except BadPath as error:
            raise Refused(f"{path!r} is not an image path: {error}") from error

    def get(self, path: str) -> bytes:
        """The content of a stored file. Raises FileNotFoundError."""
        return self._storage.get(self.place(path))

    def has(self, path: str) -> bool:
        """Whether the file is there, whole or not."""
        return self._storage.stat(self.place(path)) is not None

    def store(self, path: str, data: bytes) -> bool:
        """Writes a file atomically; returns whether it was written (an existing file is kept).
        Raises Transient if the storage is full or fails.
        """
        final = self.place(path)
        with _said():
            entry = self._storage.stat(final)
            if entry is not None and entry.size == len(data):
                return False
            self._storage.put(final, data)
        return True

    def link(self, existing: str, path: str) -> bool:
        """Gives a stored file another path, as a hard link if the storage has links. Returns whether that was needed.
        Raises NoFile if the existing file is missing, Transient if the storage fails.
        """
        source, final = self.place(existing), self.place(path)
        with _said():
            if source == final or self._storage.stat(final) is not None:
                if self._storage.stat(source) is None and self._storage.stat(final) is None:
                    raise NoFile(f"{existing} is gone")
                return False
            try:
                self._storage.copy(source, final)
            except FileNotFoundError as error:
                raise NoFile(f"{existing} is gone") from error
            except FileExistsError:
                return False
        return True

    def remove(self, path: str) -> None:
        """Deletes one path of a file; idempotent."""
        self._storage.remove(self.place(path))

    def every(self) -> Iterator[Entry]:
        """Every file, with its path relative to the storage root, also half written ones; links are not followed."""
        return self._storage.walk(FOLDER, hidden=True)

    def remove_entry(self, entry: Entry) -> None:
        """Deletes a listed file, whatever its name is."""
        self._storage.remove(entry.path)


def _walk(root: Path, parts: tuple[str, ...]) -> int:
    """Opens the file without following links; returns its descriptor."""
    try:
        # The root may be a link, set up by the operator.
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NoFile("nothing is stored yet") from error
    try:
        for number, part in enumerate(parts, 1):
            # Without O_NONBLOCK, opening a pipe blocks until its other end is opened.
            kind = os.O_NONBLOCK if number == len(parts) else os.O_DIRECTORY
            below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=here)
            os.close(here)
            here = below
    except OSError as error:
        os.close(here)
        if error.errno in _NOT_THERE:
            raise NoFile("image not found") from error
        raise
    return here


def _read(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(0)
        return file.read()


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Transient(f"the image could not be stored: {describe_failure(error)}") from error
