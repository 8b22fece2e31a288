"""The rows of `visitor_salts`, `visitor_marks`, `visitor_days` and `visitor_pages`."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Transient
from menuwatch.db import sql
from menuwatch.visitors.anonymous_marks import Counted

_q = sql.load(__package__)

SALT_BYTES = 32
KEPT = timedelta(hours=46)
"""From the beginning of its day; maintenance comes at least every hour, so no salt is 48 hours old."""
PAGES_KEPT = timedelta(days=400)
"""How long views of single pages are kept; sums by place are kept forever."""


async def salt_of(conn: AsyncConnection[Any], day: date) -> bytes:
    """The day's salt; it is made where there is none yet. Any number of servers may ask at once: all get the same."""
    await conn.execute(_q.offer_salt, {"day": day, "salt": secrets.token_bytes(SALT_BYTES)})
    row = await (await conn.execute(_q.salt_of, {"day": day})).fetchone()
    if row is None:
        raise Transient(f"the salt of {day} was deleted this very moment")
    return bytes(row[0])


async def record(conn: AsyncConnection[Any], visits: Sequence[Counted]) -> None:
    """Adds the visits to the sums, within the caller's transaction. Visitors that any process has counted already are not counted
    again."""
    marks = {(visit.day, mark) for visit in visits for mark in visit.marks if mark is not None}
    cursor = await conn.execute(_q.add_marks, {"days": [day for day, _ in marks], "marks": [mark for _, mark in marks]})
    new = {(day, bytes(mark)) for day, mark in await cursor.fetchall()}

    def first(day: date, mark: bytes | None) -> int:
        if (day, mark) not in new:
            return 0
        new.discard((day, mark))
        return 1

    views: Counter[tuple[date, str, str, str, str]] = Counter()
    uniques: Counter[tuple[date, str, str, str, str]] = Counter()
    arrivals: Counter[tuple[date, str, str, str, str]] = Counter()
    page_views: Counter[tuple[date, str, str]] = Counter()
    page_uniques: Counter[tuple[date, str, str]] = Counter()
    for visit in visits:
        cell = (visit.day, *visit.where, str(visit.kind))
        views[cell] += 1
        uniques[cell] += first(visit.day, visit.marks.kind)
        arrivals[cell] += first(visit.day, visit.marks.day)
        if visit.marks.page is not None:
            page = (visit.day, str(visit.kind), visit.page)
            page_views[page] += 1
            page_uniques[page] += first(visit.day, visit.marks.page)
    await conn.execute(
        _q.add_views,
        {
            **_columns(("days", "countries", "regions", "cities", "kinds"), list(views)),
            "views": list(views.values()),
            "uniques": [uniques[cell] for cell in views],
            "arrivals": [arrivals[cell] for cell in views],
        },
    )
    if page_views:
        await conn.execute(
            _q.add_page_views,
            {
                **_columns(("days", "kinds", "pages"), list(page_views)),
                "views": list(page_views.values()),
                "uniques": [page_uniques[page] for page in page_views],
            },
        )


async def forget_salts(conn: AsyncConnection[Any], now: datetime) -> int:
    """Deletes salts past their time, each with its marks; returns how many."""
    # A salt of day D is past its time from D 46:00 on: every day that began before that.
    return (await conn.execute(_q.forget_salts, {"before": _day_after(now - KEPT)})).rowcount


async def forget_pages(conn: AsyncConnection[Any], now: datetime) -> int:
    """Deletes old views of single pages; returns how many rows."""
    return (await conn.execute(_q.forget_pages, {"before": _day_after(now - PAGES_KEPT)})).rowcount


def _day_after(at: datetime) -> date:
    """The first day that has not begun by then."""
    return at.astimezone(UTC).date() + timedelta(days=1)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}
