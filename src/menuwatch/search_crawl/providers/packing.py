"""Decompresses untrusted bodies: plain, gzip or Brotli, detected by content; never beyond a size limit.

gzip begins with two magic bytes. Brotli has none, so it is tried for anything that is neither gzip nor text.
"""

from __future__ import annotations

import re
import zlib

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_WINDOW = 31
"""What zlib calls a window of 32 KiB in a gzip file."""
_STEP = 65_536
_MOST_MEMBERS = 1_000
"""A file that was packed in pieces has one for each; of empty ones a body could hold a million."""
_FILLING = re.compile(rb"\x00*")


class Unpackable(Exception):
    """The body is corrupt, or larger than the limit (`too_large`); the message says which."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


def unpacked(body: bytes, most: int) -> bytes:
    """The plain body, of `most` bytes at most. Takes memory and time in proportion to what it returns. Raises Unpackable."""
    if body.startswith(_GZIP):
        return _gunzip(body, most)
    # Brotli may begin with any byte, "[" and "<" among them, so the beginning alone proves nothing.
    if body and not _is_text(body):
        try:
            return _unbrotli(body, most)
        except Unpackable as error:
            if error.too_large or not body.removeprefix(_MARK).lstrip(b" \t\r\n").startswith(b"<"):
                raise
    if len(body) > most:
        raise _too_large(most)
    return body


def unpacked_as(encoding: str, body: bytes, most: int) -> bytes:
    """The same where an encoding is named, as in the header Content-Encoding; raises Unpackable also for one that is not known."""
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, most)
        case "br":
            return _unbrotli(body, most)
        case _:
            raise Unpackable("its encoding is not known here: send it plain, as gzip or as br")


def _too_large(most: int) -> Unpackable:
    return Unpackable(f"it is larger than {most:,} bytes", too_large=True)


def _is_text(body: bytes) -> bool:
    """Whether it can be text: HTML needs no mark at its start, and Brotli is full of control characters."""
    try:
        start = body[:1000].decode("utf-8", "strict") if len(body) <= 1000 else body[:1000].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return False
    whole = len(start.encode()) >= min(len(body), 1000) - 4
    return whole and not any(ord(sign) < 32 and sign not in "\t\r\n\f" for sign in start)


def _gunzip(body: bytes, most: int) -> bytes:
    out: list[bytes] = []
    size = at = members = 0
    try:
        while at < len(body):
            members += 1
            if members > _MOST_MEMBERS:
                raise Unpackable(f"it is a gzip file of more than {_MOST_MEMBERS:,} members", too_large=True)
            member = zlib.decompressobj(_WINDOW)
            while not member.eof:
                # Bit by bit: what lies behind a member is copied each time.
                piece = body[at : at + _STEP]
                if not piece:
                    raise Unpackable("it is a damaged gzip file: its end is missing")
                out.append(member.decompress(piece, most + 1 - size))
                size += len(out[-1])
                if size > most:
                    raise _too_large(most)
                at += len(piece) - len(member.unused_data)
            filling = _FILLING.match(body, at)
            at = at if filling is None else filling.end()
    except zlib.error as error:
        raise Unpackable(f"it is a damaged gzip file: {error}") from None
    return b"".join(out)


def _unbrotli(body: bytes, most: int) -> bytes:
    import pyarrow as pa  # imported only when needed

    out, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "brotli") as stream:
            while piece := stream.read(min(1_000_000, most + 1 - size)):
                out.append(piece)
                size += len(piece)
                if size > most:
                    raise _too_large(most)
    except OSError:
        raise Unpackable("it is neither text nor gzip nor Brotli, or damaged") from None
    return b"".join(out)
