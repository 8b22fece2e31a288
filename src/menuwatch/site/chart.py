"""Price chart as server-side SVG: true steps, times out of stock, and times that were not observed. Pure. Numbers only, so no text of
a menu gets into the SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from msgspec import Struct

from menuwatch.site import format as words
from menuwatch.storefront.price_history import PriceLine, State, Step

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 28
_SHORTEST = timedelta(minutes=10)
_YOUNG = timedelta(hours=1)
_DAY = timedelta(days=1)
_MOST_TICKS = 6
_SIGN_WIDTH = 12
"""Width of a character on a narrow screen, in pixels of the drawing (site.css)."""
_MOST_ROWS = 200
_NARROWEST = 1.5
"""Width in pixels of a price that was seen once."""

RANGES: dict[str, tuple[str, timedelta | None]] = {
    "30d": ("30 days", timedelta(days=30)),
    "90d": ("90 days", timedelta(days=90)),
    "1y": ("1 year", timedelta(days=365)),
    "all": ("All", None),
}
"""What a shopper may choose, with its label."""

DEFAULT_RANGE = "90d"
QUARTER = timedelta(days=90)


class Mark(NamedTuple):
    """A label with its position."""

    at: float
    text: str


class Row(NamedTuple):
    """A step as the table shows it; `until` is None while it lasts."""

    since: str
    until: str | None
    price: int | None
    regular: int | None
    status: str


class Figure(NamedTuple):
    """A price with its label, and when it was asked for the last time."""

    label: str
    price: int | None
    note: str = ""


class DrawnLine(Struct, frozen=True, kw_only=True):
    """Its path, the paths of struck prices and of prices while out of stock, and the same as figures and as rows, newest first."""

    label: str
    path: str
    regular: str
    out: str
    dot: tuple[float, float] | None
    figures: list[Figure]
    rows: list[Row]
    left_out: int
    """Older rows that the table leaves out."""


class Chart(Struct, frozen=True, kw_only=True):
    """An SVG of WIDTH × HEIGHT: what it is about first, then the line that it is compared with."""

    lines: list[DrawnLine]
    outs: list[tuple[float, float]]
    """x and width of each time in which the first line could not be bought."""
    gaps: list[tuple[float, float]]
    """x and width of each time in which it was not observed."""
    rules: list[Mark]
    ticks: list[Mark]
    summary: str
    zone: str
    young: bool
    """There is too little data for a visible line."""
    left: int
    width: int = WIDTH
    height: int = HEIGHT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def draw(
    lines: Sequence[tuple[str, PriceLine]],
    *,
    since: datetime | None,
    now: datetime,
    zone: tzinfo,
    state: str | None = None,
) -> Chart | None:
    """Draws labelled lines from `since` (None: from the beginning); None if the first one has no price in that time."""
    shown = [(label, _since(line.steps, since)) for label, line in lines]
    if not any(step.price is not None for step in shown[0][1]):
        return None
    shown = [one for one in shown if any(step.price is not None for step in one[1])]
    steps = [step for _, some in shown for step in some]
    start, end = min(step.start for step in steps), max(step.end for step in steps)
    observed = end - start
    start = min(start, end - _SHORTEST)
    prices = [cents for step in steps for cents in (step.price, step.regular) if cents is not None]
    low, high = _scale(min(prices), max(prices))
    levels = [(level, words.dollars(level, state)) for level in _levels(low, high)]
    left = max(_LEFT, 10 + _SIGN_WIDTH * max((len(text) for _, text in levels), default=0))

    def x(moment: datetime) -> float:
        return round(left + (WIDTH - left - _RIGHT) * ((moment - start) / (end - start)), 1)

    def y(cents: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (cents - low) / (high - low)), 1)

    def path(some: Sequence[Step], cost: Callable[[Step], int | None]) -> str:
        return _path(some, cost, x, y)

    drawn = [
        DrawnLine(
            label=label,
            path=path(some, lambda step: step.cost),
            regular=path(some, lambda step: step.regular if step.state == "offered" else None),
            out=path(some, lambda step: step.price if step.state == "out" else None),
            dot=(x(some[-1].end), y(some[-1].cost)) if some[-1].cost is not None else None,
            figures=_figures(line.steps, since, now, zone),
            rows=[_row(step, end, zone) for step in reversed(some[-_MOST_ROWS:])],
            left_out=max(0, len(some) - _MOST_ROWS),
        )
        for (label, some), (_, line) in zip(shown, lines, strict=False)
    ]
    return Chart(
        lines=drawn,
        outs=_bands(shown[0][1], "out", x),
        gaps=_bands(shown[0][1], "unobserved", x),
        rules=[Mark(y(level), text) for level, text in levels],
        ticks=[Mark(x(moment), text) for moment, text in _ticks(start, end, zone)],
        summary=". ".join(
            f"{one.label} {words.dollars(one.price, state)}{one.note and f' ({one.note})'}" for one in drawn[0].figures
        )
        + ".",
        zone=f"{end.astimezone(zone):%Z}",
        young=observed < _YOUNG,
        left=left,
    )


def _since(steps: Sequence[Step], since: datetime | None) -> list[Step]:
    if since is None:
        return list(steps)
    return [step.between(max(step.start, since), step.end) for step in steps if step.end > since]


def _path(
    steps: Sequence[Step],
    cost: Callable[[Step], int | None],
    x: Callable[[datetime], float],
    y: Callable[[float], float],
) -> str:
    """SVG path of a step line: level while a price lasts, upright where it changes, interrupted where there is none."""
    path: list[str] = []
    before: tuple[datetime, int] | None = None
    for step in steps:
        cents = cost(step)
        if cents is None:
            before = None
            continue
        if before is None or before[0] != step.start:
            path.append(f"M{x(step.start)} {y(cents)}H{max(x(step.end), x(step.start) + _NARROWEST)}")
        elif before[1] == cents:
            path.append(f"H{x(step.end)}")
        else:
            path.append(f"V{y(cents)}H{x(step.end)}")
        before = step.end, cents
    return "".join(path)


def _bands(steps: Sequence[Step], state: State, x: Callable[[datetime], float]) -> list[tuple[float, float]]:
    return [(x(one.start), round(max(x(one.end) - x(one.start), _NARROWEST), 1)) for one in steps if one.state == state]


def _figures(steps: Sequence[Step], since: datetime | None, now: datetime, zone: tzinfo) -> list[Figure]:
    """The current price, and the lowest and highest of 90 days and of the chosen range: `since Mar 3` if not observed as long."""
    last = next((step for step in reversed(steps) if step.state != "unobserved"), steps[-1])
    missing = "" if last.cost is not None else "out of stock"
    found = [
        Figure("Now", last.cost, missing)
        if last is steps[-1]
        else Figure("Last seen", last.cost, missing or _date(last.end.astimezone(zone), now.astimezone(zone)))
    ]
    first = _date(steps[0].start.astimezone(zone), now.astimezone(zone))
    for length in (QUARTER, None if since is None else now - since):
        whole = length is not None and steps[0].start <= now - length
        costs = [
            (step.cost, step.end) for step in _since(steps, now - length if length else None) if step.cost is not None
        ]
        label = next((text for text, span in RANGES.values() if whole and span == length), "")
        if not costs or (length is not None and length < QUARTER):
            continue
        span = f"in {label}" if label else f"since {first}"
        lowest, until = min(costs, key=lambda cost: (cost[0], -cost[1].timestamp()))
        found.append(Figure(f"Lowest {span}", lowest, _last(until, steps, now, zone)))
        found.append(Figure(f"Highest {span}", max(cost for cost, _ in costs)))
    return list(dict.fromkeys(found))


def _last(until: datetime, steps: Sequence[Step], now: datetime, zone: tzinfo) -> str:
    """When the price was asked for the last time; empty while it is."""
    return "" if until == steps[-1].end else f"until {_date(until.astimezone(zone), now.astimezone(zone))}"


def _date(moment: datetime, now: datetime) -> str:
    """`Mar 3`, with the year if it is another one."""
    return f"{moment:%b} {moment.day}" + ("" if moment.year == now.year else f", {moment.year}")


def _scale(low: int, high: int) -> tuple[float, float]:
    room = max((high - low) * 0.25, high * 0.08, 50)
    return max(0.0, low - room), high + room


def _levels(low: float, high: float) -> list[int]:
    rough = (high - low) / 4
    step = next(
        s for s in (25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 10**9) if s >= rough
    )
    first = int(low // step + 1) * step
    return list(range(first, int(high) + 1, step))


def _ticks(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[datetime, str]]:
    """Round local times, at most _MOST_TICKS, away from the ends so that their labels fit."""
    span = end - start
    first, last = (moment.astimezone(zone) for moment in (start + span * 0.03, end - span * 0.03))
    hours = next((n for n in (1, 2, 3, 6, 12) if span / timedelta(hours=n) <= _MOST_TICKS), None)
    days = next((n for n in (1, 2, 4, 7, 14) if span / timedelta(days=n) <= _MOST_TICKS), None)
    months = next((n for n in (1, 2, 3, 6, 12, 24) if span / timedelta(days=30 * n) <= _MOST_TICKS), 60)
    at = datetime(first.year, first.month, first.day, tzinfo=zone)
    if hours is None and days is None:
        at = at.replace(day=1, month=(at.month - 1) // min(months, 12) * min(months, 12) + 1)
    while at <= last:
        if at >= first:
            yield at, _tick(at, hours is not None, days is None)
        # Sums of local times are local times: a day is a day when the clocks change.
        if hours is not None:
            at += timedelta(hours=hours)
        elif days is not None:
            at += timedelta(days=days)
        else:
            at = at.replace(year=at.year + (at.month - 1 + months) // 12, month=(at.month - 1 + months) % 12 + 1)


def _tick(at: datetime, by_hours: bool, by_months: bool) -> str:
    if by_hours and (at.hour or at.minute):
        return f"{at.hour % 12 or 12} {at:%p}"
    if by_months:
        return f"{at:%b %Y}"
    return f"{at:%b} {at.day}"


_STATUS: dict[State, str] = {"offered": "On the menu", "out": "Out of stock", "unobserved": "Not observed"}


def _row(step: Step, end: datetime, zone: tzinfo) -> Row:
    status = "Not on the menu" if step.state == "out" and step.price is None else _STATUS[step.state]
    until = None if step.end == end else words.clock(step.end.astimezone(zone))
    return Row(words.clock(step.start.astimezone(zone)), until, step.price, step.regular, status)
