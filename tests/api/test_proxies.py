"""Proxies over HTTP: passwords go in and never come out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI

from menuwatch.api.app import System, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.core.settings import Settings
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
    return create_app(System(pool=pool, archive=archive, platforms=platforms, settings=settings))


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
    assert "no spaces" in results[1]["reason"]
    assert "user or password" in results[2]["reason"]
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
    assert (await shop.ask(f"{path}/disable", method="POST"))["reason"] == "taken out by an operator"
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
        ({"proxies": ["203.0.113.1:80"], "state": "Arizona"}, "#/state", "two letters, as AZ"),
        ({"proxies": ["203.0.113.1:80"], "state": "ON", "country": "US"}, "#/state", "no state or province"),
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
        assert "no proxy has the number 999" in (await shop.refused(f"{BASE}/999{act}", 404, method=method))["detail"]
    assert (await shop.ask(BASE))["items"] == []
