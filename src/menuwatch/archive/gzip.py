"""Fast gzip: ISA-L up to level 3, zlib-ng above it. Any gzip reader reads both."""

from __future__ import annotations

from typing import Protocol

from isal import isal_zlib
from zlib_ng import zlib_ng

LEVELS = (1, 9)
_GZIP = 31
"""zlib's code for a window of 32 KiB with a gzip header. The header has no time, so equal documents give equal files."""
_MEMORY = 9
"""The maximum; ISA-L is slow with less."""
_LAST_OF_ISAL = 3
_MOST_MEMBERS = 100
"""Maximum gzip members per file: `packer` writes one; files recompressed by other programs may have a few."""


class Damaged(Exception):
    """Bytes that are not a complete gzip file, with the reason."""


class Packer(Protocol):
    """Streaming compressor."""

    def compress(self, data: bytes, /) -> bytes:
        """Compresses more input; returns the output available so far."""
        ...

    def flush(self) -> bytes:
        """Ends the stream; returns the remaining output."""
        ...


def packer(level: int) -> Packer:
    """A compressor for one file, at a level from 1 (fast) to 9 (small)."""
    if level <= _LAST_OF_ISAL:
        return isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP, _MEMORY)
    return zlib_ng.compressobj(level, zlib_ng.DEFLATED, _GZIP, _MEMORY)


def unpack(packed: bytes, most: int) -> bytes:
    """Decompresses a complete gzip file. Raises Damaged, also for more than `most` bytes, at which it stops."""
    found: list[bytes] = []
    size = 0
    for _ in range(_MOST_MEMBERS):
        unpacker = isal_zlib.decompressobj(wbits=_GZIP)
        try:
            found.append(unpacker.decompress(packed, most - size + 1))
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls `error` an instance
            raise Damaged(str(error)) from error
        size += len(found[-1])
        if size > most:
            raise Damaged(f"larger than {most:,} bytes when decompressed")
        if not unpacker.eof:
            raise Damaged("truncated")
        packed = unpacker.unused_data
        if not packed:
            return b"".join(found)
    raise Damaged(f"it has more than {_MOST_MEMBERS} members")
