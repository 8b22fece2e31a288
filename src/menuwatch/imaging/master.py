"""The stored picture: whatever was downloaded, upright, in sRGB, without its metadata, at full resolution as WebP."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from menuwatch.imaging import vips
from menuwatch.imaging.sniff import SourceFormat

QUALITY = 90
"""Of WebP, from 1 to 100: high, because every picture that is ever shown is made of this one."""
MAX_BYTES = 30_000_000
"""Bytes of a download that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """A picture to be stored. `sha256` is of the bytes it was made of; `colour` is its average, `#rrggbb`."""

    data: bytes
    sha256: bytes
    width: int
    height: int
    source_format: SourceFormat
    source_bytes: int
    colour: str


def make(source: bytes) -> Master:
    """Decodes and encodes: about 100 ms a million pixels, so call it in a thread. Raises NoImage."""
    if len(source) > MAX_BYTES:
        raise vips.TooLarge(f"{len(source):,} bytes; a picture may have {MAX_BYTES:,}")
    head = vips.header(source)
    lib = vips.lib()
    with vips.quiet_memory(head.pixels):
        try:
            image = vips.opened(head, source)
            longest = max(image.width, image.height)
            if longest > vips.MAX_SIDE:
                image = image.resize(vips.MAX_SIDE / longest)
            data = image.webpsave_buffer(Q=QUALITY, effort=4, keep="none")
            spot = lib.Image.thumbnail_buffer(data, 1, height=1, size="force")
            if spot.hasalpha():
                spot = spot.flatten(background=[255] * (spot.bands - 1))
            colour = "#" + "".join(f"{min(max(round(value), 0), 255):02x}" for value in spot(0, 0)[:3])
        except lib.Error as error:
            raise vips.Damaged(f"a {head.format} that cannot be decoded: {vips.reason(error)}") from error
        return Master(
            data=data,
            sha256=sha256(source).digest(),
            width=int(image.width),
            height=int(image.height),
            source_format=head.format,
            source_bytes=len(source),
            colour=colour,
        )
