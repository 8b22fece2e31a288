"""The image host: the picture of a product or brand at every URL, always the same one; some are broken, as on real hosts."""

from __future__ import annotations

import functools
import struct
import zlib
from hashlib import blake2b

from menuwatch.sim.http import Request, Response
from menuwatch.sim.pictures.render import encode
from menuwatch.sim.pictures.subject import subject_of

BOMB = 12_000
"""Width and height of decompression bombs: 144 million pixels in some 18 KB."""
_KEPT = 1000
"""Pictures that are kept, about 25 KB each."""


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


_KINDS = ("jpeg", "jpeg", "png", "jpeg", "webp", "jpeg", "png", "webp")


@functools.lru_cache(_KEPT)
def _image(path: str, kind: str) -> bytes:
    return encode(subject_of(path), kind)


def image_response(request: Request) -> Response:
    """Content at a URL: 93 of 100 are images (one of them served as text), else nothing, an error page, half an image, an empty
    body or a bomb. Complete images have an ETag."""
    digest = blake2b(request.path.encode(), digest_size=16).digest()
    dice = digest[15] % 100
    if dice < 2:
        return Response(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
    if dice < 3:
        return Response(200, b"<html><body>Not here</body></html>", "text/html")
    if dice == 6:
        return Response(200, bomb(), "image/png")
    kind = "jpeg" if request.path.endswith(".jpg") else _KINDS[digest[14] % len(_KINDS)]
    content_type = "text/plain" if dice == 7 else f"image/{kind}"
    etag = f'"{digest.hex()}"'
    if dice > 6 and request.headers.get("if-none-match") == etag:
        return Response(304, b"", content_type, {"ETag": etag})
    body = b"" if dice == 5 else _image(request.path, kind)
    if dice < 6:
        return Response(200, body[: len(body) // 2], content_type)
    return Response(200, body, content_type, {"ETag": etag, "Cache-Control": "max-age=31536000"})
