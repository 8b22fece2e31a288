"""The truth about recorded listings is read whole, and answers are judged as its README says."""

from __future__ import annotations

from collections import Counter

import pytest

from menuwatch.matching.model import Listing
from tests.recorded.matching_truth import (
    DATA,
    Pair,
    Truth,
    between_sellers,
    brand_family,
    new_mexico,
    new_mexico_menus,
    pennsylvania,
    score,
)

recorded = pytest.mark.skipif(not (DATA / "matching").is_dir(), reason="recorded menus are not here")


@recorded
def test_pennsylvania_has_the_pairs_that_its_readme_counts() -> None:
    truth = pennsylvania()
    assert len(truth.listings) == 2164
    assert Counter(pair.same for pair in truth.pairs) == {True: 708, False: 35695}  # without the 20 unclear ones
    deciding = [pair for pair in between_sellers(truth) if pair.same and pair.kind != "read"]
    assert Counter(pair.kind for pair in deciding) == {"lab_cross": 142, "catalogue_id": 2}


@recorded
def test_new_mexico_has_the_entries_that_its_readme_counts() -> None:
    truth = new_mexico()
    assert len(truth.listings) == 834
    assert len({one.platform_ids for one in truth.listings}) == 380
    assert sum(pair.kind == "catalog_same" for pair in truth.pairs) == 1815
    assert not any(one.platform_ids for one in new_mexico(ids=False).listings)
    names = {one.listing_id: one.name for one in truth.listings}
    left_out = {frozenset((names[p.a], names[p.b])) for p in truth.pairs if p.kind == "catalog_size"}
    assert frozenset(("Raspberry Sativa Enhanced Gummies", "Raspberry Sativa Enhanced Gummies | 100mg")) in left_out


@recorded
def test_menus_of_new_mexico_are_from_133_stores() -> None:
    found = new_mexico_menus()
    assert len({one.store for one in found}) <= 133
    assert len({one.listing_id for one in found}) == len(found)


def test_pairs_that_a_rule_on_names_found_count_for_precision_only() -> None:
    pairs = [
        Pair("a", "b", True, "lab_cross", "flower"),
        Pair("a", "c", True, "lab_cross", "flower"),
        Pair("d", "e", True, "read", "flower"),
        Pair("d", "f", False, "read", "flower"),
        Pair("g", "h", True, "read", "flower"),
    ]
    found = score(pairs, {"a": 1, "b": 1, "c": 2, "d": 3, "e": 3, "f": 3})  # g and h are in no group
    assert found == (2, 1, 1, 2)
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), 0.5)


def test_two_stores_of_one_seller_do_not_decide() -> None:
    rows = [("a", "chain", "x"), ("b", "chain", "y"), ("c", None, "z")]
    listings = tuple(Listing(listing_id=i, seller=seller, store=store, name="n") for i, seller, store in rows)
    pairs = (Pair("a", "b", True, "lab_chain", "vape"), Pair("a", "c", True, "lab_cross", "vape"))
    assert between_sellers(Truth(listings, pairs, {}, {})) == [pairs[1]]


@pytest.mark.parametrize(
    ("brand", "family"),
    [("R.O. Ground", "ro"), ("R.O.", "ro"), ("Cresco™", "cresco"), ("Cresco ", "cresco"), (None, "")],
)
def test_lines_of_a_brand_are_one_family(brand: str | None, family: str) -> None:
    assert brand_family(brand) == family
