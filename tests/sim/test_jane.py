"""Jane in the simulated market: its answers have the recorded shape, and its server its rules."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.sim.market import Market
from menuwatch.sim.platforms.jane.rows import row_document
from menuwatch.sim.platforms.jane.stores import store_record
from menuwatch.sim.server import SimServer
from tests.sim.conftest import Serve

MARKET = Market(stores=2, platforms={"jane": 4}, products=250)
STORES = MARKET.on("jane")
MENUS = "/1/indexes/menu-products-production/query"
INDEX = "/1/indexes/stores-production/query"


@asynccontextmanager
async def client(server: SimServer, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    about = server.hello()["platforms"]["jane"]
    own = {
        "x-algolia-application-id": about["app_id"],
        "x-algolia-api-key": about["api_key"],
        "referer": "https://www.iheartjane.com/",
        **headers,
    }
    async with httpx.AsyncClient(trust_env=False, base_url=about["base_url"], headers=own) as http:
        yield http


async def page(http: httpx.AsyncClient, store: str, number: int = 0, size: int = 1000, path: str = MENUS) -> Any:
    question = {"query": "", "filters": f"store_id:{store}", "page": number, "hitsPerPage": size}
    answer = await http.post(path, json=question)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_pages_of_a_menu(serve: Serve) -> None:
    server = await serve(stores=2, platforms={"jane": 4}, products=250)
    store = STORES[0]
    async with client(server) as http:
        whole = await page(http, store.id)
        assert {name: whole[name] for name in ("nbHits", "page", "nbPages", "hitsPerPage", "exhaustiveNbHits")} == {
            "nbHits": 250, "page": 0, "nbPages": 1, "hitsPerPage": 1000, "exhaustiveNbHits": True,
        }  # fmt: skip
        assert [str(row["product_id"]) for row in whole["hits"]] == [s.product.id for s in MARKET.menu(store, 0)]
        parts = [await page(http, store.id, number, 100) for number in (0, 1, 2, 3)]
        assert [len(one["hits"]) for one in parts] == [100, 100, 50, 0]
        assert [row for one in parts for row in one["hits"]] == whole["hits"]
        assert (await page(http, store.id, 0, 5000))["hitsPerPage"] == 1000
        unknown = await page(http, "999999")
        assert (unknown["hits"], unknown["nbHits"], unknown["nbPages"]) == ([], 0, 0)


async def test_what_is_refused(serve: Serve) -> None:
    server = await serve(stores=2, platforms={"jane": 1}, products=5)
    question = {"query": "", "filters": f"store_id:{STORES[0].id}"}
    async with client(server) as http:
        for headers in ({"x-algolia-api-key": "another"}, {"x-algolia-application-id": "OTHER"}):
            answer = await http.post(MENUS, json=question, headers=headers)
            assert (answer.status_code, answer.json()["message"]) == (403, "Invalid Application-ID or API key")
        assert (await http.post(MENUS, json=question, headers={"referer": "https://shop.example/"})).status_code == 403
        for bad in ({"page": -1}, {"page": "x"}, {"hitsPerPage": 0}, {"filters": "kind:flower"}):
            assert (await http.post(MENUS, json={**question, **bad})).status_code == 400
        assert (await http.post(MENUS, content=b"[]")).status_code == 400
        assert (await http.get(MENUS)).status_code == 405
        assert (await http.get("/v1/stores/999999")).status_code == 404
        assert (await http.get("/api-3/graphql")).status_code == 404


async def test_stores(serve: Serve) -> None:
    server = await serve(stores=2, platforms={"jane": 4}, products=5)
    async with client(server) as http:
        whole = (await http.post(INDEX, json={"query": "", "hitsPerPage": 1000, "page": 0})).json()
        assert [(hit["objectID"], hit["product_count"]) for hit in whole["hits"]] == [(s.id, 5) for s in STORES]
        second = (await http.post(INDEX, json={"query": "", "hitsPerPage": 3, "page": 1})).json()
        assert [hit["objectID"] for hit in second["hits"]] == [STORES[3].id]
        near = {"aroundLatLng": f"{STORES[0].latitude}, {STORES[0].longitude}", "aroundRadius": 20_000}
        found = (await http.post(INDEX, json={"query": "", **near})).json()["hits"]
        assert [hit["objectID"] for hit in found] == [s.id for s in STORES if s.city == STORES[0].city]
        one = (await http.get(f"/v1/stores/{STORES[1].id}")).json()["store"]
        assert (one["id"], one["name"], one["medical"]) == (int(STORES[1].id), STORES[1].name, STORES[1].medical)
        assert f"{one['id']}-{one['url_slug']}" == STORES[1].slug


async def test_it_misbehaves_like_the_first(serve: Serve) -> None:
    store = STORES[0]
    server = await serve(
        stores=2, platforms={"jane": 4}, products=250,
        faults={"clamp": {"per_page": 60}, "pinned": {"count": 2, "pages": [1]}, "total_lies": {"delta": 9},
                "empty_page": {"pages": [2], "limit": 1}, "forbidden": {"operations": ["listing"]}},
    )  # fmt: skip
    async with client(server) as http:
        first, second, third, again = [await page(http, store.id, number) for number in (0, 1, 2, 2)]
        assert [len(one["hits"]) for one in (first, second, third, again)] == [60, 62, 0, 60]
        assert second["hits"][:2] == first["hits"][:2]
        assert first["nbHits"] == 259
        assert (await http.get(f"/v1/stores/{store.id}")).status_code == 403


def keys(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from keys(entry, f"{path}.{name}")
    elif isinstance(value, list):
        for entry in value:
            yield from keys(entry, f"{path}[]")
    else:
        yield f"{path}:{'number' if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__}"


WEIGHTS = ("each", "half_gram", "gram", "two_gram", "eighth_ounce", "quarter_ounce", "half_ounce", "ounce")
INDEXED = {
    ".objectID:str", ".indexed_at:str", ".version:number", ".strain:NoneType", "._highlightResult.name.value:str",
    "._highlightResult.name.matchLevel:str",
}  # fmt: skip
"""What rows of the index have besides those of the recorded merchandising answer, and differently."""


def general(path: str) -> str:
    """Fields of any weight are alike; that of a recorded one stands for all."""
    for weight in sorted(WEIGHTS, key=len, reverse=True):
        for prefix in (".price_", ".discounted_price_", ".special_price_", ".max_cart_quantity_"):
            if path.startswith(f"{prefix}{weight}"):
                return path.replace(weight, "X", 1)
    return path


def test_rows_have_the_keys_and_types_of_the_recording(recorded: Path) -> None:
    path = recorded / "jane" / "dmerch_rise_2025-11-09.json"
    if not path.is_file():
        pytest.skip("no recorded answer of Jane")
    seen = {
        general(key)
        for row in json.loads(path.read_bytes())["products"]
        for key in keys(row.get("search_attributes", {}))
    }
    made = {
        general(key) for store in STORES for state in MARKET.menu(store, 0) for key in keys(row_document(state, store))
    }
    # One product has no brand; every recorded one has.
    assert made - seen - INDEXED <= {".brand:NoneType", ".product_brand_id:NoneType"}
    assert any(key.startswith(".special_price_X.discount") for key in made)


def test_the_store_record_has_recorded_keys_and_types(recorded: Path) -> None:
    path = recorded / "jane" / "v1_stores_477_2025-07-06.json"
    if not path.is_file():
        pytest.skip("no recorded store of Jane")
    seen = set(keys(json.loads(path.read_bytes())["store"]))
    made = {key for store in STORES for key in keys(store_record(store, 5))}
    # The recorded shop has no opening hours, and no description.
    assert made - seen <= {".working_hours[].period.from:str", ".working_hours[].period.to:str"}


def test_only_what_is_in_stock_has_a_price() -> None:
    for store in STORES:
        for state in MARKET.menu(store, 0):
            row = row_document(state, store)
            priced = {weight.replace("_", " ") for weight in WEIGHTS if f"price_{weight}" in row}
            assert priced == set(row["available_weights"])
            assert len(priced) == sum(stock > 0 for stock in state.stock)
