"""Dispense menus that are none, and requests to a scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.http import Response
from menuwatch.fetch.classify import Verdict, classify_response
from menuwatch.platforms.dispense.adapter import Dispense
from menuwatch.platforms.registry import platforms
from tests.unit.test_dispense import DISPENSE, VENUE, item


def page(items: list[Any], count: Any = None) -> bytes:
    return json.dumps({"data": items} if count is None else {"count": count, "data": items}).encode()


# Menus.


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "truncated"),
        (b'{"data":[{"ven', "truncated"),
        (b"<html><title>Just a moment...</title></html>", "html"),
        (b'{"count":0,"data":[]}', "empty"),
        (b'{"data":null}', "no_data"),
        (b'{"data":{"venue":"x"}}', "schema"),
        (b'{"data":[{"id":"1","name":"of another platform"}]}', "schema"),
        (b'{"name":"UnauthenticatedError","message":"Unauthorized"}', "schema"),
        (b"[1]", "schema"),
    ],
)
def test_what_is_no_menu(body: bytes, kind: str) -> None:
    with pytest.raises(BadPayload) as caught:
        DISPENSE.split(body)
    assert (caught.value.kind, caught.value.body) == (kind, body)


def test_which_store() -> None:
    raw = [msgspec.Raw(json.dumps(one).encode()) for one in ({"id": 1}, item())]
    assert DISPENSE.store_of(raw) == VENUE
    found = DISPENSE.store_in(raw)
    assert found is not None
    assert (found.platform_dispensary_id, found.slug, found.name) == (VENUE, VENUE, VENUE)


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        ("https://menus.dispenseapp.com/041444e70b831110/menu/categories/edibles", VENUE),
        ("menus.dispenseapp.com/highscore-cannabis/menu?x=1", "highscore-cannabis"),
        ("https://api.dispenseapp.com/v1/venues/041444e70b831110/products", VENUE),
        ("https://menus.dispenseapp.com/", None),
        ("https://dispenseapp.com/041444e70b831110/menu", None),
        ("https://notmenus.dispenseapp.com.evil/041444e70b831110", None),
        ("https://[", None),
        ("", None),
    ],
)
def test_slug_of(url: str, slug: str | None) -> None:
    assert DISPENSE.slug_of(url) == slug


# Requests.


class World:
    """Answers each request with what `reply` says of (path, parameters, number of requests before)."""

    def __init__(self, reply: Callable[[str, Mapping[str, str], int], tuple[int, bytes]]) -> None:
        self.reply = reply
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: Mapping[str, str] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Response:
        assert method == "GET"
        path = url.removeprefix("https://api.example")
        self.asked.append((path, dict(params or {})))
        self.headers = headers or {}
        status, body = self.reply(path, params or {}, len(self.asked) - 1)
        return Response(status=status, headers={}, body=body, url=url, elapsed_ms=1.0)


async def no_wait(_: float) -> None:
    return None


ASKED = Dispense(base_url="https://api.example/", api_key="a-key", retry_base_seconds=0, sleep=no_wait)


@pytest.mark.parametrize(
    ("made", "setting"),
    [(DISPENSE, "DISPENSE_BASE_URL"), (Dispense(base_url="https://api.example"), "DISPENSE_API_KEY")],
)
async def test_no_request_without_its_settings(made: Dispense, setting: str) -> None:
    world = World(lambda *_: (200, b""))
    for asking in (made.fetch_menu(world, VENUE), made.resolve(world, VENUE)):
        with pytest.raises(Permanent, match=f"{setting}.*is not set"):
            await asking
    assert world.asked == []


def test_settings() -> None:
    made = platforms(Settings(platforms={"dispense": {"base_url": "https://api.example", "api_key": "a-key"}}))[
        "dispense"
    ]
    assert (made.requested, made.hosts, made.lists_stores) == (True, {"api.example"}, False)


@pytest.mark.parametrize("count", [None, 230])
async def test_a_menu_page_by_page(count: int | None) -> None:
    rows = [item(n) for n in range(230)]
    world = World(lambda _, params, __: (200, page(rows[int(params["skip"]) :][: int(params["limit"])], count)))
    menu = await ASKED.fetch_menu(world, VENUE)
    assert (menu.product_count, menu.complete, len(menu.pages), menu.total_count) == (230, True, 3, count)
    assert [params["skip"] for _, params in world.asked] == ["0", "100", "200"]
    assert {path for path, _ in world.asked} == {f"/v1/venues/{VENUE}/products"}
    assert (world.headers["api-key"], world.headers["origin"]) == ("a-key", "https://menus.dispenseapp.com")


async def test_a_page_that_repeats_the_first_ends_the_menu() -> None:
    rows = [item(n) for n in range(100)]
    menu = await ASKED.fetch_menu(World(lambda *_: (200, page(rows))), VENUE)
    assert (menu.product_count, menu.complete, len(menu.pages)) == (100, True, 2)


@pytest.mark.parametrize("bad", [[item(1), item(2, venue="another")], [item(1), item(2, venue="another"), 7]])
async def test_products_of_another_venue_are_refused(bad: list[Any]) -> None:
    with pytest.raises(BadPayload, match=f"products of venue another, not of {VENUE}"):
        await ASKED.fetch_menu(World(lambda *_: (200, page(bad))), VENUE)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_no_block(status: int) -> None:
    body = b'{"name":"UnauthenticatedError","message":"Unauthorized","errors":[{"message":"invalid venue id"}]}'
    world = World(lambda *_: (status, body))
    with pytest.raises(Permanent, match=f"DISPENSE_API_KEY with HTTP {status}"):
        await ASKED.fetch_menu(world, VENUE)
    assert len(world.asked) == 1
    verdict = classify_response(status, {}, body, expect="json", now=datetime.now(UTC)).verdict
    assert verdict is Verdict.CLIENT_BUG, "the caller gets the answer"
    for block in (b"<html>Forbidden</html>", b'{"errors":[{"message":"Forbidden"}]}', b'{"message":"Forbidden"}'):
        assert classify_response(403, {}, block, expect="json", now=datetime.now(UTC)).verdict is Verdict.BLOCKED


async def test_an_empty_menu() -> None:
    world = World(lambda *_: (200, b'{"count":0,"data":[]}'))
    with pytest.raises(BadPayload, match="has no products") as caught:
        await ASKED.fetch_menu(world, VENUE)
    assert caught.value.kind == "empty"


VENUE_RECORD = {"id": VENUE, "name": "Indigo  Dispensary ", "medicalDispensary": False, "organization": "9b37790780473ec5",
                "address": {"number": "12", "street": "Main St", "city": "Brooklawn", "administrativeArea": "New Jersey",
                            "country": "US", "postalCode": "08030", "latitude": 39.9, "longitude": -75.1}}  # fmt: skip


@pytest.mark.parametrize("document", [VENUE_RECORD, {"data": VENUE_RECORD}])
async def test_a_venue(document: dict[str, Any]) -> None:
    world = World(lambda *_: (200, json.dumps(document).encode()))
    found = await ASKED.resolve(world, "indigo")
    assert found is not None
    assert (found.platform_dispensary_id, found.slug, found.name_raw, found.name) == (
        VENUE,
        "indigo",
        "Indigo  Dispensary ",
        "Indigo Dispensary",
    )
    assert (found.address, found.city, found.state, found.zipcode, found.latitude, found.is_medical, found.menu_url) == (
        "12 Main St", "Brooklawn", "NJ", "08030", 39.9, False, f"https://menus.dispenseapp.com/{VENUE}/menu",
    )  # fmt: skip
    assert world.asked == [("/v1/venues/indigo", {})]


async def test_odd_venues() -> None:
    assert await ASKED.resolve(World(lambda *_: (404, b'{"message":"venue not found"}')), "x") is None
    for odd in (b'{"data":{"name":7,"address":"x"}}', b'{"data":null}'):
        found = await ASKED.resolve(World(lambda *_, odd=odd: (200, odd)), "x")  # type: ignore[misc]
        assert found is not None
        assert (found.problem, found.name) == ("the record has no id", "x")
