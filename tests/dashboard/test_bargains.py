"""The screen of the cheapest basket."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import date
from decimal import Decimal

import httpx
import psycopg
from pyarrow import parquet

from menuwatch.dashboard.pages.analytics import REPORTS
from tests.dashboard.test_catalogue import words

STORES = """
INSERT INTO dispensaries (platform_dispensary_id, slug, name, name_raw, state, latitude, longitude, last_crawled_at, first_crawled_at)
VALUES ('a', 'a', 'Shop =A', 'A', 'NM', 35, -106, now(), now()), ('b', 'b', 'Shop B', 'B', 'NM', 35.01, -106, now(), now())
RETURNING id
"""
PRODUCT = """
INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at,
       name_raw, name, category_canon, stock_status, is_in_stock, variants, extra)
VALUES (%s, 'dutchie', '1', '', now(), now(), now(), %s, %s, 'flower', 'in_stock', true, %s, '{}')
"""


async def test_the_cheapest_basket_as_tables_and_as_a_file(viewer: httpx.AsyncClient, database_url: str) -> None:
    path = "/admin/analytics/cheapest-basket"
    empty = words(await viewer.get(path))
    assert "One per line: the id of a canonical product" in empty
    assert "At one store" not in empty
    with psycopg.connect(database_url) as conn:
        for (store,), option, price in zip(conn.execute(STORES).fetchall(), ("3.5g", "1g"), (30, 10), strict=True):
            variants = [{"option": option, "price_rec": price, "stock_status": "in_stock"}]
            conn.execute(PRODUCT, [store, f"P {option}", f"P {option}", json.dumps(variants)])
    query = {"item": "flower:3.5 g\nflower:1 g*2", "near": "35,-106", "miles": "5"}
    shown = words(await viewer.get(path, params=query))
    assert "No store has all items." in shown
    assert "At two stores at most: $50.00" in shown
    assert "Compared: 2 stores." in shown
    # A hundredth of a degree of latitude is 1.11 km.
    assert "Shop B 0.7 mi" in shown
    with psycopg.connect(database_url) as conn:
        conn.execute("UPDATE dispensaries SET state = 'ON'")
    canadian = words(await viewer.get(path, params=query))
    assert "At two stores at most: CA$50.00" in canadian
    assert "Shop B 1.1 km" in canadian
    assert not re.search(r"(?<!CA)\$\d", canadian)
    # Lamy, in the circle of 87540, is 33 to 35 miles from these stores.
    for near in ("Lamy, NM", "87540"):
        assert "Compared: 2 stores." in words(await viewer.get(path, params={**query, "near": near, "miles": "50"}))
        assert "Compared: 0 stores." in words(await viewer.get(path, params={**query, "near": near, "miles": "20"}))
    file = await viewer.get(path, params={**query, "format": "csv"})
    assert file.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [(row["basket"], row["store"], row["cost"]) for row in rows][:2] == [
        ("two_stores", "Shop =A", "30"),
        ("two_stores", "Shop B", "20"),
    ]
    repeated = words(await viewer.get(path, params={**query, "item": ["flower:3.5 g", "flower:1 g*2"]}))
    assert "At two stores at most: CA$50.00" in repeated, "as in the API"
    wrong = words(await viewer.get(path, params={**query, "item": "weed:1 g", "near": "here", "miles": "far"}))
    assert "is neither the id of a canonical product" in wrong
    assert (
        "unknown place &#39;here&#39;: give a city with its state (Santa Fe, NM), a ZIP or postal code, or latitude"
        in wrong
    )
    assert "enter a distance up to 500 miles" in wrong


DAYS = """
INSERT INTO market_days (day, state, category, products, in_stock, out_of_stock, priced, on_special, depth_median, depth_mean, stores,
       known_stores)
VALUES ('2026-11-01', 'NM', 'all', 100, 70, 20, 80, 8, 0.25, 0.2, 3, 4),
       ('2026-11-03', 'NM', 'all', 110, 90, 10, 90, 18, 0.3, 0.3, 4, 4),
       ('2026-11-03', 'NM', 'flower', 50, 40, 10, 40, 4, 0.1, 0.1, 4, 4), ('2026-11-03', 'all', 'all', 999, 9, 9, 9, 9, 0.1, 0.1, 9, 9)
"""
RUN = """
INSERT INTO analytics_runs (status, finished_at, window_from, window_to) VALUES ('done', now(), now() - interval '7 days', now())
RETURNING id
"""
STORE_ROW = """
INSERT INTO analytics_store_stats (run_id, dispensary_id, platform, name, state, crawl_enabled, interval_hours, is_scheduled,
       is_stale, is_partial, scheduled, succeeded, failed, quarantined, never_begun, undecided, observed_seconds)
VALUES (%(run)s, 7, 'dutchie', 'Shop <7>', 'NM', true, 4, false, false, false, 0, 0, 0, 0, 0, 0, 0)
"""
SPECIAL = """
INSERT INTO analytics_special_stats (run_id, place, product_id, size, dispensary_id, state, category, brand, price, regular,
       verdict, score, usual, observed_days, began_at, checked_at)
VALUES (%(run)s, 1, 1, '3.5 g', 7, 'NM', 'flower', 'Acme', 30, 50, 'never_asked', 10, 32, 60, now(), now()),
       (%(run)s, 2, 2, '', 7, 'NM', 'edible', 'Zen', 10, 20, 'unknown', NULL, NULL, 3, now(), now())
"""


async def test_figures_by_day_have_a_chart_a_period_and_a_file(viewer: httpx.AsyncClient, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(RUN)
        conn.execute(DAYS)
    path = "/admin/analytics/by-day"
    shown = await viewer.get(f"{path}?state=NM")
    text = words(shown)
    assert "2026-11-03 110 10 10 10.0 % 20.0 % 30.0 % 4 4" in text
    assert "2026-11-01 100 20 10 22.2 %" in text
    assert "Days are kept since 2026-11-01." in text
    assert "999" not in text
    assert 'id="chart-by-day"' in shown.text
    # The day between has no figures.
    assert '"values":[0.2222,null,0.1]' in shown.text.replace("&#34;", '"').replace(" ", "")
    assert "2026-11-01 100" not in words(await viewer.get(f"{path}?state=NM&from=2026-11-02"))
    assert "2026-11-03" not in words(await viewer.get(f"{path}?state=NM&to=2026-11-02"))
    since = (await viewer.get(f"{path}?state=NM&from=2026-11-02")).text
    assert 'href="/admin/analytics/by-day?state=NM&amp;from=2026-11-02&amp;format=csv"' in since, (
        "the file has the same days"
    )
    before = words(await viewer.get(f"{path}?state=NM&from=2026-10-01&to=2026-10-31"))
    assert "No rows Days are kept since 2026-11-01." in before
    assert "is not a date: use the form" in words(await viewer.get(f"{path}?from=yesterday"))
    file = await viewer.get(f"{path}?state=NM&category=flower&format=csv")
    (row,) = csv.DictReader(io.StringIO(file.text))
    assert (row["day"], row["products"], row["out_share"], row["depth_median"]) == ("2026-11-03", "50", "0.2000", "0.1")
    binary = await viewer.get(f"{path}?state=NM&category=flower&format=parquet")
    assert binary.headers["content-disposition"] == 'attachment; filename="menuwatch-by-day.parquet"'
    table = parquet.read_table(io.BytesIO(binary.content))
    assert table.column_names == file.text.splitlines()[0].split(",")
    (typed,) = table.to_pylist()
    assert (typed["day"], typed["products"], typed["out_share"]) == (date(2026, 11, 3), 50, Decimal("0.2"))


async def test_every_report_has_a_parquet_file(viewer: httpx.AsyncClient, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(RUN)
    for report in REPORTS:
        answer = await viewer.get(f"/admin/analytics/{report}?format=parquet")
        assert parquet.read_table(io.BytesIO(answer.content)).num_rows == 0, report


async def test_specials_are_filtered_and_named(viewer: httpx.AsyncClient, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        run = conn.execute(RUN).fetchone()
        assert run is not None
        for statement in (STORE_ROW, SPECIAL):
            conn.execute(statement, {"run": run[0]})
    path = "/admin/analytics/specials"
    shown = words(await viewer.get(path))
    assert "$30.00 $50.00 $32.00 40.0 % 6.2 % never asked 10 60" in shown
    assert "unknown" in shown
    assert "Zen" not in words(await viewer.get(f"{path}?brand=acme"))
    assert "Acme" not in words(await viewer.get(f"{path}?category=edible"))
    file = await viewer.get(f"{path}?format=csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [(row["verdict"], row["score"], row["store"]) for row in rows] == [
        ("never_asked", "10", "Shop <7>"),
        ("unknown", "", "Shop <7>"),
    ]
    assert "attachment" in file.headers["content-disposition"]


async def test_lowest_prices_of_nothing(viewer: httpx.AsyncClient) -> None:
    shown = words(await viewer.get("/admin/analytics/lowest-prices?q=kush&category=flower"))
    assert "No matched product with a price meets these filters." in shown
    file = await viewer.get("/admin/analytics/lowest-prices?format=csv")
    assert file.text.startswith("canonical_product_id,name,brand")
