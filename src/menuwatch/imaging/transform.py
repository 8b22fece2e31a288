"""A stored picture and parameters into the bytes of an answer. Runs in threads; a function of its arguments alone."""

from __future__ import annotations

from typing import Any

from menuwatch.imaging import vips
from menuwatch.imaging.layout import Layout, layout
from menuwatch.imaging.params import QUALITY, Format, Params

VERSION = 1
"""To be raised when the same parameters give other bytes."""
EFFORT = 2
"""Of WebP, 0 to 6: half the time of the usual 4 for 3 to 5 % more bytes, because somebody waits for the result."""

_SIDEWAYS = 5
"""EXIF orientations from this one on exchange width and height."""
_WIDE_BLUR = 12.0
"""From this sigma on a picture is blurred at a smaller size, which nobody can tell: the cost of a blur grows with its sigma."""
_FINE_PIXELS = 500_000
"""AVIF of more pixels is encoded in its quickest way: else it would take seconds."""
_STRICT = "fail_on=truncated"
"""For the loader: thumbnail_buffer has a `fail_on` of its own, which libvips 8.18 does not pass on."""
MEDIA_TYPES: dict[Format, str] = {
    "webp": "image/webp",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "avif": "image/avif",
}


def transform(source: bytes, params: Params, target: Format) -> bytes:
    """The picture as somebody wants it. Raises NoImage where the source cannot be used, BadParameters where the result would be too
    large."""
    head = vips.header(source)
    width, height = (head.height, head.width) if head.orientation >= _SIDEWAYS else (head.width, head.height)
    plan = layout(width, height, params)
    lib = vips.lib()
    with vips.quiet_memory(max(head.pixels, plan.width * plan.height)):
        try:
            if (plan.width, plan.height) == (width, height):
                image = vips.opened(head, source)
            else:
                image = vips.in_srgb(
                    lib.Image.thumbnail_buffer(
                        source, plan.width, height=plan.height, size="force", option_string=_STRICT
                    )
                )
            return _finished(image, plan, params, target)
        except lib.Error as error:
            raise vips.Damaged(f"a {head.format} that cannot be decoded: {vips.reason(error)}") from error


def decodes(source: bytes) -> None:
    """Decodes every pixel and keeps none. Raises NoImage where that cannot be done."""
    head = vips.header(source)
    with vips.quiet_memory(head.pixels):
        try:
            vips.opened(head, source).avg()
        except vips.lib().Error as error:
            raise vips.Damaged(f"a {head.format} that cannot be decoded: {vips.reason(error)}") from error


def _finished(image: Any, plan: Layout, params: Params, target: Format) -> bytes:
    if target == "jpeg" and image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    if (plan.canvas_width, plan.canvas_height) != (plan.width, plan.height):
        image = _on_canvas(image, plan, target)
    if params.blur is not None:
        image = blurred(image, params.blur)
    if params.gray:
        image = image.colourspace("b-w")
    return encode(image, target, params.q or QUALITY)


def _on_canvas(image: Any, plan: Layout, target: Format) -> Any:
    left, top = (plan.width - plan.canvas_width) // 2, (plan.height - plan.canvas_height) // 2
    if left >= 0 and top >= 0:
        return image.crop(left, top, plan.canvas_width, plan.canvas_height)
    # The margin is clear, and white in JPEG, which has no such thing.
    if target == "jpeg":
        margin = [255] * int(image.bands)
    else:
        image = image if image.hasalpha() else image.addalpha()
        margin = [0] * int(image.bands)
    canvas = plan.canvas_width, plan.canvas_height
    return image.gravity("centre", *canvas, extend="background", background=margin)


def blurred(image: Any, sigma: float) -> Any:
    """A Gaussian blur; sigma in pixels."""
    image = image.copy_memory()
    shrink = max(sigma / (_WIDE_BLUR / 2), 1.0) if sigma > _WIDE_BLUR else 1.0
    across, down = min(shrink, float(image.width)), min(shrink, float(image.height))
    if shrink > 1.0:
        small = image.resize(1 / across, vscale=1 / down, kernel="linear").copy_memory()
        small = small.gaussblur(sigma / shrink).copy_memory()
        grown = small.resize(image.width / small.width, vscale=image.height / small.height, kernel="cubic")
        return grown.crop(0, 0, min(grown.width, image.width), min(grown.height, image.height))
    return image.gaussblur(sigma)


def encode(image: Any, target: Format, quality: int) -> bytes:
    """`quality` 1 to 100; PNG knows none."""
    data: bytes
    match target:
        case "webp":
            data = image.webpsave_buffer(Q=quality, effort=EFFORT, keep="none")
        case "jpeg":
            data = image.jpegsave_buffer(Q=quality, optimize_coding=True, keep="none")
        case "png":
            data = image.pngsave_buffer(compression=6, keep="none")
        case "avif":
            effort = 2 if image.width * image.height <= _FINE_PIXELS else 0
            data = image.heifsave_buffer(Q=quality, compression="av1", effort=effort, bitdepth=8, keep="none")
    return data


def placeholder(params: Params, target: Format) -> bytes:
    """What is shown where there is no picture: a grey field with a frame, as large as was asked for (400 x 400 where nothing was)."""
    width = params.w or params.h or 400
    height = params.h or params.w or 400
    lib = vips.lib()
    image = (
        lib.Image.black(width, height, bands=3)
        .linear([1, 1, 1], [232, 232, 232])
        .cast("uchar")
        .copy(interpretation="srgb")
    )
    side = min(width, height)
    if side >= _SMALLEST_MARK:
        image = _marked(image, side)
    return encode(image, target, params.q or QUALITY)


_SMALLEST_MARK = 24


def _marked(image: Any, side: int) -> Any:
    """A sheet with a sun on it, in the middle."""
    across, tall, line = side // 2, side * 3 // 8, max(side // 60, 1)
    left, top = (image.width - across) // 2, (image.height - tall) // 2
    ink = [180, 180, 180]
    for inset in range(line):
        image = image.draw_rect(ink, left + inset, top + inset, across - 2 * inset, tall - 2 * inset)
    return image.draw_circle(ink, left + across * 2 // 3, top + tall // 3, max(side // 24, 1), fill=True)
