"""Submissions of a search crawl over time as stacked bars: pages that came below, failed tries above, what is under way on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from menuwatch.web.words import many, moment

_TALL = 100
_STEP, _WIDE = 10, 8
_LEAST = 4
"""What is there is seen, however small its share."""
_MOST = 400
"""Slices that are drawn; there are about 60."""


def timeline(slices: Sequence[Mapping[str, Any]], seconds: int) -> Markup:
    """The bars, oldest first, with gaps where nothing was submitted; empty where nothing was at all. A slice has `at`, `submissions`,
    `good` and `bad`, and lasts so many seconds."""
    if not slices:
        return Markup("")
    first: datetime = slices[0]["at"]
    wide = min(_MOST, int((slices[-1]["at"] - first) / timedelta(seconds=seconds)) + 1)
    most = max(one["submissions"] for one in slices)
    bars = Markup("").join(_bar(one, int((one["at"] - first) / timedelta(seconds=seconds)), most) for one in slices)
    total = sum(one["submissions"] for one in slices)
    failed = sum(one["bad"] for one in slices)
    label = f"{many(total, 'submission')} since {moment(first)}: {failed:,} failed"
    return Markup(
        '<svg class="hours" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(max(wide, 12) * _STEP, _TALL, label, bars)


def _bar(one: Mapping[str, Any], place: int, most: int) -> Markup:
    if place >= _MOST:
        return Markup("")
    parts, top = [], float(_TALL)
    under_way = one["submissions"] - one["good"] - one["bad"]
    for kind, n in (("good", one["good"]), ("bad", one["bad"]), ("info", under_way)):
        if n <= 0:
            continue
        tall = max(n / most * (_TALL - 2 * _LEAST), _LEAST)
        top -= tall
        parts.append(
            Markup('<rect class="{}" x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>').format(
                kind, place * _STEP + 1, max(top, 0), _WIDE, tall
            )
        )
    title = f"{moment(one['at'])}: {one['good']:,} came, {one['bad']:,} failed, {under_way:,} under way"
    return Markup("<g><title>{}</title>{}</g>").format(title, Markup("").join(parts))
