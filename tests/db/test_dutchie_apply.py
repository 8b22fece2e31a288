"""Odd Dutchie items against real PostgreSQL, without the net: whatever normalizes is taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import AsyncConnection

from menuwatch.catalog.apply import Applied, MenuToApply, apply_menu
from menuwatch.db.pool import Pool, connect
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.stores import store as stores
from tests.market import START, add_payload, add_store

READER = Dutchie()


def good(number: int) -> str:
    return f'{{"id":"p{number}","Name":"Good","Options":["1g"],"recPrices":[{number + 1}],"Status":"Active"}}'


async def crawl(conn: AsyncConnection[Any], store_id: int, number: int, items: Iterable[str]) -> Applied:
    at = START + timedelta(minutes=number)
    async with conn.transaction():
        store = await stores.lock(conn, store_id)
        assert store is not None
        payload_id = await add_payload(conn, store_id, at)
        menu = MenuToApply(
            dispensary_id=store_id,
            provider="dutchie",
            payload_id=payload_id,
            crawled_at=at,
            previous=store.last_crawled_at,
            items=[msgspec.Raw(text.encode()) for text in items],
        )
        applied = await apply_menu(conn, menu, READER)
        await stores.crawled(conn, store_id, crawled_at=at, payload_id=payload_id, products=applied.products)
    return applied


@pytest.fixture
async def months(pool: Pool) -> Pool:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    return pool


async def test_the_same_options_in_another_order_are_no_change(months: Pool) -> None:
    def item(options: list[str], prices: list[int], **more: Any) -> str:
        stock = [{"option": option, "inventory": 5} for option in options]
        whole = {"id": "v", "Name": "X", "Options": options, "recPrices": prices, "manualInventory": stock}
        return json.dumps({**whole, "rawOptions": options, **more})

    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item(["2g", "1g"], [18, 10])])
        applied = await crawl(conn, store, 1, [item(["1g", "2g"], [10, 18])])
        assert (applied.changed, applied.unchanged, applied.price_changes, applied.stock_changes) == (0, 1, 0, 0)
        applied = await crawl(conn, store, 2, [item(["2g", "1g"], [10, 18])])
        assert (applied.changed, applied.price_changes) == (1, 1), "the prices have changed places"
        cursor = await conn.execute("SELECT variants FROM catalog_products")
        ((variants,),) = await cursor.fetchall()
    assert [(v["option"], v["price_rec"]) for v in variants] == [("1g", 18), ("2g", 10)]


async def test_what_a_brand_says_and_a_kiosk_has_is_no_change_of_the_product(months: Pool) -> None:
    def item(kiosk: Any, about: str | None) -> str:
        children = [{"option": "1g", "quantity": 9, "quantityAvailable": 6, "kioskQuantityAvailable": kiosk}]
        brand = {"id": "b", "name": "Acme", "description": about}
        whole = {"id": "k", "Name": "X", "Options": ["1g"], "recPrices": [10], "brand": brand}
        return json.dumps({**whole, "POSMetaData": {"children": children}})

    async with months.connection() as conn:

        async def extra() -> tuple[Any, Any]:
            cursor = await conn.execute("SELECT extra, updated_at FROM store_products")
            ((extra, changed_at),) = await cursor.fetchall()
            return extra, changed_at

        store = await add_store(conn)
        await crawl(conn, store, 0, [item(9, " We grow.\n")])
        assert await extra() == ({"brand_id": "b", "brand_description": "We grow.", "kiosk_quantity": {"1g": 9}}, START)
        applied = await crawl(conn, store, 1, [item(8, "We grow more.")])
        assert (applied.changed, applied.stock_changes, applied.unchanged) == (0, 0, 1)
        assert await extra() == (
            {"brand_id": "b", "brand_description": "We grow more.", "kiosk_quantity": {"1g": 8}},
            START,
        )
        # As a version stored it that knew neither: read again once, and still no change.
        await conn.execute(
            "UPDATE catalog_products SET extra = '{\"brand_id\": \"b\"}', brand_description_hash = NULL, content_hash = ''"
        )
        applied = await crawl(conn, store, 2, [item(8, "We grow more.")])
        assert (applied.changed, applied.unchanged) == (0, 1)
        assert await extra() == (
            {"brand_id": "b", "brand_description": "We grow more.", "kiosk_quantity": {"1g": 8}},
            START,
        )
        # A quantity that is none does not cost the product its stock.
        applied = await crawl(conn, store, 3, [item("many", None)])
        assert (applied.changed, applied.stock_changes) == (0, 0)
        assert await extra() == ({"brand_id": "b"}, START)
        ((quantity,),) = await (await conn.execute("SELECT quantity FROM catalog_products")).fetchall()
    assert quantity == 6


async def test_what_a_brand_says_is_stored_once(months: Pool) -> None:
    def item(name: str, about: str) -> str:
        brand = {"id": "b", "name": "Acme", "description": about}
        return json.dumps({"id": name, "Name": name, "Options": ["1g"], "recPrices": [10], "brand": brand})

    async with months.connection() as conn:
        first, second = await add_store(conn), await add_store(conn, "store-2")
        await crawl(conn, first, 0, [item("a", "We grow."), item("b", "We grow."), item("c", "Wir bauen an. ☘")])
        await crawl(conn, second, 0, [item("d", "We grow.")])
        await crawl(conn, second, 1, [item("d", "Wir bauen an. ☘"), item("e", "")])
        cursor = await conn.execute("SELECT description FROM brand_descriptions ORDER BY 1")
        assert [row[0] for row in await cursor.fetchall()] == ["We grow.", "Wir bauen an. ☘"]
        cursor = await conn.execute("SELECT name, extra ->> 'brand_description' FROM store_products ORDER BY name")
        assert await cursor.fetchall() == [
            ("a", "We grow."),
            ("b", "We grow."),
            ("c", "Wir bauen an. ☘"),
            ("d", "Wir bauen an. ☘"),
            ("e", None),
        ]
        cursor = await conn.execute("SELECT count(*) FROM catalog_products WHERE extra ? 'brand_description'")
        assert await cursor.fetchone() == (0,)


async def test_an_id_with_nul_is_one_product_however_often_it_changes(months: Pool) -> None:
    odd = '{"id":"ab\\u0000c","Name":"X","Options":["1g"],"recPrices":[%s]}'
    numeric = '{"id":"n","_id":7,"Name":"X","Options":["1g"],"recPrices":[%s]}'
    async with months.connection() as conn:
        store = await add_store(conn)
        for number in range(3):
            menu = [good(i) for i in range(9)] + [odd % (10 + number), numeric % (10 + number)]
            applied = await crawl(conn, store, number, menu)
            assert (applied.products, applied.missing) == (11, 0)
        cursor = await conn.execute("SELECT provider_product_id, price_rec::int FROM catalog_products WHERE name = 'X'")
        assert sorted(await cursor.fetchall()) == [("abc", 12), ("n", 12)]


NUMBER = st.one_of(
    st.sampled_from(
        ["1e400", "1e-30", "1e200000", "1e-20000", '"NaN"', '"Infinity"', "null", "0", "24.5", "1e8", "0.00000000"]
    ),
    st.sampled_from(["1e-6", "999999999.999999", "3000000000", "10000000", "-10000000", "-5", "9" * 400]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
TEXT = st.sampled_from(
    ["mg\\", "\\.", "\\N", "a\tb", "nul\0", "cut \ud83d", "x" * 5000, "", "é\n", "PERCENTAGE", "N/A"]
).map(json.dumps)
ID = st.one_of(
    st.sampled_from(["p0", "a\0b", "\\.", "\t", "x" * 200, "x" * 30_000]).map(json.dumps), st.just("7"), st.just("null")
)
FORMS = [
    '"id":{i}',
    '"_id":{i}',
    '"Name":{t}',
    '"brandName":{t},"type":{t},"cName":{t}',
    '"Options":[{t}]',
    '"recPrices":[{n}]',
    '"manualInventory":[{{"option":"1g","inventory":{n}}}]',
    '"measurements":{{"netWeight":{{"unit":"MILLIGRAMS","values":[{n}]}}}},"Options":["N/A"]',
    '"THCContent":{{"unit":{t},"range":[{n},{n}]}}',
    '"CBDContent":{{"unit":"MILLIGRAMS_PER_GRAM","range":[{n}]}}',
    '"cannabinoidsV2":[{{"value":{n},"unit":{t},"cannabinoid":{{"name":{t}}}}}]',
    '"terpenes":[{{"value":{n},"unit":{t},"libraryTerpene":{{"name":{t}}}}}]',
    '"specialData":{{"saleSpecials":[{{"specialName":{t},"discount":{n},"endStamp":{n}}}]}}',
    '"weight":{n}',
    '"effects":{{{t}:{n}}}',
    '"createdAt":{n},"updatedAt":{t}',
    '"pastCNames":[{t}],"images":[{{"url":{t}}}]',
]
ITEM = st.lists(
    st.builds(lambda form, n, t, i: form.format(n=n, t=t, i=i), st.sampled_from(FORMS), NUMBER, TEXT, ID), max_size=4
).map(lambda parts: "{" + ",".join(['"id":"odd","Name":"Odd","Options":["1g"],"recPrices":[1]', *parts]) + "}")


def test_whatever_normalizes_is_taken(database_url: str) -> None:
    serial = iter(range(1_000_000))

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(ITEM, min_size=1, max_size=5), st.lists(ITEM, min_size=1, max_size=5))
    def check(first: list[str], second: list[str]) -> None:
        asyncio.run(_apply(database_url, f"store-{next(serial)}", [first, second]))

    check()


async def _apply(url: str, name: str, menus: list[list[str]]) -> None:
    async with await connect(url) as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
        store = await add_store(conn, name)
        for number, odd in enumerate(menus):
            menu = [good(i) for i in range(30)] + odd
            applied = await crawl(conn, store, number, menu)
            assert applied.products >= 29, "the good ones (an odd one may take the place of the first)"
        cursor = await conn.execute(
            "SELECT count(*) FROM catalog_products WHERE dispensary_id = %s AND name = 'Good'", [store]
        )
        row = await cursor.fetchone()
        assert row is not None
        assert row[0] >= 29
