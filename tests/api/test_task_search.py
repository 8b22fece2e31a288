"""Searches for tasks over HTTP: what `q` selects, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.queue.search_suggestions import suggest_terms
from tests.api.shop import Shop

ENDED = (
    "SELECT finish_tasks('w1', array_agg(id), array_agg(attempt), array_agg('fail'::text), array_agg(%s::text),"
    " array_agg(NULL::jsonb), array_agg(0::float8), array_agg(now()), array_agg(1::float8)) FROM claim_tasks(NULL, 'w1', 1)"
)


async def _filled(shop: Shop) -> dict[str, int]:
    """One task of each kind, by a name."""
    store = await shop.store()
    made: dict[str, int] = {}
    for name, role, place, priority, payload in (
        ("urgent", "store_discovery", None, 25, '{"city": "Phoenix", "deep": {"n": 5}}'),
        ("first", "product_refresh", store, 10, '{"payload_id": 7}'),
        ("fetch", "payload_fetch", store, 0, "{}"),
    ):
        async with shop.pool.connection() as conn:
            cursor = await conn.execute(
                "INSERT INTO worker_tasks (role, dispensary_id, priority, payload) VALUES (%s, %s, %s, %s::jsonb) RETURNING id",
                [role, place, priority, payload],
            )
            made[name] = (await cursor.fetchone() or [0])[0]
        if name == "first":
            await shop.execute(ENDED, ['payload 7 of "Green Leaf" is gone (seen 3 times)'])
            await shop.execute(ENDED, ["payload 12 of 'Other' is gone (seen once)"])
    made["store"] = store
    await shop.execute(
        "UPDATE task_history SET claimed_at = completed_at - interval '2 s', started_at = completed_at - interval '2 s' WHERE id = %s",
        [made["urgent"]],
    )
    await shop.execute('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["dutchie.com"]}\'')
    return made


async def test_each_qualifier_selects(shop: Shop) -> None:
    ids = await _filled(shop)
    (slug,) = [one["slug"] for one in await shop.walk("/api/stores")]
    failed = {ids["urgent"], ids["first"]}
    every = failed | {ids["fetch"]}
    for text, expected in {
        "": every,
        "role:payload_fetch,product_resync": {ids["fetch"]},
        "state:failed": failed,
        f"store:{slug}": {ids["first"], ids["fetch"]},
        f"store:{ids['store']} state:pending": {ids["fetch"]},
        "worker:w1": failed,
        "platform:dutchie": every,
        f"id:{ids['fetch']},{ids['first']},999": {ids["fetch"], ids["first"]},
        "priority:>=10": failed,
        "priority:<10": {ids["fetch"]},
        "priority:10": {ids["first"]},
        "created:>=-1h": every,
        "created:<-1h": set(),
        "ended:>=-1h": failed,
        "ended:<-1h": set(),
        "args.payload_id:7": {ids["first"]},
        "args.city:Phoenix": {ids["urgent"]},
        "args.city:phoenix": set(),
        "args.deep.n:5 args.city:Phoenix": {ids["urgent"]},
        '"IS GONE" payload': failed,
        "gone nothing": set(),
        "-role:payload_fetch": failed,
        "-role:product_refresh,store_discovery": {ids["fetch"]},
        "-state:pending": failed,
        "-state:failed": {ids["fetch"]},
        "-state:ready state:pending,failed": failed,
        "-state:scheduled -role:product_refresh": {ids["urgent"], ids["fetch"]},
        "attempts:>0": failed,
        "attempts:0": {ids["fetch"]},
        "took:>500ms": {ids["urgent"]},
        "took:<500ms": {ids["first"]},
        "took:<1h": failed,
        "host:dutchie.com": {ids["urgent"], ids["fetch"]},
        "host:dutchie.com role:product_refresh": set(),
    }.items():
        listed = await shop.walk("/api/tasks", q=text, limit=1)
        assert {one["id"] for one in listed} == expected, text
        counts = await shop.ask("/api/tasks/counts", params={"q": text})
        assert counts["total"] == len(expected), text
        dry = await shop.http.post("/api/tasks/bulk/cancel", json={"q": text or "created:>=-1h", "dry_run": True})
        assert dry.json()["matched"] == len(expected), text


async def test_the_worker_parameter_takes_names(shop: Shop) -> None:
    ids = await _filled(shop)
    await shop.execute(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status)"
        " VALUES ('w1', 'Ada', 'Xylos', 'h', 1, 'stopped')"
    )
    for name in ("w1", "ada", "Xylos/Ada"):
        assert {one["id"] for one in await shop.walk("/api/tasks", worker_id=name)} == {ids["urgent"], ids["first"]}
    refused = await shop.http.get("/api/tasks", params={"worker_id": "Zoe"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["parameter"] == "worker_id"


async def test_failures_of_one_cause_are_found_and_done_again_together(shop: Shop) -> None:
    """Both say the same but for numbers and names."""
    ids = await _filled(shop)
    async with shop.pool.connection() as conn:
        rows = await (await conn.execute("SELECT DISTINCT cause FROM task_history")).fetchall()
    assert len(rows) == 1
    q = f"cause:{rows[0][0]}"
    assert {one["id"] for one in await shop.walk("/api/tasks", q=q)} == {ids["urgent"], ids["first"]}
    assert (await shop.ask("/api/tasks/counts", params={"q": q}))["failed"] == 2
    done = await shop.http.post("/api/tasks/bulk/retry", json={"q": q})
    assert (done.status_code, done.json()["matched"], done.json()["done"]) == (200, 2, 2)
    none = await shop.http.post("/api/tasks/bulk/retry", json={"q": "cause:000000000000", "dry_run": True})
    assert none.json()["matched"] == 0


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"q": "role:nope state:nope"}, ["at 1: unknown role 'nope'", "at 11: unknown state 'nope'"]),
        ({"q": "store:nowhere"}, ["store 'nowhere' does not exist"]),
        ({"q": "host:nowhere.example"}, ["no task requests 'nowhere.example'"]),
        ({"q": "platform:nowhere"}, ["unknown platform 'nowhere'; use one of: "]),
        ({"q": "role:payload_fetch", "role": "payload_fetch"}, ["omit roles"]),
        ({"q": 'error:"open'}, ["the quote is not closed"]),
    ],
)
async def test_what_cannot_be_read_is_refused(shop: Shop, params: dict[str, Any], said: list[str]) -> None:
    for path in ("/api/tasks", "/api/tasks/counts"):
        answer = await shop.http.get(path, params=params)
        assert answer.status_code == 422
        errors = answer.json()["errors"]
        assert [one["parameter"] for one in errors] == ["q"] * len(said)
        assert all(text in one["detail"] for text, one in zip(said, errors, strict=True))
    body = {"q": params["q"], **({"role": [params["role"]]} if "role" in params else {})}
    answer = await shop.http.post("/api/tasks/bulk/retry", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/q")


async def test_pages_go_on_where_times_are_told_from_now(shop: Shop) -> None:
    await _filled(shop)
    first = await shop.ask("/api/tasks", params={"q": "created:>=-1h", "limit": 1})
    second = await shop.ask("/api/tasks", params={"q": "created:>=-1h", "limit": 1, "cursor": first["next"]})
    assert first["items"][0]["id"] > second["items"][0]["id"]
    other = await shop.http.get("/api/tasks", params={"q": "created:>=-2h", "cursor": first["next"]})
    assert other.status_code == 400


async def test_suggestions_know_stores_and_workers(shop: Shop) -> None:
    await _filled(shop)
    await shop.execute(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, status)"
        " VALUES ('xy-1', 'Ada', 'Xylos', 'h', 1, 'active')"
    )
    (store,) = await shop.walk("/api/stores")
    async with shop.pool.connection() as conn:
        (one,) = await suggest_terms(conn, f"store:{store['slug'][:3]}", 9)
        assert (one.text, one.start) == (store["slug"], 6)
        (one,) = await suggest_terms(conn, "worker:ada", 10)
        assert (one.text, one.about) == ("xy-1", "Xylos Ada")
        assert [one.text for one in await suggest_terms(conn, "platform:", 9, platforms=["dutchie"])] == ["dutchie"]
