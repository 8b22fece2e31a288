"""The market follows from its seed and the tick alone, and has the proportions of the recorded menus."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from hashlib import sha256

import pytest

from menuwatch.sim.config import Rates
from menuwatch.sim.dutchie import product_document, render_product
from menuwatch.sim.market import Market
from menuwatch.sim.model import ProductState, special_prices

_PRINT_DIGEST = """
from hashlib import sha256
from menuwatch.sim.market import Market
from menuwatch.sim.dutchie import render_product
market = Market(seed=7, stores=4, products=60)
print([sha256(b"".join(render_product(s, store) for s in market.menu(store, 3))).hexdigest() for store in market.stores])
"""


def digests(market: Market, tick: int) -> list[str]:
    return [
        sha256(b"".join(render_product(state, store) for state in market.menu(store, tick))).hexdigest()
        for store in market.stores
    ]


def test_same_seed_same_bytes_in_another_process_and_another_order_of_looking() -> None:
    market = Market(seed=7, stores=4, products=60)
    for store in reversed(market.stores):
        market.menu(store, 9)
    mine = str(digests(market, 3))
    for hash_seed in ("0", "12345"):
        theirs = subprocess.run(
            [sys.executable, "-c", _PRINT_DIGEST],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed},
        )
        assert theirs.stdout.strip() == mine


def test_another_seed_is_another_market() -> None:
    assert not set(digests(Market(seed=1, stores=3, products=20), 0)) & set(
        digests(Market(seed=2, stores=3, products=20), 0)
    )


def test_a_larger_market_begins_with_the_smaller_one() -> None:
    small, large = Market(seed=3, stores=2, products=30), Market(seed=3, stores=9, products=30)
    assert digests(small, 2) == digests(large, 2)[:2]


@pytest.fixture(scope="module")
def large() -> Market:
    return Market(seed=11, stores=60, products=120)


def everything(market: Market, tick: int = 0) -> list[ProductState]:
    return [state for store in market.stores for state in market.menu(store, tick)]


def test_stock_is_counted_by_hand_in_about_62_percent(large: Market) -> None:
    items = [product_document(state, store) for store in large.stores for state in large.menu(store, 0)]
    no_pos = sum(item["POSMetaData"] is None for item in items) / len(items)
    by_hand = sum(item["manualInventory"] is not None for item in items) / len(items)
    neither = sum(
        item["manualInventory"] is None and not (item["POSMetaData"] or {}).get("children") for item in items
    ) / len(items)
    assert 0.55 <= no_pos <= 0.69
    assert no_pos - 0.03 < by_hand <= no_pos
    assert 0.003 < neither < 0.03
    assert not any(item["manualInventory"] and item["POSMetaData"] for item in items)


def test_a_point_of_sale_caps_at_25_and_keeps_a_reserve(large: Market) -> None:
    gaps: Counter[int] = Counter()
    most = 0
    for store in large.stores:
        if store.reserve != 3:
            continue
        for state in large.menu(store, 0):
            for child in (product_document(state, store)["POSMetaData"] or {}).get("children") or ():
                gaps[child["quantity"] - child["quantityAvailable"]] += 1
                most = max(most, child["quantity"])
                assert child["kioskQuantityAvailable"] == child["quantity"]
    assert most == 25
    assert set(gaps) <= {0, 1, 2, 3}, "never more than the reserve"
    assert gaps[3] > gaps[0] > gaps[1] + gaps[2]


def test_counts_by_hand_are_not_capped(large: Market) -> None:
    assert max(max(s.stock) for s in everything(large) if s.product.counting == "manual") > 60


def test_options_and_children_are_not_aligned_everywhere(large: Market) -> None:
    longer = shorter = 0
    for store in large.stores:
        for state in large.menu(store, 0):
            item = product_document(state, store)
            children = (item["POSMetaData"] or {}).get("children")
            if children:
                listed = [child["option"] for child in children]
                longer += bool(set(listed) - set(item["Options"]))
                shorter += bool(set(item["Options"]) - set(listed))
            for key in ("Prices", "recPrices", "medicalPrices"):
                assert len(item[key]) == len(item["Options"])
    assert longer > 10
    assert shorter > 2


def test_specials_are_as_frequent_as_recorded_and_the_best_one_wins(large: Market) -> None:
    states = everything(large)
    sales = [s for s in states if s.offers and s.offers[0].kind in ("percent", "dollar", "target")]
    bogos = [s for s in states if s.offers and s.offers[0].kind in ("bogo", "bundle")]
    assert 0.22 < len(sales) / len(states) < 0.34
    assert 0.06 < len(bogos) / len(states) < 0.12
    assert {o.kind for s in states for o in s.offers} == {"percent", "dollar", "target", "bogo", "bundle"}
    two = next(
        s
        for s in sales
        if {(o.kind, o.value, o.menu) for o in s.offers} == {("percent", 25, "both"), ("percent", 20, "both")}
    )
    assert special_prices(two, (4300,), "recreational") == (3225,), "25 % of 43.00 is more than 20 %"
    only_medical = next(s for s in sales if {o.menu for o in s.offers} == {"medical"})
    assert special_prices(only_medical, only_medical.prices, "recreational") == ()
    assert special_prices(only_medical, only_medical.prices, "medical") != ()


def test_potency_comes_in_three_units_and_with_totals(large: Market) -> None:
    labs = [s.lab for s in everything(large)]
    units = Counter(lab.thc.unit for lab in labs if lab.thc is not None)
    assert set(units) == {"PERCENTAGE", "MILLIGRAMS", "MILLIGRAMS_PER_GRAM"}
    assert 0.015 < sum(lab.thc is None for lab in labs) / len(labs) < 0.04
    lengths = Counter(len(lab.thc.range or ()) for lab in labs if lab.thc is not None)
    assert set(lengths) == {0, 1, 2}
    assert any(row.name.startswith('"TAC"') for lab in labs for row in lab.rows or ())
    mixed = [lab for lab in labs if lab.rows and len({row.unit for row in lab.rows}) > 1]
    assert mixed


def test_oddities_of_text_and_ids_occur(large: Market) -> None:
    states = everything(large)
    names = [s.product.name for s in states]
    assert any("  " in name for name in names)
    assert any(s.product.brand is not None and s.product.brand.label.endswith(" ") for s in states)
    assert any(s.product.brand is not None and s.product.brand.label != s.product.brand.name for s in states)
    assert any(s.product.brand is None for s in states)
    options = {option for s in states for option in s.product.options}
    assert {"1/8oz", ".5g", "1gC", "N/A", "10pk/100mg", "3.5g", "28g", "0.025g", "28.3g"} <= options
    assert any(not s.active for s in states)
    assert {s.product.images is None for s in states} == {True, False}
    per_store = [Counter(s.product.name for s in large.menu(store, 0)).most_common(1)[0][1] for store in large.stores]
    assert max(per_store) > 1, "names repeat"
    ids = [s.product.id for s in states]
    assert len(set(ids)) == len(ids)
    assert {len(i) for i in ids} == {24}
    assert {len(store.id) for store in large.stores} == {17, 24}
    assert any(store.name.endswith(" ") for store in large.stores)
    assert any(store.slug == store.id for store in large.stores)
    assert any(store.old for store in large.stores)


def test_every_tick_moves_about_what_is_documented(large: Market) -> None:
    stay = price = stock = gone = new = 0
    for store in large.stores:
        before = {s.product.id: s for s in large.menu(store, 0)}
        after = {s.product.id: s for s in large.menu(store, 1)}
        gone += len(before.keys() - after.keys())
        new += len(after.keys() - before.keys())
        for key in before.keys() & after.keys():
            stay += 1
            price += (before[key].prices, before[key].offers) != (after[key].prices, after[key].offers)
            stock += before[key].stock != after[key].stock
    total = 60 * 120
    assert 0.06 < price / stay < 0.10
    assert 0.40 < stock / stay < 0.50
    assert 0.02 < gone / total < 0.04
    assert 0.005 < new / total < 0.015


def test_what_vanishes_comes_back_after_one_to_five_ticks_or_never(large: Market) -> None:
    absences: Counter[int] = Counter()
    for store in large.stores:
        present = [{s.product.id for s in large.menu(store, tick)} for tick in range(8)]
        for product in present[0] - present[1]:
            absences[next((tick for tick in range(2, 8) if product in present[tick]), 99) - 1] += 1
    assert set(absences) == {1, 2, 3, 4, 5, 98}
    assert 0.04 < absences[98] / sum(absences.values()) < 0.25


def test_what_did_not_move_is_rendered_to_the_same_bytes(large: Market) -> None:
    store = large.stores[0]
    before = {s.product.id: s for s in large.menu(store, 4)}
    kept = [s for s in large.menu(store, 5) if before.get(s.product.id) is s]
    assert len(kept) > 30
    moved = [s for s in large.menu(store, 5) if s.product.id in before and before[s.product.id] is not s]
    assert all(render_product(s, store) != render_product(before[s.product.id], store) for s in moved)


@pytest.mark.parametrize(("unchanged", "lowest", "highest"), [(1.0, 1.0, 1.0), (0.9, 0.86, 0.94), (0.0, 0.0, 0.0)])
def test_the_share_that_is_left_alone_can_be_set(unchanged: float, lowest: float, highest: float) -> None:
    market = Market(seed=5, stores=5, products=200, rates=Rates(unchanged=unchanged))
    same = total = 0
    for store in market.stores:
        before = market.states(store, 0)
        after = market.states(store, 1)
        same += sum(a is b for a, b in zip(before, after, strict=False))
        total += len(before)
    assert lowest <= same / total <= highest
