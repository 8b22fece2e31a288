"""The rules of the expected state, on cases small enough to be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from menuwatch.sim.expected import Counts, ExpectedState, OptionRow, Row, Stock, Strength, follow, row_of
from menuwatch.sim.market import Market
from menuwatch.sim.model import Content, Lab, Offer, ProductState, SimProduct, SimStore

STORE = SimStore(
    index=0, id="a" * 24, slug="shop", name="Shop", chain="shop", street="1 Main St", city="Tucson", state="AZ", country="USA",
    zipcode="85701", latitude=32.0, longitude=-110.0, timezone="America/Phoenix", phone="", recreational=True, medical=True,
    enterprise_id="", status="open", counting="pos", reserve=3, threshold=0, medical_percent=0, old=False,
)  # fmt: skip
PRODUCT = SimProduct(
    id="p1", serial=0, category="Flower", subcategory=None, name="Quiet Thunder  ", slug="quiet-thunder", past_slugs=(),
    brand=None, strain="Hybrid", options=("7g", "28g"), raw_options=None, net_weight=(7000,), image="", images=None,
    created_ms=0, rank=1, featured_ms=None, description="", effects=(), counting="pos", childless=frozenset(), strays=(),
    crooked=False, library_id=None, enterprise_id=None, duplicated_id=None, pos_number="1",
)  # fmt: skip
NO_LAB = Lab(None, None, None)
STATE = ProductState(
    product=PRODUCT, prices=(4000, 12700), offers=(), stock=(11, 1), active=True, lab=NO_LAB, updated_ms=0
)


def levels(row: Row) -> list[tuple[str, int | None, str]]:
    return [(o.option, o.quantity, o.stock) for o in row.options]


def test_a_reserve_leaves_eight_of_eleven_and_none_of_one() -> None:
    row = row_of(STATE, STORE)
    assert levels(row) == [("7g", 8, "in_stock"), ("28g", 0, "oos")]
    assert row.stock == "in_stock"
    assert row.name_raw == "Quiet Thunder  "


@pytest.mark.parametrize(("raw", "shown"), [(0, 0), (3, 0), (4, 1), (25, 22), (27, 24), (28, 25), (29, 25), (400, 25)])
def test_what_a_point_of_sale_shows(raw: int, shown: int) -> None:
    assert levels(row_of(replace(STATE, stock=(raw, 50)), STORE))[0][1] == shown


def test_below_the_threshold_is_out_though_some_is_shown() -> None:
    store = replace(STORE, reserve=0, threshold=2)
    row = row_of(replace(STATE, stock=(2, 3)), store)
    assert levels(row) == [("7g", 2, "oos"), ("28g", 3, "in_stock")]


def test_counts_by_hand_know_neither_reserve_nor_cap_nor_threshold() -> None:
    product = replace(PRODUCT, counting="manual")
    row = row_of(replace(STATE, product=product, stock=(169, 0)), replace(STORE, counting="manual", threshold=2))
    assert levels(row) == [("7g", 169, "in_stock"), ("28g", 0, "oos")]


def test_no_count_is_unknown_and_an_option_without_an_entry_is_too() -> None:
    unknown = row_of(replace(STATE, product=replace(PRODUCT, counting="none")), STORE)
    assert levels(unknown) == [("7g", None, "unknown"), ("28g", None, "unknown")]
    assert unknown.stock == "unknown"
    half = row_of(replace(STATE, product=replace(PRODUCT, childless=frozenset({1})), stock=(0, 9)), STORE)
    assert levels(half) == [("7g", 0, "oos"), ("28g", None, "unknown")]
    assert half.stock == "unknown", "one option may be there"


def test_an_inactive_product_is_out_whatever_is_shown() -> None:
    row = row_of(replace(STATE, active=False), STORE)
    assert levels(row) == [("7g", 8, "oos"), ("28g", 0, "oos")]
    assert row.stock == "oos"


def test_prices_and_the_best_special_of_each_menu() -> None:
    offers = (
        Offer("o1", "25 %", "percent", 25),
        Offer("o2", "35 %", "percent", 35),
        Offer("o3", "$25", "target", 2500, "medical"),
        Offer("o4", "B1G1", "bogo", 40),
    )
    row = row_of(replace(STATE, prices=(4300, 12700), offers=offers), STORE)
    seven, twenty_eight = row.options
    assert seven.prices == ("7g", Decimal(43), Decimal("27.95"), Decimal(43), Decimal(25))
    assert twenty_eight.prices == ("28g", Decimal(127), Decimal("82.55"), Decimal(127), Decimal("82.55"))


def test_patients_may_pay_less_and_a_bogo_alone_gives_no_special_price() -> None:
    row = row_of(replace(STATE, offers=(Offer("o4", "B1G1", "bogo", 40),)), replace(STORE, medical_percent=10))
    assert row.options[0].prices == ("7g", Decimal(40), None, Decimal(36), None)


def test_a_special_list_that_is_too_short_says_nothing() -> None:
    state = replace(STATE, product=replace(PRODUCT, crooked=True), offers=(Offer("o1", "25 %", "percent", 25),))
    assert [o.special_rec for o in row_of(state, STORE).options] == [None, None]


def test_potency_in_three_units() -> None:
    lab = Lab(Content("MILLIGRAMS_PER_GRAM", (300, 360)), Content("PERCENTAGE", (0.15,)), None)
    row = row_of(replace(STATE, lab=lab), STORE)
    assert row.thc == Strength(Decimal(30), Decimal(36), "%")
    assert row.cbd == Strength(Decimal("0.15"), Decimal("0.15"), "%")
    edible = row_of(replace(STATE, lab=Lab(Content("MILLIGRAMS", (100,)), Content("PERCENTAGE", None), None)), STORE)
    assert edible.thc == Strength(Decimal(100), Decimal(100), "mg")
    assert edible.cbd is None


def row(product_id: str, price: str = "10", quantity: int | None = 5, stock: Stock = "in_stock") -> Row:
    option = OptionRow("1g", Decimal(price), None, Decimal(price), None, quantity, stock)
    return Row(product_id, product_id, None, "Flower", (option,), stock)


def shown(*rows: Row) -> dict[str, Row]:
    return {r.product_id: r for r in rows}


OUT = {"quantity": 0, "stock": "oos"}


def test_no_crawl_is_nothing() -> None:
    assert follow([]) == ({}, Counts())


def test_an_unchanged_menu_only_adds_snapshots() -> None:
    known, counts = follow([shown(row("a"), row("b"))] * 3)
    assert counts == Counts(products=2, snapshots=6)
    assert {i: (k.misses, k.first, k.last) for i, k in known.items()} == {"a": (0, 0, 2), "b": (0, 0, 2)}


def test_changes_are_counted_once_per_product_and_crawl() -> None:
    _, counts = follow(
        [
            shown(row("a"), row("b")),
            shown(row("a", price="9", quantity=4), row("b")),
            shown(row("a", price="9", quantity=4), row("b", quantity=0, stock="oos"), row("c", price="3")),
        ]
    )
    assert counts == Counts(
        products=3, snapshots=7, price_changes=1, stock_changes=2, out_of_stock=1, seen_stock_changes=2
    )


def test_another_set_of_options_is_a_change_of_price_and_stock() -> None:
    first = row("a")
    more = replace(first, options=(*first.options, replace(first.options[0], option="3.5g", price_rec=Decimal(30))))
    _, counts = follow([shown(first), shown(more)])
    assert (counts.price_changes, counts.stock_changes) == (1, 1)


def test_first_seen_out_of_stock_is_not_newly_out() -> None:
    _, counts = follow([shown(row("a", quantity=0, stock="oos"))])
    assert counts == Counts(products=1, snapshots=1)


def test_one_or_two_misses_are_forgotten_and_compare_with_the_last_sighting() -> None:
    known, counts = follow(
        [shown(row("a"), row("b")), shown(row("b")), shown(row("b")), shown(row("a", price="8"), row("b"))]
    )
    assert counts == Counts(products=2, snapshots=6, price_changes=1)
    assert known["a"].misses == 0
    assert known["a"].last == 3


def test_the_third_miss_is_out_of_stock_once() -> None:
    crawls = [shown(row("a"), row("b")), *[shown(row("b"))] * 5]
    known, counts = follow(crawls)
    assert counts == Counts(products=2, snapshots=7, stock_changes=1, out_of_stock=1, third_misses=1)
    gone = known["a"]
    assert (gone.misses, gone.last, gone.row.stock) == (3, 0, "oos")
    assert gone.row.options[0].level == ("1g", "oos", 0)
    assert gone.row.options[0].price_rec == Decimal(10), "prices stay as last seen"
    assert [follow(crawls[:n])[0]["a"].misses for n in range(1, 7)] == [0, 1, 2, 3, 3, 3]
    assert follow(crawls[:3])[0]["a"].row.stock == "in_stock"


def test_back_after_the_third_miss_is_a_change_of_stock_but_not_between_sightings() -> None:
    known, counts = follow([shown(row("a")), {}, {}, {}, shown(row("a"))])
    assert counts == Counts(products=1, snapshots=2, stock_changes=2, out_of_stock=1, third_misses=1)
    assert known["a"].row.stock == "in_stock"
    assert known["a"].misses == 0


def test_what_was_out_already_does_not_go_out_again() -> None:
    _, counts = follow([shown(row("a", quantity=0, stock="oos")), {}, {}, {}])
    assert counts == Counts(products=1, snapshots=1, third_misses=1)


def test_unknown_stock_goes_out_at_the_third_miss() -> None:
    _, counts = follow([shown(row("a", quantity=None, stock="unknown")), {}, {}, {}])
    assert counts == Counts(products=1, snapshots=1, stock_changes=1, out_of_stock=1, third_misses=1)


def test_the_expected_state_of_a_market_adds_up_over_its_stores() -> None:
    market = Market(seed=4, stores=3, products=40)
    expected = ExpectedState(market)
    slugs = [store.slug for store in market.stores]
    each = [expected.follow(slug, range(6))[1] for slug in slugs]
    total = expected.expect({slug: range(6) for slug in slugs})
    assert total == each[0] + each[1] + each[2]
    assert total.snapshots == sum(len(market.menu(store, tick)) for store in market.stores for tick in range(6))
    assert total.price_changes > 20
    assert total.stock_changes > total.price_changes
    assert total.out_of_stock > 0
    with pytest.raises(KeyError):
        expected.rows("nowhere", 0)
