"""How the last attempts went, as a row of small marks: the newest on the right. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from menuwatch.web.words import many

_STEP, _MARK, _TALL = 5, 4, 14


def outcomes(newest_first: Sequence[bool]) -> Markup:
    """The marks; empty where nothing was tried."""
    if not newest_first:
        return Markup("")
    good = sum(newest_first)
    bad = len(newest_first) - good
    label = f"Of the last {many(len(newest_first), 'crawl')}, {good} went well" + (f", {bad} failed" if bad else "")
    marks = Markup("").join(
        Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
            "good" if well else "bad", n * _STEP, 0 if well else 4, _MARK, _TALL if well else _TALL - 4
        )
        for n, well in enumerate(reversed(newest_first))
    )
    return Markup(
        '<svg class="outcomes" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>'
    ).format(len(newest_first) * _STEP, _TALL, label, marks)
