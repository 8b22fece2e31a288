"""Requests by the hour as stacked bars: answered below, failed above it, refused on top. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from menuwatch.dashboard.svg import stacked
from menuwatch.operations.host_hours import Hour
from menuwatch.web.words import many


def host_hours(hours: Sequence[Hour], *, small: bool = False) -> Markup:
    """The bars, the newest on the right; empty where nothing was asked. `small` is for a cell of a table."""
    most = max((hour.total for hour in hours), default=0)
    if not most:
        return Markup("")
    bars = Markup("").join(_bar(n, hour, most, small) for n, hour in enumerate(hours))
    return Markup(
        '<svg class="hours{3}" viewBox="0 0 {0} {1}" preserveAspectRatio="none" role="img" aria-label="{2}">{4}</svg>'
    ).format(len(hours) * stacked.STEP, stacked.TALL, _label(hours), " small" if small else "", bars)


def _label(hours: Sequence[Hour]) -> str:
    refused, failed = (sum(getattr(hour, name) for hour in hours) for name in ("refused", "failed"))
    total = sum(hour.total for hour in hours)
    worst = max(range(len(hours)), key=lambda n: hours[n].refused)
    said = f"{many(total, 'request')} in the last {len(hours)} hours: {refused:,} refused, {failed:,} failed"
    return f"{said}; most refusals {len(hours) - 1 - worst} hours ago" if refused else said


def _bar(place: int, hour: Hour, most: int, small: bool) -> Markup:
    bars = stacked.column(place, (("good", hour.answered), ("warn", hour.failed), ("bad", hour.refused)), most)
    if small or not bars:
        return bars
    title = f"{hour.answered:,} answered, {hour.failed:,} failed, {hour.refused:,} refused"
    return Markup("<g><title>{}</title>{}</g>").format(title, bars)
