"""The screen of the cheapest basket."""

from __future__ import annotations

import csv
import io
import json

import httpx
import psycopg

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
    query = {"items": "flower:3.5 g\nflower:1 g*2", "near": "35,-106", "miles": "5"}
    shown = words(await viewer.get(path, params=query))
    assert "No store has all items." in shown
    assert "At two stores at most: $50.00 USD" in shown
    assert "Compared: 2 stores." in shown
    file = await viewer.get(path, params={**query, "format": "csv"})
    assert file.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [(row["basket"], row["store"], row["cost"]) for row in rows][:2] == [
        ("two_stores", "Shop =A", "30"),
        ("two_stores", "Shop B", "20"),
    ]
    wrong = words(await viewer.get(path, params={**query, "items": "weed:1 g", "near": "here", "miles": "far"}))
    assert "is neither the id of a canonical product" in wrong
    assert "must be latitude and longitude in degrees" in wrong
    assert "enter a distance up to 500 miles" in wrong
