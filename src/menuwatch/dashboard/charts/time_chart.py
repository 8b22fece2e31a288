"""Charts over time with axes, tooltip, zoom and a table of the same data. Pure.

    TimeChart("tasks", "Finished tasks", times, [Series("Completed", done, "good"), Series("Failed", failed, "bad")], kind="stack",
              step=timedelta(minutes=5), href=root + "/tasks?q=ended:>={from} ended:<{to}")

In the template: `{% from "chart.html" import chart %}` and `{{ chart(tasks) }}`; static/chart.js draws it. Nothing else is needed:
the data are in the page, colors follow the theme, and live updates keep the zoom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from markupsafe import Markup
from msgspec import Struct

from menuwatch.core.format import duration, money, number, percent, size

Color = Literal["good", "info", "warn", "amber", "bad", "none", "c1", "c2", "c3", "c4", "c5", "c6"]
"""States have the first ones, other series the numbered ones."""
Unit = Literal["count", "number", "seconds", "percent", "bytes", "money"]


_TEXT: dict[Unit, Callable[[Any], str]] = {
    "count": number,
    "number": number,
    "seconds": duration,
    "percent": lambda value: percent(value, 1),
    "bytes": size,
}


class Series(Struct, frozen=True):
    """A value for each time of the chart; None leaves a gap. `steps`: a value holds until the next one; `line`: in a stack, a line
    that is not part of the sum, such as a limit."""

    label: str
    values: Sequence[float | None]
    color: Color = "info"
    steps: bool = False
    dash: bool = False
    fill: bool = False
    line: bool = False


class TimeChart(Struct, frozen=True):
    """A chart. `id` is unique on the page, `label` its text alternative; `times` are the starts of intervals as long as `step`, or
    moments (None), oldest first. `partial`: the last interval has not ended. A click opens `href`, in which `{from}` and `{to}`
    stand for the interval. Charts of one `group` share zoom and cursor. Percentages are shares from 0 to 1; amounts of money are in
    `currency`. `bands`: pairs of series, counted from 1, between which the ground is filled."""

    id: str
    label: str
    times: Sequence[datetime]
    series: Sequence[Series]
    kind: Literal["lines", "stack"] = "lines"
    unit: Unit = "count"
    currency: str = "USD"
    step: timedelta | None = None
    partial: bool = True
    href: str = ""
    group: str = ""
    height: int = 200
    zero: bool = True
    bands: Sequence[tuple[int, int]] = ()

    @property
    def empty(self) -> bool:
        """Whether no series has a value."""
        return not any(value is not None for one in self.series for value in one.values)

    @property
    def zoned(self) -> bool:
        """Whether its times are shown in the zone that the user chose: days are those of UTC."""
        return self.step is None or self.step < timedelta(days=1)

    @property
    def data(self) -> dict[str, Any]:
        """What chart.js reads."""
        return {
            "times": [_second(one) for one in self.times],
            "series": [
                {name: getattr(one, name) for name in ("label", "values", "color", "steps", "dash", "fill", "line")}
                for one in self.series
            ],
            "step": None if self.step is None else int(self.step.total_seconds()),
            "partial": self.partial and self.step is not None,
            **{
                name: getattr(self, name)
                for name in ("kind", "unit", "currency", "href", "group", "height", "zero", "bands")
            },
        }

    @property
    def rows(self) -> list[tuple[Markup, list[str]]]:
        """The table: time (UTC; times.js shows it in the chosen zone) and the values as text, newest first."""
        short = self.step is not None and self.step >= timedelta(minutes=1)
        pattern = "%Y-%m-%d" if not self.zoned else "%Y-%m-%d %H:%M" if short else "%Y-%m-%d %H:%M:%S"
        kind = "" if not self.zoned else "to-minute" if short else "to-second"
        text = partial(money, currency=self.currency) if self.unit == "money" else _TEXT[self.unit]
        found = []
        for n, time in enumerate(self.times):
            values = ["–" if one.values[n] is None else text(one.values[n]) for one in self.series]
            at = time.astimezone(UTC)
            shown = Markup('<time datetime="{}" data-time="{}">{}</time>').format(
                at.isoformat(timespec="seconds"), kind, at.strftime(pattern)
            )
            found.append((shown if kind else Markup.escape(at.strftime(pattern)), values))
        if self.partial and self.step is not None and found:
            found[-1] = (found[-1][0] + " (incomplete)", found[-1][1])
        return found[::-1]


def _second(time: datetime) -> float:
    at = time.timestamp()
    return int(at) if at == int(at) else at
