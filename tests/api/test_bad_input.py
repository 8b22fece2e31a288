"""Whatever comes in, what goes out is a problem that says what is wrong, and never what is inside."""

from __future__ import annotations

import re
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from menuwatch.api.problems import Problem
from tests.api.shop import Shop, item

LISTS = (
    "/api/tasks",
    "/api/payloads",
    "/api/stores",
    "/api/products",
    "/api/changes",
    "/api/brands",
    "/api/categories",
    "/api/attempts",
)


BAD_VALUES = [
    ("/api/products?limit=0", "limit", "at least 1"),
    ("/api/products?limit=1001", "limit", "at most 1000"),
    ("/api/brands?limit=201", "limit", "at most 200"),
    (
        "/api/products?near=35.08",
        "near",
        "unknown place '35.08': give a city with its state (Santa Fe, NM), a ZIP or postal code",
    ),
    ("/api/stores?near=95,10", "near", "or latitude and longitude (35.08,-106.65)"),
    ("/api/products?near=35,-106&miles=0", "miles", "greater than 0"),
    ("/api/stores?near=35,-106&miles=501", "miles", "at most 500"),
    ("/api/products?miles=10", "miles", "needs `near`"),
    ("/api/products?state=Atlantis", "state", "two letters such as AZ or ON"),
    ("/api/products?updated_since=2026-03-01", "updated_since", "write it as 2026-03-01T00:00:00Z"),
    ("/api/products?limit=many", "limit", "whole number"),
    ("/api/products?order=age", "order", "name, price, -price, updated"),
    ("/api/products?colour=red", "colour", "unknown; the parameters are "),
    ("/api/products?price_min=-1", "price_min", "at least 0"),
    ("/api/products?price_max=NaN", "price_max", "finite"),
    ("/api/products?price_max=1e999999999", "price_max", "at most"),
    ("/api/products?store=0", "store", "at least 1"),
    ("/api/products?store=99999999999", "store", "at most"),
    ("/api/products?stock=some", "stock", "in_stock, oos, unknown"),
    ("/api/products?q=", "q", "at least 1 character"),
    ("/api/products?q=a%00b", "q", "NUL"),
    ("/api/products?present=maybe", "present", "true or false"),
    ("/api/products/0", "product_id", "at least 1"),
    ("/api/products/abc", "product_id", "whole number"),
    ("/api/products/99999999999999999999", "product_id", "at most"),
    ("/api/changes?since=yesterday", "since", "is not a valid date and time: write it as 2026-11-20T14:30:00Z"),
    ("/api/changes?since=2026-02-30T00:00:00Z", "since", "day value is outside expected range"),
    ("/api/stores/1/menu?at=2026-03-01", "at", "write it as 2026-03-01T00:00:00Z"),
    ("/api/analytics/price-per-gram?category=foo", "category", "other, unknown"),
    ("/api/analytics/discounts?category=foo", "category", "other, all, unknown"),
    ("/api/schedules?x=1", "x", "unknown"),
    (
        "/api/changes?since=2026-01-01T00:00:00",
        "since",
        "has no UTC offset: write it as 2026-01-01T00:00:00Z or 2026-01-01T00:00:00+01:00",
    ),
    (
        "/api/changes?kind=colour",
        "kind",
        "price, price_drop, price_rise, stock, out_of_stock, back_in_stock, merged, split",
    ),
    ("/api/payloads?status=good", "status", "ok, partial, quarantined, rejected"),
    ("/api/payloads/store/1/diff?from=x", "from", "whole number"),
    ("/api/payloads/x/data", "payload_id", "whole number"),
    ("/api/tasks?status=asleep", "status", "pending"),
    ("/api/tasks?role=sweep", "role", "product_resync"),
    ("/api/tasks?dispensary_id=-4", "dispensary_id", "at least 1"),
    ("/api/tasks/counts?limit=5", "limit", "unknown; the parameters are role, status, "),
    ("/api/tasks?state=failed", "state", " status, "),
    ("/api/stores?crawl_enabled=2", "crawl_enabled", "true or false"),
]


async def test_values_that_cannot_be_used_are_named(shop: Shop) -> None:
    for path, name, says in BAD_VALUES:
        problem = await shop.refused(path, 422)
        assert problem["type"] == "/problems/invalid-request"
        (error,) = problem["errors"]
        assert (error["parameter"], says in error["detail"]) == (name, True), (path, error)
        assert name in problem["detail"]


async def test_every_wrong_value_is_named_at_once(shop: Shop) -> None:
    problem = await shop.refused("/api/products?limit=0&order=age&colour=red", 422)
    assert {e["parameter"] for e in problem["errors"]} == {"limit", "order", "colour"}


async def test_a_cursor_that_is_none(shop: Shop) -> None:
    for path in LISTS:
        for cursor in ("x", "!!", "é", "WyJ4Iiw=", "bnVsbA", "W10", "A" * 3000, ""):
            problem = await shop.refused(path, 400, params={"cursor": cursor})
            assert problem["type"] == "/problems/bad-cursor"
            assert "not a valid cursor" in problem["detail"]


async def test_a_cursor_of_another_list(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item(str(n)) for n in range(3)])
    cursor = (await shop.ask("/api/products?limit=1"))["next"]
    await shop.ask("/api/products", params={"limit": 3, "cursor": cursor})
    for params in ({"order": "price"}, {"q": "x"}, {"store": 1}):
        problem = await shop.refused("/api/products", 400, params={**params, "cursor": cursor})
        assert "belongs to another list" in problem["detail"]
    assert "belongs to another list" in (await shop.refused("/api/tasks", 400, params={"cursor": cursor}))["detail"]


# fmt: off
BAD_BODIES = [
    (b"{", "application/json", 400, "malformed-body"),
    (b"", "application/json", 422, "invalid-request"),
    (b"\xff\xfe", "application/json", 400, "malformed-body"),
    (b"[" * 100_000, "application/json", 400, "malformed-body"),
    (b'{"role": ' + b"9" * 5000 + b"}", "application/json", 400, "malformed-body"),
    (b'"text"', "application/json", 422, "invalid-request"),
    (b"role=store_discovery", "application/x-www-form-urlencoded", 415, "not-json"),
    (b'{"role": "store_discovery"}', "text/plain", 415, "not-json"),
    (b'{"role": "store_discovery", "payload": {"n": NaN}}', "application/json", 422, "invalid-request"),
    (b'{"role": "store_discovery", "payload": {"n": "\\ud800"}}', "application/json", 422, "invalid-request"),
    (b'{"role": "store_discovery", "payload": %s1%s}' % (b'{"a":' * 900, b"}" * 900), "application/json", 422, "invalid-request"),
    (b'{"role": "store_discovery", "payload": {"a": "' + b"x" * 1_000_000 + b'"}}', "application/json", 413, "body-too-large"),
]
# fmt: on


async def test_bodies(shop: Shop) -> None:
    for content, kind, status, problem in BAD_BODIES:
        found = await shop.refused("/api/tasks", status, method="POST", content=content, headers={"Content-Type": kind})
        assert found["type"] == f"/problems/{problem}", content[:60]
    assert (await shop.ask("/api/tasks/counts"))["total"] == 0
    found = await shop.refused("/api/tasks", 422, method="POST", json={"role": "store_discovery", "prioritty": 3})
    (error,) = found["errors"]
    assert error["pointer"] == "#/prioritty"
    assert "the fields are role, " in error["detail"]
    assert " priority" in error["detail"]


async def test_addresses_and_methods(shop: Shop) -> None:
    problem = await shop.refused("/api/nothing/here", 404)
    assert (problem["type"], problem["instance"]) == ("/problems/missing", "/api/nothing/here")
    answer = await shop.http.request("DELETE", "/api/tasks")
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "POST"})
    assert "GET" in answer.json()["detail"]


async def test_a_blank_in_an_offset_is_the_plus_that_it_was(shop: Shop) -> None:
    await shop.ask("/api/changes?since=2026-01-01T00:00:00+02:00")


async def test_the_request_has_one_id_everywhere(shop: Shop) -> None:
    given = await shop.http.get("/api/tasks/1", headers={"X-Request-Id": "trace-7"})
    assert (given.headers["x-request-id"], given.json()["trace_id"]) == ("trace-7", "trace-7")
    made = await shop.http.get("/api/tasks/1", headers={b"X-Request-Id": "no good\u00e9".encode()})
    assert re.fullmatch("[0-9a-f]{32}", made.headers["x-request-id"])
    assert made.json()["trace_id"] == made.headers["x-request-id"]


async def test_faults_say_nothing_of_the_inside(app: FastAPI, shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret is 4711")

    @app.get("/wrong")
    async def wrong() -> None:
        raise psycopg.errors.UndefinedTable('relation "secret_table" does not exist')

    for path, secret in (("/broken", "4711"), ("/wrong", "secret_table")):
        answer = await shop.http.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
        assert secret not in answer.text
        assert answer.json()["trace_id"] == answer.headers["x-request-id"]
        said = capsys.readouterr()
        assert secret in said.out + said.err, "the log has what the answer has not"
        assert answer.json()["trace_id"] in said.out + said.err


async def test_without_a_database_it_is_a_matter_of_waiting(shop: Shop) -> None:
    await shop.pool.close()
    answer = await shop.http.get("/api/products")
    problem = answer.json()
    assert (answer.status_code, problem["type"], answer.headers["retry-after"]) == (503, "/problems/unavailable", "5")
    assert "cannot be reached" in problem["detail"]


async def test_a_condition_that_holds_saves_the_body(shop: Shop) -> None:
    await shop.store()
    for path in LISTS:
        first = await shop.http.get(path)
        again = await shop.http.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    tag = (await shop.http.get("/api/stores")).headers["etag"]
    await shop.store("another")
    assert (await shop.http.get("/api/stores", headers={"If-None-Match": tag})).status_code == 200


async def test_the_link_header_leads_to_the_next_page(shop: Shop) -> None:
    for slug in ("one", "shore", "two", "three"):
        await shop.store(slug)
    first = await shop.http.get("/api/stores?limit=2&q=e")
    link = re.fullmatch(r'<(/api/stores\?[^>]+)>; rel="next"', first.headers["link"])
    assert link is not None
    second = await shop.http.get(link[1])
    assert [s["slug"] for s in first.json()["items"] + second.json()["items"]] == ["one", "shore", "three"]
    assert "link" not in second.headers


async def test_no_answer_holds_a_proxy_password(app: FastAPI, shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    await shop.execute(
        "INSERT INTO proxies (host, port, username, password) VALUES ('proxy.test', 8080, 'u', 'hunter2-secret')"
    )
    await shop.execute("INSERT INTO worker_registry (worker_id, friendly_name, host) VALUES ('w1', 'Kryll', 'h')")
    store = await shop.store()
    payload = await shop.crawl(store, 0, [item("a")])
    await shop.crawl(store, 1, [item("a"), item("b")])
    await shop.http.post("/api/tasks", json={"role": "payload_fetch", "dispensary_id": store})
    await shop.execute("INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('h.test', 1, 1, 1, 1)")
    await shop.http.post("/api/alerts", json={"name": "r", "condition": "out_of_stock", "store_id": store})
    await shop.execute("INSERT INTO proxy_scores VALUES ('h.test', 1, 1, 1, now())")
    await shop.execute(
        "INSERT INTO identity_leases (host, proxy_id, task_id, leased_at, expires_at)"
        " VALUES ('h.test', 1, 1, now(), now() + interval '1 hour')"
    )
    await shop.execute(
        "INSERT INTO fetch_attempts (task_id, host, proxy_id, verdict, blame, reaction)"
        " VALUES (1, 'h.test', 1, 'ok', 'none', 'return')"
    )
    await shop.execute(
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('s', 'analytics_refresh', 6, now())"
    )
    await shop.http.post("/api/crawl/jobs", json={"keywords": ["lamp"]})
    await shop.execute(
        "INSERT INTO crawl_products (job_id, item_id, site, site_product_id, keyword, name, url, currency, score, seen_at)"
        " VALUES (1, 1, 'cj', '7', 'lamp', 'Lamp', 'https://shop.test/7', 'USD', 50, now())"
    )
    await shop.execute("INSERT INTO canonical_products (name) VALUES ('Blue Dream')")
    await shop.execute("INSERT INTO brands (slug, name) VALUES ('acme', 'Acme')")
    await shop.execute("INSERT INTO locations (name) VALUES ('Acme')")
    await shop.execute(
        "INSERT INTO location_links (location_id, dispensary_id, confidence, reasons) VALUES (1, %s, 1, '[]')", [store]
    )
    values: dict[str, Any] = {
        "task_id": 1, "payload_id": payload, "product_id": 1, "canonical_product_id": 1, "canonical_id": 1,
        "brand_id": 1, "location_id": 1,
        "store_id": store,
        "dispensary_id": store, "role": "payload_fetch",
        "worker_id": "w1", "proxy_id": 1, "host": "h.test", "path": "placeholder",
        "rule_id": 1, "what": "products", "user_id": 1, "token_id": 1, "schedule_id": 1, "job_id": 1,
    }  # fmt: skip
    required = {
        "/api/search": {"q": "proxy"},
        "/api/analytics/cheapest-basket": {"item": "flower:3.5 g", "near": "33.45,-112.07"},
    }
    for path, methods in shop.description["paths"].items():
        if path in ("/api/events", "/api/matching/explain"):
            continue  # goes on for ten minutes, and tells names of topics; needs two listings
        if "get" in methods:
            answer = await shop.http.get(path.format(**values), params=required.get(path, {}))
            assert answer.status_code == 200, (path, answer.text)
            assert "hunter2" not in answer.text + str(answer.headers), path
    said = capsys.readouterr()
    assert "hunter2" not in said.out + said.err


async def test_every_kind_of_problem_has_a_page(shop: Shop) -> None:
    for kind in Problem.__subclasses__():
        page = await shop.http.get(f"/problems/{kind.slug()}")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert kind.title in page.text
        assert kind.__doc__ is not None
        assert kind.__doc__.split(".")[0].split("`")[0].strip()[:30] in page.text
    await shop.refused("/problems/none", 404)


async def test_over_a_real_socket(app: FastAPI, shop: Shop) -> None:
    """One walk through uvicorn: what the in-process transport cannot show (chunked bodies, a client that does not decode)."""
    import asyncio

    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=shop.http.headers) as http:
            assert (await http.get("/healthz")).json()["status"] == "ok"

            async def endless() -> Any:
                for _ in range(200):
                    yield b" " * 10_000

            answer = await http.post("/api/tasks", content=endless(), headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["type"]) == (413, "/problems/body-too-large")
            assert (await http.get("/api/products")).json() == {"items": [], "next": None}
    finally:
        server.should_exit = True
        await serving
