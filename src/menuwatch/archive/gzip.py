"""gzip, fast: ISA-L up to level 3, zlib-ng above it. Whatever reads gzip reads both."""

from __future__ import annotations

from typing import Protocol

from isal import igzip, isal_zlib
from zlib_ng import zlib_ng

LEVELS = (1, 9)
_GZIP = 31
"""What zlib calls a window of 32 KiB in a gzip file. Its header names no time, so equal documents have equal files."""
_MEMORY = 9
"""The most there is; ISA-L is slow with little."""
_LAST_OF_ISAL = 3


class Damaged(Exception):
    """Bytes that are no whole gzip file, with the reason."""


class Packer(Protocol):
    """Compresses bit by bit."""

    def compress(self, data: bytes, /) -> bytes:
        """What is ready of the compressed bytes."""
        ...

    def flush(self) -> bytes:
        """The rest of them."""
        ...


def packer(level: int) -> Packer:
    """One for a new gzip file, at a level from 1 (fast) to 9 (small)."""
    if level <= _LAST_OF_ISAL:
        return isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP, _MEMORY)
    return zlib_ng.compressobj(level, zlib_ng.DEFLATED, _GZIP, _MEMORY)


def unpack(packed: bytes) -> bytes:
    """The bytes of a whole gzip file. Raises Damaged."""
    try:
        data: bytes = igzip.decompress(packed)  # type: ignore[no-untyped-call]
    except (OSError, EOFError, isal_zlib.error) as error:  # type: ignore[misc]  # its stub calls `error` an instance
        raise Damaged(str(error)) from error
    return data
