"""`fields`: the members of each item that a list returns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.api.conftest import description
from tests.api.shop import Shop, item

OWN_PARAMETERS = {"by", "item", "near"}


def _lists() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Path, operation and members of the items of each paged list, read from the description."""
    document = description()
    for path, operations in document["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        if not {"items", "next"} <= set(schema.get("properties", {})):
            continue
        items = schema["properties"]["items"]["items"]
        members: list[str] = []
        for option in items.get("anyOf", [items]):
            members += document["components"]["schemas"][option["$ref"].rsplit("/", 1)[1]]["properties"]
        yield path, operations["get"], list(dict.fromkeys(members))


def _path(path: str) -> str:
    return re.sub(r"\{role\}", "product_refresh", re.sub(r"\{(host|worker_id)\}", "a.example", path))


async def test_every_list_takes_fields_and_names_unknown_ones(shop: Shop) -> None:
    lists = list(_lists())
    assert len(lists) > 55
    for path, operation, members in lists:
        assert "fields" in [parameter["name"] for parameter in operation["parameters"]], path
        url = re.sub(r"\{\w+\}", "1", _path(path))
        answer = await shop.http.get(url, params={"fields": f"{members[0]},nmae,pirce"})
        assert answer.status_code == 422, path
        (error,) = answer.json()["errors"]
        assert error["parameter"] == "fields"
        assert error["detail"] == f"unknown: `nmae`, `pirce`. Use some of {', '.join(members)}"
        if "{" not in path:
            answer = await shop.http.get(url, params={"fields": members[-1]})
            assert answer.status_code == 200, (path, answer.text)


async def test_items_have_only_these_members_as_they_are_stored(shop: Shop) -> None:
    store = await shop.store(state="NM")
    other = await shop.store("blue-door", state="CO")
    for hours, price in ((1, "43.10"), (2, "40.00")):
        await shop.crawl(store, hours, [item("a", "Apple", options=[("1/8oz", price, 5)]), item("b", "Berry")])
    await shop.crawl(other, 1, [item("c", "Cherry", options=[("1g", 9, None)])])

    text = (await shop.http.get("/api/products", params={"fields": "price, name", "order": "name"})).text
    assert text == (
        '{"items":[{"name":"Apple","price":40.00},{"name":"Berry","price":40},{"name":"Cherry","price":9}],"next":null}'
    )
    pages, cursor = [], ""
    while cursor is not None:
        params = {"fields": "id,updated_at", "limit": 1} | ({"cursor": cursor} if cursor else {})
        page = (await shop.http.get("/api/products", params=params)).json()
        pages, cursor = pages + page["items"], page["next"]
    whole = await shop.walk("/api/products", limit=200)
    assert pages == [{"id": row["id"], "updated_at": row["updated_at"]} for row in whole]
    nested = (await shop.http.get("/api/products", params={"fields": "variants,thc"})).json()["items"]
    assert nested == [{"variants": row["variants"], "thc": row["thc"]} for row in whole]

    change, *_ = (await shop.http.get("/api/changes", params={"fields": "type,before"})).json()["items"]
    assert (change["type"], change["before"]["price"]) == ("product", 43.1)
    assert set(change) == {"type", "before"}
    states = (await shop.http.get(f"/api/stores/{store}/products", params={"fields": "store"})).json()["items"]
    assert states == [{"store": "Green-Leaf"}] * 2
    history = await shop.http.get(f"/api/products/{whole[0]['id']}/history", params={"fields": "from,price"})
    assert [list(row) for row in history.json()["items"]] == [["from", "price"]] * 2, "names are those of the API"

    cursor = (await shop.http.get("/api/products", params={"fields": "id", "limit": 1})).json()["next"]
    second = await shop.http.get("/api/products", params={"fields": "name", "limit": 1, "cursor": cursor})
    assert second.json()["items"] == [{"name": "Berry"}], "a cursor goes on with other members"
    assert "fields=name" in second.headers["link"]


async def test_empty_and_nested_names_are_refused(shop: Shop) -> None:
    for fields, unknown in (("", "an empty name"), ("id,,name", "an empty name"), ("thc.lo", "`thc.lo`")):
        answer = await shop.http.get("/api/products", params={"fields": fields})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["detail"].startswith(f"unknown: {unknown}. Use some of id, dispensary_id, ")
    answer = await shop.http.get("/api/stores/1", params={"fields": "id"})
    assert answer.status_code == 404, "one store is no list: the parameter is not looked at"


def test_component_names_are_plain() -> None:
    odd = [name for name in description()["components"]["schemas"] if not re.fullmatch(r"\w+", name) or "__" in name]
    assert odd == [], "a name that two schemas share is prefixed with modules: rename one"
