"""Each kind of misbehaviour, over real sockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from menuwatch.sim.fault_injection import ApiRequest, Faults
from menuwatch.sim.market import Market
from menuwatch.sim.server import SimServer
from menuwatch.sim.stats import KEPT, Arrival, Arrivals, busiest
from tests.sim.client import Client, client, products
from tests.sim.conftest import Serve

MARKET = Market(stores=4, products=250)
STORE = MARKET.stores[0]


@asynccontextmanager
async def misbehaving(serve: Serve, **wanted: Any) -> AsyncIterator[tuple[SimServer, Client]]:
    server = await serve(stores=4, products=250, faults=wanted)
    async with client(server.hello()["graphql_url"]) as c:
        yield server, c


async def control(server: SimServer, method: str, path: str, body: Any = None) -> Any:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.request(method, server.hello()["control_url"] + path, json=body)
        return answer.json()


async def test_forbidden_until_the_user_agent_changes(serve: Serve) -> None:
    async with misbehaving(serve, forbidden={"rate": 1, "limit": 1}) as (server, first):
        bodies = [await first.page(STORE.id) for _ in range(4)]
        assert [answer.status_code for answer in bodies] == [403] * 4
        assert {answer.headers["content-type"].partition(";")[0] for answer in bodies} == {
            "text/html",
            "application/json",
        }
        async with client(server.hello()["graphql_url"], agent="Other/2.0") as second:
            assert (await second.page(STORE.id)).status_code == 200
        assert (await first.page(STORE.id)).status_code == 403
        stats = await control(server, "GET", "/stats")
        assert (stats["blocked"], stats["spoiled"], stats["identities"]) == (5, {"forbidden": 5}, 2)


async def test_forbidden_until_the_proxy_changes(serve: Serve) -> None:
    server = await serve(stores=1, products=5, proxies=4, faults={"forbidden": {"limit": 1}})
    store = Market(stores=1, products=5).stores[0]
    hello = server.hello()
    web = [p for p in hello["proxies"] if p["protocol"] == "http"]
    through = [httpx.Proxy(f"http://{p['host']}:{p['port']}", auth=(p["username"], p["password"])) for p in web]
    async with client(hello["graphql_url"], proxy=through[0]) as c:
        assert (await c.page(store.id)).status_code == 403
        assert (await c.page(store.id)).status_code == 403
    async with client(hello["graphql_url"], proxy=through[1]) as c:
        assert (await c.page(store.id)).status_code == 200
    async with client(hello["graphql_url"]) as c:
        assert (await c.page(store.id)).status_code == 200
    stats = await control(server, "GET", "/stats")
    assert (stats["blocked"], stats["identities"], stats["direct"]) == (2, 3, 1)
    assert [p["tunnels"] > 0 for p in stats["proxies"]] == [True, False, True, False]


async def test_a_refusal_lapses_after_so_many_requests(serve: Serve) -> None:
    async with misbehaving(serve, forbidden={"limit": 1, "lasts": 3}) as (_, c):
        assert [(await c.page(STORE.id)).status_code for _ in range(5)] == [403, 403, 403, 200, 200]


async def test_rate_limited_says_when_to_come_back(serve: Serve) -> None:
    async with misbehaving(serve, rate_limited={"limit": 1, "retry_after": 7}) as (_, c):
        refused = await c.page(STORE.id)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
        assert (await c.page(STORE.id)).status_code == 200


async def test_server_errors_come_in_turn(serve: Serve) -> None:
    async with misbehaving(serve, server_error=1) as (server, c):
        assert {(await c.page(STORE.id)).status_code for _ in range(3)} == {500, 502, 503}
        await control(server, "POST", "/faults", {"server_error": {"status": 504}})
        assert (await c.page(STORE.id)).status_code == 504


async def test_a_web_page_instead_of_json(serve: Serve) -> None:
    async with misbehaving(serve, html=1) as (_, c):
        answer = await c.page(STORE.id)
        assert answer.status_code == 200
        assert answer.content.startswith(b"<!DOCTYPE html>")
        assert b"Just a moment" not in answer.content


async def test_a_challenge_once(serve: Serve) -> None:
    async with misbehaving(serve, challenge={"limit": 1}) as (_, c):
        answer = await c.page(STORE.id)
        assert (answer.status_code, answer.headers["cf-mitigated"]) == (403, "challenge")
        assert b"Just a moment" in answer.content
        assert (await c.page(STORE.id)).status_code == 200


async def test_graphql_errors_without_data(serve: Serve) -> None:
    async with misbehaving(serve, errors=1) as (_, c):
        body = (await c.page(STORE.id)).json()
        assert body["data"] is None
        assert body["errors"][0]["message"] == "Internal server error"


async def test_truncated_bodies_are_no_json_or_end_in_a_reset(serve: Serve) -> None:
    async with misbehaving(serve, truncated={"limit": 1}) as (server, c):
        cut = await c.page(STORE.id)
        whole = await c.page(STORE.id)
        assert whole.content.startswith(cut.content)
        assert 0 < len(cut.content) < len(whole.content)
        with pytest.raises(json.JSONDecodeError):
            cut.json()
        await control(server, "POST", "/faults", {"truncated": {"abrupt": True}})
        with pytest.raises(httpx.TransportError):
            await c.page(STORE.id)


async def test_empty_pages_keep_their_totals(serve: Serve) -> None:
    async with misbehaving(serve, empty_page={"pages": [1]}) as (_, c):
        assert products(await c.page(STORE.id, 0))[1:] == (250, 3)
        assert products(await c.page(STORE.id, 1)) == ([], 250, 3)
        assert len(products(await c.page(STORE.id, 2))[0]) == 50
        assert len(await c.stores()) == 4


async def test_pinned_products_come_again_on_later_pages(serve: Serve) -> None:
    async with misbehaving(serve, pinned={"count": 4}) as (_, c):
        pages = await c.menu(STORE.id)
        assert [len(page) for page in pages] == [100, 104, 54]
        ids = [[item["id"] for item in page] for page in pages]
        assert ids[1][:4] == ids[2][:4] == ids[0][:4]
        assert set().union(*ids) == {state.product.id for state in MARKET.menu(STORE, 0)}


async def test_clamped_pages_still_cover_everything(serve: Serve) -> None:
    async with misbehaving(serve, clamp={"per_page": 60}) as (_, c):
        pages = await c.menu(STORE.id)
        assert [len(page) for page in pages] == [60, 60, 60, 60, 10]
        assert len({item["id"] for page in pages for item in page}) == 250


async def test_totals_lie(serve: Serve) -> None:
    async with misbehaving(serve, total_lies={"delta": -9, "page_delta": 1}) as (_, c):
        assert products(await c.page(STORE.id))[1:] == (241, 4)


async def test_slow_answers_hold_up_nobody_else(serve: Serve) -> None:
    async with misbehaving(serve, slow={"seconds": 1.0, "stores": [STORE.slug]}) as (_, c):
        await c.page(MARKET.stores[1].id)  # makes the menu, which takes its time
        late = asyncio.create_task(c.page(STORE.id))
        await c.page(MARKET.stores[1].id)
        assert not late.done()
        assert (await late).elapsed.total_seconds() >= 1.0
        assert products(late.result())[1] == 250


async def test_stores_and_operations_can_be_singled_out(serve: Serve) -> None:
    async with misbehaving(
        serve, html={"stores": [STORE.id]}, server_error={"operations": ["ConsumerDispensaries"], "status": 500}
    ) as (_, c):
        assert (await c.page(STORE.id)).content.startswith(b"<!DOCTYPE")
        assert products(await c.page(MARKET.stores[1].id))[1] == 250
        assert (await c.get("ConsumerDispensaries", {"dispensaryFilter": {}}, "0" * 64)).status_code == 200
        with pytest.raises(json.JSONDecodeError):
            await c.stores()


async def test_only_menus_served_whole_count_as_crawls(serve: Serve) -> None:
    async with misbehaving(serve, truncated={"limit": 1, "pages": [1]}, pinned=1) as (server, c):
        await c.page(STORE.id, 0)
        await c.page(STORE.id, 1)  # cut off
        await c.page(STORE.id, 2)
        assert (await control(server, "GET", "/stats"))["crawls"] == []
        await c.page(STORE.id, 1)
        assert (await control(server, "GET", "/stats"))["crawls"] == [[STORE.slug, 0]]
        await c.page(STORE.id, 0)
        await control(server, "POST", "/tick", {})
        await c.page(STORE.id, 1)
        await c.page(STORE.id, 2)
        await c.page(STORE.id, 0, Status="Active")
        stats = await control(server, "GET", "/stats")
        assert stats["crawls"] == [[STORE.slug, 0]], "pages of two ticks are no menu, nor are filtered ones"
        assert stats["requests"] == {"FilteredProducts": 8}
        assert stats["statuses"] == {"200": 8}
        assert stats["spoiled"] == {"truncated": 1, "pinned": 5}
        await control(server, "POST", "/reset", {})
        assert (await control(server, "GET", "/stats"))["requests"] == {}


async def test_the_control_port_refuses_nonsense(serve: Serve) -> None:
    server = await serve(stores=1, products=5, proxies=1)
    assert "not a fault" in (await control(server, "POST", "/faults", {"rudeness": 1}))["error"]
    assert "between 0 and 1" in (await control(server, "POST", "/faults", {"html": 2}))["error"]
    assert "has no parameter seconds" in (await control(server, "POST", "/faults", {"html": {"seconds": 1}}))["error"]
    assert "from 0 on" in (await control(server, "POST", "/faults", {"tired": {"requests": "few"}}))["error"]
    assert "is a number" in (await control(server, "POST", "/faults", {"challenge": {"seconds": -1}}))["error"]
    assert "SOCKS" in (await control(server, "POST", "/proxy", {"index": 0, "kind": "socks_ttl"}))["error"]
    assert "forward" in (await control(server, "POST", "/tick", {"by": -1}))["error"]
    assert "does nothing" in (await control(server, "GET", "/nothing"))["error"]
    assert "not a fault" in (await control(server, "POST", "/proxy", {"index": 0, "kind": "tired"}))["error"]
    assert len(await control(server, "GET", f"/expected?store={Market(stores=1).stores[0].slug}&tick=0")) == 5


async def test_forbidden_for_one_browser(serve: Serve) -> None:
    async with misbehaving(serve, forbidden={"agents": ["Firefox/133", "Edg/"]}) as (server, plain):
        assert (await plain.page(STORE.id)).status_code == 200
        for agent, status in (("X Firefox/133.0", 403), ("Y Edg/131", 403), ("Firefox/134", 200)):
            async with client(server.hello()["graphql_url"], agent=agent) as other:
                assert [(await other.page(STORE.id)).status_code for _ in range(3)] == [status] * 3


async def test_forbidden_for_one_proxy(serve: Serve) -> None:
    server = await serve(stores=1, products=5, proxies=4, faults={"forbidden": {"proxies": [2]}})
    store = Market(stores=1, products=5).stores[0]
    hello = server.hello()
    for index, status in ((0, 200), (2, 403)):
        info = hello["proxies"][index]
        proxy = httpx.Proxy(f"http://{info['host']}:{info['port']}", auth=(info["username"], info["password"]))
        async with client(hello["graphql_url"], proxy=proxy) as c:
            assert [(await c.page(store.id)).status_code for _ in range(2)] == [status] * 2


async def test_everybody_is_refused(serve: Serve) -> None:
    async with misbehaving(serve, refuse_all=1) as (server, first):
        assert (await first.page(STORE.id)).status_code == 403
        async with client(server.hello()["graphql_url"], agent="Other/2.0") as second:
            assert (await second.page(STORE.id)).status_code == 403
        await control(server, "POST", "/faults", {"refuse_all": {"seconds": 0}})
        assert (await first.page(STORE.id)).status_code == 200


async def test_a_storm_says_by_date_when_to_come_back(serve: Serve) -> None:
    async with misbehaving(serve, rate_limited={"above": 3, "retry_after": 3600, "date": True}) as (_, c):
        answers = [await c.page(STORE.id) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        wait = parsedate_to_datetime(answers[-1].headers["retry-after"]) - datetime.now(UTC)
        assert timedelta(minutes=59) < wait <= timedelta(hours=1)


class Hand:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def kinds(faults: Faults, *, proxy: int | None = 0, times: int = 1) -> list[str | None]:
    struck = [faults.fault_for(ApiRequest(1, "FilteredProducts", (proxy, "a"))) for _ in range(times)]
    return [None if each is None else each[0] for each in struck]


def test_a_tired_proxy_is_let_in_again_once_it_has_rested() -> None:
    clock = Hand()
    faults = Faults(1, clock)
    faults.set({"tired": {"requests": 3, "seconds": 60}})
    assert kinds(faults, times=5) == [None, None, None, "tired", "tired"]
    assert kinds(faults, proxy=1, times=3) == [None, None, None], "another is fresh"
    assert kinds(faults, proxy=None, times=5) == [None] * 5, "who comes without a proxy is none"
    clock.now += 59
    assert kinds(faults) == ["tired"], "knocking is no rest"
    clock.now += 1
    assert kinds(faults) == [None], "the five are a minute ago"
    clock.now += 60
    assert kinds(faults, times=4) == [None, None, None, "tired"]


def test_a_storm_lasts_as_long_as_the_requests_come_too_fast() -> None:
    clock = Hand()
    faults = Faults(1, clock)
    faults.set({"rate_limited": {"above": 2}})
    assert kinds(faults, times=2) == [None, None]
    assert kinds(faults, proxy=5) == ["rate_limited"], "whoever comes too much, the host is one"
    clock.now += 1
    assert kinds(faults, times=2) == [None, None]
    clock.now += 1
    for _ in range(10):
        clock.now += 0.5
        assert kinds(faults) == [None]


def test_a_challenge_for_all_ends_with_its_hour() -> None:
    clock = Hand()
    faults = Faults(1, clock)
    faults.set({"challenge": {"seconds": 3600}})
    assert kinds(faults, times=2) == ["challenge"] * 2
    clock.now += 3599
    assert kinds(faults, proxy=None) == ["challenge"]
    clock.now += 1
    assert kinds(faults) == [None]


async def test_what_a_site_says_of_itself(serve: Serve) -> None:
    server = await serve(stores=1, products=5, faults={"refuse_all": 1})
    base = server.hello()["base_url"]
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{base}/health")).text == "ok\n"
        assert (await http.get(f"{base}/robots.txt")).status_code == 404
        await control(server, "POST", "/robots", {"body": "User-agent: *\nCrawl-delay: 2\n"})
        robots = await http.get(f"{base}/robots.txt")
        assert (robots.status_code, robots.text) == (200, "User-agent: *\nCrawl-delay: 2\n")
        assert robots.headers["content-type"].startswith("text/plain")
        await control(server, "POST", "/robots", {"status": 503})
        assert (await http.get(f"{base}/robots.txt")).status_code == 503
        assert "599" in (await control(server, "POST", "/robots", {"status": 599}))["error"]


async def test_every_arrival_is_on_record(serve: Serve) -> None:
    async with misbehaving(serve, forbidden={"limit": 1, "lasts": 2}) as (server, c):
        before = time.monotonic()
        for _ in range(3):
            await c.page(STORE.id)
        async with httpx.AsyncClient(trust_env=False) as http:
            await http.get(f"{server.hello()['image_url']}/a.png", headers={"user-agent": "Images/1"})
        after = time.monotonic()
        rows = await control(server, "GET", "/arrivals")
        assert [row["number"] for row in rows] == [1, 2, 3, 4]
        assert [row["status"] for row in rows[:3]] == [403, 403, 200]
        assert [(row["agent"], row["proxy"]) for row in rows] == [("Plain/1.0", None)] * 3 + [("Images/1", None)]
        assert len({row["host"] for row in rows}) == 2
        times = [row["at"] for row in rows]
        assert [before, *times, after] == sorted([before, *times, after]), "one clock for the whole machine"
        assert [row["number"] for row in await control(server, "GET", "/arrivals?since=3")] == [4]


def test_arrivals_are_bounded_and_dropped_ones_are_reported() -> None:
    log = Arrivals()
    for _ in range(KEPT + 2):
        log.note("h", "/", None, "a")
    assert len(log.since(2)) == KEPT
    with pytest.raises(ValueError, match="before 3 were dropped"):
        log.since(1)
    assert log.since(KEPT + 2) == []


def test_the_busiest_span() -> None:
    arrivals = [Arrival(number=0, at=at, host="h", path="/", proxy=None, agent="") for at in (0, 0.5, 1.0, 1.4, 9, 9)]
    assert busiest(arrivals, 0.9) == 3
    assert busiest(arrivals, 1.0) == 3
    assert busiest(arrivals, 0.1) == 2
    assert busiest(arrivals, 100) == 6
    assert busiest([], 1) == 0


def test_chance_follows_from_the_seed_and_keeps_to_the_rate() -> None:
    def struck(seed: int) -> list[int]:
        faults = Faults(seed)
        faults.set({"html": 0.1})
        return [n for n in range(2000) if faults.fault_for(ApiRequest(n, "FilteredProducts", (None, "a"))) is not None]

    assert struck(1) == struck(1)
    assert struck(1) != struck(2)
    assert 150 < len(struck(1)) < 250
