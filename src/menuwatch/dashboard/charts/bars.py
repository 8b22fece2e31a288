"""Charts of counts over time: bars, stacked bars, and lines. Pure. The newest is on the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from markupsafe import Markup

from menuwatch.core.format import money, pluralize, timestamp
from menuwatch.dashboard.charts.svg import join, rect, svg, titled
from menuwatch.hosts.hourly import RequestHour
from menuwatch.search_crawl.views import CrawlSlice
from menuwatch.visitors.service import VisitorDay

_TALL, _STEP, _WIDE = 100, 10, 8
"""Height of a column at most, from one column to the next, and its width."""
_LEAST = 4
"""Least height of a share, so that small counts are visible."""
_MAX_SLICES = 400
"""Intervals of a crawl that are drawn; there are about 60."""


def count_bars(counts: Sequence[int], label: str, tone: Literal["bad", "info"] = "bad") -> Markup:
    """Small bars of the counts, of failures by default, with a scale from 0; the smallest is still visible among thousands."""
    width, height, least = 132, 28, 2.0
    top, wide = max(counts, default=0) or 1, width / max(len(counts), 1)
    talls = ((n, max(least, height * count / top)) for n, count in enumerate(counts) if count > 0)
    bars = [rect("count", n * wide, height - tall, wide - 1, tall) for n, tall in talls]
    return svg(f"bars {tone}", width, height, label, [rect("ground", 0, height - 1, width, 1), *bars], stretch=False)


def draw_trend(points: Sequence[tuple[datetime, Decimal]], start: datetime, end: datetime, currency: str) -> Markup:
    """A step line of prices until `end`, each of which holds from its time on: since `start`, or since the first one is known. Empty
    where the price did not change."""
    prices = [price for _, price in points]
    start = max([start, *(at for at, _ in points[:1])])
    if len(set(prices)) < 2:
        return Markup("")
    width, height, low, high = 120, 28, min(prices), max(prices)
    span = (end - start).total_seconds() or 1.0
    moves = []
    for n, (at, price) in enumerate(points):
        x = min(max((at - start).total_seconds() / span, 0.0), 1.0) * width
        y = 2 + float((high - price) / (high - low)) * (height - 4)
        moves.append(f"M{x:.1f} {y:.1f}" if n == 0 else f"H{x:.1f}V{y:.1f}")
    first, last, least, most = (money(price, currency) for price in (prices[0], prices[-1], low, high))
    label = f"From {first} to {last}, lowest {least}, highest {most}"
    line = Markup('<path d="{}"/>').format("".join(moves) + f"H{width}")
    return svg("line", width, height, label, [line])


def host_hours(hours: Sequence[RequestHour]) -> Markup:
    """Requests by the hour for a cell of a table: succeeded below, failed above, refused on top; empty without requests."""
    most = max((hour.total for hour in hours), default=0)
    if not most:
        return Markup("")
    total, refused, failed = (sum(getattr(hour, name) for hour in hours) for name in ("total", "refused", "failed"))
    label = f"{pluralize(total, 'request')} in the last {len(hours)} hours: {refused:,} refused, {failed:,} failed"
    if refused:
        worst = max(range(len(hours)), key=lambda n: hours[n].refused)
        label += f"; most refusals {len(hours) - 1 - worst} hours ago"
    columns = [
        _column(n, (("good", hour.succeeded), ("warn", hour.failed), ("bad", hour.refused)), most)
        for n, hour in enumerate(hours)
    ]
    return svg("hours small", len(hours) * _STEP, _TALL, label, columns)


def submissions(slices: Sequence[CrawlSlice], seconds: int) -> Markup:
    """Submissions of a crawl in intervals of `seconds`: succeeded below, failed above, in progress on top."""
    if not slices:
        return Markup("")
    first = slices[0].at
    most = max(item.submissions for item in slices)
    columns = []
    for item in slices:
        place = (item.at - first) // timedelta(seconds=seconds)
        if place < _MAX_SLICES:
            in_progress = item.submissions - item.good - item.bad
            shares = _column(place, (("good", item.good), ("bad", item.bad), ("info", in_progress)), most)
            title = f"{timestamp(item.at)}: {item.good:,} succeeded, {item.bad:,} failed, {in_progress:,} in progress"
            columns.append(titled(title, shares))
    failed = sum(item.bad for item in slices)
    label = f"{pluralize(sum(item.submissions for item in slices), 'submission')} since {timestamp(first)}: {failed:,} failed"
    places = min(_MAX_SLICES, (slices[-1].at - first) // timedelta(seconds=seconds) + 1)
    return svg("hours", max(places, 12) * _STEP, _TALL, label, columns)


def _column(place: int, shares: Iterable[tuple[str, int]], most: int) -> Markup:
    """Shares (class, count) from the bottom up; the tallest column has `most`."""
    parts, top = [], float(_TALL)
    for kind, count in shares:
        if count > 0:
            tall = max(count / most * (_TALL - 2 * _LEAST), _LEAST)
            top -= tall
            parts.append(rect(kind, place * _STEP + 1, max(top, 0), _WIDE, tall))
    return join(parts)


def visitor_days(days: Sequence[VisitorDay]) -> Markup:
    """Views by day as bars, and daily uniques as a line over them; empty without visitors."""
    most = max((day.views for day in days), default=0)
    if not most:
        return Markup("")
    scale = (_TALL - 6) / most
    bars = [
        titled(
            f"{day.day}: {day.views:,} views, {day.daily_uniques:,} daily uniques",
            rect("views", n * _STEP + 1, _TALL - day.views * scale, _WIDE, day.views * scale),
        )
        for n, day in enumerate(days)
    ]
    points = " ".join(f"{n * _STEP + 5},{_TALL - day.daily_uniques * scale:.1f}" for n, day in enumerate(days))
    views = sum(day.views for day in days)
    label = f"Views by day from {days[0].day} to {days[-1].day}: {views:,} in all, at most {most:,}"
    return svg("visits", len(days) * _STEP, _TALL, label, [*bars, Markup('<polyline points="{}"/>').format(points)])


def lines(series: Sequence[tuple[str, Sequence[float]]], label: str) -> Markup:
    """Lines without axes of (class, values), on one scale from 0; the first is filled. Empty series draw nothing."""
    width, height, margin = 600, 100, 2.0  # the margin keeps lines at the edges whole
    top = max((value for _, values in series for value in values), default=0) or 1
    parts = []
    for number, (kind, values) in enumerate(series):
        if not values:
            continue
        # A single value is a line across.
        points = [values[0], values[0]] if len(values) == 1 else values
        heights = [margin + (height - 2 * margin) * (1 - max(value, 0) / top) for value in points]
        path = "M" + "L".join(f"{width * n / (len(points) - 1):.1f} {y:.1f}" for n, y in enumerate(heights))
        if number == 0:
            parts.append(Markup('<path class="area {}" d="{}L{} {}L0 {}Z"/>').format(kind, path, width, height, height))
        parts.append(Markup('<path class="{}" d="{}"/>').format(kind, path))
    return svg("spark", width, height, label, parts)
