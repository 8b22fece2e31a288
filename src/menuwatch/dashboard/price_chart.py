"""What one product cost over time, as chart.js draws it: steps, a band where it was on special, nothing where nobody looked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from menuwatch.operations.price_series import Gap, Series, Step

_A_MOMENT = 1.0
"""Seconds after which a line is broken where a gap begins: its last point stands at the beginning."""


def price_chart(series: Series, now: datetime) -> dict[str, Any]:
    """The chart's data: times in seconds since 1970; the usual price, what it costs, and that again where it was out of stock."""
    times, usual, costs, out = [], [], [], []
    for at, step in _points(series, now):
        times.append(at)
        shown = step if step is not None and step.listed else None
        usual.append(None if shown is None or shown.regular is None else float(shown.regular))
        costs.append(None if shown is None or shown.price is None else float(shown.price))
        out.append(costs[-1] if shown is not None and shown.in_stock is False else None)
    return {
        "prefix": "$",
        "height": 280,
        "data": [times, usual, costs, out],
        "series": [
            {"label": "Usual price", "colour": "--bar-none", "steps": True, "dash": [5, 4]},
            {"label": "Price", "colour": "--bar-info", "steps": True},
            {"label": "Out of stock", "colour": "--bar-bad", "steps": True, "fill": True},
        ],
        "bands": [[1, 2]],
    }


def _points(series: Series, now: datetime) -> list[tuple[float, Step | None]]:
    """(second, what was then): each from its time until the next one's."""
    if not series.steps:
        return []
    starts = {step.start for step in series.steps}
    edges = {gap.start for gap in series.gaps} | {gap.end for gap in series.gaps if gap.end is not None}
    first = series.steps[0].start
    found: list[tuple[float, Step | None]] = []
    for moment in sorted(one for one in starts | edges | {now} if first <= one <= now):
        at = moment.timestamp()
        step, gap = _at(series.steps, moment), _in(series.gaps, moment)
        if gap is None or (gap.start == moment and moment < now):
            # What was until now lasts until now, also where nothing of it is drawn from here on.
            if found and found[-1][1] is not None and at - found[-1][0] > _A_MOMENT:
                found.append((at - _A_MOMENT, found[-1][1]))
            found.append((at, step))
        if gap is not None:
            # A gap begins where it was seen for the last time.
            found.append((at + _A_MOMENT if gap.start == moment else at, None))
    return found


def _at(steps: Sequence[Step], at: datetime) -> Step | None:
    last = None
    for step in steps:
        if step.start > at:
            break
        last = step
    return last


def _in(gaps: Sequence[Gap], at: datetime) -> Gap | None:
    return next((gap for gap in gaps if gap.start <= at and (gap.end is None or at < gap.end)), None)


def potency_chart(states: Sequence[dict[str, Any]], now: datetime) -> dict[str, Any] | None:
    """THC and CBD of the states, oldest first, in percent; None where there is nothing to draw. What is in other units is left out."""
    points: list[tuple[float, float | None, float | None]] = []
    for state in states:
        told = [_percent(state[name]) if state["present"] else None for name in ("thc", "cbd")]
        points.append((state["from"].timestamp(), told[0], told[1]))
    if not points or all(thc is None and cbd is None for _, thc, cbd in points):
        return None
    points.append((now.timestamp(), *points[-1][1:]))
    return {
        "height": 200,
        "data": [list(column) for column in zip(*points, strict=True)],
        "series": [
            {"label": "THC %", "colour": "--bar-good", "steps": True},
            {"label": "CBD %", "colour": "--bar-warn", "steps": True},
        ],
    }


def _percent(content: dict[str, Any] | None) -> float | None:
    if content is None or str(content.get("unit")).upper() not in ("PERCENTAGE", "PERCENT", "%"):
        return None
    found = content["hi"] if content.get("hi") is not None else content["lo"]
    return float(found)
