"""Dovetail in the simulated market: its answers have the recorded shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.sim.market import Market
from menuwatch.sim.platforms.dovetail import item_document
from tests.sim.conftest import Serve

MARKET = Market(stores=0, platforms={"dovetail": 4}, products=120)
STORES = MARKET.on("dovetail")


def keys(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from keys(entry, f"{path}.{name}")
    elif isinstance(value, list):
        for entry in value:
            yield from keys(entry, f"{path}[]")
    else:
        yield f"{path}:{'number' if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__}"


def test_items_have_the_keys_and_types_of_the_recording(recorded: Path) -> None:
    path = recorded / "dovetail" / "cookies_tampa_premium_flower_2026-01-20.json"
    if not path.is_file():
        pytest.skip("the answer is not among the recorded ones")
    seen = {key for item in json.loads(path.read_bytes())["products"]["results"] for key in keys(item)}
    made = {key for store in STORES for state in MARKET.menu(store, 0) for key in keys(item_document(state, store))}
    # The recorded menu has flower alone; in the market, what has no batch says null, and the same goes for what has no brand.
    null = {f".meta_data.{name}:NoneType" for name in ("batch_id", "batch_name", "lab_result_url", "packaged_date")}
    null |= {f".{name}:NoneType" for name in ("brand", "strain_type", "potency_thc.formatted", "potency_thc.range")}
    assert made - seen - null == set()


async def test_pages_of_a_menu(serve: Serve) -> None:
    server = await serve(stores=0, platforms={"dovetail": 4}, products=120)
    host, retailer, menu_type = STORES[0].id.split("/")
    path = f"/{host}/wp-json/dovetail-api/v1/products"
    where = {"retailer": retailer, "menutype": menu_type, "perpage": "50"}
    async with httpx.AsyncClient(trust_env=False, base_url=server.hello()["platforms"]["dovetail"]["base_url"]) as http:
        pages = [(await http.get(path, params={**where, "page": str(number)})).json() for number in (1, 2, 3, 4)]
        assert [len(page["results"]) for page in pages] == [50, 50, 20, 0]
        assert [(page["total"], page["pages"], page["per_page"]) for page in pages[:3]] == [(120, 3, 50)] * 3
        assert [page["next_page"] for page in pages] == ["2", "3", "", ""]
        ids = [item["id"] for page in pages for item in page["results"]]
        assert ids == [state.product.id for state in MARKET.menu(STORES[0], 0)]
        other = "medical" if menu_type == "recreational" else "recreational"
        empty = (await http.get(path, params={**where, "menutype": other})).json()
        assert (empty["total"], empty["results"]) == (0, [])
        unknown = await http.get("/nowhere.example/wp-json/dovetail-api/v1/products", params=where)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "rest_no_route")
