"""An edit that rests on what is no longer so gets what it is now, and changes nothing."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import app, archive, platforms, shop  # noqa: F401
from tests.api.shop import Shop


async def _collide(shop: Shop, method: str, path: str, mine: Any, theirs: Any) -> dict[str, Any]:  # noqa: F811
    """Two read it, one is sooner; returns what the other gets to see."""
    read = await shop.http.get(path)
    tag = {"If-Match": read.headers["etag"]}
    first = await shop.http.request(method, path, json=theirs, headers=tag)
    assert first.status_code == 200, first.text
    late = await shop.http.request(method, path, json=mine, headers=tag)
    problem: dict[str, Any] = late.json()
    assert (late.status_code, problem["type"]) == (412, "/problems/changed"), late.text
    assert problem["current"] == (await shop.http.get(path)).json()
    # With what it is now, or with nothing to rest on, or whatever it is, it goes through.
    for headers in ({"If-Match": first.headers["etag"]}, {}, {"If-Match": "*"}):
        assert (await shop.http.request(method, path, json=mine, headers=headers)).status_code == 200
    return dict(problem["current"])


async def test_stores(shop: Shop) -> None:  # noqa: F811
    store = await shop.store()
    now = await _collide(shop, "PATCH", f"/api/stores/{store}", {"crawl_enabled": True}, {"crawl_enabled": False})
    assert now["crawl_enabled"] is False


async def test_schedules(shop: Shop) -> None:  # noqa: F811
    await shop.execute(
        "INSERT INTO task_schedules (name, role, platform, interval_hours, priority, next_run_at)"
        " VALUES ('s', 'store_discovery', 'dutchie', 24, 0, now() + interval '1 day')"
    )
    now = await _collide(shop, "PUT", "/api/schedules/1", {"priority": 5}, {"priority": 3})
    assert now["priority"] == 3
    assert (await shop.http.get("/api/schedules/2")).status_code == 404


async def test_alert_rules(shop: Shop) -> None:  # noqa: F811
    store = await shop.store()
    await shop.http.post("/api/alerts", json={"name": "r", "condition": "out_of_stock", "store_id": store})
    now = await _collide(shop, "PATCH", "/api/alerts/1", {"cooldown_minutes": 5}, {"cooldown_minutes": 3})
    assert now["cooldown_minutes"] == 3
