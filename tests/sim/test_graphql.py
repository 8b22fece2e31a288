"""The GraphQL endpoint over real sockets."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from menuwatch.pipeline.product_refresh import brand_logos
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.queries import FILTERED_PRODUCTS
from menuwatch.sim.graphql import SyntaxProblem, parse_query, project
from menuwatch.sim.market import Market
from tests.sim.client import HEADERS, MENU_HASH, STORES_HASH, client, menu_variables, persisted, products
from tests.sim.conftest import Serve

MENU_TEXT = """
query FilteredProducts($includeEnterpriseSpecials: Boolean = false, $productsFilter: productsFilterInput!, $page: Int) {
  filteredProducts(filter: $productsFilter, page: $page, perPage: 20) {
    products { id called: Name THCContent { ...Potency } effects nothingOfTheKind }  # the rest is not wanted
    queryInfo { totalCount }
  }
}
fragment Potency on ProductPotency { unit range }
"""


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["extensions"]["code"]


async def test_pages_cover_every_product_exactly_once_in_any_size(serve: Serve) -> None:
    server = await serve(stores=3, products=130, seed=3)
    market = Market(seed=3, stores=3, products=130)
    async with client(server.hello()["graphql_url"]) as c:
        for store in market.stores:
            expected = [state.product.id for state in market.menu(store, 0)]
            for per_page, sizes in ((100, [100, 30]), (50, [50, 50, 30]), (65, [65, 65]), (1000, [100, 30])):
                pages = await c.menu(store.id, per_page)
                assert [len(page) for page in pages] == sizes
                assert [item["id"] for page in pages for item in page] == expected
            beyond = products(await c.page(store.id, 2))
            assert beyond == ([], 130, 2)


async def test_filters(serve: Serve) -> None:
    server = await serve(stores=8, products=100, seed=5)
    market = Market(seed=5, stores=8, products=100)
    async with client(server.hello()["graphql_url"]) as c:
        for store in market.stores:
            menu = market.menu(store, 0)
            active = sum(state.active for state in menu)
            flower = sum(state.product.category == "Flower" for state in menu)
            assert products(await c.page(store.id))[1] == 100
            assert products(await c.page(store.id, Status=None)) == ([], 0, 0)
            assert products(await c.page(store.id, Status="Active"))[1] == active
            assert products(await c.page(store.id, types=["Flower"]))[1] == flower
        pos = next(store for store in market.stores if store.counting == "pos")
        hidden = products(await c.page(pos.id, removeProductsBelowOptionThresholds=True))[1]
        assert 50 < hidden < 100
        assert products(await c.page("f" * 24)) == ([], 0, 0)


async def test_the_full_text_gives_the_logos_and_descriptions_of_brands_too(serve: Serve) -> None:
    """Once a hash is refused, the full text is sent: its answer must lose nothing that is read."""
    server = await serve(stores=1, products=60)
    store = Market(stores=1, products=60).stores[0]
    async with client(server.hello()["graphql_url"]) as c:
        whole, _, _ = products(await c.page(store.id))
    async with httpx.AsyncClient() as http:
        body = {"query": FILTERED_PRODUCTS.text, "variables": menu_variables(store.id)}
        chosen, _, _ = products(await http.post(server.hello()["graphql_url"], json=body, headers=HEADERS))

    def logos(items: list[dict[str, Any]]) -> dict[str, str]:
        return brand_logos([msgspec.Raw(msgspec.json.encode(item)) for item in items])

    known = {item["brandName"]: item["brand"]["imageUrl"] for item in whole if item["brand"]}
    assert len(set(logos(chosen).values())) == len({url for url in known.values() if url}) > 5
    assert logos(chosen) == logos(whole)
    reader = Dutchie()
    read = [
        reader.normalize([msgspec.Raw(msgspec.json.encode(i)) for i in items]).products for items in (chosen, whole)
    ]
    assert read[0] == read[1]
    assert sum("brand_description" in product.extra for product in read[0]) > 5
    assert store.counting != "pos" or any("kiosk_quantity" in product.extra for product in read[0])


async def test_persisted_queries_are_known_or_not_found(serve: Serve) -> None:
    server = await serve(stores=1, products=5)
    store = Market(stores=1, products=5).stores[0]
    async with client(server.hello()["graphql_url"]) as c:
        assert code(await c.get("FilteredProducts", menu_variables(store.id), "0" * 64)) == (
            200,
            "PERSISTED_QUERY_NOT_FOUND",
        )
        refused = await c.get("FilteredProducts", menu_variables(store.id), "0" * 64)
        assert refused.json()["errors"][0]["message"] == "PersistedQueryNotFound"
        assert products(await c.page(store.id))[1] == 5
    closed = await serve(stores=1, products=5, refuse_hashes=True)
    async with client(closed.hello()["graphql_url"]) as c:
        assert code(await c.page(store.id)) == (200, "PERSISTED_QUERY_NOT_FOUND")


async def test_the_full_text_is_answered_with_what_it_selects(serve: Serve) -> None:
    server = await serve(stores=1, products=50, refuse_hashes=True)
    market = Market(stores=1, products=50)
    store = market.stores[0]
    body: dict[str, Any] = {
        "operationName": "FilteredProducts",
        "query": MENU_TEXT,
        "variables": menu_variables(store.id),
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        url = server.hello()["graphql_url"]
        whole = (await http.post(url, json=body)).json()["data"]["filteredProducts"]
        assert whole["queryInfo"] == {"totalCount": 50}
        first = market.menu(store, 0)[0]
        assert whole["products"][0] == {
            "id": first.product.id,
            "called": first.product.name,
            "THCContent": None
            if first.lab.thc is None
            else {
                "unit": first.lab.thc.unit,
                "range": None if first.lab.thc.range is None else list(first.lab.thc.range),
            },
            "effects": dict(first.product.effects),
            "nothingOfTheKind": None,
        }
        right, wrong = sha256(MENU_TEXT.encode()).hexdigest(), "1" * 64
        with_hash = {**body, "extensions": json.loads(persisted(right))}
        assert (await http.post(url, json=with_hash)).status_code == 200
        with_hash["extensions"] = json.loads(persisted(wrong))
        assert (await http.post(url, json=with_hash)).status_code == 400
        assert code(await http.post(url, json={"query": "query { somethingElse { id } }"})) == (
            400,
            "GRAPHQL_VALIDATION_FAILED",
        )
        assert code(await http.post(url, json={"query": "query {"})) == (400, "GRAPHQL_PARSE_FAILED")
        assert code(await http.post(url, content=b"<html>")) == (400, "BAD_REQUEST")


async def test_a_get_that_could_be_forged_is_refused(serve: Serve) -> None:
    server = await serve(stores=1, products=5)
    params = {"variables": json.dumps(menu_variables("x")), "extensions": persisted(MENU_HASH)}
    async with httpx.AsyncClient(trust_env=False) as http:
        url = server.hello()["graphql_url"]
        refused = await http.get(url, params=params)
        assert code(refused) == (400, "BAD_REQUEST")
        assert "CSRF" in refused.json()["errors"][0]["message"]
        for headers in (HEADERS, {"x-apollo-operation-name": "FilteredProducts"}, {"content-type": "application/json"}):
            assert (await http.get(url, params=params, headers=headers)).status_code == 200
        assert (await http.get(url.replace("/api-3", "/api-4"), params=params, headers=HEADERS)).status_code == 200
        assert (await http.get(url.replace("/api-3", ""), params=params, headers=HEADERS)).status_code == 200
        assert (await http.get(url.replace("/graphql", "/other"))).status_code == 404


async def test_stores_are_resolved_by_slug_or_id_and_listed_by_place(serve: Serve) -> None:
    server = await serve(stores=25, products=3, seed=2)
    market = Market(seed=2, stores=25, products=3)
    async with client(server.hello()["graphql_url"]) as c:
        for store in market.stores:
            for key in {store.slug, store.id}:
                assert [(s["id"], s["name"]) for s in await c.stores(cNameOrID=key)] == [(store.id, store.name)]
        assert await c.stores(cNameOrID="no-such-shop") == []
        assert len(await c.stores()) == 25
        in_arizona = [store.id for store in market.stores if store.state == "AZ"]
        assert len(in_arizona) > 2
        assert [s["id"] for s in await c.stores(state="AZ")] == in_arizona
        tucson = [store.id for store in market.stores if store.city == "Tucson"]
        assert [s["id"] for s in await c.stores(state="AZ", city="tucson")] == tucson
        assert await c.stores(state="AK") == []
        listed: list[str] = []
        for page in range(4):
            variables = {"dispensaryFilter": {}, "page": page, "perPage": 10}
            answer = await c.get("ConsumerDispensaries", variables, STORES_HASH)
            listed += [s["id"] for s in answer.json()["data"]["filteredDispensaries"]]
        assert listed == [store.id for store in market.stores]


async def test_recorded_answers_are_served_verbatim(serve: Serve, recorded: Path) -> None:
    server = await serve(stores=1, products=5, recorded=recorded / "dutchie")
    page = (recorded / "dutchie" / "pa_filteredProducts_page_2025-11-09.json").read_bytes()
    cut = (recorded / "dutchie" / "on_truncated_body_2023-11-30.txt").read_bytes()
    shop = (recorded / "dutchie" / "consumerDispensaries_tweed-ajax_2023.json").read_bytes()
    async with client(server.hello()["graphql_url"]) as c:
        assert (await c.page("621900cebbc5580e15476deb")).content == page
        assert products(await c.page("621900cebbc5580e15476deb", 1))[0] == []
        assert (await c.page("on_truncated_body_2023-11-30")).content == cut
        found = await c.get("ConsumerDispensaries", {"dispensaryFilter": {"cNameOrID": "tweed-ajax"}}, STORES_HASH)
        assert found.content == shop
        assert [s["cName"] for s in await c.stores(cNameOrID="621900cebbc5580e15476deb")] == [
            "621900cebbc5580e15476deb"
        ]
        store = Market(stores=1, products=5).stores[0]
        assert products(await c.page(store.id))[1] == 5, "the market is there as well"


async def test_pictures_are_the_same_every_time_and_some_are_broken(serve: Serve) -> None:
    server = await serve(stores=1, products=1)
    url = server.hello()["image_url"]
    statuses: Counter[str] = Counter()
    async with httpx.AsyncClient(trust_env=False) as http:
        for number in range(200):
            answer = await http.get(f"{url}/dutchie-images/{number:032x}")
            again = await http.get(f"{url}/dutchie-images/{number:032x}")
            assert (answer.status_code, answer.content) == (again.status_code, again.content)
            if answer.status_code == 404:
                statuses["missing"] += 1
            elif "etag" in answer.headers:
                statuses["whole"] += 1
            else:
                statuses["broken"] += 1
        whole = await http.get(f"{url}/dutchie-images/{7:032x}")
        same = await http.get(f"{url}/dutchie-images/{7:032x}", headers={"if-none-match": whole.headers["etag"]})
        assert same.status_code == 304
    assert statuses["whole"] > 170
    assert statuses["missing"] >= 1
    assert statuses["broken"] >= 1


def test_selections() -> None:
    name, selection = parse_query(
        'query Q($a: I = {b: ["}", 1]}) { x: a(b: {c: "}"}) @skip(if: false) { ... on T { d } ...F } } fragment F on T { e }'
    )
    assert name == "Q"
    assert selection == {"x": ("a", {"d": ("d", None), "e": ("e", None)})}
    assert project({"a": [{"d": 1, "e": 2, "f": 3}, None]}, selection) == {"x": [{"d": 1, "e": 2}, None]}
    for broken in ("{", "query { a ", "mutation { a }", "{ ...Missing }", "", "fragment F on T { ...F } { ...F }"):
        with pytest.raises(SyntaxProblem):
            parse_query(broken)
