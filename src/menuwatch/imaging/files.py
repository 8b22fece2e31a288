"""Pictures as files below `storage/images`: paths that are made, and paths that are asked for.

    images/products/<state>/<store>/<brand>/<product_id>/image-<hash>.webp
    images/brands/<brand>/logo-<hash>.webp

Each product has a file of its own; the same picture of several is one file with several names (hard links). A path that somebody
asks for is walked folder by folder without following any link, so that nothing outside the root is ever read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import unicodedata
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from menuwatch.core.durable import sync_folder
from menuwatch.core.errors import MenuwatchError, Refused, Transient

FOLDER = "images"
"""Below the storage root."""
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
    """A part of a path made of a name: 1 to 80 of a-z, 0-9 and hyphens; `unknown` where nothing is left."""
    plain = unicodedata.normalize("NFKD", text or "").encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("-", plain).strip("-")[:80].strip("-") or "unknown"


def product_path(*, state: str | None, store: str | None, brand: str | None, product_id: int, sha256: bytes) -> str:
    """Where a product's picture belongs, relative to the storage root."""
    folder = "/".join(slug(part) for part in (state, store, brand))
    return f"{FOLDER}/products/{folder}/{product_id}/image-{sha256.hex()[:_HASH_CHARACTERS]}.webp"


def brand_path(*, brand: str, sha256: bytes) -> str:
    """Where a brand's logo belongs, relative to the storage root."""
    return f"{FOLDER}/brands/{slug(brand)}/logo-{sha256.hex()[:_HASH_CHARACTERS]}.webp"


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a path that was asked for, relative to the images folder. Raises BadPath naming what is wrong.

    A leading `images/` is taken too: that is how a product's `local_image_path` begins.
    """
    if not path:
        raise BadPath("it is empty")
    if len(path) > _LONGEST_PATH:
        raise BadPath(f"it has {len(path)} characters; {_LONGEST_PATH} are allowed")
    parts = path.split("/")
    if parts[0] == FOLDER and len(parts) > 1:
        parts = parts[1:]
    if len(parts) > _DEEPEST:
        raise BadPath(f"it is deeper than {_DEEPEST} folders")
    for part in parts:
        if part in ("", ".", ".."):
            raise BadPath(f"{part!r} is no part of a path" if part else "it has an empty part")
        if len(part) > _LONGEST_PART:
            raise BadPath(f"a part of it has more than {_LONGEST_PART} characters")
        if _PART.fullmatch(part) is None:
            raise BadPath("only letters, digits, `-`, `_`, `.` and `/` are allowed, and no part begins with a dot")
    if _NAME.fullmatch(parts[-1]) is None:
        raise BadPath("it must end in .webp, .jpg, .png, .gif or .avif")
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is there, not yet read. `identity` differs where its content does; `hashed`: its name says so for ever."""

    handle: int
    identity: str
    hashed: bool
    size: int

    def read(self) -> bytes:
        """All of it."""
        with os.fdopen(os.dup(self.handle), "rb") as file:
            file.seek(0)
            return file.read()


class ImageFiles:
    """The pictures of one storage root."""

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self._root = storage / FOLDER

    @property
    def root(self) -> Path:
        """The folder of all pictures."""
        return self._root

    @contextlib.contextmanager
    def find(self, path: str) -> Iterator[Found]:
        """The file of a path that was asked for, open for as long as the context lasts. Raises BadPath, NoFile."""
        parts = parts_of(path)
        handle = self._walk(parts)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise NoFile("there is no picture of that path")
            hashed = _HASHED.fullmatch(parts[-1])
            identity = hashed[1] if hashed else f"{status.st_ino:x}.{status.st_mtime_ns:x}.{status.st_size:x}"
            yield Found(handle, identity, hashed is not None, status.st_size)
        finally:
            os.close(handle)

    def _walk(self, parts: tuple[str, ...]) -> int:
        """A handle of the file, reached without following a link."""
        try:
            # The root itself may be a link: an operator put it there.
            here = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise NoFile("nothing is stored yet") from error
        try:
            for number, part in enumerate(parts, 1):
                # Without O_NONBLOCK whoever opens a pipe waits for its other end.
                kind = os.O_NONBLOCK if number == len(parts) else os.O_DIRECTORY
                below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=here)
                os.close(here)
                here = below
        except OSError as error:
            os.close(here)
            if error.errno in _NOT_THERE:
                raise NoFile("there is no picture of that path") from error
            raise
        return here

    def place(self, path: str) -> Path:
        """The full path of a stored file; raises Refused for one that no code of ours makes."""
        try:
            return self._root.joinpath(*parts_of(path))
        except BadPath as error:
            raise Refused(f"{path!r} is no path of a picture: {error}") from error

    def has(self, path: str) -> bool:
        """Whether the file is there, whole or not."""
        return self.place(path).is_file()

    def store(self, path: str, data: bytes) -> bool:
        """Writes a file so that a crash leaves it whole or not at all; says whether it was written (a file that is there is kept).
        Raises Transient when the disk is full or fails."""
        final = self.place(path)
        if final.is_file() and final.stat().st_size == len(data):
            return False
        temporary = final.with_name(f".{uuid.uuid4().hex}.tmp")
        with _said():
            final.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.rename(final)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
            sync_folder(final.parent)
        return True

    def link(self, existing: str, path: str) -> bool:
        """Gives a stored file another name, on file systems that can; on others a copy. Says whether that was needed. Raises NoFile
        where the existing one is gone, Transient when the disk fails."""
        source, final = self.place(existing), self.place(path)
        if source == final or final.is_file():
            if not source.is_file() and not final.is_file():
                raise NoFile(f"{existing} is gone")
            return False
        with _said():
            final.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, final)
            except FileNotFoundError as error:
                raise NoFile(f"{existing} is gone") from error
            except FileExistsError:
                return False
            except OSError:
                self.store(path, source.read_bytes())
                return True
            sync_folder(final.parent)
        return True

    def remove(self, path: str) -> None:
        """Takes a name away from a file; does nothing where there is none."""
        self.place(path).unlink(missing_ok=True)

    def every(self) -> Iterator[tuple[str, int]]:
        """Every file there is, as its path relative to the storage root and its bytes; links are not followed."""
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        path = Path(entry.path).relative_to(self._storage).as_posix()
                        yield path, entry.stat(follow_symlinks=False).st_size


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
        raise Transient(f"the picture could not be stored: {why}") from error
