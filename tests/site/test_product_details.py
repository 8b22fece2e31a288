"""Batch, lab values, sold count and capped stock on a shopper's product page."""

from __future__ import annotations

import json
from typing import Any

from tests.api.shop import item
from tests.site.shop_pages import Front, Page

EVIL = '"><script>alert(1)</script>\' onmouseover="alert(1)'


async def _page(front: Front, **columns: Any) -> Page:
    """The page of an item whose product has these values."""
    store = await front.shop.store("leaf", city="Tucson", state="AZ")
    await front.crawl(store, 0, [item("a", "Blue Dream")])
    for name, value in columns.items():
        await front.shop.execute(
            f"UPDATE catalog_products SET {name} = %s", [json.dumps(value) if isinstance(value, list | dict) else value]
        )
    ((number,),) = await front.rows("SELECT id FROM storefront_items")
    return await front.page((await front.http.get(f"/p/{number}")).headers["location"])


async def test_a_product_shows_its_batch_lab_values_and_sales(front: Front) -> None:
    page = await _page(
        front,
        batch={
            "batch_id": "B-7",
            "package_tag": "1A40D0300001",
            "tested_on": "2026-01-05",
            "packaged_on": "2026-01-08",
            "expires_on": "2027-01-08",
            "certificate_url": "https://lab.test/b-7.pdf",
        },
        terpenes=[{"name": "Limonene", "value": 0.4, "unit": "%"}, {"name": "Myrcene", "value": 0.81, "unit": "%"}],
        cannabinoids=[{"name": "THCA", "value": 24.1, "unit": "PERCENTAGE"}],
        quantity=10,
        quantity_capped=True,
        quantity_sold=1280,
    )
    assert "Batch B-7 Package tag 1A40D0300001 Tested Jan 5, 2026 Packaged Jan 8, 2026 Expires Jan 8, 2027" in page.text
    assert "Cannabinoids THCA 24.1% Terpenes Myrcene 0.81% Limonene 0.4%" in page.text
    assert "Left at this store 10 or more" in page.text
    assert "Sold at this store 1,280" in page.text
    (link,) = page.all("a", href="https://lab.test/b-7.pdf")
    assert "noopener" in (link["rel"] or "")


async def test_a_product_without_details_has_no_such_section(front: Front) -> None:
    page = await _page(front)
    assert not [word for word in ("Lab results", "Batch", "Sold at this store") if word in page.text]


async def test_hostile_details_stay_text(front: Front) -> None:
    many = [{"name": f"{EVIL} {number}", "unit": EVIL, "value": 0.1} for number in range(3000)]
    odd = [
        {"name": "no value", "value": None, "unit": "%"},
        {"name": "Total", "value": 9, "unit": "%", "is_total": True},
    ]
    page = await _page(
        front, terpenes=[*odd, *many], batch={"batch_id": EVIL * 50, "certificate_url": f"JavaScript:alert(1)//{EVIL}"}
    )
    assert page.status == 200
    assert page.foreign_scripts == []
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert not (attributes.get("href") or "").lower().startswith("javascript:"), tag
    assert "and 2988 more in smaller amounts" in page.text
    assert "no value" not in page.text
    assert "Certificate" not in page.text
