"""Submissions of a search crawl over time as stacked bars: pages that came below, failed tries above, what is under way on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from menuwatch.dashboard.svg import stacked
from menuwatch.web.words import many, moment

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
    ).format(max(wide, 12) * stacked.STEP, stacked.TALL, label, bars)


def _bar(one: Mapping[str, Any], place: int, most: int) -> Markup:
    if place >= _MOST:
        return Markup("")
    under_way = one["submissions"] - one["good"] - one["bad"]
    bars = stacked.column(place, (("good", one["good"]), ("bad", one["bad"]), ("info", under_way)), most)
    title = f"{moment(one['at'])}: {one['good']:,} came, {one['bad']:,} failed, {under_way:,} under way"
    return Markup("<g><title>{}</title>{}</g>").format(title, bars)
