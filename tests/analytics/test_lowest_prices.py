"""The lowest prices of a product at two stores, of which every price is known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.db.pool import Pool
from tests import market
from tests.api.shop import Shop
from tests.matching_rows import add_brand, add_location, add_product, listing, match

NOW = datetime.now(UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


async def store(
    pool: Pool, name: str, states: list[tuple[float, float | None, dict[str, Any]]], *, state: str = "NM"
) -> int:
    """A store crawled daily up to now; its product was in these states, each from so many days ago to so many (None: it lasts)."""
    async with pool.connection() as conn:
        store_id = await market.add_store(conn, name)
        await conn.execute(
            "UPDATE dispensaries SET state = %s, crawl_interval_hours = 24, last_crawled_at = %s WHERE id = %s",
            [state, NOW, store_id],
        )
        for day in range(200, -1, -1):
            await conn.execute(
                "INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing,"
                " out_of_stock, price_changes, stock_changes) VALUES (%s, %s, 1, 0, 0, 1, 0, 0, 0, 0, 0)",
                [store_id, ago(day)],
            )
        *past, (start, _, last) = states
        cursor = await conn.execute(
            "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
            " changed_at, name_raw, name, category_canon, stock_status, is_in_stock, variants, extra)"
            " VALUES (%s, 'dutchie', 'k', '', %s, %s, %s, 'K', 'K', 'flower', 'in_stock', true, %s, '{}') RETURNING id",
            [
                store_id,
                ago(states[0][0]),
                ago(start),
                ago(start),
                json.dumps([{"option": "1g", "stock_status": "in_stock", **last}]),
            ],
        )
        row = await cursor.fetchone()
        assert row is not None
        for start, end, prices in past:
            assert end is not None
            await conn.execute("SELECT ensure_product_history_partition(%s)", [ago(end)])
            await conn.execute(
                "INSERT INTO product_history (product_id, seen_from, seen_to, ended_at, dispensary_id, present, quantity_capped,"
                " stock_status, prices, stock) VALUES (%s, %s, %s, %s, %s, true, false, 'in_stock', %s, %s)",
                [
                    row[0], ago(start), ago(end + 1), ago(end), store_id,
                    json.dumps([["1g", prices.get("price_rec"), prices.get("special_rec"), None, None]]),
                    json.dumps([["1g", prices.get("stock_status", "in_stock"), None, False]]),
                ],
            )  # fmt: skip
    return store_id


@pytest.fixture
async def kush(shop: Shop) -> int:
    """`one`: 8 until 120 days ago, 12 until 40, 9 out of stock until 30, then 11. `two`: 10 until 50 days ago, then 12 instead of 15,
    one day of which at one cent. `three` is in Canada."""
    one = await store(
        shop.pool,
        "one",
        [
            (150, 120, {"price_rec": 8}),
            (120, 40, {"price_rec": 12}),
            (40, 30, {"price_rec": 9, "stock_status": "oos"}),
            (30, None, {"price_rec": 11}),
        ],
    )
    two = await store(
        shop.pool,
        "two",
        [(80, 50, {"price_rec": 10}), (50, 49, {"price_rec": 0.01}), (49, None, {"price_rec": 15, "special_rec": 12})],
        state="CO",
    )
    three = await store(shop.pool, "three", [(10, None, {"price_rec": 7})], state="ON")
    async with shop.pool.connection() as conn:
        number = await add_product(conn, "Kush", await add_brand(conn, "Acme"))
        await match(conn, number, *[await listing(conn, at, "k") for at in (one, two, three)])
        await add_location(conn, "One", one)
    return number


async def test_now_in_90_days_and_ever(shop: Shop, kush: int) -> None:
    american, canadian = sorted(
        await shop.walk("/api/analytics/lowest-prices", canonical_product=kush), key=lambda row: -row["stores"]
    )

    def parts(one: dict[str, Any]) -> tuple[Any, ...]:
        return one["price"], one["store"], datetime.fromisoformat(one["from"])

    assert (american["size"], american["currency"], american["stores"], american["implausible"]) == ("1 g", "USD", 2, 1)
    assert parts(american["now"]) == (11, "one", ago(30))
    assert parts(american["lowest_90_days"]) == (10, "two", ago(80))
    assert parts(american["lowest_ever"]) == (8, "one", ago(150))
    assert datetime.fromisoformat(american["lowest_ever"]["until"]) == ago(120)
    assert datetime.fromisoformat(american["observed_from"]) == ago(150)
    assert (american["is_lowest_90_days"], american["is_lowest_ever"]) == (False, False)
    assert (canadian["currency"], canadian["now"]["price"], canadian["is_lowest_ever"]) == ("CAD", 7, True)


async def test_of_a_state(shop: Shop, kush: int) -> None:
    (row,) = await shop.walk("/api/analytics/lowest-prices", q="kush", state="CO")
    assert (row["now"]["price"], row["lowest_90_days"]["price"], row["lowest_ever"]["price"]) == (12, 10, 10)
    assert await shop.walk("/api/analytics/lowest-prices", state="CO", category="edible") == []


async def test_a_store_that_is_not_observed_says_nothing_of_now(shop: Shop, kush: int) -> None:
    await shop.execute("DELETE FROM store_crawls WHERE crawled_at > %s", [ago(35)])
    (row,) = await shop.walk("/api/analytics/lowest-prices", state="CO")
    assert (row["now"], row["is_lowest_ever"], row["lowest_90_days"]["price"]) == (None, None, 10)
