"""Makes images: the original that is stored of a download, and results with the parameters of a URL. Runs in threads; depends on its
arguments only.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec import Struct

from menuwatch.images import vips
from menuwatch.images.limits import MAX_DOWNLOAD_BYTES, MAX_PIXELS, MAX_SIDE
from menuwatch.images.params import QUALITY, BadParameters, Format, Params
from menuwatch.images.signing import check_cost
from menuwatch.images.vips import SourceFormat

VERSION = 2
"""Raise it when the same parameters give different bytes."""
EFFORT = 2
"""WebP effort, 0 to 6: takes half the time of the usual 4 for 3 to 5 % more bytes, because a request waits for the result."""

_ORIGINAL_QUALITY = 90
"""WebP quality of originals: high, because every served image is derived from them."""
_SIDEWAYS = 5
"""From this EXIF orientation on, width and height are swapped."""
_WIDE_BLUR = 12.0
"""From this sigma on an image is blurred at a smaller size, which is not visible: the cost of a blur grows with its sigma."""
_FINE_PIXELS = 500_000
"""Above this number of pixels AVIF is encoded at its fastest setting; otherwise it would take seconds."""
_STRICT = "fail_on=truncated"
"""Loader option: thumbnail_buffer has a `fail_on` of its own, which libvips 8.18 does not pass on."""
MEDIA_TYPES: dict[Format, str] = {
    "webp": "image/webp",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "avif": "image/avif",
}


class OriginalImage(Struct, frozen=True, kw_only=True):
    """The image to store: upright, sRGB, without metadata, at full resolution as WebP. `sha256` is of the downloaded bytes; `colour`
    is its average, `#rrggbb`."""

    data: bytes
    sha256: bytes
    width: int
    height: int
    source_format: SourceFormat
    source_bytes: int
    colour: str


def make_original(source: bytes) -> OriginalImage:
    """Decodes and encodes: about 100 ms a million pixels, so call it in a thread. Raises InvalidImage."""
    if len(source) > MAX_DOWNLOAD_BYTES:
        raise vips.TooLarge(f"{len(source):,} bytes; an image may have {MAX_DOWNLOAD_BYTES:,}")
    head = vips.header(source)
    lib = vips.lib()
    with vips.one_large_at_a_time(head.pixels):
        try:
            image = vips.opened(head, source)
            longest = max(image.width, image.height)
            if longest > MAX_SIDE:
                image = image.resize(MAX_SIDE / longest)
            data = image.webpsave_buffer(Q=_ORIGINAL_QUALITY, effort=4, keep="none")
            spot = lib.Image.thumbnail_buffer(data, 1, height=1, size="force")
            if spot.hasalpha():
                spot = spot.flatten(background=[255] * (spot.bands - 1))
            colour = "#" + "".join(f"{min(max(round(value), 0), 255):02x}" for value in spot(0, 0)[:3])
        except Exception as error:  # any decoder error is caused by the input
            raise _damaged(head, error) from error
        return OriginalImage(
            data=data,
            sha256=sha256(source).digest(),
            width=int(image.width),
            height=int(image.height),
            source_format=head.format,
            source_bytes=len(source),
            colour=colour,
        )


class Layout(Struct, frozen=True):
    """The image is scaled to `width` x `height`, and then cut or filled up around its centre to the canvas."""

    width: int
    height: int
    canvas_width: int
    canvas_height: int


def layout(width: int, height: int, params: Params) -> Layout:
    """The size of the result for an image of that size. Raises BadParameters if it would be too large.

    With both sides given: `cover` fills them and cuts what is over, `contain` shows all with a margin, `fill` distorts, `inside` is
    the largest in proportion that fits in, `outside` the smallest that covers. With one side the other follows in proportion.
    """
    w, h = params.w, params.h
    if w is None and h is None:
        return Layout(width, height, width, height)
    if w is None or h is None:
        scale = w / width if w is not None else (h or 1) / height
        result = _exactly(w or _round(width * scale), h or _round(height * scale))
    elif params.fit == "fill":
        result = _exactly(w, h)
    else:
        scales = (w / width, h / height)
        scale = max(scales) if params.fit in ("cover", "outside") else min(scales)
        # The side that decides comes out exactly; the other one is rounded, never to less than what it must cover.
        by_width = (scale == scales[0]) if scales[0] != scales[1] else True
        scaled = (w, _round(height * scale)) if by_width else (_round(width * scale), h)
        if scales[0] == scales[1]:
            scaled = (w, h)
        if params.fit == "cover":
            scaled = max(scaled[0], w), max(scaled[1], h)
        elif params.fit == "contain":
            scaled = min(scaled[0], w), min(scaled[1], h)
        result = Layout(*scaled, w, h) if params.fit in ("cover", "contain") else _exactly(*scaled)
    _check_size(result, params)
    return result


def _damaged(head: vips.Header, error: Exception) -> vips.Damaged:
    return vips.Damaged(f"{head.format} cannot be decoded: {vips.reason(error)}")


def _round(value: float) -> int:
    return max(int(value + 0.5), 1)


def _exactly(width: int, height: int) -> Layout:
    return Layout(width, height, width, height)


def _check_size(result: Layout, params: Params) -> None:
    if (
        result.canvas_width <= MAX_SIDE
        and result.canvas_height <= MAX_SIDE
        and result.width * result.height <= MAX_PIXELS
    ):
        return
    name = "fit" if params.w is not None and params.h is not None else "w" if params.w is not None else "h"
    message = f"the result would have {result.width} x {result.height} pixels"
    raise BadParameters(
        [(name, f"{message}; at most {MAX_SIDE} on a side and {MAX_PIXELS / 1e6:g} million in all are made")]
    )


def transform(source: bytes, params: Params, target: Format, *, free: bool = False) -> bytes:
    """The image with these parameters. Raises InvalidImage for an unusable source, BadParameters if the result would be too
    large, NotSigned where it is `free` and would cost much."""
    head = vips.header(source)
    width, height = (head.height, head.width) if head.orientation >= _SIDEWAYS else (head.width, head.height)
    plan = layout(width, height, params)
    if free:
        check_cost(head.pixels, max(plan.width * plan.height, plan.canvas_width * plan.canvas_height))
    lib = vips.lib()
    with vips.one_large_at_a_time(max(head.pixels, plan.width * plan.height)):
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
            raise _damaged(head, error) from error


def decodes(source: bytes) -> None:
    """Decodes every pixel and discards them. Raises InvalidImage if that fails."""
    head = vips.header(source)
    with vips.one_large_at_a_time(head.pixels):
        try:
            vips.opened(head, source).avg()
        except vips.lib().Error as error:
            raise _damaged(head, error) from error


def _finished(image: Any, plan: Layout, params: Params, target: Format) -> bytes:
    if target == "jpeg" and image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    if (plan.canvas_width, plan.canvas_height) != (plan.width, plan.height):
        image = _on_canvas(image, plan, target)
    if params.blur is not None:
        image = blurred(image, params.blur)
    if params.gray:
        image = image.colourspace("b-w")
    return encode(image, target, params.q or QUALITY[target])


def _on_canvas(image: Any, plan: Layout, target: Format) -> Any:
    left, top = (plan.width - plan.canvas_width) // 2, (plan.height - plan.canvas_height) // 2
    if left >= 0 and top >= 0:
        return image.crop(left, top, plan.canvas_width, plan.canvas_height)
    # The margin is transparent, and white in JPEG, which has no alpha.
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
    """`quality` is 1 to 100; ignored for PNG."""
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


def placeholder(params: Params, target: Format, *, free: bool = False) -> bytes:
    """Placeholder for a missing image: a gray field with a frame, of the size in the parameters (else 400 x 400). Raises
    NotSigned if it is `free` and would cost too much.
    """
    width = params.w or params.h or 400
    height = params.h or params.w or 400
    if free:
        check_cost(0, width * height)
    lib = vips.lib()
    image = lib.Image.black(width, height, bands=3).linear([1, 1, 1], _GREY).cast("uchar").copy(interpretation="srgb")
    side = min(width, height)
    if side >= _SMALLEST_MARK:
        image = _marked(image, side)
    return encode(image, target, params.q or QUALITY[target])


_SMALLEST_MARK = 24
_GREY = [232, 232, 232]


def _marked(image: Any, side: int) -> Any:
    """A sheet with a sun on it, in the middle."""
    across, tall, line = side // 2, side * 3 // 8, max(side // 60, 1)
    left, top = (image.width - across) // 2, (image.height - tall) // 2
    ink = [180, 180, 180]
    # Few steps: each of them copies the image.
    image = image.draw_rect(ink, left, top, across, tall, fill=True)
    image = image.draw_rect(_GREY, left + line, top + line, across - 2 * line, tall - 2 * line, fill=True)
    return image.draw_circle(ink, left + across * 2 // 3, top + tall // 3, max(side // 24, 1), fill=True)
