"""Each kind of misbehaviour, over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from menuwatch.sim.market import Market
from menuwatch.sim.misbehave import Asked, Mischief
from menuwatch.sim.server import SimServer
from tests.sim.client import Client, client, products
from tests.sim.conftest import Serve

MARKET = Market(stores=4, products=250)
STORE = MARKET.stores[0]


@asynccontextmanager
async def misbehaving(serve: Serve, **wanted: Any) -> AsyncIterator[tuple[SimServer, Client]]:
    server = await serve(stores=4, products=250, misbehave=wanted)
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
    server = await serve(stores=1, products=5, proxies=4, misbehave={"forbidden": {"limit": 1}})
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
        await control(server, "POST", "/misbehave", {"server_error": {"status": 504}})
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
        await control(server, "POST", "/misbehave", {"truncated": {"abrupt": True}})
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
        assert set().union(*ids) == {shelf.good.id for shelf in MARKET.menu(STORE, 0)}


async def test_clamped_pages_still_cover_everything(serve: Serve) -> None:
    async with misbehaving(serve, clamp={"per_page": 60}) as (_, c):
        pages = await c.menu(STORE.id)
        assert [len(page) for page in pages] == [60, 60, 60, 60, 10]
        assert len({item["id"] for page in pages for item in page}) == 250


async def test_totals_lie(serve: Serve) -> None:
    async with misbehaving(serve, total_lies={"delta": -9, "page_delta": 1}) as (_, c):
        assert products(await c.page(STORE.id))[1:] == (241, 4)


async def test_slow_answers_hold_up_nobody_else(serve: Serve) -> None:
    async with misbehaving(serve, slow={"seconds": 0.3, "stores": [STORE.slug]}) as (_, c):
        quick = await c.page(MARKET.stores[1].id)
        late = await c.page(STORE.id)
        assert quick.elapsed.total_seconds() < 0.3 <= late.elapsed.total_seconds()
        assert products(late)[1] == 250


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
    assert "no misbehaviour" in (await control(server, "POST", "/misbehave", {"rudeness": 1}))["error"]
    assert "between 0 and 1" in (await control(server, "POST", "/misbehave", {"html": 2}))["error"]
    assert "knows no seconds" in (await control(server, "POST", "/misbehave", {"html": {"seconds": 1}}))["error"]
    assert "forward" in (await control(server, "POST", "/tick", {"by": -1}))["error"]
    assert "does nothing" in (await control(server, "GET", "/nothing"))["error"]
    assert "no fault" in (await control(server, "POST", "/proxy", {"index": 0, "kind": "tired"}))["error"]
    assert len(await control(server, "GET", f"/ledger?store={Market(stores=1).stores[0].slug}&tick=0")) == 5


def test_chance_follows_from_the_seed_and_keeps_to_the_rate() -> None:
    def struck(seed: int) -> list[int]:
        mischief = Mischief(seed)
        mischief.set({"html": 0.1})
        return [n for n in range(2000) if mischief.strike(Asked(n, "FilteredProducts", (None, "a"))) is not None]

    assert struck(1) == struck(1)
    assert struck(1) != struck(2)
    assert 150 < len(struck(1)) < 250
