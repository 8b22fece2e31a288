"""The recorded menu of Dovetail, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.dovetail.adapter import Dovetail
from menuwatch.platforms.fields import coverage
from tests.recorded import dovetail, stored
from tests.recorded.plain import read

NAME = "dovetail/cookies_tampa_premium_flower_2026-01-20.json"


@pytest.fixture
def path(recorded: Path) -> Path:
    found = recorded / NAME
    if not found.is_file():
        pytest.skip(f"{NAME} is not among the recorded answers")
    return found


async def test_the_recorded_menu(parts: HandlerContext, path: Path) -> None:
    raw = read(path.read_bytes())["products"]["results"]
    (done,) = (await replay(parts, None, [path])).menus
    # It was requested by category, so that nothing is missing because it is not on it.
    assert (done.counts["new"], done.part) == (28, "28 products")
    # Some certificates are files on an employee's computer.
    elsewhere = [item["id"] for item in raw if not item["meta_data"]["lab_result_url"].strip().startswith("https://")]
    assert [(told["product_id"], told["field"], told["fatal"]) for told in done.warnings] == [
        (product_id, "batch.certificate_url", False) for product_id in elsewhere
    ]
    assert (done.store.platform, done.store.platform_dispensary_id) == ("dovetail", dovetail.STORE)
    (products,) = (await stored.products(parts.pool)).values()
    assert products.keys() == {item["id"] for item in raw}
    for item in raw:
        assert stored.differences(dovetail.product(item), products[item["id"]]) == {}, item["id"]
    (again,) = (await replay(parts, None, [path])).menus
    assert (again.counts["unchanged"], again.counts["new"], again.counts["changed"]) == (28, 0, 0)


def test_batches_and_terpenes(path: Path) -> None:
    adapter = Dovetail()
    made = adapter.normalize(adapter.split(path.read_bytes()))
    raw = read(path.read_bytes())["products"]["results"]
    for item, product in zip(raw, made.products, strict=True):
        assert product.batch is not None
        assert {name: value for name, value in asdict(product.batch).items() if value} == dovetail.batch(item)
        assert [(row.name, row.value, row.unit) for row in product.terpenes] == dovetail.terpenes(item)
    assert sum(len(product.terpenes) for product in made.products) == 432 - 101


@pytest.mark.parametrize("keys", [("products",), ("products", "results")])
def test_the_same_products_without_the_envelope(path: Path, keys: tuple[str, ...]) -> None:
    """An answer alone does not say that its prices are those of patients; nor of which menu it is, but for the items' links."""
    adapter = Dovetail()
    whole: Any = json.loads(path.read_bytes())
    expected = adapter.normalize(adapter.split(json.dumps(whole).encode()))
    for key in keys:
        whole = whole[key]
    items = adapter.split(json.dumps(whole).encode())
    made = adapter.normalize(items)
    assert adapter.store_of(items) == "cookiesflorida.co/tampa"
    assert made.warnings == expected.warnings
    assert [p.provider_product_id for p in made.products] == [p.provider_product_id for p in expected.products]
    assert [p.price_rec for p in made.products] == [p.price_med for p in expected.products]
    assert all(p.price_med is None for p in made.products)


def test_every_field_is_declared(path: Path) -> None:
    rows = coverage(Dovetail.fields, [path.read_bytes()])
    assert [row.path for row in rows if row.use == "undeclared"] == []
    assert all(row.note for row in rows)
