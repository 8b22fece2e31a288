"""The next 24 hours: a lane for each schedule with its firings, and one with the crawls that are planned for the day. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

WIDTH = 980
_LEFT = 190.0
"""Where the lanes begin; names stand before."""
_TOP, _LANE, _GAP = 22.0, 22.0, 6.0
_HOURS = 24
_CLOSE = 4.0
"""Firings that are nearer to each other than this are drawn as one band."""
_NAME = 26
"""Characters of a name that there is room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row: `moments` with how many stand for each. A lane with counts is drawn as bars, one without as marks."""

    name: str
    moments: Sequence[tuple[datetime, int | None]]
    off: bool = False


def day_strip(lanes: Sequence[Lane], now: datetime) -> Markup:
    """The picture, in UTC from now on. What it shows is said in words for those who do not see it."""
    tall = _TOP + len(lanes) * (_LANE + _GAP)
    parts = [_axis(now, tall)]
    parts += [_lane(lane, now, _TOP + n * (_LANE + _GAP)) for n, lane in enumerate(lanes)]
    parts.append(Markup('<line class="now" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(_LEFT, _TOP - 4, tall))
    return Markup('<svg class="strip" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, tall, "; ".join(_words(lane) for lane in lanes) or "No schedules", Markup("").join(parts)
    )


def _x(moment: datetime, now: datetime) -> float:
    share = (moment - now) / timedelta(hours=_HOURS)
    return _LEFT + (WIDTH - _LEFT) * min(max(share, 0.0), 1.0)


def _axis(now: datetime, tall: float) -> Markup:
    """A line for each third hour, with the time of day."""
    first = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    parts = [Markup('<text x="{}" y="12">now</text>').format(_LEFT - 24)]
    for n in range(_HOURS):
        moment = first + timedelta(hours=n)
        if moment.hour % 3:
            continue
        x = _x(moment, now)
        parts.append(
            Markup('<line class="grid-line" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(x, _TOP - 4, tall)
        )
        if _LEFT + 20 < x < WIDTH - 20:
            parts.append(Markup('<text x="{:.1f}" y="12" text-anchor="middle">{:%H:%M}</text>').format(x, moment))
    return Markup("").join(parts)


def _lane(lane: Lane, now: datetime, y: float) -> Markup:
    name = lane.name if len(lane.name) <= _NAME else lane.name[: _NAME - 1] + "…"
    parts = [
        Markup('<text class="name" x="0" y="{:.1f}">{}</text>').format(y + 15, name),
        Markup('<rect class="lane" x="{}" y="{}" width="{}" height="{}" rx="4"/>').format(
            _LEFT, y, WIDTH - _LEFT, _LANE
        ),
    ]
    if lane.off:
        parts.append(Markup('<text x="{}" y="{:.1f}">disabled</text>').format(_LEFT + 8, y + 15))
    elif not lane.moments:
        parts.append(Markup('<text x="{}" y="{:.1f}">nothing in these hours</text>').format(_LEFT + 8, y + 15))
    elif lane.moments[0][1] is not None:
        parts += _batches(lane.moments, now, y)
    else:
        parts += _marks([_x(moment, now) for moment, _ in lane.moments], y)
    return Markup("").join(parts)


def _batches(moments: Sequence[tuple[datetime, int | None]], now: datetime, y: float) -> list[Markup]:
    """Bars as high as their counts."""
    top = max((count or 0 for _, count in moments), default=0) or 1
    wide = (WIDTH - _LEFT) / (_HOURS * 4)
    return [
        Markup(
            '<rect class="batch" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
        ).format(
            _x(moment, now),
            y + _LANE - (tall := max(2.0, (_LANE - 2) * (count or 0) / top)),
            wide - 1,
            tall,
            f"{moment:%H:%M} UTC: {count or 0:,} planned",
        )
        for moment, count in moments
    ]


def _marks(places: Sequence[float], y: float) -> list[Markup]:
    """A mark for each firing; those that lie close together are one band."""
    bands: list[list[float]] = []
    for x in places:
        if bands and x - bands[-1][1] < _CLOSE:
            bands[-1][1] = x
        else:
            bands.append([x, x])
    return [
        Markup('<rect class="firing" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2"/>').format(
            min(first, WIDTH - 5.0), y + 4, max(5.0, min(last, WIDTH) - first), _LANE - 8
        )
        for first, last in bands
    ]


def _words(lane: Lane) -> str:
    if lane.off:
        return f"{lane.name} is disabled"
    if not lane.moments:
        return f"{lane.name}: nothing in the next 24 hours"
    if lane.moments[0][1] is not None:
        return f"{lane.name}: {sum(count or 0 for _, count in lane.moments):,} in the next 24 hours"
    first = ", ".join(f"{moment.astimezone(UTC):%H:%M}" for moment, _ in lane.moments[:8])
    more = f" and {len(lane.moments) - 8} times more" if len(lane.moments) > 8 else ""
    return f"{lane.name} fires at {first}{more} UTC"
