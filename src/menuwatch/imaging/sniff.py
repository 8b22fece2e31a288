"""What kind of picture some bytes are, told by how they begin: names and content types lie."""

from __future__ import annotations

from typing import Literal

SourceFormat = Literal["jpeg", "png", "webp", "gif", "avif"]

_AVIF_BRANDS = (b"avif", b"avis")


def sniff(data: bytes) -> SourceFormat | None:
    """The kind, None for everything that is not taken."""
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if data[4:8] == b"ftyp" and _is_avif(data):
        return "avif"
    return None


def _is_avif(data: bytes) -> bool:
    """ISO/IEC 23000-12: the major brand, or one of the compatible ones, which follow it in the first box."""
    size = min(int.from_bytes(data[:4], "big"), 256)
    brands = [data[8:12], *(data[at : at + 4] for at in range(16, size - 3, 4))]
    return any(brand in _AVIF_BRANDS for brand in brands)


def described(data: bytes) -> str:
    """What bytes that are not taken look like, for people."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        return "an empty answer"
    if b"<svg" in start.lower():
        return "an SVG"
    if start[:1] == b"<":
        return "a web page"
    if start[:1] in (b"{", b"["):
        return "JSON"
    for magic, name in ((b"BM", "a BMP"), (b"II*\0", "a TIFF"), (b"MM\0*", "a TIFF"), (b"%PDF", "a PDF")):
        if start.startswith(magic):
            return name
    return "no picture that is known here"


def is_message(data: bytes) -> bool:
    """Whether it is a page, JSON or nothing: no file at all."""
    return described(data) in ("a web page", "JSON", "an empty answer")
