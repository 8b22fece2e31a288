"""Batches and terpenes of recorded products of Dutchie and Dutchie Plus, and the same products in every other envelope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from menuwatch.config.settings import Settings
from menuwatch.platforms.registry import platforms
from tests.recorded import dutchie, dutchie_plus
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
