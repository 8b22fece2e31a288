"""Columns of stacked bars, as what is counted by the hour is drawn in. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

TALL = 100
STEP = 10
"""From one column to the next."""
_WIDE = 8
_LEAST = 4
"""What is there is seen, however small its share."""


def column(place: int, shares: Iterable[tuple[str, int]], most: int) -> Markup:
    """The column at a place from 0 on, from the bottom up: each share by its kind (a class) and number, of `most` in the tallest."""
    parts, top = [], float(TALL)
    for kind, n in shares:
        if n <= 0:
            continue
        tall = max(n / most * (TALL - 2 * _LEAST), _LEAST)
        top -= tall
        parts.append(
            Markup('<rect class="{}" x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>').format(
                kind, place * STEP + 1, max(top, 0), _WIDE, tall
            )
        )
    return Markup("").join(parts)
