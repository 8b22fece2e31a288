"""libvips, loaded late and locked down: five loaders, nothing else; one thread for each picture; no cache of operations.

Everything here is called from threads (libvips releases the interpreter's lock while it works), never on the event loop.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, ClassVar

from menuwatch.core.errors import MenuwatchError
from menuwatch.imaging.sniff import SourceFormat, described, is_message, sniff

MAX_PIXELS = 50_000_000
"""Pixels of all frames together that are decoded at most; as imgproxy has it."""
MAX_SIDE = 16_383
"""Longest side of a WebP (its specification: 14 bits)."""
_BIG_PIXELS = 12_000_000
"""Pictures from this size on are decoded one at a time, so that several of them do not fill the memory together."""

_LOADERS: dict[SourceFormat, tuple[str, str]] = {
    "jpeg": ("VipsForeignLoadJpeg", "jpegload_buffer"),
    "png": ("VipsForeignLoadPng", "pngload_buffer"),
    "webp": ("VipsForeignLoadWebp", "webpload_buffer"),
    "gif": ("VipsForeignLoadNsgif", "gifload_buffer"),
    "avif": ("VipsForeignLoadHeif", "heifload_buffer"),
}

_lock = threading.Lock()
_one_at_a_time = threading.Lock()


class NoImage(MenuwatchError):
    """Bytes that are no picture which can be used. `final`: asking for them again would not help."""

    final: ClassVar[bool] = True


class UnknownFormat(NoImage):
    """A file of some other kind than the five."""


class NotAnImage(NoImage):
    """A page, JSON or nothing: what servers say that have no picture at the moment."""

    final = False


class TooLarge(NoImage):
    """More pixels than are ever decoded."""


class Damaged(NoImage):
    """Cut short or broken; another transfer may bring it whole."""

    final = False


@dataclass(frozen=True, slots=True)
class Header:
    """What a picture says of itself before it is decoded. `frames` is 1 for what does not move."""

    format: SourceFormat
    width: int
    height: int
    frames: int
    orientation: int

    @property
    def pixels(self) -> int:
        """Of all frames."""
        return self.width * self.height * self.frames


_loaded: Any = None


def lib() -> Any:
    """The pyvips module, ready. The first call loads it, which takes some 100 ms."""
    global _loaded
    with _lock:
        if _loaded is None:
            # Requests are what runs beside each other; threads within one picture would only make others wait.
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
        said = f"{described(data)}: only JPEG, PNG, WebP, GIF and AVIF are taken"
        raise NotAnImage(said) if is_message(data) else UnknownFormat(said)
    try:
        image = _opened(kind, data, access="sequential")
        get = {name: image.get(name) for name in image.get_fields() if name in ("n-pages", "orientation")}
        found = Header(
            format=kind,
            width=int(image.width),
            height=int(image.height),
            frames=max(int(get.get("n-pages", 1)), 1),
            orientation=int(get.get("orientation", 1)),
        )
    except lib().Error as error:
        raise Damaged(f"a {kind} whose header cannot be read: {reason(error)}") from error
    if found.pixels > max_pixels:
        frames = f" x {found.frames} frames" if found.frames > 1 else ""
        raise TooLarge(
            f"{found.width} x {found.height}{frames} pixels are {found.pixels / 1e6:,.0f} million; at most "
            f"{max_pixels / 1e6:,.0f} million are decoded"
        )
    return found


def _opened(kind: SourceFormat, data: bytes, **options: Any) -> Any:
    return getattr(lib().Image, _LOADERS[kind][1])(data, fail_on="truncated", **options)


def opened(head: Header, data: bytes) -> Any:
    """The picture, its first frame, upright and in sRGB; pixels are decoded when they are asked for."""
    # A picture that must be turned is read out of order, which a sequential one cannot be.
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


class quiet_memory:  # noqa: N801 - reads as what it is: `with quiet_memory(pixels):`
    """Lets large pictures be worked on one at a time."""

    def __init__(self, pixels: int) -> None:
        self._waits = pixels >= _BIG_PIXELS

    def __enter__(self) -> None:
        if self._waits:
            _one_at_a_time.acquire()

    def __exit__(self, *_: object) -> None:
        if self._waits:
            _one_at_a_time.release()


def reason(error: Exception) -> str:
    """What libvips says, on one line."""
    text = str(getattr(error, "detail", "") or error)
    return " ".join(text.split())[:200] or "no reason given"
