"""Requests over HTTP, and the story of a task that they are part of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.api.shop import Shop, item

NOW = datetime.now(UTC).replace(microsecond=0)


async def _attempt(shop: Shop, seconds: float = 0, **more: Any) -> None:
    row = {
        "task_id": 1, "dispensary_id": None, "host": "dutchie.com", "proxy_id": None, "profile": "chrome", "verdict": "ok",
        "blame": "none", "reaction": "return", "status": 200, "rotated": False, "waited_ms": 10.04, "bytes": 1000, "elapsed_ms": 120,
        "error": None, "attempted_at": NOW + timedelta(seconds=seconds), **more,
    }  # fmt: skip
    names = ", ".join(row)
    await shop.execute("SELECT ensure_fetch_attempts_partition(%s)", [row["attempted_at"]])
    await shop.execute(
        f"INSERT INTO fetch_attempts ({names}) VALUES ({', '.join(['%s'] * len(row))})", list(row.values())
    )


REFUSED = {
    "verdict": "blocked",
    "blame": "identity",
    "reaction": "rotate",
    "status": 403,
    "rotated": True,
    "error": "HTTP 403",
}


async def _proxy(shop: Shop) -> int:
    await shop.execute(
        "INSERT INTO proxies (protocol, host, port, username, password, is_active)"
        " VALUES ('http', '10.0.0.1', 80, 'u', 'S3cret', true)"
    )
    number: int = (await shop.ask("/api/proxies"))["items"][0]["id"]
    return number


async def test_newest_first_by_page_and_by_filter(shop: Shop) -> None:
    proxy = await _proxy(shop)
    for n in range(7):
        await _attempt(shop, n // 2, task_id=n % 2 + 1, proxy_id=proxy, dispensary_id=n + 1)
    await _attempt(shop, -86_400, host="other.example", task_id=None, proxy_id=None, profile=None, status=None)
    await _attempt(shop, -1, **REFUSED, task_id=3, proxy_id=99)

    async def numbers(**params: Any) -> list[int]:
        return [one["id"] for one in await shop.walk("/api/attempts", limit=2, **params)]

    assert await numbers() == [7, 6, 5, 4, 3, 2, 1, 9, 8], "also across days"
    assert await numbers(task_id=2) == [6, 4, 2]
    assert await numbers(dispensary_id=5) == [5]
    assert await numbers(host="Other.Example") == [8]
    assert await numbers(proxy_id=proxy) == [7, 6, 5, 4, 3, 2, 1]
    assert await numbers(verdict=["blocked", "challenge"]) == [9]
    assert await numbers(since=(NOW + timedelta(seconds=2)).isoformat()) == [7, 6, 5]
    assert await numbers(until=NOW.isoformat()) == [9, 8]
    assert await numbers(host="nobody.example") == []
    items = (await shop.ask("/api/attempts?limit=200"))["items"]
    assert (items[0]["proxy"], items[0]["waited_ms"]) == ("http://u@10.0.0.1:80", 10.0)
    assert (items[-2]["proxy_id"], items[-2]["proxy"], items[-2]["reaction"]) == (99, None, "rotate"), "removed since"
    assert "S3cret" not in (await shop.http.get("/api/attempts")).text


async def test_bad_questions(shop: Shop) -> None:
    for query, name in (
        ("verdict=fine", "verdict"), ("since=now", "since"), ("host=", "host"), ("proxy_id=0", "proxy_id"), ("task_id=x", "task_id"),
        ("proxy=1", "proxy"), ("host=a%00", "host"), ("limit=0", "limit"),
    ):  # fmt: skip
        problem = await shop.refused(f"/api/attempts?{query}", 422)
        assert [error["parameter"] for error in problem["errors"]] == [name], query
    await _attempt(shop, 0)
    await _attempt(shop, 1)
    cursor = (await shop.ask("/api/attempts?limit=1"))["next"]
    await shop.refused("/api/attempts", 400, params={"host": "dutchie.com", "cursor": cursor})
    await shop.refused("/api/attempts?cursor=x", 400)
    await shop.refused("/api/tasks/77/attempts", 404)
    await shop.refused("/api/tasks/0/attempts", 422)


async def _ended(shop: Shop, task: int, role: str, *, worker: str = "w1") -> None:
    await shop.execute("SELECT claim_task(%s, %s)", [role, worker])
    await shop.execute(
        "SELECT finish_tasks(%s, ARRAY[%s::bigint], ARRAY[1], ARRAY['done'], ARRAY[NULL::text], ARRAY[NULL::jsonb], ARRAY[0::float8],"
        " ARRAY[NULL::timestamptz], ARRAY[0::float8])",
        [worker, task],
    )


async def _task(shop: Shop, **body: Any) -> int:
    answer = await shop.http.post("/api/tasks", json=body)
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["task"]["id"]
    return number


async def test_the_story_of_a_crawl(shop: Shop) -> None:
    store, proxy = await shop.store(), await _proxy(shop)
    task = await _task(shop, role="payload_fetch", dispensary_id=store)
    now = datetime.now(UTC) - NOW
    await _attempt(shop, now.total_seconds(), task_id=task, proxy_id=proxy, **REFUSED)
    await _attempt(shop, now.total_seconds(), task_id=task, bytes=5, waited_ms=1500)
    await _attempt(shop, now.total_seconds(), task_id=task + 1)
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('dutchie.com', 2, 4, 6, 2)"
    )
    ours = "dutchie.com"
    for host, kind, seconds in (
        (ours, "rate_reduced", 1),
        (ours, "changed", 1),
        (ours, "rate_reduced", 90),
        ("x", "rate_reduced", 1),
    ):
        await shop.execute(
            "INSERT INTO host_events (host, kind, reason, happened_at) VALUES (%s, %s, 'why', %s)",
            [host, kind, NOW + now + timedelta(seconds=seconds)],
        )
    found = await shop.ask(f"/api/tasks/{task}/explain")
    story = found["story"]
    assert (found["code"], story["origin"]["kind"], story["origin"]["text"]) == ("no_worker", "request", "on demand")
    assert [one["verdict"] for one in story["requests"]] == ["blocked", "ok"], "the oldest first, its own alone"
    assert (story["requests_total"], story["troubles"], story["rotations"]) == (2, 1, 1)
    assert (story["waited_ms"], story["elapsed_ms"], story["bytes"]) == (1510.0, 240.0, 1005)
    assert [(one["host"], one["kind"]) for one in story["events"]] == [("dutchie.com", "rate_reduced")]
    assert (story["payload_id"], story["followed"]) == (None, [])
    assert [one["id"] for one in await shop.walk(f"/api/tasks/{task}/attempts")] == [2, 1]

    payload = await shop.crawl(store, 0, [item("a")])
    await shop.execute("UPDATE raw_crawl_payloads SET task_id = %s WHERE id = %s", [task, payload])
    await _ended(shop, task, "payload_fetch")
    refresh = await _task(shop, role="product_refresh", dispensary_id=store, payload={"payload_id": payload})
    story = (await shop.ask(f"/api/tasks/{task}/explain"))["story"]
    assert story["payload_id"] == payload
    assert [(one["id"], one["role"], one["status"]) for one in story["followed"]] == [
        (refresh, "product_refresh", "pending")
    ]
    origin = (await shop.ask(f"/api/tasks/{refresh}/explain"))["story"]["origin"]
    assert origin == {
        "kind": "task",
        "text": f"by task {task} (payload_fetch)",
        "task_id": task,
        "role": "payload_fetch",
    }
    assert "story" not in (await shop.ask(f"/api/tasks/{task}"))["explanation"]


async def test_what_enqueued_it(shop: Shop) -> None:
    store, other = await shop.store(), await shop.store("other")
    await shop.execute(
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES ('nightly', 'payload_fetch', 4, now())"
    )
    await shop.execute(
        "SELECT fire_schedule(id, now(), now(), now() + interval '4 hours') FROM task_schedules WHERE name = 'nightly'"
    )
    tasks = (await shop.ask("/api/tasks"))["items"]
    assert len(tasks) == 2
    for task in tasks:
        origin = (await shop.ask(f"/api/tasks/{task['id']}/explain"))["story"]["origin"]
        assert (origin["kind"], origin["text"]) == ("schedule", "by the schedule nightly")
    # A store's first crawl follows from what found it, in the same transaction.
    found = await _task(shop, role="entry_point_discovery", dispensary_id=store)
    await shop.execute("SELECT claim_task('entry_point_discovery', 'w1')")
    await shop.execute(
        "WITH c AS (INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES ('product_discovery', %s, 10))"
        " SELECT finish_tasks('w1', ARRAY[%s::bigint], ARRAY[1], ARRAY['done'], ARRAY[NULL::text], ARRAY[NULL::jsonb],"
        " ARRAY[0::float8], ARRAY[NULL::timestamptz], ARRAY[0::float8])",
        [store, found],
    )
    (first,) = (await shop.ask("/api/tasks?role=product_discovery"))["items"]
    origin = (await shop.ask(f"/api/tasks/{first['id']}/explain"))["story"]["origin"]
    assert (origin["task_id"], origin["role"]) == (found, "entry_point_discovery")
    story = (await shop.ask(f"/api/tasks/{found}/explain"))["story"]
    assert [one["id"] for one in story["followed"]] == [first["id"]]
    # One that somebody asked for long after is nobody's.
    later = await _task(shop, role="product_discovery", dispensary_id=other)
    await shop.execute("UPDATE task_live SET created_at = now() + interval '1 minute' WHERE id = %s", [later])
    assert (await shop.ask(f"/api/tasks/{later}/explain"))["story"]["origin"]["kind"] == "request"


async def test_a_task_with_thousands_of_requests(shop: Shop) -> None:
    task = await _task(shop, role="store_discovery")
    await shop.execute(
        "INSERT INTO fetch_attempts (task_id, host, verdict, blame, reaction, bytes) SELECT %s, 'd', 'ok', 'none', 'return', n"
        " FROM generate_series(1, 1200) n",
        [task],
    )
    story = (await shop.ask(f"/api/tasks/{task}/explain"))["story"]
    assert (len(story["requests"]), story["requests_total"], story["bytes"]) == (500, 1200, 720_600)
    assert (story["requests"][0]["bytes"], story["requests"][-1]["bytes"]) == (701, 1200)
