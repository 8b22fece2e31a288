"""The storefront index follows the catalogue."""

from __future__ import annotations

import asyncio
import math

import pytest

from menuwatch.matching.engine import match_all
from menuwatch.pipeline.store_merge import merge_stores
from menuwatch.storefront import indexer
from menuwatch.storefront.indexer import Memory, index_changed_stores
from menuwatch.stores.editing import set_shown
from tests.api.shop import item
from tests.site.shop_pages import Front

OFFERS = "SELECT count(*) FROM storefront_offers"


async def test_a_menu_is_indexed_once(front: Front) -> None:
    store = await front.shop.store()
    await front.shop.crawl(store, 0, [item("1"), item("2", "Other")])
    assert await front.index() == 1
    assert await front.index() == 0
    assert await front.rows(OFFERS) == [(2,)]


async def test_only_what_changed_is_written(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item("1"), item("2", "Other")])
    before = dict(await front.rows("SELECT product_id, xmin::text FROM storefront_offers"))
    await front.crawl(store, 4, [item("1", options=[("1/8oz", 35, 5)]), item("2", "Other")])
    after = dict(await front.rows("SELECT product_id, xmin::text FROM storefront_offers"))
    assert sum(before[product] != after[product] for product in before) == 1
    assert await front.rows("SELECT price, previous_price FROM storefront_offers ORDER BY price") == [
        (3500, 4000),
        (4000, None),
    ]


async def test_a_price_that_rises_again_is_no_drop(front: Front) -> None:
    store = await front.shop.store()
    for hours, price in enumerate((40, 35, 38)):
        await front.crawl(store, hours * 4, [item("1", options=[("1/8oz", price, 5)])])
    assert await front.rows("SELECT price, previous_price FROM storefront_offers") == [(3800, None)]


async def test_stock_that_changes_leaves_a_drop_as_it_was(front: Front) -> None:
    store = await front.shop.store()
    for hours, (price, quantity) in enumerate(((40, 5), (35, 5), (35, 3))):
        await front.crawl(store, hours * 4, [item("1", options=[("1/8oz", price, quantity)])])
    assert await front.rows("SELECT price, previous_price FROM storefront_offers") == [(3500, 4000)]


async def test_what_is_gone_from_a_menu_is_gone_and_keeps_its_address(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item("1"), item("2", "Other"), item("3", "Third")])
    number = await front.item("Other")
    await front.crawl(store, 4, [item("1"), item("3", "Third")])
    assert await front.rows("SELECT stores FROM storefront_items WHERE id = %s", number) == [(0,)]
    page = await front.page(f"/p/{number}-other")
    assert "Not available right now" in page.text
    await front.crawl(store, 8, [item("1"), item("2", "Other"), item("3", "Third")])
    assert await front.rows("SELECT stores FROM storefront_items WHERE id = %s", number) == [(1,)]


async def test_a_store_that_is_not_watched_any_more_is_not_shown(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item("1")])
    await front.shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [store])
    await front.index()
    assert await front.rows(OFFERS) == [(0,)]
    await front.page(f"/s/{store}", status=404)


async def test_what_is_shown_is_decided_apart_from_what_is_crawled(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item("1")])
    for crawled, shown, offers in (
        (True, False, 0),
        (True, None, 1),
        (False, None, 0),
        (False, True, 1),
        (True, True, 1),
    ):
        await front.shop.execute("UPDATE dispensaries SET crawl_enabled = %s WHERE id = %s", [crawled, store])
        async with front.shop.pool.connection() as conn:
            await set_shown(conn, store, shown)
        await front.index()
        assert await front.rows(OFFERS) == [(offers,)], (crawled, shown)
        await front.page(f"/s/{store}", status=301 if offers else 404)


async def test_a_store_that_is_removed_takes_its_offers_with_it(front: Front) -> None:
    kept, gone = await front.shop.store("kept"), await front.shop.store("gone")
    for store in (kept, gone):
        await front.crawl(store, 0, [item("1")])
    await front.shop.execute("DELETE FROM dispensaries WHERE id = %s", [gone])
    await front.index()
    assert await front.rows("SELECT store_id FROM storefront_offers") == [(kept,)]
    assert await front.rows("SELECT stores FROM storefront_items") == [(1,)]


async def test_the_same_product_at_two_stores_is_one_item(front: Front) -> None:
    for slug, price in (("a", 40), ("b", 35)):
        store = await front.shop.store(slug)
        await front.crawl(store, 0, [item(f"of-{slug}", "Blue Dream", options=[("1/8oz", price, 5)])])
    assert await front.rows("SELECT stores, in_stock, price FROM storefront_items") == [(2, 2, 3500)]


async def test_two_at_work_do_it_once(front: Front) -> None:
    for slug in "abc":
        await front.shop.crawl(await front.shop.store(slug), 0, [item(f"of-{slug}")])
    await match_all(front.shop.pool)
    done = await asyncio.gather(*(index_changed_stores(front.shop.pool) for _ in range(2)))
    assert sum(one.stores for one in done) >= 3
    assert await front.rows("SELECT stores FROM storefront_items") == [(3,)]


@pytest.mark.parametrize(("pause", "sums"), [(1e9, [1, 1, 1, 1, 4]), (0, [1, 2, 3, 4, 4])])
async def test_while_stores_wait_nothing_is_summed_up_during_a_pause(
    front: Front, monkeypatch: pytest.MonkeyPatch, pause: float, sums: list[int]
) -> None:
    monkeypatch.setattr(indexer, "_PAUSE", pause)
    for slug in "abcd":
        await front.shop.crawl(await front.shop.store(slug), 0, [item(f"of-{slug}")])
    await match_all(front.shop.pool)
    seen, memory, more = [], Memory(), True
    while more:
        more = (await index_changed_stores(front.shop.pool, limit=1, memory=memory)).more
        seen += await front.rows("SELECT count(*), (SELECT max(stores) FROM storefront_items) FROM storefront_offers")
    assert seen == list(zip([1, 2, 3, 4, 4], sums, strict=True))


async def test_a_product_is_listed_before_its_new_size_is_summed_up(front: Front) -> None:
    memory = Memory(pause_until=math.inf)
    a, b = await front.shop.store("a"), await front.shop.store("b")
    await front.crawl(a, 0, [item("1", "Blue Dream", options=[("1/8oz", 40, 5)])])
    await front.shop.crawl(b, 1, [item("1", "Blue Dream", options=[("1g", 10, 5)])])
    await match_all(front.shop.pool)
    assert (await index_changed_stores(front.shop.pool, limit=1, memory=memory)).more
    assert await front.rows("SELECT size FROM storefront_item_sizes") == [("3.5 g",)]
    assert (await front.page("/search?q=blue+dream")).names == ["Blue Dream"]


async def test_out_of_stock_counts_for_neither_price_nor_stock(front: Front) -> None:
    for slug, price, quantity in (("a", 40, 5), ("b", 20, 0)):
        store = await front.shop.store(slug)
        await front.crawl(store, 0, [item(f"of-{slug}", options=[("1/8oz", price, quantity)])])
    assert await front.rows("SELECT stores, in_stock, price FROM storefront_items") == [(2, 1, 4000)]


async def test_items_unused_for_half_a_year_are_deleted_unless_watched(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item("1"), item("2", "Awaited"), item("3", "Kept")])
    await front.crawl(store, 4, [item("3", "Kept")])
    awaited = await front.item("Awaited")
    await front.post(f"/p/{awaited}/watch", condition="back_in_stock", by="feed", reach="any")
    await front.shop.execute("UPDATE storefront_items SET changed_at = now() - interval '181 days'")
    await front.shop.execute("UPDATE storefront_totals SET made_at = now() - interval '1 hour'")
    await front.index()
    assert {name for (name,) in await front.rows("SELECT name FROM storefront_items")} == {"Awaited", "Kept"}


async def test_offers_of_a_merged_store_are_those_of_the_one_that_stays(front: Front) -> None:
    shop = front.shop
    one, two = await shop.store("one"), await shop.store("two")
    await front.crawl(one, 0, [item("1"), item("2", "Other")])
    number = await front.item("Other")
    await merge_stores(shop.pool, shop.archive, shop.platforms, one, two)
    await front.index()
    assert await front.rows("SELECT DISTINCT store_id, count(*) FROM storefront_offers GROUP BY 1") == [(two, 2)]
    assert await front.rows("SELECT stores FROM storefront_items WHERE id = %s", number) == [(1,)]
    assert "Other" in (await front.page(f"/s/{two}-two")).text
    await front.page(f"/s/{one}", status=404)
