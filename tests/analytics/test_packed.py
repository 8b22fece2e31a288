"""Figures beside months that were packed: those that they are made of stay in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from tests.api.shop import START, Shop, at, item

WEEK = timedelta(days=7)
MONTH = 31 * 24
"""Hours of March; the story begins at noon of its first day."""


def _month(number: int) -> Any:
    return START.replace(month=number, day=1, hour=0)


async def _hours(shop: Shop, hours: float) -> tuple[float, float, float]:
    await refresh(shop.pool, window=WEEK, now=at(hours))
    (row,) = await shop.walk("/api/analytics/out-of-stock", by="all")
    return row["in_hours"], row["out_hours"], row["absent_hours"]


async def test_a_month_that_reaches_into_the_window_stays(shop: Shop) -> None:
    """Out of stock for three days of March, of which the window at noon of April 3rd begins one day in."""
    store = await shop.store(state="AZ")
    for hours in (0, MONTH):
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(hours)])
    for hours in range(25 * 24, 33 * 24, 6):
        out = 26 * 24 <= hours < 29 * 24
        await shop.crawl(store, hours, [item("a", options=[("1g", 10, 0 if out else 5)])])
    now = at(33 * 24)
    assert await _hours(shop, 33 * 24) == (4 * 24, 3 * 24, 0)
    async with shop.pool.connection() as conn:
        archived = ParquetPartitions(shop.archive.storage)
        with pytest.raises(Refused) as caught:
            await packing.pack(conn, archived, _month(4), now=now, window=WEEK)
        assert str(caught.value) == (
            "--before 2026-04 is too late: analytics needs the last 7 days (ANALYTICS_WINDOW_DAYS, since 2026-03-27) "
            "in the database. Latest possible value: --before 2026-03"
        )
        assert archived.files() == []
        assert await packing.pack(conn, archived, _month(3), now=now, window=WEEK) == []
        # Where nothing of March is in the window any more, it may go: from midnight of April 8th on.
        late = _month(4) + WEEK
        with pytest.raises(Refused, match=r"--before 2026-03$"):
            await packing.pack(conn, archived, _month(4), now=late - timedelta(microseconds=1), window=WEEK)
        for hours in range(33 * 24, 38 * 24 - 12, 6):
            await shop.crawl(store, hours, [item("a", options=[("1g", 10, 5)])])
        before = await _hours(shop, 38 * 24 - 12)
        assert [one.states for one in await packing.pack(conn, archived, _month(4), now=late, window=WEEK)] == [2]
    assert await _hours(shop, 38 * 24 - 12) == before == (WEEK.total_seconds() / 3600, 0, 0)
