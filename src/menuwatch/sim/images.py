"""The image host: for every address a picture of its own, always the same; some are broken, as on real hosts.

Pictures are made by hand, in three formats: nothing here needs a library, and whoever reads them must take them for what they are.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from menuwatch.sim.http import Answer, Request

SIZE = 64
"""Width and height of every picture, in pixels; a multiple of 8."""
BOMB = 12_000
"""Width and height of the pictures that nobody should decode: 144 million pixels in some 18 KB."""

_Colour = tuple[int, int, int]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(width: int, height: int, depth: int, colours: int, data: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _colours(seed: bytes) -> tuple[_Colour, _Colour, int]:
    return (seed[0], seed[1], seed[2]), (seed[3], seed[4], seed[5]), seed[6] % 7 + 1


def _edge(y: int, slope: int, size: int) -> int:
    """Where the first colour ends in row `y`."""
    return min(size, (y * slope) % (size + 1))


def png(seed: bytes, size: int = SIZE) -> bytes:
    """A PNG (8-bit RGB) with two colours and a diagonal, all of which follow from the seed (7 bytes or more)."""
    first, second, slope = _colours(seed)
    rows = bytearray()
    for y in range(size):
        edge = _edge(y, slope, size)
        rows += b"\0" + bytes(first) * edge + bytes(second) * (size - edge)
    return _png(size, size, 8, 2, zlib.compress(bytes(rows), 6))


def webp(seed: bytes, size: int = SIZE) -> bytes:
    """The same as lossless WebP (RFC 9649): two prefix codes of one bit or none for each channel, nothing else."""
    first, second, slope = _colours(seed)
    bits = _Bits()
    bits.put(0x2F, 8)
    bits.put(size - 1, 14)
    bits.put(size - 1, 14)
    bits.put(0, 1 + 3)  # no alpha, version 0
    bits.put(0, 3)  # no transform, no colour cache, one group of codes
    channels = [(first[i], second[i]) for i in (1, 0, 2)]  # green, red, blue
    for a, b in [*channels, (255, 255), (0, 0)]:  # then alpha, and distances, of which there are none
        symbols = sorted({a, b})
        bits.put(1, 1)
        bits.put(len(symbols) - 1, 1)
        bits.put(1, 1)
        for symbol in symbols:
            bits.put(symbol, 8)
    codes = [[int(pair[side] > pair[1 - side]) for pair in channels if pair[0] != pair[1]] for side in (0, 1)]
    for y in range(size):
        edge = _edge(y, slope, size)
        for x in range(size):
            for code in codes[0 if x < edge else 1]:
                bits.put(code, 1)
    data = bits.done()
    data += b"\0" * (len(data) % 2)
    body = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


class _Bits:
    """Bits packed from the lowest of each byte on."""

    def __init__(self) -> None:
        self._held = 0
        self._count = 0
        self._out = bytearray()

    def put(self, value: int, width: int) -> None:
        self._held |= value << self._count
        self._count += width
        while self._count >= 8:
            self._out.append(self._held & 255)
            self._held >>= 8
            self._count -= 8

    def done(self) -> bytes:
        return bytes(self._out) + bytes([self._held] if self._count else [])


# ITU-T T.81 table K.3: codes for differences of DC coefficients, by their length in bits.
_DC_LENGTHS = (0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
_DC_SYMBOLS = tuple(range(12))


def _dc_codes() -> dict[int, str]:
    codes: dict[int, str] = {}
    code, symbols = 0, iter(_DC_SYMBOLS)
    for length, count in enumerate(_DC_LENGTHS, 1):
        for _ in range(count):
            codes[next(symbols)] = f"{code:0{length}b}"
            code += 1
        code <<= 1
    return codes


def jpeg(seed: bytes, size: int = SIZE) -> bytes:
    """Much the same as baseline JPEG in squares of 8 pixels, each of one colour: every block is its mean and no more."""
    first, second, slope = _colours(seed)

    def segment(marker: int, data: bytes) -> bytes:
        return bytes((0xFF, marker)) + struct.pack(">H", len(data) + 2) + data

    squares = (
        first if x * 8 < _edge(y * 8, slope, size) else second for y in range(size // 8) for x in range(size // 8)
    )
    components = b"".join(bytes((number, 0x11, 0)) for number in (1, 2, 3))
    head = (
        b"\xff\xd8"
        + segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
        + segment(0xDB, b"\0" + bytes([8] * 64))  # a block's coefficient is then its mean less 128
        + segment(0xC0, struct.pack(">BHHB", 8, size, size, 3) + components)
        + segment(0xC4, b"\0" + bytes(_DC_LENGTHS) + bytes(_DC_SYMBOLS))
        + segment(0xC4, b"\x10\x01" + bytes(15) + b"\0")  # of AC coefficients only "no more" has a code: 0
        + segment(0xDA, b"\x03" + b"".join(bytes((number, 0)) for number in (1, 2, 3)) + b"\0\x3f\0")
    )
    return head + _scan(squares) + b"\xff\xd9"


def _scan(squares: Iterable[_Colour]) -> bytes:
    codes = _dc_codes()
    before = [0, 0, 0]
    bits: list[str] = []
    for square in squares:
        for number, mean in enumerate(_ycc(square)):
            value = round(mean) - 128
            difference, before[number] = value - before[number], value
            size = abs(difference).bit_length()
            bits.append(codes[size])
            if size:
                bits.append(f"{difference if difference > 0 else difference + (1 << size) - 1:0{size}b}")
            bits.append("0")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big")
    return data.replace(b"\xff", b"\xff\0")


def _ycc(colour: Sequence[int]) -> tuple[float, float, float]:
    r, g, b = colour
    return (
        0.299 * r + 0.587 * g + 0.114 * b,
        min(max(128 - 0.168736 * r - 0.331264 * g + 0.5 * b, 0), 255),
        min(max(128 + 0.5 * r - 0.418688 * g - 0.081312 * b, 0), 255),
    )


@functools.cache
def bomb() -> bytes:
    """A small PNG of far too many pixels."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (BOMB + 7) // 8)
    return _png(BOMB, BOMB, 1, 0, b"".join(packer.compress(row) for _ in range(BOMB)) + packer.flush())


@functools.lru_cache(2000)
def _whole(digest: bytes) -> tuple[bytes, str]:
    match digest[14] % 4:
        case 0:
            return jpeg(digest), "image/jpeg"
        case 1:
            return webp(digest), "image/webp"
        case _:
            return png(digest), "image/png"


def picture(request: Request) -> Answer:
    """What lies at an address: 93 of 100 a picture (of which one calls itself a text), else nothing, a page that says so, half a
    picture, no bytes at all or a bomb. What is a whole picture has an ETag."""
    digest = blake2b(request.path.encode(), digest_size=16).digest()
    dice = digest[15] % 100
    if dice < 2:
        return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
    if dice < 3:
        return Answer(200, b"<html><body>Not here</body></html>", "text/html")
    if dice < 6:
        body, kind = _whole(digest)
        return Answer(200, body[: len(body) // 2] if dice < 5 else b"", kind)
    if dice < 7:
        return Answer(200, bomb(), "image/png")
    body, kind = _whole(digest)
    etag = f'"{digest.hex()}"'
    if dice < 8:
        kind = "text/plain"
    if request.headers.get("if-none-match") == etag:
        return Answer(304, b"", kind, {"ETag": etag})
    return Answer(200, body, kind, {"ETag": etag, "Cache-Control": "max-age=31536000"})
