"""Listings that are written as another one: their numbers come at once, and are those that comparing everything again gives."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.core.errors import Refused
from menuwatch.matching import compare, groups
from menuwatch.matching.corrections import correct, withdraw
from menuwatch.matching.model import Grouping, Member
from menuwatch.pipeline.store_changes import remove_store
from tests.matching.conftest import Matched

BRANDS = ("Acme", "Acme Reserve", "Zeta", "Mesa", "Ohm", "", "N/A", "Flower", "s1")
STRAINS = (
    "Blue Dream", "Blu Dream", "Blue Dreams", "Blue Dream Haze", "Gelato 41", "Gelato", "Gelato 33", "Gelatto 41", "Lemon Cherry Pop",
    "LCP", "Lemon Chery Pop", "Zkittlez", "Zkittles", "Sour Diesel", "Sour Diesel Smalls", "Diesel", "Fruit Gushers", "FRT GSHRS",
)  # fmt: skip
WORDS = (
    "Blue",
    "Dream",
    "Haze",
    "Gelato",
    "Runtz",
    "Cherry",
    "Pie",
    "Mint",
    "Sunset",
    "Sherb",
    "Live",
    "Infused",
    "Cake",
    "41",
    "2:1",
)
TABLES = {
    "numbers": "SELECT product_id, canonical_product_id FROM product_matches ORDER BY 1",
    "signatures": "SELECT id, canonical_product_id, linked_to, confidence, reasons::text, component FROM match_signatures ORDER BY 1",
    "products": "SELECT id, brand_id, name, category, form, strain, listings, stores, merged_into FROM canonical_products ORDER BY 1",
    "sizes": "SELECT canonical_product_id, size FROM canonical_sizes ORDER BY 1, 2",
    "reviews": "SELECT a, b, confidence, together, impact, reasons::text FROM match_reviews ORDER BY 1, 2",
    "events": "SELECT id FROM match_events ORDER BY 1",
}


async def tables(matched: Matched) -> dict[str, Any]:
    return {name: await matched.rows(query) for name, query in TABLES.items()}


def name_of(rng: random.Random, seed: int) -> str:
    """One of few spellings, or any words: then words become more and less common, and name lines. At times after a brand."""
    name = rng.choice(STRAINS) if seed % 3 else " ".join(rng.sample(WORDS, rng.randrange(1, 4)))
    return f"{rng.choice(BRANDS[:5])} {name}" if rng.random() < 0.2 else name


def ids_of(rng: random.Random) -> dict[str, Any]:
    """Ids that a menu may have for an item: of Weedmaps' catalog, of packages, of a chain's point of sale."""
    if rng.random() < 0.6:
        return {}
    number = f"1a{rng.randrange(6)}"
    kind = rng.choice(("library_product_id", "package_tag", "sku"))
    if kind == "package_tag":
        return {"batch": {"package_tag": number}}
    return {"extra": {kind: number, "organization_id": "7"}}


async def let_people_act(matched: Matched, archive: FileArchive, rng: random.Random) -> None:
    """At times somebody judges a pair, takes a judgement back or removes a store."""
    async with matched.pool.connection() as conn:
        await conn.set_autocommit(True)
        what = rng.random()
        if what < 0.3:
            listings = [number for (number,) in await matched.rows("SELECT id FROM catalog_products ORDER BY 1")]
            with contextlib.suppress(Refused):  # of pairs that nothing tells apart
                await correct(conn, *rng.choices(listings, k=2), rng.random() < 0.5)
        elif what < 0.4:
            for (number,) in await matched.rows("SELECT max(id) FROM match_corrections WHERE withdrawn_at IS NULL"):
                if number is not None:
                    await withdraw(conn, number)
        elif what < 0.45:
            store = rng.choice(sorted(matched.stores))
            await remove_store(conn, archive, matched.stores.pop(store))
        await conn.set_autocommit(False)


@pytest.mark.parametrize("seed", range(int(os.environ.get("MATCHING_SEEDS", "3"))))
async def test_any_order_of_menus_leaves_what_comparing_everything_again_gives(
    matched: Matched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    if seed % 2:  # as in large blocks: words become lines and keys too common
        monkeypatch.setattr(groups, "_COMMON", 3)
        monkeypatch.setattr(compare, "_FEWEST_NAMES", 4)
        monkeypatch.setattr(compare, "_LINE_NAMES", 2)
    compared: set[str] = set()
    at_once = 0

    def recorded(members: Sequence[Member], corrections: Any, among: Any) -> Grouping:
        compared.update(one.signature.block for one in members)
        return groups.group(members, corrections, among)

    matched.group = recorded
    for step in range(20):
        store = f"s{rng.randrange(12)}"
        items: dict[str, dict[str, Any]] = {
            f"i{n}": {"name": name_of(rng, seed), "brand": rng.choice(BRANDS) or None}
            for n in rng.sample(range(9), rng.randrange(1, 6))
        }
        if seed % 2:
            items = {item: values | ids_of(rng) for item, values in items.items()}
        await matched.crawl_items(store, items, "weedmaps" if store in ("s1", "s2", "s3") else "dutchie")
        if seed % 4 > 1:
            await let_people_act(matched, FileArchive(tmp_path), rng)
        compared.clear()
        await matched.match()
        blocks = await matched.rows(
            "SELECT s.block FROM product_matches m JOIN match_signatures s ON s.id = m.signature_id"
            " JOIN catalog_products p ON p.id = m.product_id WHERE p.dispensary_id = %s AND p.last_seen_at IS NULL",
            matched.stores.get(store),
        )
        at_once += sum(block not in compared for (block,) in blocks)
        before = await tables(matched)
        assert None not in [number for _, number in before["numbers"]]
        await matched.group_again()
        assert await tables(matched) == before, f"seed {seed}, step {step}"
    if seed == 4:  # without ids and corrections
        assert at_once > 0, "no listing had its number at once"


async def test_a_menu_of_known_names_compares_nothing(matched: Matched) -> None:
    await matched.crawl("a", one="Blue Dream", two="Gelato 41")
    await matched.refresh("b", one="Blue Dreams")
    before = await matched.numbers()

    def refused(members: Any, corrections: Any, among: Any) -> Grouping:
        raise AssertionError([Member.signature for _ in members])

    matched.group = refused
    run = await matched.refresh("c", one="Blue Dream", two="Gelato 41")
    assert (run.failed, run.blocks.blocks) == (0, 0)
    numbers = await matched.numbers()
    assert numbers["c/one"] == before["a/one"] == before["b/one"]
    assert numbers["c/two"] == before["a/two"]
    assert await matched.rows("SELECT listings, stores FROM canonical_products ORDER BY id") == [(3, 3), (2, 2)]


async def test_a_store_that_lists_both_names_is_compared(matched: Matched) -> None:
    """ "Blue Dream" and "Blue Dreams" are one product until a store has both side by side."""
    await matched.crawl("a", one="Zkittlez")
    await matched.refresh("b", one="Zkittles")
    assert len(set((await matched.numbers()).values())) == 1
    await matched.refresh("c", one="Zkittlez", two="Zkittles")
    numbers = await matched.numbers()
    assert numbers["c/one"] == numbers["a/one"] != numbers["c/two"]
    assert numbers["c/two"] == numbers["b/one"]
