"""The second platform of the simulated market: its answers have the recorded shape, and its server its oddities."""

from __future__ import annotations

import json
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.sim.market import Market
from menuwatch.sim.platforms.weedmaps.items import item_document
from menuwatch.sim.platforms.weedmaps.live import live_document
from menuwatch.sim.server import SimServer
from menuwatch.sim.words import STATE_NAMES
from tests.sim.conftest import Serve

MARKET = Market(stores=2, platforms={"weedmaps": 4}, products=250)
STORES = MARKET.on("weedmaps")
LISTINGS = "/discovery/v1/listings"


@asynccontextmanager
async def client(server: SimServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, base_url=server.hello()["platforms"]["weedmaps"]["base_url"]) as http:
        yield http


async def page(http: httpx.AsyncClient, key: str, number: int = 1, size: int = 100, version: int = 1) -> Any:
    params = {"page": number, "page_size": size}
    listings = LISTINGS.replace("v1", f"v{version}")
    answer = await http.get(f"{listings}/dispensaries/{key}/menu_items", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_first_platform_knows_nothing_of_the_second(serve: Serve) -> None:
    assert [s.slug for s in Market(stores=2, products=3).stores] == [s.slug for s in MARKET.on("dutchie")]
    assert len({s.slug for s in MARKET.stores} | {s.id for s in MARKET.stores}) == 12, (
        "no id or slug is that of two stores"
    )
    server = await serve(stores=2, platforms={"weedmaps": 4}, products=250)
    async with client(server) as http:
        assert (await http.get(f"{LISTINGS}/dispensaries/{MARKET.stores[0].id}")).status_code == 404
        assert (await http.get("/api-3/graphql")).status_code == 404
        assert (await http.get("/health")).status_code == 200


async def test_lists_of_stores(serve: Serve) -> None:
    server = await serve(stores=2, platforms={"weedmaps": 4}, products=5)
    async with client(server) as http:
        whole = (await http.get(LISTINGS)).json()
        assert whole["meta"]["total_listings"] == 4
        assert [(one["id"], one["slug"]) for one in whole["data"]["listings"]] == [(int(s.id), s.slug) for s in STORES]
        second = (await http.get(LISTINGS, params={"page": 2, "page_size": 3})).json()
        assert [one["slug"] for one in second["data"]["listings"]] == [STORES[3].slug]
        for region, expected in (("pennsylvania", "PA"), ("pittsburgh", "PA"), ("nowhere", None)):
            found = (await http.get(LISTINGS, params={"filter[region_slug[dispensaries]]": region})).json()
            assert [one["slug"] for one in found["data"]["listings"]] == [s.slug for s in STORES if s.state == expected]
        one = (await http.get(f"{LISTINGS}/dispensaries/{STORES[1].slug}")).json()["data"]["listing"]
        assert (one["id"], one["license_type"], one["city"]) == (int(STORES[1].id), "medical", "Pittsburgh")


async def test_pages_of_a_menu(serve: Serve) -> None:
    server = await serve(stores=2, platforms={"weedmaps": 4}, products=250)
    store = STORES[0]
    async with client(server) as http:
        pages = [await page(http, store.id, number) for number in (1, 2, 3, 4)]
        menus = [one["data"]["menu_items"] for one in pages]
        assert [len(menu) for menu in menus] == [100, 100, 50, 0]
        assert [one["meta"]["total_menu_items"] for one in pages] == [250] * 4
        ids = [str(item["id"]) for menu in menus for item in menu]
        assert ids == [state.product.id for state in MARKET.menu(store, 0)]
        assert (await page(http, store.slug, 2))["data"] == pages[1]["data"], "by the slug as well"
        recorded = [await page(http, store.id, number, version=2) for number in (1, 2, 3, 4)]
        assert [[item["id"] for item in one["data"]] for one in recorded] == [
            [item["id"] for item in menu] for menu in menus
        ]
        assert [one["meta"] for one in recorded[:2]] == [{"page": n, "per_page": 100, "total": 250} for n in (1, 2)]
        assert len((await page(http, store.id, 1, 5000))["data"]["menu_items"]) == 100
        for bad in ("0", "-1", "x", "1e9"):
            answer = await http.get(f"{LISTINGS}/dispensaries/{store.id}/menu_items", params={"page": bad})
            assert answer.status_code == 422
        assert (await http.post(LISTINGS)).status_code == 405


async def test_it_misbehaves_like_the_first(serve: Serve) -> None:
    store = STORES[0]
    server = await serve(
        stores=2, platforms={"weedmaps": 4}, products=250,
        faults={"clamp": {"per_page": 60}, "pinned": {"count": 2, "pages": [1]}, "total_lies": {"delta": 9},
                   "empty_page": {"pages": [2], "limit": 1}, "forbidden": {"operations": ["listing"]}},
    )  # fmt: skip
    async with client(server) as http:
        first, second, third, again = [await page(http, store.id, number) for number in (1, 2, 3, 3)]
        menus = [one["data"]["menu_items"] for one in (first, second, third, again)]
        assert [len(menu) for menu in menus] == [60, 62, 0, 60]
        assert menus[1][:2] == menus[0][:2]
        assert first["meta"]["total_menu_items"] == 259
        assert (await http.get(f"{LISTINGS}/dispensaries/{store.id}")).status_code == 403


def keys(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from keys(entry, f"{path}.{name}")
    elif isinstance(value, list):
        for entry in value:
            yield from keys(entry, f"{path}[]")
    else:
        yield f"{path}:{'number' if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__}"


def test_items_have_the_keys_and_types_of_the_recordings(recorded: Path) -> None:
    seen: set[str] = set()
    with tarfile.open(recorded / "weedmaps" / "nm_menus_2024-05.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            for item in json.loads(file.read())["data"] if file is not None else ():
                seen.update(keys(item))
    made = {path for store in STORES for state in MARKET.menu(store, 0) for path in keys(item_document(state, store))}
    assert made - seen == set()


def test_live_items_have_the_keys_and_types_of_the_recording(recorded: Path) -> None:
    """Beside them only what no recorded item needed: other units, what a category is in, and no brand's record."""
    menu = json.loads((recorded / "weedmaps" / "ca_discovery_v1_menu_2021.json").read_bytes())["data"]["menu_items"]
    documents = [live_document(state, store) for store in STORES for state in MARKET.menu(store, 0)]
    seen = {path for item in menu for path in keys(item)}
    made = {path for document in documents for path in keys(document)} - seen
    assert {
        path for path in made if not path.startswith((".prices.gram[]", ".prices.unit", ".edge_category.ancestors[]"))
    } == set()
    assert {tuple(document) for document in documents} == {tuple(menu[0])}, "the same keys in the same order"


async def test_a_listing_has_the_keys_and_types_of_the_recorded_ones(serve: Serve, recorded: Path) -> None:
    lines = (recorded / "market" / "nm_weedmaps_listings.jsonl").read_text().splitlines()
    real = [json.loads(line) for line in lines]
    server = await serve(stores=2, platforms={"weedmaps": 4}, products=5)
    async with client(server) as http:
        made = (await http.get(LISTINGS)).json()["data"]["listings"]
        assert {tuple(one) for one in made} == {tuple(one) for one in real}
        assert {path for one in made for path in keys(one)} == {path for one in real for path in keys(one)}
        assert {one["state"] for one in made} <= set(STATE_NAMES.values())
        assert {one["license_type"] for one in made} <= {one["license_type"] for one in real}


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.slug)
def test_stores_that_do_not_count_say_no_quantity(store: Any) -> None:
    items = [item_document(state, store)["attributes"] for state in MARKET.menu(store, 0)]
    counted = [item["inventory_quantity"] is not None or any(v["inventory_quantity"] is not None for v in item["variants"])
               for item in items]  # fmt: skip
    assert sum(counted) / len(counted) > 0.9 if store.counting == "manual" else not any(counted)
