"""A canonical product's number survives what happens to menus. Names are plainly equal or plainly different."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.matching import groups
from menuwatch.matching.rebuild import rebuild_index
from menuwatch.pipeline.store_merge import merge_stores
from tests import market
from tests.matching.conftest import Matched

BLUE, SOUR, GMO = "Blue Dream", "Sour Diesel", "Garlic Cookies"


async def test_the_same_product_at_two_stores_has_one_number(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE, two=SOUR)
    run = await matched.refresh("b", uno="BLUE  DREAM")
    numbers = await matched.numbers()
    assert numbers["a/one"] == numbers["b/uno"] != numbers["a/two"]
    assert (run.taken.stores, run.taken.listings, run.blocks.products) == (2, 3, 2)
    assert await matched.rows("SELECT listings, stores FROM canonical_products ORDER BY listings DESC") == [
        (2, 2),
        (1, 1),
    ]


async def test_an_item_without_brand_is_of_its_seller(matched: Matched) -> None:
    for chain, stores in (("north", "ab"), (None, "cd")):
        for store in stores:
            await matched.crawl(store, one=(BLUE, ""))
            await matched.rows("UPDATE dispensaries SET enterprise_id = %s WHERE slug = %s", chain, store)
    await matched.match()
    signatures = await matched.rows(
        "SELECT d.slug, m.signature_id FROM product_matches m JOIN dispensaries d ON d.id = m.dispensary_id ORDER BY 1"
    )
    (_, a), (_, b), (_, c), (_, d) = signatures
    assert a == b
    assert len({a, c, d}) == 3


async def test_a_menu_that_did_not_change_writes_nothing(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE, two=SOUR)
    before = await matched.rows("SELECT product_id, xmin::text FROM product_matches ORDER BY 1")
    run = await matched.refresh("a", one=BLUE, two=SOUR)  # at other prices
    assert (run.taken.stores, run.taken.listings, run.blocks.blocks) == (1, 0, 0)
    assert await matched.rows("SELECT product_id, xmin::text FROM product_matches ORDER BY 1") == before


async def test_nothing_is_done_without_a_new_menu(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE)
    assert not (await matched.match()).changed


async def test_a_number_moves_along_with_the_only_listing_of_a_renamed_product(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE, two=SOUR)
    before = await matched.numbers()
    await matched.refresh("a", one=GMO, two=SOUR)
    assert await matched.numbers() == before
    await matched.refresh("a", one=(GMO, "Zeta"), two=SOUR)  # in another block
    assert await matched.numbers() == before
    assert await matched.events() == []


async def test_a_renamed_listing_leaves_the_number_to_the_others(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=BLUE)
    before = await matched.numbers()
    await matched.refresh("a", one=(GMO, "Zeta"))
    after = await matched.numbers()
    assert after["b/one"] == before["b/one"]
    assert after["a/one"] not in before.values()
    assert await matched.events() == [("split", before["a/one"], after["a/one"], 1, "menu")]


async def test_a_renamed_listing_that_joins_another_product_redirects(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    before = await matched.numbers()
    await matched.refresh("b", one=BLUE)
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    assert await matched.events() == [("merged", before["b/one"], before["a/one"], 1, "menu")]
    redirect = await matched.rows("SELECT merged_into, listings FROM canonical_products WHERE id = %s", before["b/one"])
    assert redirect == [(before["a/one"], 0)]
    await matched.refresh("b", one=SOUR)
    assert await matched.numbers() == before
    assert (await matched.events())[1:] == [("split", before["a/one"], before["b/one"], 1, "menu")]
    assert await matched.rows("SELECT merged_into FROM canonical_products WHERE merged_into IS NOT NULL") == []


async def test_redirects_lead_to_the_product_itself(matched: Matched) -> None:
    for store, name in (("a", BLUE), ("d", BLUE), ("e", BLUE), ("b", SOUR), ("c", GMO)):
        await matched.refresh(store, one=name)
    before = await matched.numbers()
    await matched.refresh("c", one=SOUR)
    await matched.crawl("b", one=BLUE)
    await matched.refresh("c", one=BLUE)
    redirects = dict(await matched.rows("SELECT id, merged_into FROM canonical_products WHERE merged_into IS NOT NULL"))
    assert redirects == {before["b/one"]: before["a/one"], before["c/one"]: before["a/one"]}


async def test_a_number_survives_leaving_and_coming_back(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE, two=SOUR)
    before = await matched.numbers()
    for _ in range(3):
        await matched.refresh("a", two=SOUR)
    assert await matched.numbers() == before
    await matched.refresh("a", one=BLUE, two=SOUR)
    assert await matched.numbers() == before


async def test_a_rebuilt_index_has_the_same_numbers(matched: Matched) -> None:
    await _market(matched)
    before = await matched.numbers()
    signatures = {key for (key,) in await matched.rows("SELECT id FROM match_signatures")}
    result = await rebuild_index(matched.pool)
    assert result.changed == 0
    assert result.listings == len(before)
    assert await matched.numbers() == before
    assert not signatures & {key for (key,) in await matched.rows("SELECT id FROM match_signatures")}
    assert await matched.events() == []


async def test_an_index_that_was_lost_finds_its_numbers_again(matched: Matched) -> None:
    await _market(matched)
    before = await matched.numbers()
    await matched.rows("TRUNCATE product_matches, match_signatures, match_stores, match_dirty_blocks, match_reviews")
    await matched.match()
    assert await matched.numbers() == before


async def test_stores_in_any_order_give_the_same_numbers(matched: Matched) -> None:
    await _market(matched)
    before = await matched.numbers()
    for seed in range(3):
        await matched.rows(
            "TRUNCATE product_matches, match_signatures, match_stores, match_dirty_blocks, match_events, canonical_sizes"
        )
        await matched.rows("DELETE FROM canonical_products")
        await matched.rows("ALTER TABLE canonical_products ALTER id RESTART")
        order = list(matched.stores.values())
        random.Random(seed).shuffle(order)
        hours = "SELECT last_crawled_at FROM dispensaries WHERE id = ANY(%s) ORDER BY id"
        times = [row[0] for row in await matched.rows(hours, order)]
        for store, time in zip(order, times, strict=True):
            await matched.rows("UPDATE dispensaries SET last_crawled_at = %s WHERE id = %s", time, store)
        await matched.match()
        assert await matched.numbers() == before


async def test_a_second_platform_joins_and_changes_no_number(matched: Matched) -> None:
    await _market(matched)
    before = await matched.numbers()
    await matched.crawl("w", uno=BLUE.upper(), dos="Northern Lights")
    await matched.rows("UPDATE dispensaries SET platform = 'weedmaps' WHERE slug = 'w'")
    await matched.rows(
        "UPDATE catalog_products SET provider = 'weedmaps' WHERE dispensary_id = %s", matched.stores["w"]
    )
    await matched.match()
    after = await matched.numbers()
    assert {name: number for name, number in after.items() if name in before} == before
    assert after["w/uno"] == before["a/one"]
    assert after["w/dos"] not in before.values()


async def test_a_new_version_of_the_parser_changes_no_number(matched: Matched, monkeypatch: pytest.MonkeyPatch) -> None:
    await _market(matched)
    before = await matched.numbers()
    keys = set(await matched.rows("SELECT key FROM match_signatures"))
    _raise_version(monkeypatch)
    run = await matched.match()
    assert run.taken.listings == len(before)
    assert await matched.numbers() == before
    assert not keys & set(await matched.rows("SELECT key FROM match_signatures"))


async def test_what_a_new_version_merges_is_caused_by_the_rules(
    matched: Matched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    before = await matched.numbers()
    matched.group = _all_one
    _raise_version(monkeypatch)
    await matched.match()
    assert await matched.events() == [("merged", before["b/one"], before["a/one"], 1, "rules")]


async def test_a_store_that_is_removed_leaves_its_numbers_to_the_others(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE, two=SOUR)
    await matched.refresh("b", one=BLUE)
    before = await matched.numbers()
    await matched.rows("DELETE FROM dispensaries WHERE slug = 'a'")
    run = await matched.match()
    assert run.taken.removed == 2
    assert await matched.numbers() == {"b/one": before["a/one"]}
    counts = dict(await matched.rows("SELECT id, listings FROM canonical_products"))
    assert counts == {before["a/one"]: 1, before["a/two"]: 0}
    assert await matched.rows("SELECT count(*) FROM match_signatures") == [(1,)]
    assert await matched.rows("SELECT count(*) FROM match_stores") == [(1,)]


async def test_a_number_is_never_used_again(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE)
    before = await matched.numbers()
    await matched.rows("DELETE FROM dispensaries WHERE slug = 'a'")
    await matched.match()
    await matched.refresh("b", one=BLUE)
    assert (await matched.numbers())["b/one"] not in before.values()


async def test_two_matchers_at_work_do_it_once(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.crawl("b", one=BLUE)
    runs = await asyncio.gather(matched.match(), matched.match())
    assert sum(run.taken.stores for run in runs) == 2
    assert len(set((await matched.numbers()).values())) == 1


async def _market(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE, two=SOUR, three=("OG Kush", "Zeta"))
    await matched.crawl("b", one=BLUE, two=GMO, three=("OG Kush", "Zeta"))
    await matched.crawl("c", one=SOUR, two=(BLUE, "Zeta"), three=("Runtz", "Omega"))
    await matched.match()


def _all_one(members: Any, corrections: Any, context: Any) -> Any:
    grouping = groups.group(members, corrections, context)
    return grouping._replace(groups=(0,) * len(members))


def _raise_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("names", "engine", "taking"):
        monkeypatch.setattr(f"menuwatch.matching.{module}.RULES", 9999)


async def test_numbers_survive_a_merge_of_two_rows_of_one_store(matched: Matched, tmp_path: Path) -> None:
    archive = FileArchive(tmp_path / "storage")
    await matched.crawl("a", one=BLUE, two=SOUR)
    async with matched.pool.connection() as conn:
        into = await market.add_store(conn, "b")
    await matched.match()
    before = await matched.numbers()
    await merge_stores(matched.pool, archive, {}, matched.stores["a"], into)
    await matched.match()
    assert await matched.numbers() == {"b/one": before["a/one"], "b/two": before["a/two"]}
    assert await matched.rows("SELECT DISTINCT dispensary_id FROM product_matches") == [(into,)]
    assert await matched.rows("SELECT dispensary_id FROM match_stores") == [(into,)]
