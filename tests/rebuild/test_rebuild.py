"""A store made anew from its archive: the same as it was, or better by what changed meanwhile, and never half of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.clock import SystemClock
from menuwatch.core.errors import Refused
from menuwatch.matching.engine import match_all
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.rebuild import RowChanges, rebuild
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.model import Normalized
from tests.api.shop import START, Shop, at, item, menu

NONE = RowChanges(added=0, removed=0, changed=0)


def _parts(shop: Shop, **more: Any) -> HandlerContext:
    def no_session(**_: Any) -> Any:
        raise AssertionError("a rebuilding never touches the network")

    made = HandlerContext(
        pool=shop.pool, clock=SystemClock(), archive=shop.archive, platforms=shop.platforms, open_session=no_session,
        suspect_share=0.4, blocked_wait=timedelta(seconds=1),
    )  # fmt: skip
    return replace(made, **more)


async def _story(shop: Shop, slug: str = "one") -> int:
    """Changes of price and stock, a product that goes for three crawls and comes back, one that is gone for good; payloads that were
    never applied between them."""
    store = await shop.store(slug)
    a, b, c = item("a"), item("b", "Berry"), item("c", "Cherry", options=[("1g", 9, 5)])
    menus = [
        [a, b, c],
        [a, item("b", "Berry", options=[("1/8oz", "38.25", 3)])],
        [a, item("b", "Berry", options=[("1/8oz", "38.25", 0)])],
        [item("a", "Blue Dream renamed")],
        [a, c, item("new", "New")],
        [a, b],
        [a],
        [a],
        [a],
    ]
    for hour, items in enumerate(menus):
        await shop.crawl(store, hour, items)
        await shop.archived(store, hour + 0.2, b"<html>", status="rejected", reason="html: a page")
        await shop.archived(store, hour + 0.4, menu([a]), count=1, status="quarantined", reason="shrunk")
    return store


async def _table(shop: Shop, query: str) -> list[tuple[Any, ...]]:
    async with shop.pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()


async def _all(shop: Shop) -> list[Any]:
    return [
        await _table(shop, query)
        for query in (
            "SELECT * FROM catalog_products ORDER BY id",
            "SELECT * FROM product_states ORDER BY product_id, seen_from",
            "SELECT * FROM product_details ORDER BY product_id, seen_from",
            "SELECT * FROM product_detail_history ORDER BY product_id, ended_at",
            "SELECT * FROM store_crawls ORDER BY dispensary_id, crawled_at",
            "SELECT * FROM raw_crawl_payloads ORDER BY id",
            "SELECT id, first_crawled_at, last_crawled_at, last_payload_id, product_count FROM dispensaries ORDER BY id",
            "SELECT product_id, url, status FROM image_references ORDER BY product_id",
            "SELECT * FROM alert_events ORDER BY id",
            "SELECT * FROM alert_matches ORDER BY rule_id, product_id",
        )
    ]


async def test_rebuilt_equals(shop: Shop) -> None:
    store = await _story(shop)
    await _story(shop, "other")
    waiting = await shop.archived(store, 20, menu([item("a"), item("later")]), count=2)
    await shop.execute("UPDATE catalog_products SET local_image_path = 'images/x.webp' WHERE provider_product_id = 'a'")
    await shop.execute(
        "INSERT INTO image_references (product_id, url)"
        " SELECT id, 'https://pictures.test/b' FROM catalog_products WHERE name = 'Berry'"
    )
    await shop.execute(
        "INSERT INTO alert_rules (name, condition, reach, dispensary_id, amount, armed_at, created_at, updated_at)"
        " VALUES ('cheap', 'price_below', 'store', %s, 39, %s, %s, %s)",
        [store, at(-1), at(-1), at(-1)],
    )
    before = await _all(shop)
    for dry_run in (True, False, False):
        found = await rebuild(_parts(shop), store, dry_run=dry_run)
        assert (found.payloads, found.products, found.states, found.crawls) == (9, NONE, NONE, NONE)
        assert found.same
        assert (found.examples, found.refused) == ((), ())
        assert await _all(shop) == before, "to the last value, and what waits still waits"
    rows = await _table(shop, f"SELECT applied_at FROM raw_crawl_payloads WHERE id = {waiting}")
    assert rows == [(None,)]


class _Shouting(Dutchie):
    """A normalizer that was changed: names in capitals, and no product `c`."""

    normalizer_version = Dutchie.normalizer_version + 1

    def normalize(self, items: Any) -> Normalized:
        made = super().normalize(items)
        products = tuple(
            type(p)(**{f: getattr(p, f) for f in p.__struct_fields__} | {"name": p.name.upper()}) for p in made.products
        )
        return Normalized(products=products, warnings=made.warnings)


async def test_products_keep_their_numbers(shop: Shop) -> None:
    """Also where every row is written anew, and where rows were lost and are made again."""
    store = await _story(shop)
    await _story(shop, "other")
    await match_all(shop.pool)
    joined = "catalog_products p LEFT JOIN product_matches m ON m.product_id = p.id"
    numbers = f"SELECT p.id, m.canonical_product_id FROM {joined} ORDER BY 1"
    before = await _table(shop, numbers)
    assert len(before) == 8
    assert len({number for _, number in before} - {None}) == 4
    found = await rebuild(_parts(shop, platforms={"dutchie": _Shouting()}), store)
    assert found.products.changed == 4
    assert (await match_all(shop.pool)).taken.listings == 4
    assert await _table(shop, numbers) == before
    await shop.execute("DELETE FROM catalog_products WHERE name = 'BERRY' AND dispensary_id = %s", [store])
    assert (await rebuild(_parts(shop), store)).products.added == 1
    await match_all(shop.pool)
    after = await _table(shop, numbers)
    assert sorted(number for _, number in after) == sorted(number for _, number in before)
    assert await _table(shop, "SELECT * FROM match_events") == []


async def test_what_a_new_normalizer_would_change_is_shown_first(shop: Shop) -> None:
    store = await _story(shop)
    parts = _parts(shop, platforms={"dutchie": _Shouting()})
    before = await _all(shop)
    dry = await rebuild(parts, store, dry_run=True)
    assert dry.products == RowChanges(added=0, removed=0, changed=4)
    assert (dry.states, dry.crawls) == (NONE, NONE), "names are no part of a state"
    assert (dry.examples[0]["name"], dry.examples[0]["columns"]) == ("BERRY", ["name"])
    assert await _all(shop) == before

    assert (await rebuild(parts, store)).products == dry.products
    assert {row[0] for row in await _table(shop, "SELECT name FROM catalog_products")} == {
        "BERRY",
        "BLUE DREAM",
        "CHERRY",
        "NEW",
    }
    assert (await rebuild(parts, store)).same
    ids = [row[0] for row in before[0]]
    assert [row[0] for row in await _table(shop, "SELECT id FROM catalog_products ORDER BY id")] == ids


async def test_a_payload_released_too_late_is_taken_in(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item("a"), item("b", "Berry")])
    late = await shop.archived(store, 1, menu([item("a", options=[("1/8oz", 30, 5)]), item("b", "Berry")]), count=2)
    await shop.crawl(store, 2, [item("a"), item("b", "Berry")])
    dry = await rebuild(_parts(shop), store, dry_run=True)
    assert (dry.crawls, dry.states) == (
        RowChanges(added=1, removed=0, changed=1),
        RowChanges(added=2, removed=0, changed=1),
    )
    await rebuild(_parts(shop), store)
    rows = await _table(
        shop, "SELECT price_rec FROM store_product_snapshots WHERE provider_product_id = 'a' ORDER BY crawled_at"
    )
    assert [int(row[0]) for row in rows] == [40, 30, 40]
    assert (await _table(shop, f"SELECT applied_at IS NOT NULL FROM raw_crawl_payloads WHERE id = {late}")) == [(True,)]
    assert (await rebuild(_parts(shop), store)).same


async def test_where_the_archive_lacks_something_nothing_is_changed(shop: Shop) -> None:
    store = await _story(shop)
    await shop.execute("DELETE FROM raw_crawl_payloads WHERE fetched_at = %s", [at(0)])
    before = await _all(shop)
    with pytest.raises(Refused, match=r"the archive lacks the payloads of 1 crawls .*; use --since with a later time"):
        await rebuild(_parts(shop), store)
    assert await _all(shop) == before
    assert (await rebuild(_parts(shop), store, since=at(1))).same, "as retention of payloads leaves it"
    with pytest.raises(Refused, match="store 99 does not exist"):
        await rebuild(_parts(shop), 99)


_CRAWLS = "SELECT id, path, fetched_at FROM raw_crawl_payloads WHERE applied_at IS NOT NULL ORDER BY fetched_at"


async def test_damaged_files_are_left_out_and_listed_and_what_they_held_comes_back_with_them(shop: Shop) -> None:
    store = await _story(shop)
    before, crawls = await _all(shop), await _table(shop, _CRAWLS)
    whole = {number: shop.storage.joinpath(path).read_bytes() for number, path, _ in crawls}
    gone, cut, other = crawls[1], crawls[4], crawls[-1]
    shop.storage.joinpath(gone[1]).unlink()
    shop.storage.joinpath(cut[1]).write_bytes(whole[cut[0]][:50])
    shop.storage.joinpath(other[1]).write_bytes(whole[gone[0]])
    lost = [gone, cut, other]

    dry = await rebuild(_parts(shop), store, dry_run=True)
    assert await _all(shop) == before
    found = await rebuild(_parts(shop), store)
    assert [[(one.payload_id, one.path, one.fetched_at) for one in made.damaged] for made in (dry, found)] == [lost] * 2
    assert (found.payloads, found.crawls.removed, found.same) == (len(crawls) - 3, 3, False)
    kept = [one for one in crawls if one not in lost]
    shown = "SELECT DISTINCT crawled_at FROM store_product_snapshots ORDER BY 1"
    assert await _table(shop, shown) == [(when,) for _, _, when in kept], (
        "nothing is shown for a crawl that was left out"
    )
    assert await _table(shop, _CRAWLS) == kept, "nothing says that they are in the catalogue"
    last = await _table(
        shop, "SELECT last_crawled_at, last_payload_id FROM dispensaries WHERE last_crawled_at IS NOT NULL"
    )
    assert last == [(kept[-1][2], kept[-1][0])]

    for number, path, _ in lost:
        shop.storage.joinpath(path).write_bytes(whole[number])
    # The newest one was left out, so the store is crawled again first.
    await shop.crawl(store, 10, [item("a")])
    assert (await rebuild(_parts(shop), store)).damaged == ()
    assert await _table(shop, shown) == [*((when,) for _, _, when in crawls), (at(10),)]
    assert (await rebuild(_parts(shop), store)).same


async def test_where_most_files_are_damaged_nothing_is_changed(shop: Shop) -> None:
    store = await _story(shop)
    before = await _all(shop)
    for _, path, _ in (await _table(shop, _CRAWLS))[:5]:
        shop.storage.joinpath(path).write_bytes(b"")
    with pytest.raises(Refused, match="nothing is changed"):
        await rebuild(_parts(shop), store)
    assert await _all(shop) == before


async def test_a_store_with_packed_months_is_refused(shop: Shop) -> None:
    store = await _story(shop)
    async with shop.pool.connection() as conn:
        await packing.pack(
            conn,
            ParquetPartitions(shop.archive.storage),
            START.replace(month=4, day=1, hour=0),
            now=START.replace(month=11),
        )
    with pytest.raises(Refused, match="are packed, and packed months cannot be rebuilt"):
        await rebuild(_parts(shop), store)
