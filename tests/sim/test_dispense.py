"""Dispense in the simulated market: its answers have the recorded shape, and its server its oddities."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from menuwatch.sim.market import Market
from menuwatch.sim.platforms.dispense import API_KEY, item_document
from menuwatch.sim.server import SimServer
from tests.sim.conftest import Serve
from tests.sim.test_weedmaps import keys

MARKET = Market(stores=1, platforms={"dispense": 3}, products=230)
STORES = MARKET.on("dispense")


@asynccontextmanager
async def client(server: SimServer, key: str = API_KEY) -> AsyncIterator[httpx.AsyncClient]:
    settings = server.hello()["platforms"]["dispense"]
    assert settings["api_key"] == API_KEY
    async with httpx.AsyncClient(trust_env=False, base_url=settings["base_url"], headers={"api-key": key}) as http:
        yield http


async def page(http: httpx.AsyncClient, venue: str, skip: int = 0, limit: int = 100) -> Any:
    answer = await http.get(f"/v1/venues/{venue}/products", params={"skip": skip, "limit": limit})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_pages_of_a_menu(serve: Serve) -> None:
    server = await serve(stores=1, platforms={"dispense": 3}, products=230)
    async with client(server) as http:
        pages = [await page(http, STORES[0].id, skip) for skip in (0, 100, 200, 300)]
        assert [(len(one["data"]), one["count"]) for one in pages] == [(100, 230), (100, 230), (30, 230), (0, 230)]
        ids = [item["id"] for one in pages for item in one["data"]]
        assert ids == [state.product.id for state in MARKET.menu(STORES[0], 0)]
        assert len((await page(http, STORES[0].id, 0, 5000))["data"]) == 230
        assert await page(http, "0123456789abcdef") == {"count": 0, "pageCount": 0, "skip": 0, "limit": 100, "data": []}
        for bad in ({"skip": "x"}, {"limit": "-1"}, {"limit": "0"}):
            assert (await http.get(f"/v1/venues/{STORES[0].id}/products", params=bad)).status_code == 400
        assert (await http.post(f"/v1/venues/{STORES[0].id}/products")).status_code == 405


async def test_venues(serve: Serve) -> None:
    server = await serve(stores=1, platforms={"dispense": 3}, products=5)
    async with client(server) as http:
        venue = (await http.get(f"/v1/venues/{STORES[1].id}")).json()["data"]
        assert (venue["id"], venue["name"], venue["address"]["city"]) == (STORES[1].id, STORES[1].name, STORES[1].city)
        assert (await http.get("/v1/venues/0123456789abcdef")).status_code == 404
    async with client(server, "another") as http:
        refused = await http.get(f"/v1/venues/{STORES[1].id}")
        assert (refused.status_code, refused.json()["name"]) == (401, "UnauthenticatedError")


def test_items_have_the_keys_and_types_of_the_recordings(recorded: Path) -> None:
    body = gzip.decompress((recorded / "dispense" / "indigo_nj_edibles_2025-06-30.json.gz").read_bytes())
    seen = {path for item in json.loads(body)["data"] for path in keys(item)}
    made = {path for store in STORES for state in MARKET.menu(store, 0) for path in keys(item_document(state, store))}
    # Edibles alone were recorded, which have few terpenes. As public descriptions have it, a brand's name may be null.
    units = [f".labs.{name}ContentUnit:str" for name in ("ocimene", "terpinolene")]
    paths = {".brand.name:NoneType", *units}
    assert made - seen == paths | {f".variants[]{path}" for path in paths}


def test_the_first_variant_is_the_product_itself() -> None:
    several = 0
    for state in MARKET.menu(STORES[0], 0):
        item = item_document(state, STORES[0])
        first = item["variants"][0]
        assert {**first, "variants": item["variants"]} == item
        assert len({one["id"] for one in item["variants"]}) == len(item["variants"])
        several += len(item["variants"]) > 1
    assert several > 20
