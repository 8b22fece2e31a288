"""The image host: a fixed image for every URL; some are broken, as on real hosts."""

from __future__ import annotations

import functools
import struct
import zlib
from hashlib import blake2b
from typing import Any

from menuwatch.sim.http import Request, Response

SIZE = 64
"""Width and height of every image, in pixels; a multiple of 8."""
BOMB = 12_000
"""Width and height of decompression bombs: 144 million pixels in some 18 KB."""

_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "png": {"compression": 6, "filter": "none"},
    "webp": {"lossless": True},
    "jpeg": {"Q": 100, "subsample_mode": "off"},
}


def encode(seed: bytes, kind: str) -> bytes:
    """An image of a kind (png, jpeg or webp) with two colours and a diagonal, all of which follow from the seed (7 bytes or more). A
    JPEG's diagonal has steps of 8 pixels, the size of its blocks."""
    slope = seed[6] % 7 + 1
    step = 8 if kind == "jpeg" else 1
    pixels = bytearray()
    for y in range(SIZE):
        edge = min(SIZE, (y // step * step * slope) % (SIZE + 1))
        edge = -(-edge // step) * step
        pixels += seed[:3] * edge + seed[3:6] * (SIZE - edge)
    import pyvips  # imported only when needed

    image = pyvips.Image.new_from_memory(bytes(pixels), SIZE, SIZE, 3, "uchar").copy(interpretation="srgb")
    data: bytes = image.write_to_buffer(f".{kind}", **_SAVE_OPTIONS[kind])
    return data


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@functools.cache
def bomb() -> bytes:
    """A small PNG of far too many pixels, written row by row."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (BOMB + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(BOMB)) + packer.flush()
    header = struct.pack(">IIBBBBB", BOMB, BOMB, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


@functools.lru_cache(2000)
def _image(digest: bytes) -> tuple[bytes, str]:
    kind = ("jpeg", "webp", "png", "png")[digest[14] % 4]
    return encode(digest, kind), f"image/{kind}"


def image_response(request: Request) -> Response:
    """Content at a URL: 93 of 100 are images (one of them served as text), else nothing, an error page, half an image, an empty
    body or a bomb. Complete images have an ETag."""
    digest = blake2b(request.path.encode(), digest_size=16).digest()
    dice = digest[15] % 100
    if dice < 2:
        return Response(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
    if dice < 3:
        return Response(200, b"<html><body>Not here</body></html>", "text/html")
    if dice < 6:
        body, kind = _image(digest)
        return Response(200, body[: len(body) // 2] if dice < 5 else b"", kind)
    if dice < 7:
        return Response(200, bomb(), "image/png")
    body, kind = _image(digest)
    etag = f'"{digest.hex()}"'
    if dice < 8:
        kind = "text/plain"
    if request.headers.get("if-none-match") == etag:
        return Response(304, b"", kind, {"ETag": etag})
    return Response(200, body, kind, {"ETag": etag, "Cache-Control": "max-age=31536000"})
