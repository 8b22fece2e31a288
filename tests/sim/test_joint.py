"""Joint in the simulated market: its answers have the recorded shape, and its sites their oddities."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from menuwatch.platforms.joint.adapter import query
from menuwatch.sim.market import Market
from menuwatch.sim.platforms.joint import business_of, has_old_route, item_document, wants_nonce
from menuwatch.sim.server import SimServer
from tests.sim.conftest import Serve
from tests.sim.test_weedmaps import keys

MARKET = Market(stores=1, platforms={"joint": 4}, products=130)
STORES = MARKET.on("joint")
SEARCH = "/wp-json/joint-ecommerce/v1/products/{}/_search"


@asynccontextmanager
async def client(server: SimServer) -> AsyncIterator[httpx.AsyncClient]:
    base_url = server.hello()["platforms"]["joint"]["base_url"]
    async with httpx.AsyncClient(trust_env=False, base_url=base_url) as http:
        yield http


def test_the_sites_differ() -> None:
    assert len({store.id for store in STORES}) == 4
    assert {has_old_route(store) for store in STORES} == {True, False}
    assert {wants_nonce(store) for store in STORES} == {True, False}


async def test_a_menu_page_by_page(serve: Serve) -> None:
    server = await serve(stores=1, platforms={"joint": 4}, products=130)
    store = next(store for store in STORES if not has_old_route(store) and not wants_nonce(store))
    async with client(server) as http:
        pages = []
        for start in (0, 100, 200):
            answer = await http.post(SEARCH.format("ecommerce-production"), json=query(business_of(store), start, 100))
            assert answer.status_code == 200, answer.text
            pages.append(answer.json()["hits"])
        assert [len(page["hits"]) for page in pages] == [100, 30, 0]
        assert pages[0]["total"] == {"value": 130, "relation": "eq"}
        ids = [hit["_source"]["jointId"] for page in pages for hit in page["hits"]]
        assert ids == [state.product.id for state in MARKET.menu(store, 0)]
        missing = await http.post(SEARCH.format(business_of(store)), json=query(business_of(store), 0, 100))
        assert (missing.status_code, missing.json()["code"]) == (404, "rest_no_route")
        nobody = await http.post(SEARCH.format("ecommerce-production"), json=query("1", 0, 100))
        assert nobody.json()["hits"]["hits"] == []
        for bad in (b"", b"[]", b'{"query":{}}'):
            assert (await http.post(SEARCH.format("ecommerce-production"), content=bad)).status_code == 400


async def test_nonces_and_the_old_address(serve: Serve) -> None:
    server = await serve(stores=1, platforms={"joint": 4}, products=5)
    store = next(store for store in STORES if wants_nonce(store))
    path = SEARCH.format(business_of(store) if has_old_route(store) else "ecommerce-production")
    async with client(server) as http:
        body = query(business_of(store), 0, 100)
        refused = await http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "rest_cookie_invalid_nonce")
        page = (await http.get(f"/{store.slug}/")).text
        nonce = page.split('joint-ecommerce\\/v1","nonce":"')[1][:10]
        answer = await http.post(path, json=body, headers={"X-WP-Nonce": nonce})
        assert len(answer.json()["hits"]["hits"]) == 5
        assert (await http.get("/www.nobody.example/")).status_code == 404


def test_items_have_the_keys_and_types_of_the_recordings(recorded: Path) -> None:
    body = gzip.decompress((recorded / "jointcommerce" / "shopcuzzies_nj_2025-06-30.json.gz").read_bytes())
    seen: set[str] = {path for hit in json.loads(body)["hits"]["hits"] for path in keys(hit["_source"])}
    made: set[Any] = {
        path for store in STORES for state in MARKET.menu(store, 0) for path in keys(item_document(state, store))
    }
    # Every recorded product has a potency; that it may be null is as with CBD.
    assert made - seen == {f".potencyThc{name}:NoneType" for name in ("DisplayValue", "RangeLow", "RangeHigh", "Unit")}
