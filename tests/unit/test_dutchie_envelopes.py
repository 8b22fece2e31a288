"""Answers that wrap the items of Dutchie and Dutchie Plus in other ways than a menu does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.pipeline import recorded_files
from menuwatch.platforms.base import Platform
from menuwatch.platforms.fields import coverage
from menuwatch.platforms.registry import platforms

PLATFORMS = platforms(Settings())
DUTCHIE = {"id": "a", "Name": "A thing", "Options": ["1g"], "recPrices": [10], "DispensaryID": "s"}
PLUS = {"id": "a", "name": "A thing", "variants": [{"option": "1g", "priceRec": 10, "quantity": 3}]}


def wrapped(path: str, items: Any, **more: Any) -> bytes:
    """The items at a path, with more keys beside them."""
    *outer, last = path.split(".") if path else [""]
    value: Any = {last: items, **more} if last else items
    for step in reversed(outer):
        value = {step: value}
    return json.dumps(value).encode()


def collected(path: Path, body: bytes) -> recorded_files.RecordedMenu:
    file = path / "answer.json"
    file.write_bytes(body)
    (menu,) = recorded_files.collect(PLATFORMS, None, [file], store=None, anonymous=True).menus
    return menu


@pytest.mark.parametrize(
    ("platform", "item", "path"),
    [
        ("dutchie", DUTCHIE, "data.getPersonalizedProducts.products"),
        ("dutchie", DUTCHIE, "filteredProducts.products"),
        ("dutchie", DUTCHIE, "data.products"),
        ("dutchie", DUTCHIE, "products"),
        ("dutchie", DUTCHIE, ""),
        ("dutchie_plus", PLUS, "data.menu.products"),
        ("dutchie_plus", PLUS, "data.dutchieplus.menu.products"),
        ("dutchie_plus", PLUS, "menu.products"),
        ("dutchie_plus", PLUS, "products_list"),
        ("dutchie_plus", PLUS, "data.products"),
        ("dutchie_plus", PLUS, "products"),
        ("dutchie_plus", PLUS, ""),
    ],
)
def test_every_envelope_whose_items_are_known(tmp_path: Path, platform: str, item: dict[str, Any], path: str) -> None:
    body = wrapped(path, [item, {**item, "id": "b"}, {**item, "id": 7}])
    menu = collected(tmp_path, body)
    assert menu.platform.name == platform
    made = menu.platform.normalize(menu.platform.split(body))
    assert [product.provider_product_id for product in made.products] == ["a", "b", "7"]
    assert made.warnings == ()
    assert menu.shortfall == "3 products", "without a total it is no whole menu, so that no product is taken for gone"
    rows = coverage(menu.platform.fields, menu.pages)
    assert [row.path for row in rows if row.use == "undeclared"] == []


def test_a_total_says_whether_it_is_all(tmp_path: Path) -> None:
    assert collected(tmp_path, wrapped("data.menu.products", [PLUS], productsCount=1)).shortfall is None
    assert collected(tmp_path, wrapped("data.menu.products", [PLUS], productsCount=9)).shortfall == "1 of 9 products"
    assert collected(tmp_path, wrapped("data.products_list", [PLUS], products_count=9)).shortfall == "1 of 9 products"


def test_one_bad_item_does_not_make_the_rest_unknown(tmp_path: Path) -> None:
    assert collected(tmp_path, json.dumps([None, {"id": 1}, DUTCHIE]).encode()).product_count == 3


@pytest.mark.parametrize(
    "body",
    [
        wrapped("", [{"id": 1, "name": "A thing"}]),
        wrapped("products", [{"id": 1, "name": "A thing", "variants": []}, 7]),
        wrapped("products", [{"id": 1, "name": "A thing", "variants": [{"unitSize": 1, "price": 2}]}]),
        b"[]",
        b"{}",
        b"7",
        b'{"data":{"menu":null}}',
        b'{"data":{"getPersonalizedProducts":{"products":"many"}}}',
    ],
)
@pytest.mark.parametrize("name", ["dutchie", "dutchie_plus"])
def test_other_lists_are_not_taken(body: bytes, name: str) -> None:
    with pytest.raises(BadPayload) as refused:
        PLATFORMS[name].split(body)
    assert refused.value.kind in ("schema", "no_data")


@pytest.mark.parametrize("cut", [-1, -20, 30])
def test_a_truncated_answer_is_named_so(cut: int) -> None:
    for platform in (PLATFORMS["dutchie"], PLATFORMS["dutchie_plus"]):
        with pytest.raises(BadPayload) as refused:
            platform.split(wrapped("data.menu.products", [DUTCHIE])[:cut])
        assert refused.value.kind == "truncated"


def test_an_empty_list_in_an_envelope_of_its_own_is_an_empty_menu() -> None:
    with pytest.raises(BadPayload) as refused:
        PLATFORMS["dutchie"].split(wrapped("data.getPersonalizedProducts.products", []))
    assert refused.value.kind == "empty"


def test_errors_of_graphql_come_before_envelopes() -> None:
    body = json.dumps(
        {"errors": [{"message": "Forbidden"}], "data": {"getPersonalizedProducts": {"products": [DUTCHIE]}}}
    )
    with pytest.raises(BadPayload) as refused:
        PLATFORMS["dutchie"].split(body.encode())
    assert refused.value.kind == "errors"


def test_an_unknown_answer_is_refused_with_what_each_platform_said(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text('{"rows": []}')
    with pytest.raises(Refused, match="not a menu of any known platform"):
        recorded_files.collect(PLATFORMS, None, [file], store=None)


def test_the_stores_of_a_page() -> None:
    platform: Platform = PLATFORMS["dutchie"]
    items = platform.split(
        wrapped("products", [DUTCHIE, {**DUTCHIE, "DispensaryID": 9}, DUTCHIE, {**DUTCHIE, "DispensaryID": None}])
    )
    assert platform.stores_of(items) == {"s": 2, "9": 1}
