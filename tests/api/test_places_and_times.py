"""Lists by state, distance and time of change."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.api.shop import Shop, at, item
from tests.api.test_payloads_cli import Run, run
from tests.matching_rows import add_location, add_product, listing, match

__all__ = ["run"]

ALBUQUERQUE = {"latitude": 35.0844, "longitude": -106.6504}
SANTA_FE = {"latitude": 35.6870, "longitude": -105.9378}
"""57 miles from Albuquerque by the great circle."""
DENVER = {"latitude": 39.7392, "longitude": -104.9903}
HERE = "35.0844,-106.6504"


@pytest.fixture
async def stores(shop: Shop) -> list[int]:
    """In Albuquerque, Santa Fe, Denver, and one without a position in New Mexico."""
    places: list[dict[str, Any]] = [
        {"state": "NM", **ALBUQUERQUE}, {"state": "NM", **SANTA_FE}, {"state": "CO", **DENVER}, {"state": "NM"},
    ]  # fmt: skip
    made = [await shop.store(slug, **place) for slug, place in zip(("alb", "sf", "den", "none"), places, strict=True)]
    for store in made:
        for hours, price in ((1, 40), (2, 35)):
            menu = [item("dream", "Blue Dream", options=[("1/8oz", price + store, 5)])]
            await shop.crawl(store, hours, menu)
    return made


async def _column(shop: Shop, path: str, column: str, **params: Any) -> list[Any]:
    return [row[column] for row in await shop.walk(path, limit=1000, **params)]


async def test_stores_products_and_changes_near_a_place(shop: Shop, stores: list[int]) -> None:
    alb, sf, den, none = stores
    for miles, near in ((None, [alb]), (56, [alb]), (60, [alb, sf]), (400, [alb, sf, den])):
        params = {"near": HERE} | ({} if miles is None else {"miles": miles})
        assert await _column(shop, "/api/stores", "id", **params) == near
        assert sorted(await _column(shop, "/api/products", "dispensary_id", **params)) == near
        assert sorted(await _column(shop, "/api/changes", "dispensary_id", **params)) == near
        feed = (await shop.http.get("/api/changes/feed", params={**params, "limit": 1000})).json()
        assert sorted(row["dispensary_id"] for row in feed["items"]) == near
    both = {"near": HERE, "miles": 400, "state": "NM"}
    assert await _column(shop, "/api/stores", "id", **both) == [alb, sf]
    assert sorted(await _column(shop, "/api/changes", "dispensary_id", **both)) == [alb, sf]
    assert await _column(shop, "/api/changes", "dispensary_id", near=HERE, miles=400, store=den) == [den]
    assert await _column(shop, "/api/changes", "dispensary_id", near=HERE, store=none) == []
    for path in ("/api/stores", "/api/products", "/api/changes", "/api/locations", "/api/canonical-products"):
        refused = await shop.http.get(path, params={"miles": 5})
        assert (refused.status_code, "needs `near`" in refused.text) == (422, True), path
        refused = await shop.http.get(path, params={"near": "Nowhere"})
        assert (refused.status_code, "unknown place 'Nowhere': give a city with its state" in refused.text) == (
            422,
            True,
        ), path


async def test_a_place_has_three_names(shop: Shop, stores: list[int], run: Run) -> None:
    alb, sf, _, _ = stores
    for store, names in (
        (alb, ("Albuquerque, NM", "87102", "35.0844, -106.6504")),
        (sf, ("Santa Fe, NM", "santa fe new mexico", "87501", "35.6870,-105.9378")),
    ):
        for near in names:
            assert await _column(shop, "/api/stores", "id", near=near) == [store], near
            assert await _column(shop, "/api/products", "dispensary_id", near=near) == [store], near
            assert await _column(shop, "/api/changes", "dispensary_id", near=near) == [store], near
            rows = json.loads((await run("stores", "list", "--near", near, "--json")).stdout)
            assert [row["id"] for row in rows] == [store], near


async def test_stores_updated_since(shop: Shop, stores: list[int]) -> None:
    async with shop.pool.connection() as conn:
        for hours, store in enumerate(stores):
            await conn.execute("UPDATE dispensaries SET updated_at = %s WHERE id = %s", [at(hours), store])
    assert await _column(shop, "/api/stores", "id", updated_since=at(2).isoformat()) == stores[2:]
    later = (at(2) + timedelta(microseconds=1)).isoformat()
    assert await _column(shop, "/api/stores", "id", updated_since=later) == stores[3:]


async def test_locations_near_a_place_and_updated_since(shop: Shop, stores: list[int]) -> None:
    async with shop.pool.connection() as conn:
        places = [await add_location(conn, f"Shop {store}", store) for store in stores[:3]]
        for hours, (place, position) in enumerate(zip(places, (ALBUQUERQUE, SANTA_FE, DENVER), strict=True)):
            await conn.execute(
                "UPDATE locations SET latitude = %s, longitude = %s, state = %s, changed_at = %s WHERE id = %s",
                [*position.values(), "CO" if position is DENVER else "NM", at(hours), place],
            )
    assert await _column(shop, "/api/locations", "id", near=HERE, miles=60) == places[:2]
    assert await _column(shop, "/api/locations", "id", near=HERE, miles=400, state="CO") == places[2:]
    assert await _column(shop, "/api/locations", "id", updated_since=at(1).isoformat()) == places[1:]


async def test_canonical_products_and_offers_near_a_place(shop: Shop, stores: list[int]) -> None:
    alb, sf, den, _ = stores
    async with shop.pool.connection() as conn:
        everywhere, north = await add_product(conn, "Blue Dream"), await add_product(conn, "Mile High")
        await match(conn, everywhere, *[await listing(conn, store, "dream") for store in (alb, sf)])
        await match(conn, north, await listing(conn, den, "dream"))
        for hours, product in enumerate((everywhere, north)):
            await conn.execute("UPDATE canonical_products SET changed_at = %s WHERE id = %s", [at(hours), product])
    path = "/api/canonical-products"
    assert await _column(shop, path, "id") == [everywhere, north]
    assert await _column(shop, path, "id", state="CO") == [north]
    assert await _column(shop, path, "id", state=["CO", "NM"]) == [everywhere, north]
    assert await _column(shop, path, "id", near=HERE) == [everywhere]
    assert await _column(shop, path, "id", near=HERE, state="CO") == []
    assert await _column(shop, path, "id", updated_since=at(1).isoformat()) == [north]

    def prices(row: dict[str, Any]) -> tuple[Any, ...]:
        (size,) = row["sizes"]
        return size["locations"], size["min"], size["max"]

    every, near = [(await shop.ask(path, params=params))["items"][0] for params in ({}, {"near": HERE, "miles": 30})]
    assert prices(every) == (2, 35 + alb, 35 + sf)
    assert prices(near) == (1, 35 + alb, 35 + alb), "prices of the stores that were selected"
    detail = await shop.ask(f"{path}/{everywhere}", params={"near": HERE, "miles": 30})
    assert [offer["dispensary_id"] for offer in detail["offers"]] == [alb]
    assert prices(detail) == (1, 35 + alb, 35 + alb)


async def test_the_same_filters_on_the_command_line(shop: Shop, stores: list[int], run: Run) -> None:
    alb, sf, _, _ = stores
    near = ("--near", HERE, "--miles", "60", "--json")

    async def found(*arguments: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads((await run(*arguments)).stdout)
        return rows

    assert [row["id"] for row in await found("stores", "list", *near)] == [alb, sf]
    assert sorted(row["dispensary_id"] for row in await found("products", *near)) == [alb, sf]
    assert sorted(row["dispensary_id"] for row in await found("changes", *near)) == [alb, sf]
    assert [row["dispensary_id"] for row in await found("products", "--near", HERE, "--json")] == [alb], "25 miles"
    async with shop.pool.connection() as conn:
        place = await add_location(conn, "Shop", alb)
        await conn.execute(
            "UPDATE locations SET latitude = 35.08, longitude = -106.65, changed_at = %s WHERE id = %s", [at(5), place]
        )
        await conn.execute("UPDATE dispensaries SET updated_at = %s WHERE id = %s", [at(5), alb])
    assert [row["id"] for row in await found("locations", "list", *near)] == [place]
    since = ("--updated-since", at(6).isoformat(), "--json")
    assert await found("locations", "list", *since) == []
    assert [row["id"] for row in await found("stores", "list", *since)] == stores[1:]
    assert await found("products", *since) == [], "products changed at two hours"
    assert len(await found("products", "--updated-since", at(2).isoformat(), "--json")) == 4
    for arguments, message in (
        (("stores", "list", "--miles", "5"), "--miles needs --near"),
        (
            ("products", "--near", "Nowhere"),
            "--near: unknown place 'Nowhere': give a city with its state (Santa Fe, NM), a ZIP",
        ),
    ):
        assert message in str((await run(*arguments, code=2)).exception)
