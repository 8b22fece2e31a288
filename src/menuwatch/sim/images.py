"""The image host: for every address a picture of its own, always the same; some are broken, as on real hosts."""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b

from menuwatch.sim.http import Answer, Request

SIZE = 64
"""Width and height of every picture, in pixels."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(seed: bytes, size: int = SIZE) -> bytes:
    """A PNG (8-bit RGB) with two colours and a diagonal, all of which follow from the seed (7 bytes or more)."""
    first, second, slope = seed[:3], seed[3:6], seed[6] % 7 + 1
    rows = bytearray()
    for y in range(size):
        edge = min(size, (y * slope) % (size + 1))
        rows += b"\0" + first * edge + second * (size - edge)
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(bytes(rows), 6))
        + _chunk(b"IEND", b"")
    )


def picture(request: Request) -> Answer:
    """What lies at an address: 94 of 100 a picture, else nothing, a page that says so, half a picture or no bytes at all."""
    digest = blake2b(request.path.encode(), digest_size=16).digest()
    dice = digest[15] % 100
    body = png(digest)
    if dice < 2:
        return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
    if dice < 3:
        return Answer(200, b"<html><body>Not here</body></html>", "text/html")
    if dice < 5:
        return Answer(200, body[: len(body) // 2], "image/png")
    if dice < 6:
        return Answer(200, b"", "image/png")
    etag = f'"{digest.hex()}"'
    if request.headers.get("if-none-match") == etag:
        return Answer(304, b"", "image/png", {"ETag": etag})
    return Answer(200, body, "image/png", {"ETag": etag, "Cache-Control": "max-age=31536000"})
