"""What the database refuses costs one product, and not its menu: the plain platform bounds nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import AsyncConnection

from menuwatch.catalog import bad_row_isolation as net
from menuwatch.catalog.apply import Applied, MenuToApply, SuspectMenu
from menuwatch.db.pool import Pool
from menuwatch.stores import store as stores
from tests.market import START, Reader, add_payload, add_store, item

LONG = "".join(f"{n:x}" for n in range(9000))
"""An id of some 33,000 characters that does not compress into an index row."""

REFUSED = [
    (item("bad", price="1e200000"), "bad"),
    (item("bad", price="1e-20000"), "bad"),
    (item("bad", price="Infinity"), "bad"),
    (item("bad", qty=3_000_000_000), "bad"),
    (item("bad", thc="1e200000"), "bad"),
    (item(LONG), f"{LONG[:40]}…"),
]


@pytest.fixture
async def months(pool: Pool) -> Pool:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    return pool


async def crawl(conn: AsyncConnection[Any], store_id: int, number: int, items: Iterable[bytes]) -> Applied:
    at = START + timedelta(hours=number)
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
            items=[msgspec.Raw(one) for one in items],
        )
        applied = await net.apply_menu(conn, menu, Reader())
        await stores.crawled(conn, store_id, crawled_at=at, payload_id=payload_id, products=applied.products)
    return applied


async def shown(conn: AsyncConnection[Any]) -> dict[str, tuple[str, int]]:
    """Price and misses of every product, of whatever store."""
    cursor = await conn.execute(
        "SELECT provider_product_id, price_rec::text, consecutive_misses FROM catalog_products ORDER BY 1"
    )
    return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}


async def states(conn: AsyncConnection[Any]) -> int:
    row = await (await conn.execute("SELECT count(*) FROM product_states")).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(("bad", "name"), REFUSED)
@pytest.mark.parametrize("place", [0, 7, 19])
async def test_a_new_product_that_is_refused_costs_itself(months: Pool, bad: bytes, name: str, place: int) -> None:
    menu = [item(f"{i:02}") for i in range(19)]
    menu.insert(place, bad)
    async with months.connection() as conn:
        store = await add_store(conn)
        applied = await crawl(conn, store, 0, menu)
        assert (applied.products, applied.new) == (19, 19)
        ((product_id, message, fatal),) = [(w.product_id, w.message, w.fatal) for w in applied.warnings]
        assert (product_id, fatal) == (name, True)
        assert message.startswith("the database refuses it: ")
        assert await shown(conn) == {f"{i:02}": ("10", 0) for i in range(19)}
        assert await states(conn) == 19, "what was tried out left nothing"


async def test_a_known_product_that_is_refused_stays_as_it_was_and_is_not_missing(months: Pool) -> None:
    menu = [item(f"{i:02}") for i in range(20)]
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, menu)
        later = [item("00", price="1e200000"), *menu[1:18], item("18", price="11")]
        applied = await crawl(conn, store, 1, later)
        assert [(w.product_id, w.fatal) for w in applied.warnings] == [("00", True)]
        assert (applied.unchanged, applied.price_changes, applied.missing) == (17, 1, 1)
        found = await shown(conn)
    assert found.pop("00") == ("10", 0)
    assert found.pop("18") == ("11", 0)
    assert found.pop("19") == ("10", 1), "this one is absent"
    assert found == {f"{i:02}": ("10", 0) for i in range(1, 18)}


async def test_several_are_found_and_the_item_before_stands_in(months: Pool) -> None:
    bad = [item("07", qty=2**40), item("13", price="1e200000", name="late")]
    menu = [item(f"{i:02}") for i in range(20) if i != 7] + [item("07", qty=2**41), *bad]
    async with months.connection() as conn:
        store = await add_store(conn)
        applied = await crawl(conn, store, 0, menu)
        assert {w.product_id for w in applied.warnings if w.fatal} == {"07", "13"}
        assert await shown(conn) == {f"{i:02}": ("10", 0) for i in range(20) if i != 7}


async def test_very_many_are_no_fault_of_products(months: Pool) -> None:
    menu = [item(f"{i:03}") for i in range(200)]
    worse = [item(f"bad{i}", qty=2**31 + i) for i in range(net.MOST_REFUSED + 1)]
    async with months.connection() as conn:
        store = await add_store(conn)
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            await crawl(conn, store, 0, [*menu, *worse])
        assert await shown(conn) == {}
        applied = await crawl(conn, store, 1, [*menu, *worse[:-1]])
        assert (applied.new, len(applied.warnings)) == (200, net.MOST_REFUSED)


async def test_refused_ones_count_as_items_that_cannot_be_read(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        with pytest.raises(SuspectMenu, match="1 or more of 4 items cannot be read, first: : the database refuses it"):
            await crawl(conn, store, 0, [item("a"), item("b"), item("c"), item("d", qty=2**31)])
        assert await shown(conn) == {}


async def test_an_error_that_no_product_is_to_blame_for_is_raised(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await conn.execute("ALTER TABLE store_crawls ADD CONSTRAINT never CHECK (products < 2)")
        with pytest.raises(psycopg.errors.CheckViolation):
            await crawl(conn, store, 0, [item("a"), item("b")])
        assert (await crawl(conn, store, 1, [item("a")])).products == 1
