"""Stores over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.api.shop import Shop, at, item


async def test_lists_and_shows_stores(shop: Shop) -> None:
    ids = [
        await shop.store("north", state="AZ", city="Mesa"),
        await shop.store("south", state="NJ"),
        await shop.store("east", state="AZ"),
    ]
    assert [s["id"] for s in await shop.walk("/api/stores", limit=1)] == ids
    assert [s["id"] for s in await shop.walk("/api/stores", state="AZ")] == [ids[0], ids[2]]
    assert [s["id"] for s in await shop.walk("/api/stores", state=["AZ", "NJ"])] == ids
    assert [s["id"] for s in await shop.walk("/api/stores", q="mes")] == [ids[0]]
    assert await shop.walk("/api/stores", platform="other") == []
    assert await shop.walk("/api/stores", crawl_enabled="false") == []

    before = await shop.ask(f"/api/stores/{ids[0]}")
    assert (before["name"], before["crawl_interval_hours"], before["last_crawl"]) == ("North", 4, None)
    payload = await shop.crawl(ids[0], 0, [item("a"), {"id": "bad", "Name": None}] + [item(str(n)) for n in range(5)])
    crawl = (await shop.ask(f"/api/stores/{ids[0]}"))["last_crawl"]
    assert (crawl["payload_id"], crawl["products"], crawl["new_products"]) == (payload, 6, 6)
    assert [(w["product_id"], w["field"], w["fatal"]) for w in crawl["warnings"]] == [("bad", "Name", True)]
    await shop.refused("/api/stores/99", 404)


async def test_adding_by_address_makes_the_store_and_its_task_or_neither(shop: Shop) -> None:
    answer = await shop.http.post("/api/stores", json={"menu_url": "https://dutchie.com/embedded-menu/green-leaf/menu"})
    assert answer.status_code == 201, answer.text
    added = answer.json()
    store = added["store"]
    assert answer.headers["location"] == f"/api/stores/{store['id']}"
    assert (store["slug"], store["platform"], store["platform_dispensary_id"]) == ("green-leaf", "dutchie", None)
    task = await shop.ask(f"/api/tasks/{added['task_id']}")
    assert (task["role"], task["priority"], task["dispensary_id"]) == ("entry_point_discovery", 10, store["id"])

    body = {"menu_url": "https://dutchie.com/dispensary/green-leaf"}
    problem = await shop.refused("/api/stores", 409, method="POST", json=body)
    assert problem["detail"] == f"store 'green-leaf' already exists, with id {store['id']}"
    counts = await shop.ask("/api/tasks/counts")
    assert (counts["total"], len(await shop.walk("/api/stores"))) == (1, 1)


NO_MENUS: list[tuple[dict[str, Any], int, str]] = [
    ({"menu_url": "https://example.com/menu"}, 400, "dutchie (https://dutchie.com/dispensary/a-shop)"),
    (
        {"menu_url": "https://example.com/menu", "platform": "dutchie"},
        400,
        "is not a menu URL of dutchie: expected a URL such as",
    ),
    ({"menu_url": "not an address"}, 400, "is not a menu URL"),
    ({"menu_url": "https://dutchie.com/about"}, 400, "is not a menu URL"),
    ({"menu_url": "https://[bad/dispensary/x"}, 400, "is not a menu URL"),
    ({"menu_url": ""}, 422, "at least 1 character"),
    ({"menu_url": "x" * 3000}, 422, "at most 2000 characters"),
    ({"menu_url": "https://dutchie.com/dispensary/a\x00b"}, 422, "NUL"),
    ({"menu_url": None}, 422, "must be text, not null"),
    ({}, 422, "required"),
]


async def test_what_is_no_menu_is_refused_with_what_would_be(shop: Shop) -> None:
    for body, status, says in NO_MENUS:
        problem = await shop.refused("/api/stores", status, method="POST", json=body)
        assert says in problem["detail"], body
        assert problem["errors"][0]["pointer"] == "#/menu_url"
    body = {"menu_url": "https://dutchie.com/dispensary/green-leaf", "platform": "leafly"}
    problem = await shop.refused("/api/stores", 400, method="POST", json=body)
    assert problem["errors"][0]["pointer"] == "#/platform"
    assert "unknown platform 'leafly'" in problem["detail"]
    assert await shop.walk("/api/stores") == []
    assert (await shop.ask("/api/tasks/counts"))["total"] == 0


async def test_the_platform_of_a_menu_may_be_named(shop: Shop) -> None:
    body = {"menu_url": "https://dutchie.com/dispensary/green-leaf", "platform": "dutchie"}
    answer = await shop.http.post("/api/stores", json=body)
    assert (answer.status_code, answer.json()["store"]["platform"]) == (201, "dutchie")


async def test_crawling_is_switched_off_and_on(shop: Shop) -> None:
    store = await shop.store()
    path = f"/api/stores/{store}"
    tag = (await shop.http.get(path)).headers["etag"]
    off = await shop.http.patch(path, json={"crawl_enabled": False}, headers={"If-Match": tag})
    assert (off.status_code, off.json()["crawl_enabled"]) == (200, False)
    assert off.headers["etag"] == (await shop.http.get(path)).headers["etag"] != tag
    assert [s["id"] for s in await shop.walk("/api/stores", crawl_enabled="false")] == [store]
    problem = await shop.refused(path, 412, method="PATCH", json={"crawl_enabled": True}, headers={"If-Match": tag})
    assert "was changed since you read it" in problem["detail"]
    assert (await shop.ask(path))["crawl_enabled"] is False
    assert (await shop.ask(path, method="PATCH", json={"crawl_enabled": True}))["crawl_enabled"] is True
    assert [s["id"] for s in await shop.walk("/api/stores", freshness=["never", "off"])] == [store]
    assert await shop.walk("/api/stores", freshness="fresh") == []
    changed = await shop.ask(path, method="PATCH", json={"crawl_interval_hours": 2.505})
    assert (changed["crawl_enabled"], changed["crawl_interval_hours"]) == (True, 2.5)
    await shop.refused(path, 422, method="PATCH", json={"crawl_interval_hours": 0.1})
    await shop.refused("/api/stores/99", 404, method="PATCH", json={"crawl_enabled": True})
    for bad in ({}, {"crawl_enabled": "perhaps"}, {"crawl_enabled": True, "nick": "x"}):
        await shop.refused(path, 422, method="PATCH", json=bad)


async def test_name_and_place_of_a_person_hold(shop: Shop) -> None:
    store = await shop.store("green-leaf")
    path = f"/api/stores/{store}"
    place = {
        "city": "Denver",
        "state": "colorado",
        "latitude": 39.7392,
        "longitude": -104.9903,
        "timezone": "America/Denver",
    }
    changed = await shop.ask(path, method="PATCH", json={"name": "  Green  Leaf ", **place})
    assert (changed["name"], changed["city"], changed["state"]) == ("Green Leaf", "Denver", "CO")
    assert changed["details_by_person"] == ["city", "latitude", "longitude", "name", "state", "timezone"]
    said = Details(
        platform_dispensary_id="d" * 24,
        slug="green-leaf",
        name="GL #1",
        name_raw="GL #1",
        city="Aurora",
        zipcode="80011",
        latitude=1.0,
    )
    async with shop.pool.connection() as conn:
        await stores.update_details(conn, store, said)
    after = await shop.ask(path)
    assert (after["name"], after["city"], after["latitude"], after["zipcode"]) == (
        "Green Leaf",
        "Denver",
        39.7392,
        "80011",
    )
    reset = await shop.ask(path, method="PATCH", json={"name": None, "city": None})
    assert (reset["name"], reset["city"]) == ("GL #1", "Denver")
    assert reset["details_by_person"] == ["latitude", "longitude", "state", "timezone"]
    async with shop.pool.connection() as conn:
        await stores.update_details(conn, store, said)
    assert (await shop.ask(path))["city"] == "Aurora"
    actions = {row["action"] for row in await shop.walk("/api/audit") if row["subject_id"] == str(store)}
    assert {"store_name_set", "store_city_set", "store_latitude_set"} <= actions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, "name must not be empty"),
        ({"name": "x" * 201}, "name is too long: 201 characters, maximum 200"),
        ({"latitude": 39.7}, "give latitude and longitude together"),
        ({"latitude": 139.7, "longitude": 1.0}, "enter degrees from -90 to 90, not 139.7"),
        ({"state": "Atlantis"}, "unknown state or province Atlantis: enter a code such as CO or ON"),
        ({"timezone": "Denver"}, "unknown time zone Denver: use an IANA name such as America/Denver"),
    ],
)
async def test_impossible_details_are_refused(shop: Shop, change: dict[str, Any], message: str) -> None:
    store = await shop.store("green-leaf")
    path = f"/api/stores/{store}"
    before = await shop.ask(path)
    problem = await shop.refused(path, 400, method="PATCH", json={"city": "Denver", "shown": False, **change})
    assert message in str(problem)
    assert await shop.ask(path) == before


async def test_a_menu_at_a_moment(shop: Shop) -> None:
    store = await shop.store("north")
    path = f"/api/stores/{store}/menu"
    nothing = await shop.ask(path)
    assert (nothing["crawled_at"], nothing["payload_id"], nothing["items"]) == (None, None, [])
    first = await shop.crawl(store, 0, [item("a", "Apple"), item("b", "Berry", options=[("1g", 12, 3)])])
    await shop.crawl(store, 4, [item("a", "Apple", options=[("1/8oz", 44, 2)]), item("c", "Cherry")])

    async def seen(hours: float) -> list[tuple[str, float, int]]:
        found = await shop.ask(path, params={"at": at(hours).isoformat()})
        return [(row["name"], row["price"], row["quantity"]) for row in found["items"]]

    assert await seen(-1) == []
    assert await seen(0) == await seen(3.9) == [("Apple", 40, 5), ("Berry", 12, 3)]
    assert await seen(4) == await seen(100) == [("Apple", 44, 2), ("Cherry", 40, 5)]
    then = await shop.ask(path, params={"at": at(2).isoformat()})
    assert (then["crawled_at"], then["payload_id"]) == ("2026-03-01T12:00:00Z", first)
    assert [row["to"] for row in then["items"]] == ["2026-03-01T12:00:00Z"] * 2
    assert (await shop.ask(path))["items"] == (await shop.ask(path, params={"at": at(4).isoformat()}))["items"]
    await shop.refused("/api/stores/99/menu", 404)
    for bad in ("yesterday", "2026-03-01T12:00:00"):
        problem = await shop.refused(path, 422, params={"at": bad})
        assert problem["errors"][0]["parameter"] == "at", problem
