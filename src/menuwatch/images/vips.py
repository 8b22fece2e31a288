"""libvips, imported lazily and restricted: five loaders, one thread per image, no operation cache.

Call everything here from threads (libvips releases the GIL), never on the event loop.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal

from msgspec import Struct

from menuwatch.core.errors import MenuwatchError
from menuwatch.images.limits import MAX_PIXELS, MAX_SOURCE_SIDE, ONE_AT_A_TIME_PIXELS

SourceFormat = Literal["jpeg", "png", "webp", "gif", "avif"]

_LOADERS: dict[SourceFormat, tuple[str, str]] = {
    "jpeg": ("VipsForeignLoadJpeg", "jpegload_buffer"),
    "png": ("VipsForeignLoadPng", "pngload_buffer"),
    "webp": ("VipsForeignLoadWebp", "webpload_buffer"),
    "gif": ("VipsForeignLoadNsgif", "gifload_buffer"),
    "avif": ("VipsForeignLoadHeif", "heifload_buffer"),
}

_AVIF_BRANDS = (b"avif", b"avis")

_lock = threading.Lock()
_one_at_a_time = threading.Lock()


class InvalidImage(MenuwatchError):
    """Bytes that are not a usable image. `final`: another download would not help."""

    final: ClassVar[bool] = True


class UnknownFormat(InvalidImage):
    """A file of another type than the five."""


class NotAnImage(InvalidImage):
    """A page, JSON or nothing, as servers send that have no image at the moment."""

    final = False


class TooLarge(InvalidImage):
    """More pixels than are ever decoded."""


class Damaged(InvalidImage):
    """Truncated or broken; another download may succeed."""

    final = False


class Header(Struct, frozen=True):
    """The header of an image. `frames` is 1 without animation."""

    format: SourceFormat
    width: int
    height: int
    frames: int
    orientation: int

    @property
    def pixels(self) -> int:
        return self.width * self.height * self.frames


_loaded: Any = None


def lib() -> Any:
    """The configured pyvips module. The first call loads it, which takes about 100 ms."""
    global _loaded
    with _lock:
        if _loaded is None:
            # Requests run in parallel; threads within one image would only delay others.
            os.environ.setdefault("VIPS_CONCURRENCY", "1")
            import pyvips

            pyvips.block_untrusted_set(True)
            pyvips.operation_block_set("VipsForeignLoad", True)
            for group, _ in _LOADERS.values():
                pyvips.operation_block_set(group, False)
            pyvips.cache_set_max(0)
            _loaded = pyvips
        return _loaded


def version() -> str:
    """Of libvips, as `8.18.7`."""
    found = lib()
    return ".".join(str(found.version(part)) for part in range(3))


def header(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Header:
    """Reads no pixel. Raises UnknownFormat, NotAnImage, TooLarge, Damaged."""
    kind = sniff(data)
    if kind is None:
        message = f"{described(data)}: expected JPEG, PNG, WebP, GIF or AVIF"
        raise NotAnImage(message) if is_message(data) else UnknownFormat(message)
    try:
        image = _opened(kind, data, access="sequential")
        head = Header(
            format=kind,
            width=int(image.width),
            height=int(image.height),
            frames=max(_number(image, "n-pages"), 1),
            orientation=_number(image, "orientation"),
        )
    except Exception as error:
        raise Damaged(f"a {kind} whose header cannot be read: {reason(error)}") from error
    if max(head.width, head.height) > MAX_SOURCE_SIDE:
        raise TooLarge(f"{head.width} x {head.height} pixels; at most {MAX_SOURCE_SIDE} on a side are decoded")
    if head.pixels > max_pixels:
        frames = f" x {head.frames} frames" if head.frames > 1 else ""
        raise TooLarge(
            f"{head.width} x {head.height}{frames} pixels are {head.pixels / 1e6:,.0f} million; at most "
            f"{max_pixels / 1e6:,.0f} million are decoded"
        )
    return head


def _number(image: Any, name: str) -> int:
    """One field, asked for by its name: a file chooses the names of others, and they need not even be text. 1 where it is missing."""
    return int(image.get(name)) if image.get_typeof(name) else 1


def _opened(kind: SourceFormat, data: bytes, **options: Any) -> Any:
    return getattr(lib().Image, _LOADERS[kind][1])(data, fail_on="truncated", **options)


def opened(head: Header, data: bytes) -> Any:
    """The image, its first frame, upright and in sRGB; pixels are decoded when they are asked for."""
    # An image to be rotated is not read sequentially, so it needs random access.
    turned = head.orientation not in (0, 1)
    image = _opened(head.format, data, access="random" if turned else "sequential")
    if turned:
        image = image.autorot()
    return in_srgb(image)


def in_srgb(image: Any) -> Any:
    """The same with 8 bits a channel in sRGB, its own colour profile applied."""
    if image.get_typeof("icc-profile-data"):
        try:
            image = image.icc_transform("srgb", embedded=True, intent="perceptual")
        except lib().Error:
            image.remove("icc-profile-data")
    return image.colourspace("srgb").cast("uchar") if image.interpretation != "srgb" else image


def one_large_at_a_time(pixels: int) -> AbstractContextManager[Any]:
    """Serializes work on large images."""
    return _one_at_a_time if pixels >= ONE_AT_A_TIME_PIXELS else nullcontext()


def reason(error: Exception) -> str:
    """The libvips error on one line; for other errors with the type."""
    if not isinstance(error, lib().Error):
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    text = str(getattr(error, "detail", "") or error)
    return " ".join(text.split())[:200] or "no reason given"


def sniff(data: bytes) -> SourceFormat | None:
    """The format by the first bytes (names and content types lie); None if it is not accepted."""
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
    """What bytes of no accepted format look like, for people."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        return "an empty response"
    if b"<svg" in start.lower():
        return "an SVG"
    if start[:1] == b"<":
        return "a web page"
    if start[:1] in (b"{", b"["):
        return "JSON"
    for magic, name in ((b"BM", "a BMP"), (b"II*\0", "a TIFF"), (b"MM\0*", "a TIFF"), (b"%PDF", "a PDF")):
        if start.startswith(magic):
            return name
    return "an unknown image format"


def is_message(data: bytes) -> bool:
    """Whether it is a page, JSON or empty instead of a file."""
    return described(data) in ("a web page", "JSON", "an empty response")
