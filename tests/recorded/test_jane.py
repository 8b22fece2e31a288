"""Stored products of Jane against the raw file, field by field; its store record and its block page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from menuwatch.core.errors import BadPayload
from menuwatch.fetch.classify import Verdict, classify_response
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.fields import UNDECLARED, coverage
from menuwatch.platforms.jane import stores
from menuwatch.platforms.jane.adapter import Jane
from tests.recorded import jane, stored
from tests.recorded.plain import read

JANE = Jane()


@pytest.fixture
def menu(recorded: Path) -> Path:
    path = recorded / "jane" / "dmerch_rise_2025-11-09.json"
    if not path.is_file():
        pytest.skip("no recorded answer of Jane")
    return path


def whole_rows(path: Path) -> list[dict[str, Any]]:
    return [row["search_attributes"] for row in read(path.read_bytes())["products"] if "search_attributes" in row]


def differences(row: dict[str, Any], got: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    expected = jane.product(row)
    return stored.differences({name: expected[name] for name in expected if name in got or name != "terpenes"}, got)


async def test_the_merchandised_menu(parts: HandlerContext, menu: Path) -> None:
    (done,) = (await replay(parts, None, [menu])).menus
    assert (done.counts["new"], done.part, done.warnings) == (60, "60 of 965 products", ())
    ((store, products),) = (await stored.products(parts.pool)).items()
    rows = whole_rows(menu)
    assert (store, products.keys()) == ("2266", {str(row["product_id"]) for row in rows})
    for row in rows:
        assert differences(row, products[str(row["product_id"])]) == {}, row["product_id"]
    (again,) = (await replay(parts, None, [menu])).menus
    assert (again.counts["unchanged"], again.counts["changed"]) == (60, 0)
    async with parts.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT platform_dispensary_id, slug, menu_url, is_medical, is_recreational, latitude, longitude FROM dispensaries"
        )
        assert await cursor.fetchall() == [
            ("2266", "2266", "https://www.iheartjane.com/stores/2266", True, None, 40.4371951, -79.7825187)
        ]


async def test_bare_ids_are_no_products_and_get_no_miss(parts: HandlerContext, menu: Path, tmp_path: Path) -> None:
    """Two answers, one after the other: what the second has only the id of was not missed."""
    await replay(parts, None, [menu])
    document = json.loads(menu.read_bytes())
    kept = 0
    for row in document["products"]:
        kept += "search_attributes" in row
        if kept > 10:
            row.pop("search_attributes", None)
    later = tmp_path / "later.json"
    later.write_text(json.dumps(document))
    (done,) = (await replay(parts, None, [later])).menus
    assert (done.part, done.counts["unchanged"], done.counts["missing"]) == ("10 of 965 products", 10, 0)
    async with parts.pool.connection() as conn:
        cursor = await conn.execute("SELECT count(*), sum(consecutive_misses) FROM store_products")
        assert await cursor.fetchone() == (60, 0)


@pytest.mark.parametrize("shape", ["list of rows", "list of attributes", "search", "several searches"])
async def test_other_shapes_of_the_same_rows(parts: HandlerContext, menu: Path, tmp_path: Path, shape: str) -> None:
    rows = json.loads(menu.read_bytes())["products"]
    hits = [row["search_attributes"] for row in rows if "search_attributes" in row]
    answer = {"hits": hits, "nbHits": 60, "page": 0, "nbPages": 1, "hitsPerPage": 1000, "exhaustiveNbHits": True}
    documents = {
        "list of rows": rows,
        "list of attributes": hits,
        "search": answer,
        "several searches": {"results": [answer]},
    }
    path = tmp_path / "menu.json"
    path.write_text(json.dumps(documents[shape]))
    (done,) = (await replay(parts, None, [path])).menus
    part = "60 of 965 products" if shape == "list of rows" else None
    assert (done.counts["new"], done.part, done.warnings) == (60, part, ())
    (products,) = (await stored.products(parts.pool)).values()
    for row in whole_rows(menu):
        assert differences(row, products[str(row["product_id"])]) == {}, row["product_id"]


def test_every_field_is_declared(menu: Path) -> None:
    rows = json.loads(menu.read_bytes())["products"]
    hits = [row["search_attributes"] for row in rows if "search_attributes" in row]
    pages = [menu.read_bytes(), json.dumps(rows).encode(), json.dumps({"hits": hits, "nbHits": 60}).encode()]
    counted = coverage(JANE.fields, pages)
    assert [row.path for row in counted if row.use == UNDECLARED] == []
    assert len(counted) > 200


def test_terpenes_batch_and_sales(menu: Path) -> None:
    page = JANE.read_page(menu.read_bytes())
    products = JANE.normalize(page.items).products
    for made, row in zip(products, whole_rows(menu), strict=True):
        shown = [{"name": one.name, "value": one.value, "unit": one.unit} for one in made.terpenes]
        assert shown == jane.product(row)["terpenes"]
        assert len(shown) >= 7
        assert (made.batch, made.quantity_sold) == (None, None)


def test_the_store_record(recorded: Path) -> None:
    path = recorded / "jane" / "v1_stores_477_2025-07-06.json"
    if not path.is_file():
        pytest.skip("no recorded store of Jane")
    raw = json.loads(path.read_bytes())["store"]
    found = stores.found_store(msgspec.Raw(json.dumps(raw).encode()))
    assert (found.platform_dispensary_id, found.slug, found.name_raw) == ("477", "477-people-s-kush", "People's Kush")
    assert (found.city, found.state, found.zipcode, found.country) == ("Davis", "CA", "95616", "US")
    assert (found.latitude, found.longitude) == (38.5449065, -121.7405167)
    assert (found.timezone, found.phone) == ("America/Los_Angeles", "(530) 341-3611")
    assert (found.is_recreational, found.is_medical) == (True, False)
    assert found.menu_url == "https://www.iheartjane.com/stores/477/people-s-kush"
    assert found.problem == "Jane does not show it (visible is false)"
    assert found.raw["delivery"] is True
    assert found.raw["cart_limit_policy"] == raw["cart_limit_policy"]
    shown = stores.found_store(msgspec.Raw(json.dumps({**raw, "visible": True}).encode()))
    assert shown.problem == "it has no products (product_count is 0)"


def test_the_block_page(recorded: Path) -> None:
    path = recorded / "jane" / "blocked_page_2025-07-06.txt"
    if not path.is_file():
        pytest.skip("no recorded block page of Jane")
    body = path.read_bytes()
    refused = classify_response(403, {}, body, expect="json", now=datetime(2025, 7, 6, tzinfo=UTC))
    assert refused.verdict is Verdict.BLOCKED
    with pytest.raises(BadPayload, match="Sorry, you have been blocked") as bad:
        JANE.read_page(body)
    assert bad.value.kind == "html"
