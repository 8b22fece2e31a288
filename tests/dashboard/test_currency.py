"""Prices of stores in Canada on the screens: each has the sign of Canadian dollars, and no other one."""

from __future__ import annotations

import re

import httpx

from menuwatch.analytics.refresh import refresh
from menuwatch.db.pool import Pool
from tests.browser import history_data
from tests.dashboard.conftest import Sql
from tests.dashboard.test_bargains import PRODUCT, RUN, SPECIAL, STORE_ROW
from tests.dashboard.test_catalogue import words

PLAIN = re.compile(r"(?<!CA)\$[\d,.]+")


async def test_prices_have_the_currency_of_the_store(admin: httpx.AsyncClient, sql: Sql) -> None:
    planted = history_data.plant(sql)
    pages = {
        "/admin/products": 1,
        f"/admin/products/{planted.product}": 5,
        "/admin/changes?since=all": 1,
        f"/admin/stores/{planted.store}": 1,
        f"/admin/stores/{planted.store}/menu": 1,
    }
    for state, wanted, other in (("NM", PLAIN, re.compile(r"CA\$")), ("ON", re.compile(r"CA\$[\d,.]+"), PLAIN)):
        sql("UPDATE dispensaries SET state = %s WHERE id = %s", [state, planted.store])
        for path, least in pages.items():
            text = words(await admin.get(path))
            assert len(wanted.findall(text)) >= least, (state, path)
            assert other.findall(text) == [], (state, path)
    assert '"unit":"money","currency":"CAD"' in (await admin.get(f"/admin/products/{planted.product}")).text
    labels = re.findall(r'aria-label="(From [^"]*)"', (await admin.get("/admin/changes?since=all")).text)
    assert labels
    assert not [label for label in labels if PLAIN.search(label)]


async def test_reports_have_the_currency_of_the_row(viewer: httpx.AsyncClient, sql: Sql) -> None:
    ((run,),) = sql(RUN)
    for statement in (STORE_ROW, SPECIAL):
        sql(statement, {"run": run})
    sql("UPDATE analytics_special_stats SET state = 'ON' WHERE product_id = 1")
    shown = words(await viewer.get("/admin/analytics/specials"))
    assert "CA$30.00 CA$50.00 CA$32.00 40.0 %" in shown
    assert "$10.00 $20.00" in shown
    assert shown.count("CA$") == 4, "three prices, and the note below the table"


async def test_price_per_gram_of_all_states_by_currency(viewer: httpx.AsyncClient, sql: Sql, pool: Pool) -> None:
    for place, state, price in (("a", "AZ", 12), ("b", "ON", 30)):
        ((store,),) = sql(
            "INSERT INTO dispensaries (platform_dispensary_id, slug, name, state, last_crawled_at, first_crawled_at)"
            " VALUES (%s, %s, %s, %s, now(), now()) RETURNING id",
            [place, place, place, state],
        )
        variants = f'[{{"option": "1g", "weight_g": 1, "price_rec": {price}, "stock_status": "in_stock"}}]'
        sql(PRODUCT, [store, "Kush", "Kush", variants])
    await refresh(pool)
    shown = words(await viewer.get("/admin/analytics/price-per-gram?state=all"))
    # Products, the median with its percentiles, the same before specials, and stores of the currency.
    assert "all states flower 1 $12.00 $12.00 – $12.00 $12.00 $12.00 – $12.00 1 of 1" in shown
    assert "all states (CAD) flower 1 CA$30.00 CA$30.00 – CA$30.00 CA$30.00 CA$30.00 – CA$30.00 1 of 1" in shown
    only = words(await viewer.get("/admin/analytics/price-per-gram?state=ON"))
    assert "ON flower 1 CA$30.00" in only
    assert not PLAIN.search(only)
