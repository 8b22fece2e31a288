"""Batches and terpenes of recorded products of Dutchie and Dutchie Plus, and the same products in every other envelope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from menuwatch.config.settings import Settings
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.registry import platforms
from tests.recorded import dutchie, dutchie_plus, stored
from tests.recorded.plain import read

FILES = [
    ("dutchie", "dutchie/pa_filteredProducts_page_2025-11-09.json", "filteredProducts.products"),
    ("dutchie", "dutchie/on_filteredProducts_last_page_2023-11-29.json", "filteredProducts.products"),
    ("dutchie_plus", "dutchie_plus/mpxnj_products_list_2025-06-25.json", "products_list"),
]
READERS: dict[str, Any] = {"dutchie": dutchie, "dutchie_plus": dutchie_plus}
OTHERS = {
    "dutchie": ["data.getPersonalizedProducts.products", "products", ""],
    "dutchie_plus": ["data.menu.products", "data.dutchieplus.menu.products", "products_list", "products", ""],
}


def recorded_body(folder: Path, name: str) -> bytes:
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the recorded answers")
    return path.read_bytes()


def items_of(body: bytes, path: str) -> list[dict[str, Any]]:
    found = read(body)["data"]
    for step in path.split("."):
        found = found[step]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(("platform", "name", "path"), FILES)
def test_batches_and_terpenes(recorded: Path, platform: str, name: str, path: str) -> None:
    body = recorded_body(recorded, name)
    adapter = platforms(Settings())[platform]
    made = adapter.normalize(adapter.split(body))
    raw = items_of(body, path)
    assert (len(made.products), made.warnings) == (len(raw), ())
    for item, product in zip(raw, made.products, strict=True):
        said = {name: value for name, value in asdict(product.batch).items() if value} if product.batch else None
        assert said == READERS[platform].batch(item)
        assert [(row.name, row.value, row.unit) for row in product.terpenes] == READERS[platform].terpenes(item)


@pytest.mark.parametrize(("platform", "name", "path"), FILES)
def test_the_same_products_in_every_envelope(recorded: Path, platform: str, name: str, path: str) -> None:
    body = recorded_body(recorded, name)
    adapter = platforms(Settings())[platform]
    expected = adapter.normalize(adapter.split(body))
    items: Any = json.loads(body)["data"]
    for step in path.split("."):
        items = items[step]
    for other in OTHERS[platform]:
        answer: Any = items
        for step in reversed(other.split(".") if other else []):
            answer = {step: answer}
        assert adapter.normalize(adapter.split(json.dumps(answer).encode())) == expected, other


@pytest.mark.parametrize("place", [0, 7, 24])
async def test_a_page_with_items_of_two_stores_is_not_applied(
    parts: HandlerContext, recorded: Path, tmp_path: Path, place: int
) -> None:
    """Whichever of its items is another store's, nothing of it gets into the catalog until a person releases it."""
    answer: Any = json.loads(recorded_body(recorded, FILES[0][1]))
    items = answer["data"]["filteredProducts"]["products"]
    mine, items[place]["DispensaryID"] = items[place]["DispensaryID"], "0" * 24
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer))
    (done,) = (await replay(parts, None, [file])).menus
    assert done.refused is not None
    assert done.refused.startswith("another store's: ")
    stranger = ("0" * 24, "1 of 25") if place else (mine, "24 of 25")
    assert f"{stranger[1]} items of page 1 of 1 are of store {stranger[0]}" in done.refused
    assert await stored.products(parts.pool) == {}


async def test_a_second_envelope_takes_no_product_for_gone(
    parts: HandlerContext, recorded: Path, tmp_path: Path
) -> None:
    """The front rows of a shop, replayed after its menu: nothing else is missing because of them."""
    path = recorded / FILES[1][1]
    answer: Any = json.loads(recorded_body(recorded, FILES[1][1]))
    items = answer["data"]["filteredProducts"]["products"]
    (whole,) = (await replay(parts, None, [path])).menus
    file = tmp_path / "front.json"
    file.write_text(json.dumps({"data": {"getPersonalizedProducts": {"products": items[:3]}}}))
    (front,) = (await replay(parts, None, [file])).menus
    assert (whole.counts["new"], front.part) == (38, "3 products")
    assert (front.counts["unchanged"], front.counts["missing"]) == (3, 0)
    (products,) = (await stored.products(parts.pool)).values()
    assert len(products) == 38
