"""Chooses the format of an image by the Accept header, never by the user agent. Pure."""

from __future__ import annotations

from menuwatch.images.params import Format

_PREFERRED: tuple[Format, ...] = ("avif", "webp", "jpeg", "png")
"""Smallest first, used among formats of equal weight."""
_BY_WILDCARD: tuple[Format, ...] = ("webp", "jpeg", "png")
"""Formats for a wildcard: AVIF only if the client names it."""


def negotiate(header: str | None, *, unchanged: bool = False) -> Format:
    """The format for an Accept header (RFC 9110 section 12.5.1; q=0 means never). WebP without a header, and if the image is
    sent `unchanged`, as stored, unless WebP is refused. JPEG, which every client can read, if no available format is accepted.
    """
    if header is None or not header.strip():
        return "webp"
    exact, whole, any_ = _weights(header)

    def weight(name: Format) -> float:
        if name in exact:
            return exact[name]
        if name not in _BY_WILDCARD:
            return 0.0
        return whole if whole is not None else any_ if any_ is not None else 0.0

    if unchanged and weight("webp") > 0:
        return "webp"
    best = max(_PREFERRED, key=lambda name: (weight(name), name in exact, -_PREFERRED.index(name)))
    return best if weight(best) > 0 else "jpeg"


def names_images(header: str | None) -> bool:
    """Whether the header names image types explicitly, as browsers do for images of a page."""
    if header is None:
        return False
    exact, whole, _ = _weights(header)
    return any(value > 0 for value in exact.values()) or bool(whole)


def _weights(header: str) -> tuple[dict[str, float], float | None, float | None]:
    """(weights of formats that are named, of `image/*`, of `*/*`)."""
    exact: dict[str, float] = {}
    whole: float | None = None
    any_: float | None = None
    for part in header[:1000].split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = _quality(parameters)
        if kind == "image/*":
            whole = weight
        elif kind == "*/*":
            any_ = weight
        elif kind.startswith("image/"):
            name = kind.removeprefix("image/")
            exact["jpeg" if name == "jpg" else name] = weight
    return exact, whole, any_


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
