"""A small chart of counts over time: one bar for each part of a window. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 132, 28
_GAP = 1.0
_LEAST = 2.0
"""Height of the smallest bar: one failure among thousands is still seen."""


def bars(counts: Sequence[int], label: str) -> Markup:
    """The counts, oldest first, to a scale that begins at 0. `label` says the same in words."""
    top = max(counts, default=0) or 1
    wide = WIDTH / max(len(counts), 1)
    parts = [Markup('<rect class="ground" y="{}" width="{}" height="1"/>').format(HEIGHT - 1, WIDTH)]
    for n, count in enumerate(counts):
        if count > 0:
            tall = max(_LEAST, HEIGHT * count / top)
            parts.append(
                Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                    n * wide, HEIGHT - tall, wide - _GAP, tall
                )
            )
    return Markup('<svg class="bars" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, Markup("").join(parts)
    )
