"""The screen of the price index: a chart and a table, and why there is none."""

from __future__ import annotations

import httpx
import psycopg

from tests.dashboard.test_catalogue import words

ROWS = """
INSERT INTO price_index_days (state, category, day, stores, known_stores, matched, carried, entered, expired, outliers, change,
       level, deviations)
SELECT c.state, c.category, d.day, d.stores, 2, d.matched, CASE WHEN d.change IS NOT NULL THEN 8 - d.matched ELSE 0 END,
       CASE WHEN d.change IS NULL THEN 8 ELSE 0 END, 0, 0, d.change, d.level,
       ARRAY[d.level / 10, -d.level / 10] || array_fill(0.0::double precision, ARRAY[18])
  FROM (VALUES ('all', 'all'), ('CO', 'flower')) c(state, category),
       (VALUES (date '2026-11-01', 0, 0, NULL, 0.0), ('2026-11-02', 2, 8, 0.1, 0.1), ('2026-11-03', 1, 3, 0.2, 0.3),
               ('2026-11-04', 2, 8, -0.1, 0.2)) d(day, stores, matched, change, level)
"""


async def test_the_price_index_has_a_chart_and_a_table(viewer: httpx.AsyncClient, database_url: str) -> None:
    empty = words(await viewer.get("/admin/analytics/price-index"))
    assert "No day is computed: no store was crawled yet." in empty
    with psycopg.connect(database_url) as conn:
        conn.execute(ROWS)
    shown = await viewer.get("/admin/analytics/price-index?state=CO&category=flower&days=30")
    text = words(shown)
    assert "The index is 100 on 2026-11-01" in text
    assert "Days are kept since 2026-11-01." in text
    assert "2026-11-04 122.14 " in text
    assert "2026-11-03 too few observed – – – 3 1 2 5 0 0 0" in text
    assert "2026-11-01 100" in text
    assert 'id="chart-price-index"' in shown.text
    assert "122.1403" in shown.text
    nothing = words(await viewer.get("/admin/analytics/price-index?state=WY"))
    assert "No index Too few items to state an index" in nothing
    assert "&#39;weed&#39; is not one of" in words(await viewer.get("/admin/analytics/price-index?category=weed"))
    assert 'href="/admin/analytics/price-index"' in (await viewer.get("/admin/analytics/price-per-gram")).text
