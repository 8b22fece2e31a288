"""RequestRetry Dutchie, against a scripted outside world: a session that answers as a GraphQL endpoint would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from menuwatch.core.errors import BadPayload, Blocked, Transient
from menuwatch.core.http import Response
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES

Reply = tuple[int, bytes] | Exception


class World:
    """Answers each request with what `reply` says of (operation, variables, number of requests before)."""

    def __init__(self, reply: Callable[[str, dict[str, Any], int], Reply], *, knows_hashes: bool = True) -> None:
        self.reply = reply
        self.knows_hashes = knows_hashes
        self.requests: list[dict[str, Any]] = []

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        expect: str = "json",
    ) -> Response:
        self.requests.append({"method": method, "url": url, "params": params, "json": json, "headers": headers})
        if method == "GET":
            assert params is not None
            if not self.knows_hashes:
                return _response(400, b'{"errors":[{"message":"PersistedQueryNotFound"}]}', url)
            operation, variables = params["operationName"], _loads(params["variables"])
        else:
            assert json is not None
            operation, variables = json["operationName"], json["variables"]
        before = sum(r["method"] == "POST" or self.knows_hashes for r in self.requests) - 1
        reply = self.reply(operation, variables, before)
        if isinstance(reply, Exception):
            raise reply
        return _response(*reply, url)


def _loads(text: str) -> dict[str, Any]:
    return dict(json.loads(text))


def _response(status: int, body: bytes, url: str) -> Response:
    return Response(status=status, headers={}, body=body, url=url, elapsed_ms=1.0)


def menu(count: int, total: int, pages: int, start: int = 0) -> tuple[int, bytes]:
    products = [{"id": f"p{i}", "Name": f"P {i}"} for i in range(start, start + count)]
    info = {"totalCount": total, "totalPages": pages}
    return 200, json.dumps({"data": {"filteredProducts": {"products": products, "queryInfo": info}}}).encode()


class Waits(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def dutchie(waits: Waits) -> Dutchie:
    return Dutchie(base_url="https://menus.example", retry_base_seconds=0.5, sleep=waits)


def two_pages(_operation: str, variables: dict[str, Any], _before: int) -> Reply:
    return [menu(100, 138, 2), menu(38, 138, 2, start=100)][variables["page"]]


async def test_a_menu_is_asked_for_page_by_page(dutchie: Dutchie, waits: Waits) -> None:
    world = World(two_pages)
    found = await dutchie.fetch_menu(world, "5fefa138b2782100c5acd671")
    assert (found.product_count, found.total_count, found.complete, found.notes) == (138, 138, True, ())
    assert [len(dutchie.split(body)) for body in found.pages] == [100, 38]
    first = world.requests[0]
    assert (first["method"], first["url"]) == ("GET", "https://menus.example/api-3/graphql")
    assert first["params"]["operationName"] == "FilteredProducts"
    assert json.loads(first["params"]["extensions"]) == {
        "persistedQuery": {"version": 1, "sha256Hash": DEFAULT_HASHES["FilteredProducts"]}
    }
    assert json.loads(first["params"]["variables"]) == {
        "includeEnterpriseSpecials": False,
        "productsFilter": {
            "dispensaryId": "5fefa138b2782100c5acd671",
            "pricingType": "rec",
            "Status": "All",
            "types": [],
            "useCache": False,
            "isDefaultSort": True,
            "sortBy": "popularSortIdx",
            "sortDirection": 1,
            "bypassOnlineThresholds": True,
            "isKioskMenu": False,
            "removeProductsBelowOptionThresholds": False,
        },
        "page": 0,
        "perPage": 100,
    }
    assert first["headers"]["apollo-require-preflight"] == "true"
    assert [json.loads(r["params"]["variables"])["page"] for r in world.requests] == [0, 1]
    assert waits == []


async def test_refused_hash_is_replaced_by_the_text_for_good(dutchie: Dutchie) -> None:
    world = World(two_pages, knows_hashes=False)
    found = await dutchie.fetch_menu(world, "1")
    assert (found.product_count, found.complete) == (138, True)
    assert [r["method"] for r in world.requests] == ["GET", "POST", "POST"]
    body = world.requests[1]["json"]
    assert body["query"].startswith("query FilteredProducts(")
    assert "extensions" not in body
    await dutchie.fetch_menu(world, "2")
    assert [r["method"] for r in world.requests[3:]] == ["POST", "POST"], "it remembers, whatever the session"


async def test_refusal_with_status_200_and_of_the_text_itself(dutchie: Dutchie) -> None:
    refusal = (200, b'{"errors":[{"message":"x","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}')
    world = World(lambda *_: refusal)
    with pytest.raises(BadPayload) as caught:
        await dutchie.fetch_menu(world, "1")
    assert caught.value.kind == "persisted_query"
    assert [r["method"] for r in world.requests] == ["GET", "POST"], "asked once each way, not for ever"


async def test_hashes_are_configuration() -> None:
    world = World(two_pages)
    await Dutchie(hashes={"FilteredProducts": "abc"}).fetch_menu(world, "1")
    assert json.loads(world.requests[0]["params"]["extensions"])["persistedQuery"]["sha256Hash"] == "abc"
    plain = World(two_pages)
    await Dutchie(hashes={"FilteredProducts": ""}).fetch_menu(plain, "1")
    assert {r["method"] for r in plain.requests} == {"POST"}


@pytest.mark.parametrize(
    "bad",
    [(200, b'{"data":{"filtered'), (200, b"<html><title>Oops</title>"), (502, b"<html>Bad gateway"), (500, b'{"a":1}')],
)
async def test_a_bad_answer_is_asked_again_in_place(dutchie: Dutchie, waits: Waits, bad: Reply) -> None:
    world = World(lambda _o, v, before: bad if before in (1, 2) else two_pages("", v, before))
    found = await dutchie.fetch_menu(world, "1")
    assert (found.product_count, found.complete) == (138, True)
    assert len(world.requests) == 4
    assert waits == [0.5, 1.0]


async def test_a_page_that_stays_cut_off_is_raised_with_its_bytes(dutchie: Dutchie, recorded: Path) -> None:
    body = (recorded / "dutchie" / "on_truncated_body_2023-11-30.txt").read_bytes()
    world = World(lambda *_: (200, body))
    with pytest.raises(BadPayload, match="truncated after 8,694 bytes") as caught:
        await dutchie.fetch_menu(world, "1")
    assert (caught.value.kind, caught.value.body) == ("truncated", body)
    assert len(world.requests) == 3


async def test_server_faults_that_stay_are_transient(dutchie: Dutchie, waits: Waits) -> None:
    world = World(lambda *_: (503, b""))
    with pytest.raises(Transient, match="HTTP 503"):
        await dutchie.fetch_menu(world, "1")
    assert (len(world.requests), waits) == (3, [0.5, 1.0])


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ((200, b'{"data":null,"errors":[{"message":"Forbidden"}]}'), "errors"),
        ((400, b'{"errors":[{"message":"Variable is missing"}]}'), "errors"),
        ((200, b'{"data":null}'), "no_data"),
        (menu(0, 0, 0), "empty"),
        ((404, b'{"message":"no such path"}'), "no_data"),
    ],
)
async def test_answers_that_asking_again_would_not_mend(dutchie: Dutchie, reply: Reply, kind: str) -> None:
    world = World(lambda *_: reply)
    with pytest.raises(BadPayload) as caught:
        await dutchie.fetch_menu(world, "1")
    assert caught.value.kind == kind
    assert caught.value.body == (reply[1] if isinstance(reply, tuple) else b"")
    assert len(world.requests) == 1


async def test_an_empty_first_page_with_a_total_is_asked_again_then_empty(dutchie: Dutchie, waits: Waits) -> None:
    world = World(lambda *_: menu(0, 50, 1))
    with pytest.raises(BadPayload, match="no products, while its total says 50") as caught:
        await dutchie.fetch_menu(world, "1")
    assert caught.value.kind == "empty"
    assert (len(world.requests), waits) == (3, [0.5, 0.5])


async def test_what_the_session_raises_goes_through(dutchie: Dutchie) -> None:
    for error in (Blocked("refused"), Transient("no route")):
        world = World(lambda _o, v, before, e=error: e if before else two_pages("", v, before))  # type: ignore[misc]
        with pytest.raises(type(error), match=str(error)):
            await dutchie.fetch_menu(world, "1")
        assert len(world.requests) == 2


async def test_a_partial_menu_keeps_the_pages_that_came(dutchie: Dutchie) -> None:
    world = World(lambda _o, v, _b: menu(100, 238, 3) if v["page"] == 0 else menu(0, 238, 3))
    found = await dutchie.fetch_menu(world, "1")
    assert (found.complete, len(found.pages), found.product_count, found.total_count) == (False, 1, 100, 238)
    assert found.notes[-1] == "page 2 stayed empty, 100 of 238 rows received"


async def test_recorded_last_page_is_a_page_like_any(dutchie: Dutchie, recorded: Path) -> None:
    body = (recorded / "dutchie" / "on_filteredProducts_last_page_2023-11-29.json").read_bytes()
    world = World(lambda _o, v, _b: menu(100, 138, 2) if v["page"] == 0 else (200, body))
    found = await dutchie.fetch_menu(world, "5fefa138b2782100c5acd671")
    assert (found.complete, found.product_count, found.total_count, found.notes) == (True, 138, 138, ())
    assert found.pages[1] == body


# -- stores ---------------------------------------------------------------------------------------------------------


def stores(*ids: str) -> tuple[int, bytes]:
    records = [{"id": i, "cName": f"shop-{i}", "name": f"Shop {i}", "status": "open"} for i in ids]
    return 200, json.dumps({"data": {"filteredDispensaries": records}}).encode()


async def listed(dutchie: Dutchie, world: World, **where: Any) -> list[str]:
    return [store.platform_dispensary_id async for store in dutchie.discover(world, **where)]


async def test_discovery_pages_until_a_short_page(dutchie: Dutchie) -> None:
    pages = [[f"a{i}" for i in range(50)], [f"b{i}" for i in range(50)], ["a0", "c"]]
    world = World(lambda _o, v, _b: stores(*pages[v["page"]]))
    found = await listed(dutchie, world, state="AZ", city="Phoenix")
    assert found == [*pages[0], *pages[1], "c"]
    assert json.loads(world.requests[0]["params"]["variables"]) == {
        "dispensaryFilter": {"state": "AZ", "city": "Phoenix"},
        "page": 0,
        "perPage": 100,
    }
    assert len(world.requests) == 3


async def test_discovery_ends_where_paging_is_ignored_or_pages_run_out(dutchie: Dutchie) -> None:
    ignoring = World(lambda *_: stores("a", "b"))
    assert await listed(dutchie, ignoring, state="AZ") == ["a", "b"]
    assert len(ignoring.requests) == 2
    running_out = World(lambda _o, v, _b: stores("a", "b") if v["page"] == 0 else stores())
    assert await listed(dutchie, running_out) == ["a", "b"]
    assert json.loads(running_out.requests[0]["params"]["variables"])["dispensaryFilter"] == {}
    assert await listed(dutchie, World(lambda *_: stores())) == []


async def test_resolve(dutchie: Dutchie) -> None:
    world = World(lambda _o, v, _b: stores("1") if v["dispensaryFilter"] == {"cNameOrID": "shop-1"} else stores())
    store = await dutchie.resolve(world, "shop-1")
    assert store is not None
    assert (store.platform_dispensary_id, store.slug, store.name) == ("1", "shop-1", "Shop 1")
    assert dutchie.slug_of(store.menu_url or "") == "shop-1"
    assert await dutchie.resolve(world, "nobody") is None


async def test_resolve_a_recorded_answer_by_full_text(dutchie: Dutchie, recorded: Path) -> None:
    body = (recorded / "dutchie" / "consumerDispensaries_tweed-ajax_2023.json").read_bytes()
    world = World(lambda *_: (200, body), knows_hashes=False)
    store = await dutchie.resolve(world, "tweed-ajax")
    assert store is not None
    assert (store.platform_dispensary_id, store.name) == ("5ed80d3e5bec1100f0e9d957", "4K Cannabis")
    assert world.requests[1]["json"]["query"].startswith("query ConsumerDispensaries(")
