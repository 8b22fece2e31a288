"""Rendered products have the keys and types of the recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from menuwatch.sim.dutchie import product_document, render_dispensary, render_product
from menuwatch.sim.market import Market

# ApiRequest for by other front ends than the one that was recorded, and in the statistics of 2,548 products.
LATER_KEYS = {"description", "descriptionHtml"}


@pytest.fixture(scope="module")
def items() -> dict[bool, list[dict[str, Any]]]:
    """Products as decoded JSON, by whether their store is an old one."""
    market = Market(seed=2, stores=30, products=120)
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for store in market.stores:
        found[store.old].extend(json.loads(render_product(state, store)) for state in market.menu(store, 1))
    return found


def recorded_items(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "dutchie" / name).read_text())["data"]["filteredProducts"][
        "products"
    ]
    return found


def shape(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, type) of everything in a product, but for maps whose keys are data."""
    yield path, "number" if type(value) in (int, float) else type(value).__name__
    if isinstance(value, dict) and not path.endswith(("effects", "specialRestrictions")):
        for key, below in value.items():
            yield from shape(below, f"{path}.{key}")
    elif isinstance(value, list):
        for below in value:
            yield from shape(below, f"{path}[]")


@pytest.mark.parametrize(
    ("name", "old"),
    [("pa_filteredProducts_page_2025-11-09.json", False), ("on_filteredProducts_last_page_2023-11-29.json", True)],
)
def test_keys_and_types_are_those_of_the_recorded_page(
    recorded: Path, items: dict[bool, list[dict[str, Any]]], name: str, old: bool
) -> None:
    real = recorded_items(recorded, name)
    keys = set(real[0])
    assert len(keys) > 50
    for item in items[old]:
        assert keys <= set(item), keys - set(item)
        assert set(item) - keys <= LATER_KEYS, set(item) - keys
    made = {pair for item in items[old] for pair in shape(item)}
    missing = {pair for item in real for pair in shape(item)} - made
    assert missing == set()


def test_a_store_record_has_the_recorded_keys_that_matter(recorded: Path) -> None:
    text = (recorded / "dutchie" / "consumerDispensaries_due-north-cannabis-co_2023.json").read_text()
    real = json.loads(text)["data"]["filteredDispensaries"][0]
    market = Market(seed=2, stores=3, products=10)
    store = market.stores[0]
    made = render_dispensary(store, market.menu(store, 0), market.image_base)
    assert set(made) <= set(real)
    assert set(made["location"]) == set(real["location"])
    assert [type(x) for x in made["location"]["geometry"]["coordinates"]] == [float, float]
    assert made["location"]["geometry"]["coordinates"] == [store.longitude, store.latitude]
    assert sum(entry["value"] for entry in made["productCategorySummary"]) == len(market.menu(store, 0))


def test_times_are_written_in_the_two_ways(items: dict[bool, list[dict[str, Any]]]) -> None:
    item = items[False][0]
    assert item["createdAt"].isdecimal()
    assert len(item["createdAt"]) == 13
    assert item["updatedAt"].endswith("Z")
    assert item["updatedAt"][10] == "T"
    assert all("updatedAt" not in old for old in items[True])


def test_money_is_whole_or_has_two_places_and_never_more(items: dict[bool, list[dict[str, Any]]]) -> None:
    for item in items[True] + items[False]:
        for key in ("Prices", "recPrices", "medicalPrices", "recSpecialPrices", "medicalSpecialPrices"):
            for price in item[key]:
                assert price > 0
                assert len(f"{price}".partition(".")[2]) <= 2, price


def test_a_bundle_names_its_price_as_text_and_its_number_in_the_condition(
    items: dict[bool, list[dict[str, Any]]],
) -> None:
    bogos = [b for item in items[False] if item["specialData"] for b in item["specialData"]["bogoSpecials"] or ()]
    bundle = next(b for b in bogos if b["discountBundle"])
    assert bundle["discountBundle"] == {"discountType": "targetPrice", "value": "75"}
    assert bundle["bogoConditions"][0]["totalQuantity"]["quantity"] == 5
    assert all(b["itemsForAPrice"] is None for b in bogos)
    assert {type(b["bogoRewards"][0]["percentDiscount"]) for b in bogos} == {str, type(None)}
    assert all(item["special"] in (True, None) for item in items[False])


def test_options_below_the_threshold_are_named(items: dict[bool, list[dict[str, Any]]]) -> None:
    named = [item for item in items[True] if item["optionsBelowThreshold"]]
    assert named
    for item in items[True]:
        for child in (item["POSMetaData"] or {}).get("children") or ():
            if child["quantityAvailable"] == 0:
                assert child["option"] in item["optionsBelowThreshold"]


def test_documents_are_json_values_only() -> None:
    market = Market(seed=3, stores=6, products=30)
    for store in market.stores:
        for state in market.menu(store, 0):
            assert json.loads(render_product(state, store)) == json.loads(json.dumps(product_document(state, store)))
