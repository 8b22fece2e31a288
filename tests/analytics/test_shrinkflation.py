"""Sizes that became smaller, and those that only seem so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item
from tests.matching_rows import add_brand, add_product, listing, match

DAY, LAST = 24, 12
CHANGE = 6
"""The day on which sizes change."""
Menu = dict[str, tuple[str, float, int, int]]
"""Listings: the option, its price, and the first and last day on the menu. The product is named before the dash."""

ONE: Menu = {
    "Kush-a": ("3.5g", 35, 0, CHANGE - 1),
    "Kush-b": ("3g", 34, CHANGE, LAST),
    "Both-a": ("3.5g", 35, 0, LAST),
    "Both-b": ("3g", 34, CHANGE, LAST),
    # 29 / 3 is less than 35 / 3.5.
    "Cheaper-a": ("3.5g", 35, 0, CHANGE - 1),
    "Cheaper-b": ("3g", 29, CHANGE, LAST),
    # Half an ounce and a quarter are two packages.
    "Pack-a": ("14g", 100, 0, CHANGE - 1),
    "Pack-b": ("7g", 60, CHANGE, LAST),
    "Larger-a": ("3g", 30, 0, CHANGE - 1),
    "Larger-b": ("3.5g", 40, CHANGE, LAST),
    "Elsewhere-a": ("3.5g", 35, 0, CHANGE - 1),
    "Elsewhere-b": ("3g", 34, CHANGE, LAST),
    "Across-a": ("1g", 10, 0, CHANGE - 1),
    "Same-a": ("1g", 20, 0, CHANGE - 1),
    "Same-a ": ("0.9g", 20, CHANGE, LAST),
}
TWO: Menu = {"Elsewhere-c": ("3.5g", 36, 0, LAST), "Across-b": ("0.8g", 10, CHANGE + 1, LAST)}


@pytest.fixture
async def ids(shop: Shop) -> dict[str, int]:
    found: dict[str, int] = {}
    await shop.execute(
        "SELECT ensure_product_history_partition(%s::timestamptz + make_interval(months => m)) FROM generate_series(0, 2) m",
        [at(0)],
    )
    for name, menu in (("one", ONE), ("two", TWO)):
        found[name] = await shop.store(name, state="NM")
        await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
        for day in range(LAST + 1):
            there = [
                (key.strip(), option, price)
                for key, (option, price, first, last) in menu.items()
                if first <= day <= last
            ]
            await shop.crawl(
                found[name],
                DAY * day,
                [item(key, key.split("-")[0], options=[(option, price, 5)]) for key, option, price in there],
            )
    async with shop.pool.connection() as conn:
        brand = await add_brand(conn, "Acme")
        keys = [(found[name], key.strip()) for name, menu in (("one", ONE), ("two", TWO)) for key in menu]
        for product in dict.fromkeys(key.split("-")[0] for _, key in keys):
            found[product] = await add_product(conn, product, brand)
            own = sorted({key for key in keys if key[1].split("-")[0] == product})
            await match(conn, found[product], *[await listing(conn, *key) for key in own])
    return found


async def test_only_real_replacements_are_listed(shop: Shop, ids: dict[str, int]) -> None:
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * LAST + 1))
    rows = {row["name"]: row for row in await shop.walk("/api/analytics/shrinkflation")}
    assert set(rows) == {"Kush", "Same", "Across"}
    kush: dict[str, Any] = rows["Kush"]
    assert (kush["larger"], kush["smaller"], kush["larger_price"], kush["smaller_price"]) == ("3.5 g", "3 g", 35, 34)
    # 3 / 3.5 - 1 and (34 / 3) / (35 / 3.5) - 1
    assert (kush["size_change"], kush["unit_price_change"]) == (-0.1429, 0.1333)
    assert (kush["dispensary_id"], kush["store"], kush["stores"], kush["brand"]) == (ids["one"], "One", 1, "Acme")
    assert (kush["larger_until"], kush["smaller_from"]) == ("2026-03-06T12:00:00Z", "2026-03-07T12:00:00Z")
    same = rows["Same"]
    assert same["larger_product_id"] == same["smaller_product_id"]
    assert (same["larger"], same["smaller"], same["unit_price_change"]) == ("1 g", "0.9 g", 0.1111)
    assert (same["larger_until"], same["smaller_from"]) == ("2026-03-06T12:00:00Z", "2026-03-07T12:00:00Z")
    assert {row["currency"] for row in rows.values()} == {"USD"}
    across = rows["Across"]
    assert (across["dispensary_id"], across["store"], across["stores"]) == (None, None, 0)
    assert (across["larger"], across["smaller"], across["unit_price_change"]) == ("1 g", "0.8 g", 0.25)
    assert (across["larger_until"], across["smaller_from"]) == ("2026-03-06T12:00:00Z", "2026-03-08T12:00:00Z")
    (only,) = await shop.walk(
        "/api/analytics/shrinkflation", canonical_product=ids["Kush"], brand="acme", category="flower"
    )
    assert only == kush


async def test_evidence_over_stores_is_of_one_currency(shop: Shop, ids: dict[str, int]) -> None:
    await shop.execute("UPDATE dispensaries SET state = 'ON' WHERE id = %s", [ids["two"]])
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * LAST + 1))
    # 1 g went at a store with US dollars, and 0.8 g came at one with Canadian dollars.
    rows = {row["name"]: row["currency"] for row in await shop.walk("/api/analytics/shrinkflation")}
    assert rows == {"Kush": "USD", "Same": "USD"}
    await shop.execute("UPDATE dispensaries SET state = 'QC'")
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * LAST + 1))
    rows = {row["name"]: row["currency"] for row in await shop.walk("/api/analytics/shrinkflation")}
    assert rows == {"Kush": "CAD", "Same": "CAD", "Across": "CAD"}


async def test_a_size_that_returns_is_listed_no_more(shop: Shop, ids: dict[str, int]) -> None:
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * LAST + 1))
    await shop.crawl(
        ids["one"],
        DAY * (LAST + 1),
        [
            item("Kush-c", "Kush", options=[("3.5g", 36, 5)]),
            item("Kush-b", "Kush", options=[("3g", 34, 5)]),
            item("Same-a", "Same", options=[("1g", 20, 5), ("0.9g", 20, 5)]),
        ],
    )
    async with shop.pool.connection() as conn:
        await match(conn, ids["Kush"], await listing(conn, ids["one"], "Kush-c"))
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * (LAST + 1) + 1))
    rows = await shop.walk("/api/analytics/shrinkflation")
    assert {row["name"] for row in rows} == {"Across"}


async def test_sizes_that_were_sold_together_are_no_replacement(shop: Shop) -> None:
    store = await shop.store("one", state="NM")
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
    await shop.execute(
        "SELECT ensure_product_history_partition(%s::timestamptz + make_interval(months => m)) FROM generate_series(0, 2) m",
        [at(0)],
    )
    for day in range(24):
        menu = [item("b", "Kush", options=[("3g", 34, 5)])]
        if day < 20:
            menu.append(item("a", "Kush", options=[("3.5g", 35, 5)]))
        await shop.crawl(store, DAY * day, menu)
    async with shop.pool.connection() as conn:
        kush = await add_product(conn, "Kush", await add_brand(conn, "Acme"))
        await match(conn, kush, *[await listing(conn, store, key) for key in ("a", "b")])
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * 24))
    assert await shop.walk("/api/analytics/shrinkflation") == []
