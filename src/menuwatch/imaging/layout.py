"""How large a result is: the geometry of `fit`, in whole pixels. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from menuwatch.imaging.params import BadParameters, Params
from menuwatch.imaging.vips import MAX_PIXELS, MAX_SIDE


@dataclass(frozen=True, slots=True)
class Layout:
    """The picture is scaled to `width` x `height`, and then cut or filled up around its centre to the canvas."""

    width: int
    height: int
    canvas_width: int
    canvas_height: int


def layout(width: int, height: int, params: Params) -> Layout:
    """For a picture of that size. Raises BadParameters where the result would be too large to make.

    With both sides given: `cover` fills them and cuts what is over, `contain` shows all with a margin, `fill` distorts, `inside` is
    the largest in proportion that fits in, `outside` the smallest that covers. With one side the other follows in proportion.
    """
    w, h = params.w, params.h
    if w is None and h is None:
        return Layout(width, height, width, height)
    if w is None or h is None:
        scale = w / width if w is not None else (h or 1) / height
        found = _exactly(w or _round(width * scale), h or _round(height * scale))
    elif params.fit == "fill":
        found = _exactly(w, h)
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
        found = Layout(*scaled, w, h) if params.fit in ("cover", "contain") else _exactly(*scaled)
    _check(found, params)
    return found


def _round(value: float) -> int:
    return max(int(value + 0.5), 1)


def _exactly(width: int, height: int) -> Layout:
    return Layout(width, height, width, height)


def _check(found: Layout, params: Params) -> None:
    if found.canvas_width <= MAX_SIDE and found.canvas_height <= MAX_SIDE and found.width * found.height <= MAX_PIXELS:
        return
    name = "fit" if params.w is not None and params.h is not None else "w" if params.w is not None else "h"
    said = f"the result would have {found.width} x {found.height} pixels"
    raise BadParameters(
        [(name, f"{said}; at most {MAX_SIDE} on a side and {MAX_PIXELS / 1e6:g} million in all are made")]
    )
