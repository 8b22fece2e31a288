"""Images for tests, made by hand or by libvips itself."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pyvips


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, data: bytes, *, depth: int = 8, colour: int = 2) -> bytes:
    """A PNG with that header and those compressed bytes."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def png_bomb(side: int = 30_000) -> bytes:
    """side x side black pixels, one bit each, in some 110 KB."""
    packer = zlib.compressobj(9)
    row = b"\0" * (1 + (side + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    return png_of(side, side, data, depth=1, colour=0)


def gif_bomb(width: int, height: int, frames: int) -> bytes:
    """Many frames of one tiny picture on a large canvas."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\0\x01\0\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    return head + frame * frames + b";"


def plain(width: int, height: int, colour: tuple[int, ...] = (200, 60, 20)) -> Any:
    image = pyvips.Image.black(width, height, bands=len(colour)) + list(colour)
    return image.cast("uchar").copy(interpretation="srgb")


def halves(width: int, height: int) -> Any:
    """Left half red, right half blue."""
    left = plain(width // 2, height, (255, 0, 0))
    return left.join(plain(width - width // 2, height, (0, 0, 255)), "horizontal")


def noise(width: int, height: int, seed: int = 1) -> Any:
    """Something that does not compress to nothing."""
    bands = [pyvips.Image.gaussnoise(width, height, mean=128, sigma=40, seed=seed + i) for i in range(3)]
    return bands[0].bandjoin(bands[1:]).cast("uchar").copy(interpretation="srgb")


def encoded(image: Any, suffix: str, **options: Any) -> bytes:
    data: bytes = image.write_to_buffer(suffix, **options)
    return data


def decoded(data: bytes) -> Any:
    return pyvips.Image.new_from_buffer(data, "")
