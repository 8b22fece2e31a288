"""What people are told of matches: by API and command line."""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.matching.explain import explain
from menuwatch.matching.model import ReasonCode
from menuwatch.matching.stats import read_stats
from tests.matching.conftest import Matched

BLUE, SOUR = "Blue Dream", "Sour Diesel"


async def explained(matched: Matched, a: str, b: str) -> Any:
    async with matched.pool.connection() as conn:
        return await explain(conn, await matched.product_id(a), await matched.product_id(b))


async def test_one_product_given_twice_is_refused(matched: Matched) -> None:
    await matched.crawl("a", one="Blue Dream")
    with pytest.raises(InvalidField, match="give two different products"):
        await explained(matched, "a/one", "a/one")


async def test_explains_what_is_written_alike(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE)
    await matched.refresh("b", one=BLUE.upper())
    found = await explained(matched, "a/one", "b/one")
    assert (found.together, found.written_alike, found.confidence) == (True, True, 1.0)


async def test_explains_a_link(matched: Matched) -> None:
    await matched.crawl("a", one="Blue Dream")
    await matched.refresh("b", one="BlueDream")
    found = await explained(matched, "a/one", "b/one")
    assert (found.together, found.written_alike) == (True, False)
    (step,) = found.steps
    assert {step.a, step.b} == {"Blue Dream", "BlueDream"}
    assert step.confidence == found.confidence > 0.5
    assert step.reasons


async def test_explains_different_products(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE, two=SOUR)
    found = await explained(matched, "a/one", "a/two")
    assert (found.together, found.steps) == (False, [])
    assert found.confidence < 0.5
    assert ReasonCode.OTHER_WORDS in {reason.code for reason in found.reasons}


async def test_explains_a_correction(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE, two=SOUR)
    await matched.correct(BLUE, SOUR, same=True)
    await matched.match()
    found = await explained(matched, "a/one", "a/two")
    assert (found.together, found.corrected) == (True, True)


async def test_explains_only_two_listings_that_exist(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE)
    number = await matched.product_id("a/one")
    async with matched.pool.connection() as conn:
        with pytest.raises(InvalidField):
            await explain(conn, number, number)
        with pytest.raises(NotFound):
            await explain(conn, number, 99)


async def test_a_listing_that_waits_is_shown_as_such(matched: Matched) -> None:
    await matched.refresh("a", one=BLUE)
    await matched.crawl("b", one=BLUE)
    found = await explained(matched, "a/one", "b/one")
    assert (found.together, found.confidence, found.b.canonical_product_id) == (False, None, None)


async def test_counts(matched: Matched) -> None:
    await matched.crawl("a", one=BLUE, two=SOUR)
    await matched.refresh("b", one=BLUE)
    await matched.crawl("c", one=BLUE)
    async with matched.pool.connection() as conn:
        found = await read_stats(conn)
    assert (found.listings, found.waiting_listings, found.products, found.brands) == (3, 1, 2, 1)
    assert (found.shared_listings, found.shared_products, found.products_on_platforms) == (2, 1, 0)
    assert (found.waiting_stores, found.waiting_blocks) == (1, 0)
    assert found.lag_seconds is not None
    assert [(row.name, row.listings, row.shared_listings) for row in found.categories] == [("flower", 3, 2)]
    assert [(row.name, row.products) for row in found.platforms] == [("dutchie", 2)]


async def test_products_are_counted_by_categories_of_the_taxonomy(matched: Matched) -> None:
    listings = {
        category: {"name": f"Thing of {category}", "brand": "Acme", "category": category} for category in CATEGORIES
    }
    await matched.crawl_items("a", listings)
    await matched.match()
    async with matched.pool.connection() as conn:
        found = {row.name: row.listings for row in (await read_stats(conn)).categories}
    assert found == {
        "flower": 2, "edible": 3, "vaporizer": 1, "concentrate": 1, "topical": 1, "accessory": 2, "cultivation": 1, "other": 1,
    }  # fmt: skip
    assert found.keys() <= CATEGORIES
