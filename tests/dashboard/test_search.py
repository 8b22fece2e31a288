"""The search for everything: by number, name and misspelled name; actions by permission; the API finds the same."""

from __future__ import annotations

import re
import time

import httpx
import pytest

from menuwatch.accounts.model import ALLOWED, Principal, Role
from menuwatch.dashboard.commands import general, on_objects
from menuwatch.db.pool import Pool
from menuwatch.ops.quick_search import search
from tests.dashboard.task_rows import store, waiting
from tests.dashboard.worker_rows import enter

HITS = re.compile(r'<a class="hit" href="/admin([^"]+)">')


@pytest.fixture
async def market(pool: Pool) -> dict[str, int]:
    """Three stores, a task, a host, a proxy, a worker and a schedule."""
    ids = {
        "newark": await store(pool, "mm-newark", "Mile Marker Newark Rosewood"),
        "reno": await store(pool, "mm-reno", "Mile Marker Reno"),
        "other": await store(pool, "green-leaf", "Green Leaf"),
    }
    ids["task"] = await waiting(pool, "payload_fetch", of=ids["newark"])
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate) VALUES ('dutchie.example', 2, 4, 6, 0, 2)"
        )
        await conn.execute("INSERT INTO proxies (host, port, city) VALUES ('203.0.113.9', 8080, 'Newark')")
    await enter(pool, "ada-1")
    return ids


async def _found(client: httpx.AsyncClient, text: str) -> list[str]:
    answer = await client.get("/admin/search", params={"q": text})
    assert answer.status_code == 200
    return [one for one in HITS.findall(answer.text) if not one.startswith(("/products?", "/tasks?q=" + text))]


async def test_stores_are_found_by_parts_of_their_name_and_despite_an_error(
    admin: httpx.AsyncClient, market: dict[str, int]
) -> None:
    assert (await _found(admin, "mile marker newark rosewood"))[0] == f"/stores/{market['newark']}"
    assert (await _found(admin, "rosewood mile"))[0] == f"/stores/{market['newark']}"
    assert {f"/stores/{market['newark']}", f"/stores/{market['reno']}"} <= set(await _found(admin, "Mile Marker"))
    for wrong in ("rosewod", "roswood", "rosewoood", "rosewxod", "mile roesewood"):
        assert f"/stores/{market['newark']}" in await _found(admin, wrong), wrong
    assert not [one for one in await _found(admin, "zanzibar") if one.startswith("/stores")]


async def test_what_else_is_found(admin: httpx.AsyncClient, market: dict[str, int]) -> None:
    assert (await _found(admin, str(market["task"])))[0] == f"/tasks/{market['task']}"
    assert "/hosts/dutchie.example" in await _found(admin, "dutchie")
    assert "/workers/ada-1" in await _found(admin, "ada")
    assert any(one.startswith("/proxies/") for one in await _found(admin, "203.0.113"))
    assert any(one.startswith("/users/") for one in await _found(admin, "tester")) or await _found(admin, "users")
    assert "/schedules" in await _found(admin, "schedul")
    # What stands for a pattern in SQL is a text like any other.
    assert not [one for one in await _found(admin, "%") if one.startswith("/stores")]


async def test_a_verb_gives_actions_on_what_is_named(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, market: dict[str, int]
) -> None:
    page = (await admin.get("/admin/search", params={"q": "pause dutchie"})).text
    assert 'href="/admin/hosts/dutchie.example/pause"' in page
    page = (await admin.get("/admin/search", params={"q": "crawl newark"})).text
    assert f'action="/admin/stores/{market["newark"]}/crawl"' in page
    assert f'action="/admin/stores/{market["reno"]}/crawl"' not in page
    assert "/admin/workers" in (await admin.get("/admin/search", params={"q": "scale"})).text
    page = (await viewer.get("/admin/search", params={"q": "pause dutchie"})).text
    assert "hosts/dutchie.example/pause" not in page
    assert "/admin/users" not in (await viewer.get("/admin/search", params={"q": "users"})).text


async def test_a_paused_host_is_resumed(pool: Pool, market: dict[str, int]) -> None:
    who = Principal(name="a", role=Role.ADMIN, permissions=ALLOWED[Role.ADMIN])
    async with pool.connection() as conn:
        await conn.execute("UPDATE hosts SET paused_at = now(), paused_reason = 'test'")
        found = await search(conn, "dutchie.example")
    assert [(one.path, one.fields) for one in on_objects(found, "resume", who)] == [
        ("/hosts/dutchie.example/resume", ())
    ]
    assert on_objects(found, "pause", who) == []
    async with pool.connection() as conn:
        await conn.execute("UPDATE hosts SET paused_until = now() - interval '1 second'")
        found = await search(conn, "dutchie.example")
    assert [(one.state, one.detail) for one in found] == [("active", None)]
    assert [one.path for one in on_objects(found, "pause", who)] == ["/hosts/dutchie.example/pause"]
    assert [one.path for one in general(["audit"], who)] == ["/audit"]


async def test_a_worker_without_a_heartbeat_is_silent(pool: Pool) -> None:
    await enter(pool, "eve-1", silent=600)
    who = Principal(name="a", role=Role.ADMIN, permissions=ALLOWED[Role.ADMIN])
    async with pool.connection() as conn:
        found = await search(conn, "eve-1")
    assert [(one.state, one.detail) for one in found] == [("silent", "eve-1 · Xylos · silent")]
    assert on_objects(found, None, who) == []


async def test_an_exact_name_is_opened_and_others_are_listed(admin: httpx.AsyncClient, market: dict[str, int]) -> None:
    async def leads(text: str) -> str:
        return (await admin.get("/admin/jump", params={"q": text})).headers["location"]

    assert await leads(f"#{market['task']}") == f"/admin/tasks/{market['task']}"
    assert await leads("mile marker reno") == f"/admin/stores/{market['reno']}"
    assert await leads("mm-reno") == f"/admin/stores/{market['reno']}"
    assert await leads("dutchie.example") == "/admin/hosts/dutchie.example"
    assert await leads("mile marker") == "/admin/search?q=mile%20marker"


async def test_many_stores_are_searched_fast(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dispensaries (platform, slug, name, name_raw) "
            "SELECT 'dutchie', 'bulk-' || n, 'Bulk Store ' || md5(n::text), 'x' FROM generate_series(1, 20000) n"
        )
        await conn.execute(
            "INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('dutchie', 'one', 'Copperhead Tucson', 'x')"
        )
        await search(conn, "warm")
        times = []
        for text in ("copperhead", "bulk store", "coperhead", "nothing at all"):
            began = time.perf_counter()
            found = await search(conn, text)
            times.append(time.perf_counter() - began)
            if "opper" in text or text == "coperhead":
                assert [one.name for one in found] == ["Copperhead Tucson"]
    # The target is 100 ms for the whole page; here only that no search reads for seconds, also on a busy machine.
    assert max(times) < 2, times


async def test_each_command_without_an_object_leads_to_a_screen(admin: httpx.AsyncClient) -> None:
    offered = list(general((), Principal(name="admin", role=Role.ADMIN, permissions=ALLOWED[Role.ADMIN])))
    assert "New alert rule…" in [one.name for one in offered]
    for command in offered:
        if command.fields is None:
            page = await admin.get(f"/admin{command.path}")
            assert page.status_code == 200, command.name
