"""Asking for work over HTTP: one task, many, a whole state."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from tests.api.shop import Shop


async def _post(shop: Shop, where: str, status: int = 200, **body: Any) -> Any:
    return await shop.ask(f"/api/job-queue/{where}", method="POST", status=status, json=body)


async def _total(shop: Shop) -> int:
    total: int = (await shop.ask("/api/tasks/counts"))["total"]
    return total


async def test_one(shop: Shop) -> None:
    store = await shop.store()
    made = await _post(shop, "enqueue", 201, role="product_resync", dispensary_id=store, priority=-1000)
    assert (made["created"], made["task"]["role"], made["task"]["priority"]) == (True, "payload_fetch", -1000)
    again = await _post(shop, "enqueue", 200, role="payload_fetch", dispensary_id=store, priority=1000)
    assert (again["created"], again["task"]["id"], again["task"]["priority"]) == (False, made["task"]["id"], 1000)
    problem = await shop.refused("/api/job-queue/enqueue", 400, method="POST", json={"role": "payload_fetch"})
    assert problem["errors"][0]["pointer"] == "#/dispensary_id"


async def test_a_batch_answers_in_its_order(shop: Shop) -> None:
    one, two = await shop.store("one"), await shop.store("two")
    waiting = (await _post(shop, "enqueue", 201, role="payload_fetch", dispensary_id=two))["task"]["id"]
    menus = [await shop.archived(one, hours, b"{}") for hours in (1, 2)]
    wanted: list[dict[str, Any]] = [
        {"role": "payload_fetch", "dispensary_id": one, "priority": 3},
        {"role": "payload_fetch", "dispensary_id": two},
        {"role": "product_resync", "dispensary_id": one},
        {"role": "product_refresh", "dispensary_id": one, "payload": {"payload_id": menus[0]}},
        {"role": "product_refresh", "dispensary_id": one, "payload": {"payload_id": menus[1]}},
        {"role": "store_discovery", "scheduled_for": "2099-01-01T00:00:00+02:00"},
    ]
    done = await _post(shop, "enqueue-batch", tasks=wanted)
    items = done["items"]
    assert (done["requested"], done["created"]) == (6, 4)
    assert [item["created"] for item in items] == [True, False, False, True, True, True]
    assert (items[1]["id"], items[2]["id"]) == (waiting, items[0]["id"])
    assert await _total(shop) == 5
    assert (await shop.ask(f"/api/tasks/{items[0]['id']}"))["priority"] == 10, "the higher of the two"
    assert (await shop.ask(f"/api/tasks/{items[5]['id']}"))["scheduled_for"] == "2098-12-31T22:00:00Z"


ROLES = (
    "use one of: store_discovery, entry_point_discovery, product_discovery, payload_fetch, product_refresh, "
    "analytics_refresh, product_resync"
)
GOOD = {"role": "store_discovery"}
# fmt: off
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({}, "role", "required"),
    ({"role": "sweep"}, "role", ROLES),
    ({"role": "payload_fetch"}, "dispensary_id", "needs a store"),
    ({"role": "payload_fetch", "dispensary_id": 999}, "dispensary_id", "store 999 does not exist"),
    ({"role": "payload_fetch", "dispensary_id": "Green Leaf"}, "dispensary_id", "whole number"),
    ({**GOOD, "priority": 1001}, "priority", "between -1000 and 1000"),
    ({**GOOD, "priority": -1001}, "priority", "between -1000 and 1000"),
    ({**GOOD, "scheduled_for": "2026-02-30T00:00:00Z"}, "scheduled_for", "is not a valid date and time"),
    ({**GOOD, "scheduled_for": "0001-01-01T00:00:00Z"}, "scheduled_for", "years 2000 and 2100"),
    ({**GOOD, "platform": "nowhere"}, "platform", "use one of: dutchie"),
    ({**GOOD, "payload": {"a": "\x00"}}, "payload", "NUL"),
    ({**GOOD, "payload": {"n": 1}}, "payload", "unknown argument 'n' for store_discovery"),
    ({"role": "product_refresh", "dispensary_id": 1, "payload": {"payload_id": 9}}, "payload", "payload 9 does not exist"),
    ({"role": "payload_fetch", "dispensary_id": 2}, "dispensary_id", "enqueue entry_point_discovery for it first"),
    ({**GOOD, "prio": 1}, "prio", "unknown"),
]
# fmt: on


async def test_one_bad_task_refuses_the_whole_batch(shop: Shop) -> None:
    store = await shop.store()
    await shop.execute("INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('dutchie', 'new', 'n', 'n')")
    good = [
        {"role": "payload_fetch", "dispensary_id": store},
        *[{**GOOD, "payload": {"city": f"City {n}"}} for n in range(18)],
    ]
    for bad, field, says in BAD:
        batch = [*good[:17], bad, *good[17:], {"role": "also bad"} if "whole number" in says else GOOD]
        answer = await shop.http.post("/api/job-queue/enqueue-batch", json={"tasks": batch})
        assert answer.status_code in (400, 422), bad
        problem = await shop.refused(
            "/api/job-queue/enqueue-batch", answer.status_code, method="POST", json={"tasks": batch}
        )
        (error,) = problem["errors"]
        assert error["pointer"] == f"#/tasks/17/{field}", bad
        assert says in error["detail"], bad
        assert f"tasks[17].{field}" in problem["detail"], bad
    assert await _total(shop) == 0, "nothing half-created"


async def test_batches_that_are_none(shop: Shop) -> None:
    for body, says in (
        ({}, "required"),
        ({"tasks": []}, "at least 1"),
        ({"tasks": "all"}, "list"),
        ({"tasks": [1]}, ""),
    ):
        problem = await shop.refused("/api/job-queue/enqueue-batch", 422, method="POST", json=body)
        assert problem["errors"][0]["pointer"].startswith("#/tasks")
        assert says in problem["detail"]


@pytest.mark.parametrize("size", [10_001, 100_000])
async def test_a_batch_that_is_too_long_is_told_the_limit(shop: Shop, size: int) -> None:
    task = {
        "role": "payload_fetch",
        "dispensary_id": 123456,
        "priority": 10,
        "scheduled_for": "2026-11-21T10:00:00+00:00",
        "payload": {"reason": "all of it"},
    }
    body = msgspec.json.encode({"tasks": [task] * size})
    problem = await shop.refused(
        "/api/job-queue/enqueue-batch", 422, method="POST", content=body, headers={"Content-Type": "application/json"}
    )
    (error,) = problem["errors"]
    assert error["pointer"] == "#/tasks"
    assert error["detail"].startswith(f"{size:,} tasks are too many: at most 10,000")
    assert await _total(shop) == 0


async def test_a_body_beyond_everything_is_too_large(shop: Shop) -> None:
    headers = {"Content-Type": "application/json"}
    for path, size in (("/api/job-queue/enqueue-batch", 20_000_001), ("/api/job-queue/enqueue", 1_000_001)):
        problem = await shop.refused(path, 413, method="POST", content=b" " * size, headers=headers)
        assert problem["type"] == "/problems/body-too-large"
        assert f"exceeds {size - 1:,} bytes" in problem["detail"]


async def test_ten_thousand_at_once(shop: Shop) -> None:
    await shop.execute(
        "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw)"
        " SELECT 'dutchie', 'p' || n, 's' || n, 'n', 'n' FROM generate_series(1, 2000) n"
    )
    await shop.execute(
        "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, product_count, page_count, fetched_at, path, bytes,"
        " raw_bytes, sha256, content_sha256)"
        " SELECT n % 2000 + 1, 'dutchie', 'ok', 0, 1, now() + n * interval '1 microsecond', 'p' || n, 1, 1,"
        " repeat('0', 64), repeat('0', 64)"
        " FROM generate_series(0, 5999) n ORDER BY n"
    )
    wanted = [{"role": "payload_fetch", "dispensary_id": n % 2000 + 1} for n in range(4000)]
    wanted += [
        {"role": "product_refresh", "dispensary_id": n % 2000 + 1, "payload": {"payload_id": n + 1}}
        for n in range(6000)
    ]
    began = time.monotonic()
    done = await _post(shop, "enqueue-batch", tasks=wanted)
    took = time.monotonic() - began
    assert (done["requested"], done["created"], await _total(shop)) == (10_000, 8000, 8000)
    assert took < 10, "half a second where the machine is free"


async def test_a_state(shop: Shop) -> None:
    one, two = await shop.store("one", state="TX"), await shop.store("two", state="TX")
    off, elsewhere = await shop.store("off", state="TX"), await shop.store("away", state="AZ")
    await shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [off])
    await shop.execute(
        "INSERT INTO dispensaries (platform, slug, name, name_raw, state) VALUES ('dutchie', 'new', 'n', 'n', 'TX')"
    )
    await _post(shop, "enqueue", 201, role="payload_fetch", dispensary_id=two)
    done = await _post(shop, "enqueue-state", state_code=" tx", role="product_resync", priority=25)
    assert done == {"state_code": "TX", "role": "payload_fetch", "stores": 4, "requested": 2, "created": 1}
    tasks = await shop.walk("/api/tasks")
    assert {(t["dispensary_id"], t["priority"]) for t in tasks} == {(one, 25), (two, 25)}
    other = await _post(shop, "enqueue-state", state_code="AZ", role="product_discovery", platform="dutchie")
    assert other["created"] == 1
    assert (await shop.walk("/api/tasks", role="product_discovery"))[0]["dispensary_id"] == elsewhere


async def test_only_due_stores(shop: Shop) -> None:
    due, fresh, elsewhere = (
        await shop.store("due", state="TX"), await shop.store("fresh", state="TX"), await shop.store("away", state="AZ"),
    )  # fmt: skip
    await shop.execute("UPDATE dispensaries SET last_crawled_at = now() WHERE id = %s", [fresh])
    done = await _post(shop, "enqueue-state", state_code="TX", only_due=True)
    assert done == {"state_code": "TX", "role": "payload_fetch", "stores": 2, "requested": 1, "created": 1}
    done = await _post(shop, "enqueue-state", only_due=True)
    assert done == {"state_code": None, "role": "payload_fetch", "stores": 3, "requested": 2, "created": 1}
    assert {task["dispensary_id"] for task in await shop.walk("/api/tasks")} == {due, elsewhere}


async def test_a_state_that_cannot_be_asked_for(shop: Shop) -> None:
    problem = await shop.refused("/api/job-queue/enqueue-state", 400, method="POST", json={"state_code": "TX"})
    assert problem["detail"] == "state 'TX' has no stores: no state has stores yet"
    await shop.store("one", state="TX")
    await shop.store("two", state="AZ")
    await shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE state = 'AZ'")
    # fmt: off
    refused: list[tuple[int, dict[str, Any], str, str]] = [
        (400, {"state_code": "ZZ"}, "state_code", "state 'ZZ' does not exist: stores exist in AZ, TX"),
        (400, {"state_code": "Texas"}, "state_code", "'Texas' does not exist: stores exist in AZ, TX"),
        (400, {"state_code": "CA"}, "state_code", "'CA' has no stores: stores exist in AZ, TX"),
        (400, {"state_code": "AZ"}, "state_code", "none of the 1 stores in AZ can be crawled"),
        (400, {"state_code": "TX", "platform": "nowhere"}, "platform", "use one of: dutchie"),
        (400, {"state_code": "TX", "role": "product_refresh"}, "role", "use one of: payload_fetch, product_discovery"),
        (422, {"state_code": "TX", "role": "sweep"}, "role", "product_resync"),
        (422, {"state_code": "TX", "priority": 5000}, "priority", "between -1000 and 1000"),
        (422, {"state_code": "TX", "scheduled_for": "soon"}, "scheduled_for", "is not a valid date and time"),
        (422, {"role": "payload_fetch"}, "state_code", "required"),
        (422, {"state_code": "TX\x00"}, "state_code", "NUL"),
    ]
    # fmt: on
    for status, body, field, says in refused:
        problem = await shop.refused("/api/job-queue/enqueue-state", status, method="POST", json=body)
        (error,) = problem["errors"]
        assert error["pointer"] == f"#/{field}", body
        assert says in error["detail"], body
    assert await _total(shop) == 0
