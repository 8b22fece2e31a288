"""Reads files of recorded answers: JSON, plain or gzip-compressed, archive files, and tar archives of such files. No other I/O."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from menuwatch.archive import document
from menuwatch.archive.document import Document
from menuwatch.core.errors import Refused
from menuwatch.core.json_bounds import check_elements

_GZIP = b"\x1f\x8b"
_OURS = "menuwatch-payload/"
"""Prefix of `format` in archive files of every version."""
_OURS_FIRST = re.compile(rb'\s*\{\s*"format"\s*:\s*"menuwatch-payload/')
_MAGIC = slice(257, 262)
"""Position of the magic number in a tar archive."""

_FOREIGN = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xfd7zXZ\0": "compressed with xz",
    b"BZh": "compressed with bzip2",
    b"(\xb5/\xfd": "compressed with Zstandard",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"PAR1": "a Parquet file",
}
"""Other common file formats by their first bytes."""

LARGEST_FILE = 500_000_000
"""Maximum unpacked bytes of a file, which is held in memory."""
LARGEST_MEMBER = 256_000_000
"""Maximum unpacked bytes of a member. Real menus have less than a tenth."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file that was left out: a member of a tar archive, or a menu without products (`empty`)."""

    source: str
    reason: str
    empty: bool = False


def read_file(path: Path) -> Iterator[tuple[str, bytes | Document | LeftOut]]:
    """The raw answers and archive files in a file, plain or gzip-compressed, each with its name: one, or the members of a tar
    archive. Raises Refused in one line; an unreadable member is returned with its error instead.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise Refused(f"{path}: no such file") from None
    except IsADirectoryError:
        raise Refused(f"{path}: is a folder; name the files in it") from None
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    if len(data) > LARGEST_FILE:
        raise Refused(f"{path}: {'unpacks to' if packed else 'has'} more than {LARGEST_FILE:,} bytes; split it")
    if data[_MAGIC] == b"ustar":
        yield from _members(path, data)
    else:
        yield str(path), _content(str(path), data)


def _content(source: str, data: bytes) -> bytes | Document:
    if not data.strip():
        raise Refused(f"{source}: the file is empty")
    foreign = next((what for magic, what in _FOREIGN.items() if data.startswith(magic)), None)
    if foreign is None and b"\0" in data[:1000]:
        # No UTF-8 JSON contains it.
        foreign = "binary data" if data.strip(b"\0") else "an empty tar archive, or nothing but zeros"
    if foreign is not None:
        raise Refused(
            f"{source}: is {foreign}; supported are JSON, plain or gzip-compressed, and tar archives of such files"
        )
    if not _is_ours(data):
        return data
    try:
        check_elements(data)
        return document.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"{source} is not an archive file: {error}") from error
    except Refused as error:
        raise Refused(f"{source}: {error}") from error


class _Marked(msgspec.Struct):
    format: str = ""


def _is_ours(data: bytes) -> bool:
    """Whether it is an archive file, also after reformatting with other white space or key order."""
    if _OURS_FIRST.match(data):
        return True
    if _OURS.encode() not in data:
        return False
    try:
        return msgspec.json.decode(data, type=_Marked).format.startswith(_OURS)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _members(path: Path, data: bytes) -> Iterator[tuple[str, bytes | Document | LeftOut]]:
    """Reads tar members. Nothing is unpacked to disk, so member names are harmless."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                source = f"{path}: {member.name}"
                try:
                    yield source, _content(source, _unpacked(archive, member))
                except (Refused, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                    reason = str(error).removeprefix(f"{source}: ")
                    yield source, LeftOut(source=source, reason=reason)
            end = archive.offset
    except tarfile.TarError as error:
        # Members before the damage are intact.
        yield str(path), LeftOut(source=str(path), reason=f"the archive is damaged: {error}")
    else:
        # tarfile takes a truncated or damaged header for the end of the archive, which is a block of zeros.
        if data[end : end + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
            reason = f"the archive is damaged: truncated after {end:,} bytes"
            yield str(path), LeftOut(source=str(path), reason=reason)


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isreg() else None
    if file is None:
        raise Refused("is not a regular file")
    if member.size > LARGEST_MEMBER:
        raise Refused(f"has {member.size:,} bytes, more than {LARGEST_MEMBER:,}")
    data = file.read()
    if len(data) < member.size:
        raise Refused(f"is cut off: {len(data):,} of {member.size:,} bytes are there")
    if not data.startswith(_GZIP):
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        data = packed.read(LARGEST_MEMBER + 1)
    if len(data) > LARGEST_MEMBER:
        raise Refused(f"unpacks to more than {LARGEST_MEMBER:,} bytes")
    return data
