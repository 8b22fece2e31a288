"""Charts on a time axis: schedules of the next day, and a store's crawls. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from markupsafe import Markup
from msgspec import Struct

from menuwatch.core.format import approx_duration, pluralize, timestamp
from menuwatch.dashboard.charts.svg import join, line, rect, svg, text
from menuwatch.stores.service import Crawl

# The next 24 hours: a lane for each schedule with its firings, and one with the planned crawls.

_DAY_WIDTH, _LEFT, _TOP, _LANE, _GAP = 980, 190.0, 22.0, 22.0, 6.0
"""Sizes of the strip; the lanes begin at _LEFT, after the names."""
_HOURS = 24
_SINGLE = 96
"""Most firings that are drawn one by one; of more it is drawn how many there are in each quarter of an hour."""
_QUARTER = timedelta(minutes=15)
_NAME = 26
"""Characters of a name that fit."""


class ScheduleLane(Struct, frozen=True, kw_only=True):
    """One row: `moments` with a count for each, or None. A lane with counts has bars, one without has marks."""

    name: str
    moments: Sequence[tuple[datetime, int | None]]
    off: bool = False

    @property
    def counted(self) -> bool:
        return bool(self.moments) and self.moments[0][1] is not None


def day_strip(lanes: Sequence[ScheduleLane], now: datetime) -> Markup:
    """The lanes from now on, in UTC, with a text alternative."""
    tall = _TOP + len(lanes) * (_LANE + _GAP)
    parts = [text(_LEFT - 24, 12, "now")]
    first = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    for moment in (first + timedelta(hours=n) for n in range(_HOURS)):
        if moment.hour % 3 == 0:
            x = _day_x(moment, now)
            parts.append(line("grid-line", x, _TOP - 4, x, tall))
            if _LEFT + 20 < x < _DAY_WIDTH - 20:
                parts.append(text(x, 12, f"{moment:%H:%M}", anchor="middle"))
    parts += [_lane(lane, now, _TOP + n * (_LANE + _GAP)) for n, lane in enumerate(lanes)]
    parts.append(line("now", _LEFT, _TOP - 4, _LEFT, tall))
    label = "; ".join(_in_words(lane) for lane in lanes) or "No schedules"
    return svg("strip", _DAY_WIDTH, tall, label, parts, stretch=False)


def _day_x(moment: datetime, now: datetime) -> float:
    share = (moment - now) / timedelta(hours=_HOURS)
    return _LEFT + (_DAY_WIDTH - _LEFT) * min(max(share, 0.0), 1.0)


def _lane(lane: ScheduleLane, now: datetime, y: float) -> Markup:
    name = lane.name if len(lane.name) <= _NAME else lane.name[: _NAME - 1] + "…"
    parts = [text(0, y + 15, name, "name"), rect("lane", _LEFT, y, _DAY_WIDTH - _LEFT, _LANE, round_by=4)]
    if lane.off or not lane.moments:
        parts.append(text(_LEFT + 8, y + 15, "disabled" if lane.off else "nothing in these hours"))
    elif lane.counted:
        top = max(count or 0 for _, count in lane.moments) or 1
        wide = (_DAY_WIDTH - _LEFT) / (_HOURS * 4)
        for moment, count in lane.moments:
            tall = max(2.0, (_LANE - 2) * (count or 0) / top)
            title = f"{moment:%H:%M} UTC: {count or 0:,} planned"
            parts.append(rect("batch", _day_x(moment, now), y + _LANE - tall, wide - 1, tall, title))
    elif len(lane.moments) > _SINGLE:
        slots = Counter((moment - now) // _QUARTER for moment, _ in lane.moments)
        wide = (_DAY_WIDTH - _LEFT) / (_HOURS * 4)
        for slot, count in sorted(slots.items()):
            tall = (_LANE - 4) * min(1.0, count / 15)
            at = now + slot * _QUARTER
            title = f"{at.astimezone(UTC):%H:%M} UTC: {pluralize(count, 'run')} in 15 minutes"
            x = min(_day_x(at, now), _DAY_WIDTH - wide)
            parts.append(rect("firing", x, y + _LANE - 2 - tall, wide - 1, tall, title))
    else:
        for moment, _ in lane.moments:
            x = min(_day_x(moment, now), _DAY_WIDTH - 5.0)
            parts.append(rect("firing", x, y + 4, 5.0, _LANE - 8, f"{moment.astimezone(UTC):%H:%M} UTC", round_by=2))
    return join(parts)


def _in_words(lane: ScheduleLane) -> str:
    if lane.off:
        return f"{lane.name} is disabled"
    if not lane.moments:
        return f"{lane.name}: nothing in the next 24 hours"
    if lane.counted:
        return f"{lane.name}: {sum(count or 0 for _, count in lane.moments):,} in the next 24 hours"
    times = ", ".join(f"{moment.astimezone(UTC):%H:%M}" for moment, _ in lane.moments[:8])
    more = f" and {len(lane.moments) - 8} more times" if len(lane.moments) > 8 else ""
    return f"{lane.name} fires at {times}{more} UTC"


# Crawls of a store: a bar for each over time, hatched where some were missed; and the outcomes of the last ones.

_WIDTH, _HEIGHT = 900, 96
_FLOOR, _TALLEST = _HEIGHT - 4, _HEIGHT - 20
_OUTCOME_KINDS = {"ok": "good", "partial": "warn", "quarantined": "amber", "rejected": "bad", "failed": "bad"}


def draw_crawls(crawls: Sequence[Crawl], *, now: datetime, interval: timedelta, address: str = "") -> Markup:
    """A bar for each crawl (oldest first), as tall as its menu is long; more than twice `interval` between two is a gap. `address` is
    the prefix of page paths."""
    if not crawls:
        return Markup("")
    start = crawls[0].at
    length = max((now - start).total_seconds(), 60.0)
    most = max(max((crawl.products or 0) for crawl in crawls), 1)
    width = min(14.0, max(3.0, _WIDTH / len(crawls) * 0.6))

    def x(at: datetime) -> float:
        return (at - start).total_seconds() / length * (_WIDTH - width)

    parts: list[Markup] = []
    observed = [crawl.at for crawl in crawls if crawl.outcome != "failed"] or [start]
    for earlier, later in zip(observed, [*observed[1:], now], strict=True):
        if later - earlier > 2 * interval:
            left = x(earlier) + width
            title = f"Not observed for {approx_duration((later - earlier).total_seconds())}, from {timestamp(earlier)}"
            parts.append(rect("gap", left, 0, max(x(later) - left, 1.0), _HEIGHT, title))
    parts += [_crawl_bar(crawl, x(crawl.at), width, most, address) for crawl in crawls]
    parts.append(line("floor", 0, _FLOOR, _WIDTH, _FLOOR))
    label = (
        f"{pluralize(len(crawls), 'crawl')} since {timestamp(start)}; the longest menu has {pluralize(most, 'product')}"
    )
    return svg("strip", _WIDTH, _HEIGHT, label, parts, role="group")


def _crawl_bar(crawl: Crawl, x: float, width: float, most: int, address: str) -> Markup:
    failed = crawl.outcome == "failed"
    tall = 10.0 if failed else max((crawl.products or 0) / most * _TALLEST, 4.0)
    path = f"/tasks/{crawl.number}" if failed else f"/payloads/{crawl.number}"
    title = f"{timestamp(crawl.at)}: {crawl.outcome}"
    if crawl.products is not None:
        title += f", {pluralize(crawl.products, 'product')}"
    if crawl.reason:
        title += f" ({crawl.reason[:200]})"
    bar = rect(_OUTCOME_KINDS.get(crawl.outcome, "none"), x, _FLOOR - tall, width, tall, title)
    hit = rect("hit", x, 0, width, _HEIGHT)
    return Markup('<a href="{}" aria-label="{}">{}{}</a>').format(address + path, title, hit, bar)


def draw_outcomes(newest_first: Sequence[bool]) -> Markup:
    """A mark for each outcome, the newest on the right; empty without any."""
    if not newest_first:
        return Markup("")
    good, step, tall = sum(newest_first), 5, 14
    failed = f", {len(newest_first) - good} failed" if good < len(newest_first) else ""
    label = f"Of the last {pluralize(len(newest_first), 'crawl')}, {good} succeeded{failed}"
    marks = [
        rect("good", n * step, 0, 4, tall) if succeeded else rect("bad", n * step, 4, 4, tall - 4)
        for n, succeeded in enumerate(reversed(newest_first))
    ]
    width = len(newest_first) * step
    return Markup('<svg class="outcomes" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>').format(
        width, tall, label, join(marks)
    )  # fmt: skip
