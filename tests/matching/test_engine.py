"""What the matcher takes in, and what becomes of bad input, crashes, corrections and brands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from menuwatch.core.errors import Conflict
from menuwatch.db import sql
from menuwatch.matching import groups
from menuwatch.matching.brand_edits import find_brand, merge_brands, rename_brand
from menuwatch.matching.corrections import CorrectionFilter, correct, list_corrections, withdraw
from menuwatch.matching.engine import Memory, match_all, match_changed_stores
from menuwatch.matching.listings import Ids, platform_ids
from menuwatch.matching.model import Doubt, Grouping, Member
from menuwatch.matching.rebuild import rebuild_index
from menuwatch.matching.review import skip_review
from tests.matching.conftest import Matched

BLUE, SOUR, GMO = "Blue Dream", "Sour Diesel", "Garlic Cookies"


async def test_a_person_joins_two_products_and_parts_them_again(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    before = await matched.numbers()
    await matched.correct(BLUE, SOUR, same=True)
    await matched.match()
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    await matched.withdraw_corrections()
    await matched.match()
    assert await matched.numbers() == before
    kinds = [(kind, cause) for kind, *_, cause in await matched.events()]
    assert kinds == [("merged", "correction"), ("split", "correction")]


async def test_a_correction_joins_products_of_two_blocks(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=(SOUR, "Zeta"))
    before = await matched.numbers()
    assert await matched.rows("SELECT count(DISTINCT block) FROM match_signatures") == [(2,)]
    await matched.correct(BLUE, (SOUR, "Zeta"), same=True)
    await matched.match()
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    await matched.refresh("c", one=(SOUR, "Zeta"))
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    await matched.withdraw_corrections()
    await matched.match()
    after = await matched.numbers()
    assert after["b/one"] == after["c/one"] != after["a/one"]
    assert set(before.values()) == set(after.values())


async def test_a_person_keeps_two_apart_that_look_equal(matched: Matched) -> None:
    await matched.crawl("a", one="Zkittlez")
    await matched.refresh("b", one="Zkittles")
    before = await matched.numbers()
    assert before["a/one"] == before["b/one"]
    await matched.correct("Zkittlez", "Zkittles", same=False)
    await matched.match()
    parted = await matched.numbers()
    assert parted["a/one"] == before["a/one"] != parted["b/one"]
    await matched.refresh("c", one="Zkittles")  # what was said holds for everything that is written so
    assert (await matched.numbers())["c/one"] == parted["b/one"]
    await matched.withdraw_corrections()
    await matched.match()
    assert set((await matched.numbers()).values()) == {parted["b/one"]}  # two listings have it, and one has the other
    kinds = [(kind, cause) for kind, *_, cause in await matched.events()]
    assert kinds == [("split", "correction"), ("merged", "correction")]


async def test_of_two_corrections_of_one_pair_the_newer_one_holds(matched: Matched) -> None:
    """Two that were of two pairs, and that an alias of a brand makes one pair."""
    await matched.crawl("a", one=BLUE, two=SOUR)
    await matched.refresh("b", one=(BLUE, "Zeta"), two=(SOUR, "Zeta"))
    ids = {name: await matched.product_id(name) for name in ("a/one", "a/two", "b/one", "b/two")}
    async with matched.pool.connection() as conn:
        await correct(conn, ids["a/one"], ids["a/two"], False)
        await correct(conn, ids["b/one"], ids["b/two"], True)
        acme, zeta = [(await find_brand(conn, name)).id for name in ("acme", "zeta")]
        async with conn.transaction():
            await merge_brands(conn, zeta, acme)
    await matched.match()
    async with matched.pool.connection() as conn:
        newer, older = await list_corrections(conn, CorrectionFilter())
        assert (str(newer.state), newer.same) == ("applied", True)
        assert (str(older.state), older.same, older.withdrawn_by) == ("superseded", False, None)
        with pytest.raises(Conflict, match=f"correction {older.id} was superseded by a newer one"):
            await withdraw(conn, older.id)
    assert len(set((await matched.numbers()).values())) == 1


async def test_a_correction_that_comes_while_its_block_is_grouped_is_not_lost(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    a, b = [await matched.product_id(name) for name in ("a/one", "b/one")]
    await matched.crawl("c", one=BLUE)
    await matched.rows("INSERT INTO match_dirty_blocks SELECT DISTINCT block, 'menu' FROM match_signatures")
    async with matched.pool.connection() as conn:
        async with conn.transaction():
            await correct(conn, a, b, True)
            matching = asyncio.create_task(matched.match())
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            async with asyncio.timeout(30):
                while not matching.done() and not await matched.rows(waiting):
                    await asyncio.sleep(0)
        await matching
    await matched.match()
    numbers = await matched.numbers()
    assert numbers["a/one"] == numbers["b/one"]


async def test_keys_of_corrections_follow_the_parser(matched: Matched, monkeypatch: pytest.MonkeyPatch) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    before = await matched.numbers()
    await matched.correct(BLUE, SOUR, same=True)
    await matched.match()
    for module in ("names", "engine", "taking"):
        monkeypatch.setattr(f"menuwatch.matching.{module}.RULES", 9999)
    await matched.match()
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    assert len(await matched.events()) == 1


async def test_bad_listings_are_kept_apart(matched: Matched) -> None:
    long = "Very " * 400
    await matched.crawl("a", empty=("3.5g", ""), emoji=("🍇🔥", "N/A"), long=(long, "Acme"), one=BLUE)
    run = await matched.refresh("b", empty=("3.5g", ""), emoji=("🍇🔥", "N/A"), long=(long, "Acme"), one=BLUE)
    assert run.failed == 0
    numbers = await matched.numbers()
    assert numbers["a/empty"] != numbers["b/empty"]
    assert numbers["a/emoji"] != numbers["b/emoji"]
    assert numbers["a/long"] == numbers["b/long"]
    assert numbers["a/one"] == numbers["b/one"]
    assert None not in numbers.values()
    assert await matched.rows("SELECT count(*) FROM brands WHERE name ILIKE '%n/a%'") == [(0,)]


async def test_one_item_listed_thirty_times_is_one_product(matched: Matched) -> None:
    await matched.refresh("a", **{f"i{n}": BLUE for n in range(30)})
    numbers = await matched.numbers()
    assert len(numbers) == 30
    assert len(set(numbers.values())) == 1
    assert await matched.rows("SELECT listings, stores FROM canonical_products") == [(30, 1)]


async def test_a_crash_leaves_nothing_half_done(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE, two=SOUR)
    await matched.crawl("b", one=BLUE)

    def killed(members: Sequence[Member], corrections: Any, among: Any) -> Grouping:
        number = "SELECT hashtext('product matching')::bigint & 4294967295"
        with psycopg.connect(matched.pool.conninfo, autocommit=True) as conn:
            lock = conn.execute(number).fetchone()
            assert lock is not None
            query = (
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s::bigint::oid"
            )
            assert conn.execute(query, lock).fetchall()
        return groups.group(members, corrections, among)

    with pytest.raises(psycopg.OperationalError):
        await match_all(matched.pool, group=killed)
    assert await matched.rows("SELECT count(*), count(canonical_product_id) FROM product_matches") == [(3, 0)]
    assert await matched.rows("SELECT count(*) FROM canonical_products") == [(0,)]
    await matched.match()
    numbers = await matched.numbers()
    assert numbers["a/one"] == numbers["b/one"] != numbers["a/two"]
    assert not (await matched.match()).changed


async def test_a_refresh_does_not_wait_for_the_matcher(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE)
    await matched.crawl("a", one=SOUR)
    grouping, free = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(members: Sequence[Member], corrections: Any, among: Any) -> Grouping:
        loop.call_soon_threadsafe(grouping.set)
        asyncio.run_coroutine_threadsafe(free.wait(), loop).result(30)
        return groups.group(members, corrections, among)

    matching = asyncio.create_task(match_all(matched.pool, group=slow))
    await grouping.wait()
    async with asyncio.timeout(10):
        await matched.crawl("a", one=GMO)
    free.set()
    await matching
    await matched.match()
    assert await matched.rows("SELECT name FROM canonical_products WHERE merged_into IS NULL") == [(GMO,)]


async def test_pairs_for_review_are_few_and_follow_the_blocks(matched: Matched) -> None:
    def doubtful(members: Sequence[Member], corrections: Any, among: Any) -> Grouping:
        pairs = [(a, b) for a in range(len(members)) for b in range(a + 1, len(members))]
        doubts = tuple(Doubt(a, b, 0.5, False, ()) for a, b in pairs)
        components = (0,) * len(members)
        return groups.group(members, corrections, among)._replace(doubts=doubts, components=components)

    matched.group = doubtful
    await matched.refresh("a", **{f"i{n}": f"Strain{n} Haze{n}" for n in range(30)})
    assert await matched.rows("SELECT count(*), min(impact) FROM match_reviews") == [(50, 1)]
    await matched.rows("UPDATE match_reviews SET skipped_at = now()")
    await matched.refresh("b", i0="Strain0 Haze0")
    assert await matched.rows("SELECT count(*) FROM match_reviews WHERE skipped_at IS NOT NULL") != [(0,)]
    matched.group = groups.group
    await matched.refresh("a", one=BLUE)
    await matched.rows(
        "INSERT INTO match_dirty_blocks (block) SELECT DISTINCT block FROM match_signatures ON CONFLICT DO NOTHING"
    )
    await matched.match()
    assert await matched.rows("SELECT count(*) FROM match_reviews WHERE confidence = 0.5") == [(0,)]


async def test_a_skipped_pair_stays_skipped(matched: Matched) -> None:
    sure = 0.5

    def doubtful(members: Sequence[Member], corrections: Any, among: Any) -> Grouping:
        doubts = (Doubt(0, 1, sure, False, ()),)
        return groups.group(members, corrections, among)._replace(doubts=doubts)

    matched.group = doubtful
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=SOUR)
    pair = "SELECT confidence, impact, skipped_at FROM match_reviews"
    assert await matched.rows(pair) == [(0.5, 1, None)]
    async with matched.pool.connection() as conn:
        await skip_review(conn, await matched.product_id("a/one"), await matched.product_id("b/one"))
    ((_, _, skipped),) = await matched.rows(pair)
    assert skipped is not None
    await matched.crawl("c", one=BLUE)
    await matched.refresh("d", one=SOUR)
    assert await matched.rows(pair) == [(0.5, 2, skipped)]
    sure = 0.4
    await matched.group_again()
    assert await matched.rows(pair) == [(0.4, 2, skipped)]
    await rebuild_index(matched.pool, group=doubtful)
    assert await matched.rows(pair) == [(0.4, 2, skipped)]


async def test_a_brand_has_one_number_and_its_most_used_spelling(matched: Matched) -> None:
    await matched.refresh("a", one=(BLUE, "ACME"))
    await matched.crawl("b", one=(BLUE, "Acme"), two=(SOUR, "Acme"))
    await matched.match()
    assert await matched.rows("SELECT slug, name FROM brands") == [("acme", "Acme")]
    assert await matched.rows("SELECT count(DISTINCT canonical_product_id) FROM product_matches") == [(2,)]
    assert await matched.rows(
        "SELECT DISTINCT b.slug FROM canonical_products c JOIN brands b ON b.id = c.brand_id"
    ) == [("acme",)]


async def test_a_menu_that_comes_during_a_run_counts_for_the_spelling_of_a_brand(matched: Matched) -> None:
    memory = Memory()
    await matched.crawl("a", one=(BLUE, "ACME"), two=(SOUR, "ACME"))
    await matched.crawl("b", one=(BLUE, "Acme"))
    run = await match_changed_stores(matched.pool, limit=1, memory=memory)
    assert run.more
    assert await matched.rows("SELECT name FROM brands") == [("ACME",)]
    await matched.crawl("c", one=(BLUE, "Acme"), two=(SOUR, "Acme"))
    while (await match_changed_stores(matched.pool, limit=1, memory=memory)).more:
        pass
    assert await matched.rows("SELECT name FROM brands") == [("Acme",)]


async def test_a_brand_of_a_large_catalog_is_called_as_it_was_counted_last(matched: Matched) -> None:
    await matched.crawl("a", one=(BLUE, "Acme"), two=(SOUR, "Acme"), three=(GMO, "Acme"))
    await matched.crawl("b", one=(BLUE, "ACME"), two=(SOUR, "ACME"))
    await matched.rows("ANALYZE catalog_products")
    await matched.rows("SELECT refresh_catalog_totals(0)")
    await matched.refresh("c", one=(BLUE, "ACME"), two=(SOUR, "ACME"))
    assert await matched.rows("SELECT name FROM brands") == [("Acme",)]
    await matched.refresh("d", **{f"item{n}": (GMO, "aCme") for n in range(4)})  # of which the last count has none
    assert await matched.rows("SELECT name FROM brands") == [("aCme",)]
    await matched.refresh("e", **{f"item{n}": (GMO, "Acme") for n in range(2)})
    await matched.rows("SELECT refresh_catalog_totals(0)")
    await matched.refresh("e", **{f"item{n}": (SOUR, "Acme") for n in range(2)})
    assert await matched.rows("SELECT name FROM brands") == [("Acme",)]


async def test_a_name_that_a_person_gave_meanwhile_stays(matched: Matched) -> None:
    await matched.refresh("a", one=(BLUE, "Acme"))
    async with matched.pool.connection() as conn:
        async with conn.transaction():
            await rename_brand(conn, (await find_brand(conn, "acme")).id, "Omega Gardens")
        slug = (await matched.rows("SELECT slug FROM brands"))[0][0]
        await conn.execute(sql.load("menuwatch.matching", "brands.sql").rename, {"slugs": [slug], "names": ["ACME"]})
    assert await matched.rows("SELECT name FROM brands") == [("Omega Gardens",)]


async def test_a_store_that_fails_costs_no_other_store_its_listings(matched: Matched) -> None:
    for store in "abcde":
        await matched.crawl(store, one=BLUE)
    await matched.rows(
        f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON match_stores
              FOR EACH ROW WHEN (NEW.dispensary_id = {matched.stores["c"]}) EXECUTE FUNCTION refuse()"""
    )
    run = await matched.match()
    assert (run.failed, run.taken.store_ids) == (1, {matched.stores[store] for store in "abde"})
    assert {name for name, number in (await matched.numbers()).items() if number is None} == {"c/one"}


async def test_an_alias_of_a_person_joins_two_brands(matched: Matched) -> None:
    from menuwatch.matching.brands import rematch

    await matched.crawl("a", one=(BLUE, "Acme"))
    await matched.refresh("b", one=(BLUE, "Zeta"))
    before = await matched.numbers()
    assert before["a/one"] != before["b/one"]
    async with matched.pool.connection() as conn, conn.transaction():
        await conn.execute(
            "UPDATE brand_aliases SET origin = 'person', brand_id = (SELECT id FROM brands WHERE slug = 'acme') WHERE alias = 'zeta'"
        )
        await rematch(conn, ["zeta"])
    await matched.match()
    assert set((await matched.numbers()).values()) == {before["a/one"]}
    assert [event[-1] for event in await matched.events()] == ["correction"]


async def test_a_brand_that_is_renamed_stays_one_brand(matched: Matched) -> None:
    await matched.crawl("a", one=(BLUE, "Acme"))
    await matched.refresh("b", one=(BLUE, "Zeta"))
    async with matched.pool.connection() as conn, conn.transaction():
        acme, zeta = [(await find_brand(conn, name)).id for name in ("acme", "zeta")]
        await merge_brands(conn, zeta, acme)
        await rename_brand(conn, acme, "Omega Gardens")
    await matched.match()
    assert len(set((await matched.numbers()).values())) == 1
    await matched.refresh("c", one=(BLUE, "Zeta"), two=(SOUR, "Omega Gardens"))
    numbers = await matched.numbers()
    assert numbers["c/one"] == numbers["a/one"]
    brands = await matched.rows(
        "SELECT DISTINCT b.name FROM canonical_products c JOIN brands b ON b.id = c.brand_id WHERE c.listings > 0"
    )
    assert brands == [("Omega Gardens",)]


@pytest.mark.parametrize(
    "name",
    [
        "Zeta Blue Dream",
        "Blue Dream | Zeta",
        "Blue Dream [Zéta]",
        "Blue Dream by Zeta",
        "Blue Dream Zetapods",
        "Zéta Blue Dream",
        "Zetas Blue Dream",
    ],
)
async def test_a_brand_that_becomes_known_is_found_in_names(matched: Matched, name: str) -> None:
    """The same as if the brand had been known before."""
    await matched.refresh("a", one=(name, ""))
    await matched.refresh("b", one=(BLUE, "Zeta"))
    await matched.refresh("c", one=(name, ""))
    signed = await matched.rows(
        "SELECT DISTINCT signature_id FROM product_matches WHERE dispensary_id <> %s", matched.stores["b"]
    )
    assert len(signed) == 1
    assert await matched.rows("SELECT DISTINCT parsed -> 'brand' ->> 0 FROM match_signatures") == [("zeta",)]


async def test_a_store_that_is_taken_in_twice_counts_once(matched: Matched) -> None:
    """The second store's brand is found in the first one's name, whose listing is matched again."""
    await matched.crawl("a", one=("Zeta Blue Dream", ""))
    await matched.crawl("b", one=(BLUE, "Zeta"))
    run = await matched.match()
    assert (run.taken.stores, run.taken.listings, run.more) == (2, 3, False)


@pytest.mark.parametrize(
    ("spellings", "core"),
    [
        (("Zeta Botanicals", "Zeta Botanical", "Zeta"), "zeta"),
        (("Gila River Organics", "Gila River"), "gila-river"),
        (("Zeta Sodas", "The Zeta Soda"), "zeta"),
        (("Doctors Choice", "Doctors Choice LLC"), "doctor-choice"),
    ],
)
async def test_spellings_of_a_brand_stay_one_brand(matched: Matched, spellings: tuple[str, ...], core: str) -> None:
    """Also in later runs, which read the brands again."""
    for n in range(3):
        for spelling in spellings:
            await matched.refresh(f"{spelling}-{n}", one=(f"Blue Dream {n}", spelling))
    assert await matched.rows("SELECT slug, merged_into FROM brands") == [(core, None)]
    assert await matched.rows("SELECT DISTINCT (parsed -> 'brand')::jsonb FROM match_signatures") == [
        (core.split("-"),)
    ]


@pytest.mark.parametrize("field", ["N/A", "Flower", "a", "A"])
async def test_a_brand_field_that_names_no_brand_is_none(matched: Matched, field: str) -> None:
    """Neither a category nor the store's own name (it is called "a") keeps a listing from a brand in its name that becomes known."""
    await matched.refresh("a", one=("Zeta Blue Dream", field))
    await matched.refresh("b", one=(BLUE, "Zeta"))
    numbers = await matched.numbers()
    assert numbers["a/one"] == numbers["b/one"]


async def test_a_name_of_a_brand_that_a_person_chose_stays(matched: Matched) -> None:
    await matched.refresh("a", one=(BLUE, "Zeta"))
    async with matched.pool.connection() as conn, conn.transaction():
        await rename_brand(conn, (await find_brand(conn, "zeta")).id, "ZETA Farms")
    for store in ("b", "c", "d"):
        await matched.refresh(store, one=(BLUE, "Zeta Labs"))
    assert await matched.rows("SELECT name FROM brands") == [("ZETA Farms",)]


def test_platform_ids_say_how_far_they_hold() -> None:
    assert platform_ids("jane", "77", Ids(), chain=None) == ("jane:77",)
    assert platform_ids("jane", "77", Ids(store_specific=True), chain=None) == ()
    assert platform_ids("weedmaps", "1", Ids(library_product_id="9"), chain=None) == ("weedmaps:9",)
    assert platform_ids("dutchie", "1", Ids(library_product_id="9", sku="A1"), chain=None) == ()
    assert platform_ids("sweed", "1", Ids(skus=["See-Bud-Bud-", "7"]), chain="c") == ("sku:c/7",)
    assert platform_ids("dutchie", "1", Ids(sku="A1", package_tag="1a40"), chain="c") == ("package:1A40", "sku:c/A1")
