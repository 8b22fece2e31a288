"""What one worker did, as bars along a line of time: one path for all bars of a kind, since there may be thousands. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from menuwatch.operations.timeline import Bar, Lane

WIDTH, ROW = 1000, 10
_LEAST = 2.0
"""Width of the shortest bar, so that it is seen at all."""

_TICKS = 6
ROWS = 12
"""Most rows that are drawn; what is at work in more than these at once is drawn in the last one."""

LIVED = timedelta(minutes=15)
"""How long a worker must have been there before the longest time in which it did nothing says anything."""

KINDS = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "open": "running",
    "stale": "stale",
}
"""Kinds of bars with their words, in the order in which they are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The same in numbers: `busy` is the share of its time in which it was at something, `gap` the longest time in which it was not,
    in seconds; None where it was not there for long enough, or is not known any more."""

    tasks: int
    failed: int
    busy: float
    gap: float | None


def drawn(lane: Lane, since: datetime, until: datetime) -> Markup:
    """The bars of a lane between two times."""
    height = min(lane.rows, ROWS) * ROW
    scale = WIDTH / (until - since).total_seconds()
    paths: dict[str, list[str]] = {}
    for bar in lane.bars:
        left = max((bar.start - since).total_seconds(), 0.0) * scale
        right = min(((bar.end or until) - since).total_seconds() * scale, WIDTH)
        wide = max(right - left, _LEAST)
        left = min(left, WIDTH - wide)
        top = min(bar.row, ROWS - 1) * ROW + 1
        paths.setdefault(kind(bar), []).append(f"M{left:.1f} {top}h{wide:.1f}v{ROW - 2}h-{wide:.1f}z")
    ticks = Markup("").join(
        Markup('<line x1="{0:.0f}" x2="{0:.0f}" y1="0" y2="{1}"/>').format(WIDTH * n / _TICKS, height)
        for n in range(1, _TICKS)
    )
    bars = Markup("").join(
        Markup('<path class="{}" d="{}"/>').format(one, "".join(paths[one])) for one in KINDS if one in paths
    )
    told = said(lane, since, until)
    label = (
        f"{told.tasks} {'task' if told.tasks == 1 else 'tasks'}, {told.failed} failed, busy {told.busy:.0%} of the time"
    )
    return Markup(
        '<svg class="lane" viewBox="0 0 {} {}" height="{}" preserveAspectRatio="none" role="img" aria-label="{}">{}{}</svg>'
    ).format(WIDTH, height, height, label, ticks, bars)


def kind(bar: Bar) -> str:
    """The class of a bar."""
    if bar.end is not None:
        return bar.status
    return "stale" if bar.status == "stale" else "open"


def said(lane: Lane, since: datetime, until: datetime) -> Said:
    """What the bars say of the time in which the worker was there."""
    since, until = _there(lane, since, until)
    spans = _joined((max(bar.start, since), min(bar.end or until, until)) for bar in lane.bars)
    busy = sum((end - start for start, end in spans), timedelta())
    edges = [since, *(moment for span in spans for moment in span), until]
    gap = max(edges[n + 1] - edges[n] for n in range(0, len(edges), 2))
    return Said(
        tasks=len(lane.bars),
        failed=sum(bar.status == "failed" for bar in lane.bars),
        busy=busy / (until - since) if until > since else 0.0,
        gap=gap.total_seconds() if lane.began is not None and until - since >= LIVED else None,
    )


def _there(lane: Lane, since: datetime, until: datetime) -> tuple[datetime, datetime]:
    if lane.began is not None:
        since = max(since, min(lane.began, *(bar.start for bar in lane.bars), until))
    if lane.left is not None:
        until = min(until, max(lane.left, *(bar.end or until for bar in lane.bars), since))
    return since, until


def _joined(spans: Iterable[tuple[datetime, datetime]]) -> Sequence[tuple[datetime, datetime]]:
    """The same time without overlaps, in order."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if end < start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
