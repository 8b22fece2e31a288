"""Prices of stores in Canada on the screens: each has the sign of Canadian dollars, and no other one."""

from __future__ import annotations

import re

import httpx

from tests.browser import history_data
from tests.dashboard.conftest import Sql
from tests.dashboard.test_bargains import RUN, SPECIAL, STORE_ROW
from tests.dashboard.test_catalogue import words

PLAIN = re.compile(r"(?<!CA)\$[\d,.]+")


async def test_prices_have_the_currency_of_the_store(admin: httpx.AsyncClient, sql: Sql) -> None:
    planted = history_data.plant(sql)
    pages = {
        "/admin/products": 1,
        f"/admin/products/{planted.product}": 5,
        "/admin/changes?days=all": 1,
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
    labels = re.findall(r'aria-label="(From [^"]*)"', (await admin.get("/admin/changes?days=all")).text)
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
