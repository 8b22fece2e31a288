"""Menus that are applied, and the rules that look at what they changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from menuwatch.alerts import evaluate_menu as evaluate
from menuwatch.archive import store as payloads
from menuwatch.db.pool import Pool
from menuwatch.pipeline.product_refresh import apply_payload
from tests.alerts.rule_factory import add_rule, fired, rows
from tests.market import Reader, add_payload, add_store, item

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=10)


async def crawl(
    conn: AsyncConnection[Any], store: int, hour: float, *items: bytes, part: bool = False, at: datetime = NOW
) -> dict[str, Any]:
    """One menu through the pipeline."""
    moment = at + timedelta(hours=hour)
    async with conn.transaction():
        await conn.execute("SELECT ensure_product_history_partition(%s)", [moment])
        number = await add_payload(conn, store, moment, len(items))
        if part:
            await conn.execute("UPDATE raw_crawl_payloads SET is_partial = true WHERE id = %s", [number])
        payload = await payloads.get(conn, number)
        assert payload is not None
        return await apply_payload(conn, payload, Reader(), [msgspec.Raw(one) for one in items])  # type: ignore[arg-type]


async def test_it_fires_once_for_each_crossing(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        await add_rule(conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25))
        prices = ["30", "24", "24", "23", "25.20", "24", "26", "24"]
        for hour, price in enumerate(prices):
            await crawl(conn, store, hour, item("a", price=price), item("b", price="99"))
        events = await rows(conn, "SELECT * FROM alert_events ORDER BY id")
    assert [event["fired_at"] for event in events] == [NOW + timedelta(hours=1), NOW + timedelta(hours=7)]
    facts = events[1]["facts"]
    assert (facts["before"], facts["after"]) == (
        {"price": 26, "stock_status": "in_stock"},
        {"price": 24, "stock_status": "in_stock"},
    )
    assert (facts["store"]["name"], facts["product"]["name"]) == ("store-1", "Thing")
    assert events[1]["due_at"] == events[1]["fired_at"]


async def test_each_scope_finds_its_own(pool: Pool) -> None:
    async with pool.connection() as conn:
        one, other = await add_store(conn), await add_store(conn, "store-2")
        await conn.execute("UPDATE dispensaries SET state = 'AZ' WHERE id = %s", [one])
        menu = [
            item("a", price="30", name="Blue Dream", brand="Acme", category="Flower"),
            item("b", price="30", name="Gelato 100%", brand="Beta", category="Edible"),
        ]
        for store in (one, other):
            await crawl(conn, store, 0, *menu)
        (product,) = await rows(
            conn,
            "SELECT id FROM catalog_products WHERE dispensary_id = %s AND provider_product_id = 'a'",
            [one],
        )
        await conn.execute("UPDATE catalog_products SET category_canon = 'edibles' WHERE provider_product_id = 'b'")
        scopes: dict[str, tuple[str, dict[str, Any]]] = {
            "product": ("product", {"product_id": product["id"]}),
            "brand": ("brand", {"brand": "ACME"}),
            "brand in AZ": ("brand", {"brand": "acme", "state": "AZ"}),
            "brand here": ("brand", {"brand": "acme", "dispensary_id": other}),
            "category": ("category", {"category": "flower"}),
            "canon": ("category", {"category": "Edibles"}),
            "search": ("search", {"search": "100%"}),
            "search and brand": ("search", {"search": "o", "brand": "nobody"}),
            "store": ("store", {"dispensary_id": other}),
            "platform": ("search", {"search": "dream", "platform": "weedmaps"}),
        }
        for name, (reach, scope) in scopes.items():
            await add_rule(conn, name, reach, "price_below", amount=Decimal(25), **scope)
        await add_rule(conn, "off", "store", "price_below", amount=Decimal(25), dispensary_id=one, enabled=False)
        cheap = [item("a", price="20", name="Blue Dream", brand="Acme", category="Flower"), menu[1]]
        await crawl(conn, one, 1, *cheap)
        assert sorted(await fired(conn)) == [
            ("brand", "a"), ("brand in AZ", "a"), ("category", "a"), ("product", "a"),
        ]  # fmt: skip
        await conn.execute("DELETE FROM alert_events")
        await crawl(conn, other, 1, menu[0], item("b", price="20", name="Gelato 100%", brand="Beta", category="Edible"))
        assert sorted(await fired(conn)) == [("search", "b"), ("store", "b")], (
            "a new reading of the category writes its canonical one anew"
        )


async def test_three_misses_are_out_of_stock_and_the_next_sight_is_back(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        for condition in ("out_of_stock", "back_in_stock", "new_product"):
            await add_rule(conn, condition, "store", condition, dispensary_id=store)
        a, b = item("a"), item("b")
        await crawl(conn, store, 0, a, b)
        assert await fired(conn) == [], "nobody had looked before: nothing is new"
        for hour in (1, 2):
            await crawl(conn, store, hour, a)
        assert await fired(conn) == []
        await crawl(conn, store, 3, a)
        assert await fired(conn) == [("out_of_stock", "b")]
        for hour in (4, 5):
            await crawl(conn, store, hour, a)
        await crawl(conn, store, 6, a, b)
        await crawl(conn, store, 7, a)
        await crawl(conn, store, 8, a, b, item("c"))
        assert await fired(conn) == [("out_of_stock", "b"), ("back_in_stock", "b"), ("new_product", "c")]


async def test_a_part_of_a_menu_makes_nothing_new_or_gone(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        for condition in ("out_of_stock", "new_product"):
            await add_rule(conn, condition, "store", condition, dispensary_id=store)
        whole = [item(name) for name in "abcdef"]
        for hour in range(5):
            await crawl(conn, store, hour, *whole[: hour % 2 + 1], part=True)
        await crawl(conn, store, 5, *whole)
        assert await fired(conn) == []
        await crawl(conn, store, 6, *whole, item("g"))
        assert await fired(conn) == [("new_product", "g")]


async def test_what_is_quarantined_or_long_past_tells_nobody(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        for condition in ("out_of_stock", "new_product"):
            await add_rule(conn, condition, "store", condition, dispensary_id=store)
        await add_rule(conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25))
        old = NOW - timedelta(days=700)
        await crawl(conn, store, 0, item("a", price="30"), at=old)
        await crawl(conn, store, 1, item("a", price="20"), item("b"), at=old)
        assert await fired(conn) == []
        await crawl(conn, store, 0, item("a", price="21"), item("b"))
        assert await fired(conn) == [], "it was below all the time"
        empty = await crawl(conn, store, 1)
        assert "quarantined" in empty
        assert await fired(conn) == []
        broken = await crawl(conn, store, 2, b'{"id": "a"}', b'{"id": "b"}')
        assert "schema" in broken["quarantined"]
        assert await fired(conn) == []


async def test_debounce_counts_crawls_that_saw_it(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        await add_rule(
            conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25), debounce_crawls=3
        )
        await add_rule(conn, "out", "store", "out_of_stock", dispensary_id=store, debounce_crawls=2)
        low, other = item("a", price="20"), item("b", price="30")
        await crawl(conn, store, 0, item("a", price="30"), other)
        await crawl(conn, store, 1, low, other)
        await crawl(conn, store, 2, other)  # not seen: no observation
        await crawl(conn, store, 3, low, other)
        assert await fired(conn) == []
        await crawl(conn, store, 4, low, other)
        assert await fired(conn) == [("cheap", "a")]
        for hour in (5, 6, 7):
            await crawl(conn, store, hour, low)
        assert await fired(conn) == [("cheap", "a")], "out, but only once"
        await crawl(conn, store, 8, low)
        assert await fired(conn) == [("cheap", "a"), ("out", "b")]


async def test_existing_products_fire_where_that_was_asked(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, item("a", price="20"), item("b", price="30"), item("c", price="10", qty=0))
        rule = await add_rule(
            conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25), on_existing="fire"
        )
        assert await evaluate.evaluate_existing(conn, rule, NOW) == 1
        assert await fired(conn) == [("cheap", "a")]
        out = await add_rule(conn, "out", "store", "out_of_stock", dispensary_id=store, on_existing="fire")
        assert await evaluate.evaluate_existing(conn, out, NOW) == 1
        await crawl(conn, store, 1, item("a", price="19"), item("b", price="30"), item("c", price="10", qty=0))
        assert await fired(conn) == [("cheap", "a"), ("out", "c")]


async def test_where_no_rule_looks_nothing_is_kept(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        await add_rule(conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(5))
        await add_rule(conn, "fall", "store", "price_drops_by", dispensary_id=store, percent=Decimal(50))
        for hour in range(4):
            await crawl(conn, store, hour, *(item(str(n), price=str(20 + hour)) for n in range(30)))
        assert await rows(conn, "SELECT * FROM alert_matches") == [], "what a product is tells where it stands"
        await crawl(conn, store, 4, *(item(str(n), price="20") for n in range(30)))
        noted = await rows(conn, "SELECT DISTINCT phase, reference FROM alert_matches")
        assert noted == [{"phase": "armed", "reference": Decimal(23)}]
        await crawl(conn, store, 5, *(item(str(n), price="11.50") for n in range(30)))
        assert len(await fired(conn)) == 30


async def test_a_rule_that_is_removed_meanwhile_costs_no_menu(pool: Pool) -> None:
    async with pool.connection() as conn, pool.connection() as other:
        store = await add_store(conn)
        rule = await add_rule(conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25))
        await crawl(conn, store, 0, item("a", price="30"))
        async with other.transaction(force_rollback=True), conn.transaction():
            await crawl(conn, store, 1, item("a", price="20"))
            await other.execute("SET LOCAL lock_timeout = '50ms'")
            with pytest.raises(LockNotAvailable):
                await other.execute("DELETE FROM alert_rules WHERE id = %s", [rule.id])
        assert await fired(conn) == [("cheap", "a")]
