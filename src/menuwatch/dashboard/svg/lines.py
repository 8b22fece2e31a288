"""A small chart of a few series over time: lines without axes, since the words beside it say the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 600, 100
_MARGIN = 2.0
"""Room above the highest and below the lowest, so that no line is cut in half."""


def lines(series: Sequence[tuple[str, Sequence[float]]], label: str) -> Markup:
    """The series, each with the class of its line, to one scale that begins at 0; the first one is filled. `label` says the same in
    words. Empty series draw nothing."""
    top = max((value for _, values in series for value in values), default=0) or 1
    parts = []
    for number, (kind, values) in enumerate(series):
        points = _points(values, top)
        if not points:
            continue
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        if number == 0:
            area = f"{path}L{points[-1][0]:.1f} {HEIGHT}L{points[0][0]:.1f} {HEIGHT}Z"
            parts.append(Markup('<path class="area {}" d="{}"/>').format(kind, area))
        parts.append(Markup('<path class="{}" d="{}"/>').format(kind, path))
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts))


def _points(values: Sequence[float], top: float) -> list[tuple[float, float]]:
    """Places of the values, from the left edge to the right one; one value alone is a line all across."""
    if len(values) == 1:
        values = [values[0], values[0]]
    return [
        (WIDTH * n / (len(values) - 1), _MARGIN + (HEIGHT - 2 * _MARGIN) * (1 - max(value, 0) / top))
        for n, value in enumerate(values)
    ]
