"""Proxies over HTTP: passwords go in and never come out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.platforms.base import Platform
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from tests.api.shop import Shop
from tests.fetch.target import NAME, Target, serving

BASE = "/api/proxies"


@pytest.fixture
async def farm() -> AsyncIterator[ProxyFarm]:
    started = await start_proxies(2, seed=5, names={NAME: "127.0.0.1"})
    yield started
    await started.close()


@pytest.fixture
async def target(farm: ProxyFarm) -> AsyncIterator[Target]:
    async with serving(farm) as started:
        yield started


@pytest.fixture
def app(pool: Pool, archive: FileArchive, platforms: dict[str, Platform], target: Target) -> FastAPI:
    settings = Settings(fetch_timeout_seconds=2, dutchie_base_url=target.url().rstrip("/"))
    return create_app(AppContext(pool=pool, archive=archive, platforms=platforms, settings=settings))


async def _add(shop: Shop, *lines: str, status: int = 201, **more: Any) -> Any:
    return await shop.ask(BASE, method="POST", status=status, json={"proxies": list(lines), **more})


async def test_each_is_tested_and_each_has_its_result(shop: Shop, farm: ProxyFarm, target: Target) -> None:
    await farm.fault(1, "auth")
    first, second = (info.url for info in farm.infos)
    found = await _add(shop, first, "S3cret nonsense", second, first, state="az", timezone="America/Phoenix")
    assert (found["added"], found["updated"], found["rejected"], found["inactive"]) == (2, 0, 1, 1)
    results = found["results"]
    assert [(one["index"], one["outcome"], one["active"]) for one in results] == [
        (0, "repeated", True),
        (1, "rejected", False),
        (2, "added", False),
        (3, "added", True),
    ]
    assert results[0]["id"] == results[3]["id"]
    assert "must not contain spaces" in results[1]["reason"]
    assert "rejected the credentials" in results[2]["reason"]
    proxy = await shop.ask(f"{BASE}/{results[2]['id']}")
    assert (proxy["status"], proxy["state"], proxy["has_password"]) == ("inactive", "AZ", True)
    assert proxy["reason"] == results[2]["reason"]
    assert proxy["probe_at"] is not None
    again = await _add(shop, first, status=200)
    assert (again["added"], again["updated"], again["results"][0]["outcome"]) == (0, 1, "updated")


async def test_no_answer_holds_a_password(shop: Shop, farm: ProxyFarm, target: Target) -> None:
    texts = []
    for info in farm.infos:
        answer = await shop.http.post(BASE, json={"proxies": [info.url, f"{info.url}/S3cret", info.password]})
        texts.append(answer.text)
    for path in (BASE, f"{BASE}/1"):
        texts.append((await shop.http.get(path)).text)
    for act in ("test", "enable", "disable"):
        texts.append((await shop.http.post(f"{BASE}/1/{act}")).text)
    texts.append((await shop.http.post(BASE, json={"proxies": ["u:S3cret@x"], "colour": "S3cret"})).text)
    texts.append((await shop.http.delete(f"{BASE}/1")).text)
    assert not any(word in text for text in texts for word in ("S3cret", *(info.password for info in farm.infos)))


async def test_listed_by_page_and_by_state(shop: Shop) -> None:
    lines = [f"203.0.113.{n}:80" for n in range(1, 6)]
    assert (await _add(shop, *lines, force=True))["added"] == 5
    ids = [one["id"] for one in (await shop.ask(BASE))["items"]]
    await shop.ask(f"{BASE}/{ids[1]}/disable", method="POST", json={"reason": "too dear"})
    assert [one["id"] for one in await shop.walk(BASE, limit=2)] == ids
    (out,) = await shop.walk(BASE, active=False)
    assert (out["id"], out["status"], out["reason"], out["disabled_reason"]) == (
        ids[1],
        "disabled",
        "too dear",
        "too dear",
    )
    assert len(await shop.walk(BASE, active=True, limit=3)) == 4
    cursor = (await shop.ask(BASE, params={"limit": 1}))["next"]
    await shop.refused(BASE, 400, params={"limit": 1, "active": "true", "cursor": cursor})


async def test_taken_out_and_put_back(shop: Shop, farm: ProxyFarm, target: Target) -> None:
    (one,) = (await _add(shop, farm.infos[0].url))["results"]
    path = f"{BASE}/{one['id']}"
    assert (await shop.ask(f"{path}/disable", method="POST"))["reason"] == "disabled by an operator"
    await farm.fault(0, "dead")
    tested = await shop.ask(f"{path}/test", method="POST")
    assert (tested["ok"], tested["verdict"], tested["status"]) == (False, "proxy_down", None)
    assert (await shop.ask(f"{path}/enable", method="POST"))["status"] == "inactive"
    assert (await shop.ask(f"{path}/enable", method="POST", json={"force": True}))["status"] == "active"
    await farm.fault(0, None)
    assert (await shop.ask(f"{path}/test", method="POST"))["verdict"] == "ok"
    assert (await shop.ask(f"{path}/enable", method="POST"))["status"] == "active"
    assert (await shop.ask(path, method="DELETE"))["id"] == one["id"]
    await shop.refused(path, 404)


async def test_what_cannot_be_done_is_a_problem_that_names_it(shop: Shop) -> None:
    problem = await shop.refused(BASE, 422, method="POST", json={"proxies": ["ok.example", "S3cret@"]})
    assert [error["pointer"] for error in problem["errors"]] == ["#/proxies/0", "#/proxies/1"]
    assert "no port" in problem["errors"][0]["detail"]
    for body, pointer, says in (
        ({"proxies": ["203.0.113.1:80"], "state": "Arizona"}, "#/state", "two letters, e.g. AZ"),
        ({"proxies": ["203.0.113.1:80"], "state": "ON", "country": "US"}, "#/state", "not a state or province"),
        ({"proxies": ["203.0.113.1:80"], "country": "UK"}, "#/country", "GB"),
        ({"proxies": ["203.0.113.1:80"], "timezone": "Mars"}, "#/timezone", "IANA"),
    ):
        problem = await shop.refused(BASE, 400, method="POST", json=body)
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
        assert says in problem["detail"]
    for body, pointer in (
        ({}, "#/proxies"),
        ({"proxies": []}, "#/proxies"),
        ({"proxies": ["203.0.113.1:80"] * 101}, "#/proxies"),
        ({"proxies": ["203.0.113.1:80"], "force": "yes"}, "#/force"),
        ({"proxies": [7]}, "#/proxies/0"),
    ):
        problem = await shop.refused(BASE, 422, method="POST", json=body)
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
    await shop.refused(f"{BASE}/0", 422)
    for act, method in (("", "GET"), ("", "DELETE"), ("/enable", "POST"), ("/disable", "POST"), ("/test", "POST")):
        assert "proxy 999 does not exist" in (await shop.refused(f"{BASE}/999{act}", 404, method=method))["detail"]
    assert (await shop.ask(BASE))["items"] == []


async def test_list_filters_by_status_and_text(shop: Shop) -> None:
    await _add(shop, "203.0.113.1:80", "socks5://203.0.113.2:1080", force=True, city="Phoenix", state="AZ")
    first, second = (proxy["id"] for proxy in (await shop.ask(BASE))["items"])
    await shop.ask(f"{BASE}/{first}/disable", method="POST")

    async def ids(**query: str) -> list[int]:
        return [proxy["id"] for proxy in (await shop.ask(BASE, params=query))["items"]]

    assert await ids(status="disabled") == [first]
    assert await ids(status="active") == [second]
    assert await ids(status="failing") == []
    assert await ids(q="socks5") == [second]
    assert await ids(q="phoenix") == [first, second]
    assert await ids(q="phoenix", status="disabled") == [first]
    await shop.refused(BASE, 422, params={"status": "asleep"})


async def test_the_address_as_shown_finds_the_proxy(shop: Shop) -> None:
    await _add(shop, "http://anna:secret@[2001:db8::1]:8080", "203.0.113.1:8080", force=True)
    (row,) = (await shop.ask(BASE, params={"q": "anna@[2001:db8::1]:8080"}))["items"]
    assert row["address"] == "http://anna@[2001:db8::1]:8080"


async def test_location_is_set_in_part_and_cleared(shop: Shop) -> None:
    await _add(shop, "203.0.113.1:80", force=True, city="Phoenix", state="AZ")
    path = f"{BASE}/{(await shop.ask(BASE))['items'][0]['id']}"
    proxy = await shop.ask(path, method="PATCH", json={"country": "us", "timezone": "America/Phoenix"})
    location = [proxy[name] for name in ("city", "state", "country", "timezone")]
    assert location == ["Phoenix", "AZ", "US", "America/Phoenix"]
    assert (await shop.ask(path, method="PATCH", json={"city": None}))["city"] is None
    problem = await shop.refused(path, 400, method="PATCH", json={"state": "ON"})
    assert [error["pointer"] for error in problem["errors"]] == ["#/state"]
    await shop.refused(path, 422, method="PATCH", json={})
    await shop.refused(f"{BASE}/999", 404, method="PATCH", json={"city": "Phoenix"})


async def test_tags_filter_and_many_are_changed_after_a_preview(shop: Shop) -> None:
    await _add(shop, *[f"203.0.113.{n}:80" for n in range(1, 5)], force=True)
    ids = [one["id"] for one in (await shop.ask(BASE))["items"]]
    tagged = await shop.ask(f"{BASE}/{ids[0]}", method="PATCH", json={"tags": ["Pool-B", "a", "a"]})
    assert tagged["tags"] == ["a", "pool-b"]
    assert (await shop.ask(f"{BASE}/{ids[0]}", method="PATCH", json={"city": "Tempe"}))["tags"] == ["a", "pool-b"]
    problem = await shop.refused(f"{BASE}/{ids[0]}", 400, method="PATCH", json={"tags": ["no spaces"]})
    assert [error["pointer"] for error in problem["errors"]] == ["#/tags"]
    await shop.refused(f"{BASE}/{ids[0]}", 400, method="PATCH", json={"tags": [f"t{n}" for n in range(11)]})

    async def bulk(action: str, **body: Any) -> Any:
        return await shop.ask(f"{BASE}/bulk/{action}", method="POST", json=body)

    found = await bulk("tag", ids=ids[:3], new_tag="A", dry_run=True)
    assert (found["matched"], found["would"], found["done"], found["skipped"]) == (3, 2, 0, {"tagged": 1})
    assert found["ids"] == ids[1:3]
    assert (await bulk("tag", ids=ids[:3], new_tag="A"))["done"] == 2
    assert [one["id"] for one in (await shop.ask(BASE, params={"tag": "A"}))["items"]] == ids[:3]

    preview = await bulk("disable", tag="a", dry_run=True)
    await shop.ask(f"{BASE}/{ids[2]}", method="PATCH", json={"tags": None})
    problem = await shop.refused(
        f"{BASE}/bulk/disable", 409, method="POST", json={"tag": "a", "version": preview["version"]}
    )
    assert "2 would change now" in problem["detail"]
    done = await bulk("disable", tag="a", reason="too dear")
    assert (done["done"], done["by_status"]) == (2, {"active": 2})
    (waits,) = [one for one in await shop.walk(BASE, status="disabled") if one["id"] == ids[0]]
    assert waits["reason"] == "too dear"
    assert (await bulk("enable", all=True))["skipped"] == {"active": 2}
    untested = await shop.ask(BASE, params={"status": "untested"})
    assert [(one["id"], one["status"], one["last_failure_at"]) for one in untested["items"]] == [
        (ids[0], "untested", None),
        (ids[1], "untested", None),
    ]
    assert (await bulk("test", all=True))["done"] == 4
    assert (await bulk("remove", status="untested"))["done"] == 2
    assert [one["id"] for one in (await shop.ask(BASE))["items"]] == ids[2:]


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [
        ("test", {}, 422),
        ("test", {"ids": [1], "tag": "a"}, 422),
        ("test", {"all": True, "q": "x"}, 422),
        ("test", {"ids": []}, 422),
        ("burn", {"all": True}, 422),
        ("tag", {"all": True}, 400),
        ("tag", {"all": True, "new_tag": "a,b"}, 400),
    ],
)
async def test_a_bulk_change_needs_a_clear_selection(
    shop: Shop, action: str, body: dict[str, Any], status: int
) -> None:
    await shop.refused(f"{BASE}/bulk/{action}", status, method="POST", json=body)


async def test_statistics_count_the_last_day(shop: Shop, pool: Pool) -> None:
    await _add(shop, "203.0.113.1:80", "203.0.113.2:80", force=True)
    path, other = (f"{BASE}/{one['id']}/statistics" for one in (await shop.ask(BASE))["items"])
    none = await shop.ask(other)
    assert (none["requests"], none["block_rate"], len(none["hours"]), none["hosts"]) == (0, None, 24, [])
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_fetch_attempts_partition(now() - interval '1 day')")
        await conn.execute(
            "INSERT INTO fetch_attempts (host, proxy_id, verdict, blame, reaction, bytes, elapsed_ms, attempted_at) "
            "SELECT 'h.example', p.id, CASE n WHEN 1 THEN 'rate_limited' ELSE 'ok' END, 'none', 'return', 10, 100 * n, "
            "now() - (n - 1) * interval '1 day' - CASE n WHEN 1 THEN interval '0' ELSE interval '-12 hours' END "
            "FROM proxies p, generate_series(1, 2) n WHERE p.host = '203.0.113.1'"
        )
    found = await shop.ask(path)
    assert (found["requests"], found["succeeded"], found["refused"], found["bytes"]) == (2, 1, 1, 20)
    assert found["hours"][-1]["refused"] == 1
    assert [hour["average_ms"] for hour in found["hours"] if hour["succeeded"]] == [200]
    (host,) = found["hosts"]
    assert (host["host"], host["block_rate"], host["success_rate"]) == ("h.example", 0.5, None)
    await shop.refused(f"{BASE}/999/statistics", 404)
