"""Capital letters, digits and signs of labels, as strokes: of the same shape on every machine, which may have no font at all."""

from __future__ import annotations

import unicodedata

HEIGHT = 10.0
_GAP, _SPACE = 2.4, 3.4

# Width, and the strokes as an SVG path; letters stand on the line y = 10 and are 10 high.
_GLYPHS: dict[str, tuple[float, str]] = {
    "A": (7, "M0 10L3.5 0L7 10M1.2 6.8H5.8"),
    "B": (6, "M0 0V10H3.5Q6 10 6 7.4Q6 4.8 3.5 4.8H0M3.2 4.8Q5.4 4.8 5.4 2.4Q5.4 0 3.2 0H0"),
    "C": (6.6, "M6.6 2.2Q5.6 0 3.6 0Q0 0 0 5Q0 10 3.6 10Q5.6 10 6.6 7.8"),
    "D": (6.5, "M0 0V10H2.5Q6.5 10 6.5 5Q6.5 0 2.5 0Z"),
    "E": (5.2, "M5.2 0H0V10H5.2M0 4.9H4.4"),
    "F": (5.2, "M5.2 0H0V10M0 5H4.2"),
    "G": (6.8, "M6.5 2.2Q5.6 0 3.6 0Q0 0 0 5Q0 10 3.6 10Q6.8 10 6.8 6.8V5.6H4"),
    "H": (6.4, "M0 0V10M6.4 0V10M0 5H6.4"),
    "I": (0, "M0 0V10"),
    "J": (4.4, "M4.4 0V7.2Q4.4 10 2.2 10Q.3 10 0 7.8"),
    "K": (6, "M0 0V10M5.8 0L0 6.2M2.3 3.9L6.1 10"),
    "L": (4.8, "M0 0V10H4.8"),
    "M": (8, "M0 10V0L4 7L8 0V10"),
    "N": (6.5, "M0 10V0L6.5 10V0"),
    "O": (7.4, "M3.7 0Q7.4 0 7.4 5Q7.4 10 3.7 10Q0 10 0 5Q0 0 3.7 0Z"),
    "P": (5.8, "M0 10V0H3.1Q5.8 0 5.8 2.8Q5.8 5.6 3.1 5.6H0"),
    "Q": (7.4, "M3.7 0Q7.4 0 7.4 5Q7.4 10 3.7 10Q0 10 0 5Q0 0 3.7 0ZM4.6 7.4L7.2 10.8"),
    "R": (6, "M0 10V0H3.1Q5.8 0 5.8 2.8Q5.8 5.6 3.1 5.6H0M3.1 5.6L6 10"),
    "S": (6, "M5.6 1.8Q4.9 0 3 0Q.3 0 .3 2.5Q.3 4.4 3 4.9Q6 5.4 6 7.5Q6 10 3 10Q.6 10 0 8"),
    "T": (6.2, "M0 0H6.2M3.1 0V10"),
    "U": (6.4, "M0 0V6.6Q0 10 3.2 10Q6.4 10 6.4 6.6V0"),
    "V": (6.8, "M0 0L3.4 10L6.8 0"),
    "W": (10, "M0 0L2.5 10L5 2.5L7.5 10L10 0"),
    "X": (6.2, "M0 0L6.2 10M6.2 0L0 10"),
    "Y": (6.4, "M0 0L3.2 5L6.4 0M3.2 5V10"),
    "Z": (6, "M0 0H6L0 10H6"),
    "0": (6, "M3 0Q6 0 6 5Q6 10 3 10Q0 10 0 5Q0 0 3 0Z"),
    "1": (2.4, "M0 2L2.4 0V10"),
    "2": (5.8, "M.2 2.6Q.4 0 2.9 0Q5.6 0 5.6 2.7Q5.6 4.6 0 10H5.8"),
    "3": (5.8, "M.2 0H5.2L2.6 4Q5.8 4.2 5.8 7Q5.8 10 2.8 10Q.6 10 0 8"),
    "4": (6, "M4.6 10V0L0 7H6"),
    "5": (5.8, "M5.2 0H.8L.4 4.6Q1.4 3.8 2.8 3.8Q5.8 3.8 5.8 6.9Q5.8 10 2.7 10Q.6 10 0 8.2"),
    "6": (5.8, "M4.8 0Q0 3 0 6.9Q0 10 2.9 10Q5.8 10 5.8 7Q5.8 4.2 3 4.2Q.8 4.2 .1 6.4"),
    "7": (5.6, "M0 0H5.6L1.8 10"),
    "8": (6, "M3 0Q5.3 0 5.3 2.3Q5.3 4.6 3 4.6Q.7 4.6 .7 2.3Q.7 0 3 0ZM3 4.6Q6 4.6 6 7.3Q6 10 3 10Q0 10 0 7.3Q0 4.6 3 4.6Z"),
    "9": (5.8, "M1 10Q5.8 7 5.8 3.1Q5.8 0 2.9 0Q0 0 0 3Q0 5.8 2.8 5.8Q5 5.8 5.7 3.6"),
    "&": (6.8, "M6.8 10L1.6 3.6Q.9 2.6 .9 1.9Q.9 0 2.6 0Q4.3 0 4.3 1.8Q4.3 3.2 2.4 4.3Q0 5.6 0 7.5Q0 10 2.6 10Q5.6 10 6.6 5.8"),
    ".": (0, "M0 9.8V10"),
    "'": (0, "M0 0V2.2"),
    '"': (1.6, "M0 0V2.2M1.6 0V2.2"),
    "(": (1.8, "M1.8 -.6Q0 2 0 5Q0 8 1.8 10.6"),
    ")": (1.8, "M0 -.6Q1.8 2 1.8 5Q1.8 8 0 10.6"),
    "/": (4, "M4 -.4L0 10.4"),
    "-": (3, "M0 5.4H3"),
    "+": (5, "M0 5.4H5M2.5 2.9V7.9"),
}  # fmt: skip
_LOOK_ALIKE = str.maketrans({"\N{GREEK CAPITAL LETTER BETA}": "B"})


def printable(text: str) -> str:
    """The text in the letters that there are: capitals without accents."""
    plain = unicodedata.normalize("NFKD", text.translate(_LOOK_ALIKE)).upper()
    return " ".join("".join(c for c in plain if c in _GLYPHS or c == " ").split())


def _length(text: str) -> float:
    return sum((_SPACE if c == " " else _GLYPHS[c][0]) + _GAP for c in text) - _GAP if text else 0.0


def written(
    text: str, x: float, y: float, *, size: float, width: float, colour: str, weight: float = 1.5, anchor: float = 0.5
) -> str:
    """SVG of one line whose baseline is at `y`: `size` high, or less, so that it is no wider than `width`. `anchor` is the share of
    the line that is left of `x`; `weight` the width of strokes, in tenths of the height."""
    text = printable(text)
    length = _length(text)
    if not length:
        return ""
    scale = min(size / HEIGHT, width / (length + weight))
    parts = []
    at = 0.0
    for c in text:
        if c == " ":
            at += _SPACE + _GAP
            continue
        glyph_width, strokes = _GLYPHS[c]
        parts.append(f'<path transform="translate({at:.4g})" d="{strokes}"/>')
        at += glyph_width + _GAP
    place = f"translate({x - length * scale * anchor:.5g} {y - HEIGHT * scale:.5g})scale({scale:.4g})"
    return (
        f'<g transform="{place}" fill="none" stroke="{colour}" stroke-width="{weight}" stroke-linecap="round" '
        f'stroke-linejoin="round">{"".join(parts)}</g>'
    )


def wrapped(text: str, most: int = 2) -> list[str]:
    """The words of a text on up to so many lines, as even as can be."""
    words = printable(text).split()
    if most < 2 or len(words) < 2:
        return [" ".join(words)]
    splits = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
    return list(min(splits, key=lambda pair: max(map(_length, pair))))
