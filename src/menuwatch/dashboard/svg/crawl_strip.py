"""The crawls of a store as a strip over time: a bar each, as high as its menu was long, and hatched where nobody looked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from markupsafe import Markup

from menuwatch.operations.store_crawling import Crawl
from menuwatch.web.words import many, moment, rough

WIDTH, HEIGHT = 900, 96
_FLOOR = HEIGHT - 4
_TALLEST = HEIGHT - 20
_LEAST_BAR = 3.0
_MOST_BAR = 14.0
_KINDS = {"ok": "good", "partial": "warn", "quarantined": "amber", "rejected": "bad", "failed": "bad"}


def strip(crawls: Sequence[Crawl], *, now: datetime, interval: timedelta, address: str = "") -> Markup:
    """The picture; empty where there are no crawls. `crawls` are oldest first, `interval` is the time between two as it is set:
    more than twice of it is a gap. `address` is what stands before the paths of pages."""
    if not crawls:
        return Markup("")
    start = crawls[0].at
    whole = max((now - start).total_seconds(), 60.0)
    most = max(max((one.products or 0) for one in crawls), 1)
    bar = min(_MOST_BAR, max(_LEAST_BAR, WIDTH / len(crawls) * 0.6))

    def x(at: datetime) -> float:
        return round((at - start).total_seconds() / whole * (WIDTH - bar), 1)

    parts: list[Markup] = []
    seen = [one.at for one in crawls if one.outcome != "failed"] or [start]
    for earlier, later in zip(seen, [*seen[1:], now], strict=True):
        if later - earlier > 2 * interval:
            left, right = x(earlier) + bar, x(later)
            said = f"Not observed for {rough((later - earlier).total_seconds())}, from {moment(earlier)}"
            parts.append(
                Markup('<rect class="gap" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>').format(
                    round(left, 1), round(max(right - left, 1.0), 1), HEIGHT, said
                )
            )
    parts += [_bar(one, x(one.at), bar, most, address) for one in crawls]
    label = f"{many(len(crawls), 'crawl')} since {moment(start)}; the longest menu has {many(most, 'product')}"
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="group" aria-label="{}">{}'
        '<line class="floor" x1="0" x2="{}" y1="{}" y2="{}"/></svg>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts), WIDTH, _FLOOR, _FLOOR)


def _bar(one: Crawl, x: float, width: float, most: int, address: str) -> Markup:
    failed = one.outcome == "failed"
    tall = 10.0 if failed else max((one.products or 0) / most * _TALLEST, 4.0)
    path = f"/tasks/{one.number}" if failed else f"/payloads/{one.number}"
    said = f"{moment(one.at)}: {one.outcome}"
    if one.products is not None:
        said += f", {many(one.products, 'product')}"
    if one.reason:
        said += f" ({one.reason[:200]})"
    return Markup(
        '<a href="{}" aria-label="{}"><rect class="hit" x="{}" y="0" width="{}" height="{}"/>'
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect></a>'
    ).format(
        address + path, said, x, width, HEIGHT, _KINDS.get(one.outcome, "none"), x, round(_FLOOR - tall, 1), width,
        round(tall, 1), said,
    )  # fmt: skip
