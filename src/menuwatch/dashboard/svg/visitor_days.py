"""Views by day as bars, and daily uniques as a line over them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

_TALL, _STEP = 100, 10


def visitor_days(days: Sequence[Mapping[str, Any]]) -> Markup:
    """The picture, the newest day on the right; empty where nobody came."""
    most = max((day["views"] for day in days), default=0)
    if not most:
        return Markup("")
    bars = Markup("").join(
        Markup(
            '<g><title>{}: {:,} views, {:,} daily uniques</title><rect x="{}" y="{:.1f}" width="8" height="{:.1f}"/></g>'
        ).format(day["day"], day["views"], day["daily_uniques"], n * _STEP + 1, _TALL - tall, tall)
        for n, day in enumerate(days)
        for tall in [day["views"] / most * (_TALL - 6)]
    )
    points = " ".join(
        f"{n * _STEP + 5},{_TALL - day['daily_uniques'] / most * (_TALL - 6):.1f}" for n, day in enumerate(days)
    )
    label = f"Views by day from {days[0]['day']} to {days[-1]['day']}: {sum(day['views'] for day in days):,} in all, at most {most:,}"
    return Markup(
        '<svg class="visits" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}<polyline points="{}"/></svg>'
    ).format(len(days) * _STEP, _TALL, label, bars, points)
