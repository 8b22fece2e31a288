"""Listings that are written as another one: their numbers come at once, and are those that comparing everything again gives."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from menuwatch.matching import compare, groups
from menuwatch.matching.model import Grouping, Member
from tests.matching.conftest import Matched

BRANDS = ("Acme", "Acme Reserve", "Zeta", "Mesa", "Ohm", "")
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
    """One of few spellings, or any words: then words become more and less common, and name lines."""
    return rng.choice(STRAINS) if seed % 3 else " ".join(rng.sample(WORDS, rng.randrange(1, 4)))


async def add_ids(matched: Matched, rng: random.Random) -> None:
    """Gives a listing an id of Weedmaps' catalog, of a package or of a chain's point of sale, as a menu would bring it."""
    key = rng.choice(("library_product_id", "package_tag", "organization_id", "sku"))
    await matched.rows(
        """UPDATE catalog_products p SET provider = 'weedmaps', extra = extra || jsonb_build_object(%s::text, %s::text)
            WHERE id = (SELECT id FROM catalog_products ORDER BY hashtext(id || %s) LIMIT 1) AND NOT EXISTS (
                  SELECT FROM catalog_products o WHERE (o.dispensary_id, o.provider, o.provider_product_id) =
                                                       (p.dispensary_id, 'weedmaps', p.provider_product_id) AND o.id <> p.id)""",
        *(key, f"1a{rng.randrange(6)}", str(rng.random())),
    )


@pytest.mark.parametrize("seed", range(int(os.environ.get("MATCHING_SEEDS", "6"))))
async def test_any_order_of_menus_leaves_what_comparing_everything_again_gives(
    matched: Matched, monkeypatch: pytest.MonkeyPatch, seed: int
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
        items = {f"i{n}": (name_of(rng, seed), rng.choice(BRANDS)) for n in rng.sample(range(9), rng.randrange(1, 6))}
        await matched.crawl(store, **items)
        if seed % 2 and step > 8:
            await add_ids(matched, rng)
        compared.clear()
        await matched.match()
        blocks = await matched.rows(
            "SELECT s.block FROM product_matches m JOIN match_signatures s ON s.id = m.signature_id"
            " JOIN catalog_products p ON p.id = m.product_id WHERE p.dispensary_id = %s AND p.last_seen_at IS NULL",
            matched.stores[store],
        )
        at_once += sum(block not in compared for (block,) in blocks)
        before = await tables(matched)
        assert None not in [number for _, number in before["numbers"]]
        await matched.group_again()
        assert await tables(matched) == before, f"seed {seed}, step {step}"
    if seed % 3:
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
