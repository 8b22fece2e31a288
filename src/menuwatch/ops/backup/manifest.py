"""What a backup consists of, as `manifest.json`: written last, so a folder without it is a backup that was not finished."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import Path, PurePosixPath

import msgspec

from menuwatch.core.errors import Refused
from menuwatch.db import migrate

NAME = "manifest.json"
FORMAT = 1
"""Of the folder; a higher one is of a newer version of the program."""
_HASH = re.compile(r"[0-9a-f]{64}")


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One file below the storage root; `path` has `/` between its folders, `size` is in bytes."""

    path: str
    size: int
    sha256: str
    mtime_ns: int


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one table, as a file of PostgreSQL's COPY (text, gzip) with that size and hash.

    `digest` is that of the rows in whatever order: see `rows.Digest`.
    """

    name: str
    columns: list[str]
    rows: int
    digest: str
    size: int
    sha256: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a partitioned table, by the time at which its range begins."""

    parent: str
    lower: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A whole backup."""

    format: int
    made_at: datetime
    menuwatch: str
    postgresql: str
    revision: str
    """Of the schema."""
    tables: list[Table]
    parts: list[Part]
    sequences: dict[str, int]
    files: list[File]
    settings: list[str]
    """Names of the settings that were set. Their values are not in a backup: some are keys to what is in it."""
    missing: list[str]
    """Files that rows named and that were not there when the backup was made."""
    left_out: list[str]
    """Tables of the database that are not Menuwatch's."""
    sha256: str = ""
    """Of all that comes before it in the file: the backup's identity."""

    def sealed(self) -> Manifest:
        """The same with its hash."""
        return msgspec.structs.replace(self, sha256=_hash(self.encoded()))

    def encoded(self) -> bytes:
        """As the file has it."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    def objects(self) -> dict[str, int]:
        """Every content that the backup consists of: its hash and its size."""
        return {table.sha256: table.size for table in self.tables} | {file.sha256: file.size for file in self.files}


class _Versioned(msgspec.Struct):
    format: int


def _hash(data: bytes) -> str:
    # Of the text itself: a later version may know fields that this one does not, and the other way round.
    return hashlib.sha256(data.rpartition(b'"sha256":')[0]).hexdigest()


def decode(data: bytes, place: Path) -> Manifest:
    """The manifest in `place`. Raises Refused for one that is damaged, or that a newer version wrote."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).format
        if version > FORMAT:
            raise Refused(
                f"{place} was written by a newer Menuwatch (its format is {version}, this one reads up to {FORMAT}): use that one"
            )
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{place} is damaged: not a backup manifest ({error})") from error
    if _hash(data) != found.sha256:
        raise Refused(f"{place} is damaged: it is not what was written (sha256)")
    bad = [file.path for file in found.files if not _inside(file.path)]
    bad += [sha256 for sha256 in found.objects() if not _HASH.fullmatch(sha256)]
    if bad:
        raise Refused(f"{place} cannot be used: unexpected entry {bad[0]!r}")
    return found


def readable(manifest: Manifest) -> None:
    """Raises Refused for a backup of a schema that this version does not know."""
    if not migrate.knows(manifest.revision):
        raise Refused(
            f"the backup was made by Menuwatch {manifest.menuwatch} at schema {manifest.revision}, which this version does not know "
            f"(it knows up to {migrate.newest()}): restore it with that version or a newer one"
        )


def _inside(path: str) -> bool:
    """Whether it is a path below the folder that it is relative to."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and pure.as_posix() == path
