"""Batch, lab values, sold count and capped stock on a product's page."""

from __future__ import annotations

import json
import re

import httpx

from tests.browser import history_data
from tests.dashboard.conftest import Sql

EVIL = '"><script>alert(1)</script>\' onmouseover="alert(1)'


def words(answer: httpx.Response) -> str:
    """A page's text, as it is read."""
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


async def test_a_product_shows_its_batch_lab_values_and_sales(admin: httpx.AsyncClient, sql: Sql) -> None:
    planted = history_data.plant(sql)
    answer = await admin.get(f"/admin/products/{planted.product}")
    text = words(answer)
    assert (
        "Batch Number 1/8oz Package tag 1A40D03000001CD000012345 Tested 2026-01-05 Packaged 2026-01-08 Expires 2027-01-08"
        in text
    )
    assert '<a href="https://lab.test/certificate.pdf" rel="noreferrer">Certificate of analysis</a>' in answer.text
    assert "Terpenes Myrcene 0.4 %" in text
    assert "Sold 1,280 since the platform’s record was created" in text
    assert "1/8oz before 2025-11-20 1,204" in text


async def test_capped_stock_says_so(admin: httpx.AsyncClient, sql: Sql) -> None:
    planted = history_data.plant(sql)
    option = {"option": "1g", "price_rec": 10, "quantity": 10, "capped": True, "stock_status": "in_stock"}
    sql(
        "UPDATE catalog_products SET quantity = 10, quantity_capped = true, variants = %s WHERE id = %s",
        [json.dumps([option]), planted.product],
    )
    assert words(await admin.get(f"/admin/products/{planted.product}")).count("10 or more left") == 2


async def test_hostile_details_stay_text(admin: httpx.AsyncClient, sql: Sql) -> None:
    planted = history_data.plant(sql)
    many = [{"name": f"{EVIL} {number}", "unit": EVIL, "value": 0.1} for number in range(3000)]
    batch = {"batch_id": EVIL * 50, "package_tag": EVIL, "certificate_url": f"javascript:alert(1)//{EVIL}"}
    sql(
        "UPDATE catalog_products SET terpenes = %s, batch = %s WHERE id = %s",
        [json.dumps(many), json.dumps(batch), planted.product],
    )
    answer = await admin.get(f"/admin/products/{planted.product}")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert not re.search(r'href="\s*javascript', answer.text, re.IGNORECASE)
    assert "First 12 of 3,000." in words(answer)
    assert len(answer.text) < 200_000
