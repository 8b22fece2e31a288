"""Joint menus that are none, pages of sites, and requests to a scripted site."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload, InvalidField, Permanent, Transient
from menuwatch.core.http import Response
from menuwatch.fetch.classify import Verdict, classify_response
from menuwatch.pipeline.store_discovery import parse_menu_url
from menuwatch.platforms.joint.adapter import SOURCE, Joint
from menuwatch.platforms.joint.page import read_page
from menuwatch.platforms.registry import platforms
from tests.unit.test_joint import JOINT, item

STORE = "www.shop.example/5731"
NEW = "/wp-json/joint-ecommerce/v1/products/ecommerce-production/_search"
OLD = "/wp-json/joint-ecommerce/v1/products/5731/_search"


def hits(items: list[Any], total: Any = None) -> bytes:
    found: dict[str, Any] = {"hits": [{"_source": one} for one in items]}
    return json.dumps({"hits": found if total is None else {"total": total, **found}}).encode()


def wordpress(status: int, code: str) -> tuple[int, bytes]:
    return status, json.dumps({"code": code, "message": "No.", "data": {"status": status}}).encode()


# Menus.


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "truncated"),
        (b'{"hits":{"hits":[{"_so', "truncated"),
        (b"<html><title>Just a moment...</title></html>", "html"),
        (b'{"hits":{"total":0,"hits":[]}}', "empty"),
        (b'{"hits":{"total":0}}', "no_data"),
        (b'{"hits":null}', "no_data"),
        (b'{"hits":[{"objectID":"1"}],"nbHits":1}', "schema"),
        (b'{"error":{"type":"parsing_exception"},"status":400}', "schema"),
        (b'{"code":"rest_no_route","message":"x","data":{"status":404}}', "schema"),
        (b"[1]", "schema"),
    ],
)
def test_what_is_no_menu(body: bytes, kind: str) -> None:
    with pytest.raises(BadPayload) as caught:
        JOINT.split(body)
    assert (caught.value.kind, caught.value.body) == (kind, body)


@pytest.mark.parametrize(
    ("total", "said"),
    [
        (None, None),
        (114, 114),
        ({"value": 114, "relation": "eq"}, 114),
        ({"value": 10000, "relation": "gte"}, None),
        ({"value": 114}, 114),
        ("many", None),
        ([], None),
        ({"value": "x", "relation": 7}, None),
    ],
)
def test_totals(total: Any, said: int | None) -> None:
    assert JOINT.totals(hits([item()], total)) == (said, None)


def test_a_hit_without_a_product_is_named() -> None:
    body = json.dumps(
        {"hits": {"hits": [{"_source": item(1)}, {"_id": "x"}, 7, {"_source": None}, {"_source": item(2)}]}}
    ).encode()
    made = JOINT.normalize(JOINT.split(body))
    assert [product.provider_product_id for product in made.products] == ["joint-1", "joint-2"]
    assert [warning.fatal for warning in made.warnings] == [True, True, True]


def test_which_store() -> None:
    raw = [
        msgspec.Raw(json.dumps(one).encode())
        for one in ({"jointId": 1}, item(), item(2, business="5731"), item(3, business=8))
    ]
    found = JOINT.store_in(raw)
    assert found is not None
    assert (found.platform_dispensary_id, found.slug, found.is_recreational, found.is_medical) == (
        "5731",
        "5731",
        True,
        None,
    )
    assert JOINT.store_in(raw[:1]) is None
    assert JOINT.store_of(raw) == "5731"
    assert [JOINT.is_store(store, "5731") for store in (STORE, "5731", "www.shop.example/8", None)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("url", "plain", "named"),
    [
        ("https://www.shop.example/wp-json/joint-ecommerce/v1/products/5731/_search", STORE, STORE),
        (f"https://Shop.example:8443{NEW}", "shop.example:8443", "shop.example:8443"),
        ("https://shop.example/blog/wp-json/joint-ecommerce/", "shop.example", "shop.example"),
        ("https://www.shop.example/menu/?x=1#top", None, "www.shop.example/menu"),
        ("www.shop.example", None, "www.shop.example"),
        ("https://user:pw@shop.example/", None, "shop.example"),
        ("ftp://shop.example/menu", None, None),
        ("https://localhost/menu", None, None),
        (f"https://localhost{NEW}", None, None),
        ("https://127.0.0.1/menu", None, None),
        (f"https://169.254.169.254{NEW}", None, None),
        ("https://0x7f.1/menu", None, None),
        ("https://[::1]/menu", None, None),
        ("https://db.internal/menu", None, None),
        ("/menu", None, None),
        ("https://[", None, None),
        ("", None, None),
    ],
)
def test_slugs(url: str, plain: str | None, named: str | None) -> None:
    assert (JOINT.slug_of(url), JOINT.slug_on_site(url)) == (plain, named)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "printer.local", "a:b:c", "shop.example:70000"])
async def test_no_store_leads_into_the_own_network(host: str) -> None:
    own = Joint(base_url="own")
    assert own.hosts_of(f"{host}/5731") == frozenset()
    session: Any = None  # nothing is requested
    with pytest.raises(Permanent, match="is not a shop's site"):
        await own.menu_page(session, f"{host}/5731", 0)
    assert await own.resolve(session, f"{host}/5731") is None
    assert await own.resolve(session, f"www.shop.example@{host}/menu") is None


def test_settings_and_hosts() -> None:
    own = platforms(Settings(platforms={"joint": {"base_url": "own"}}))["joint"]
    assert (own.requested, own.hosts, own.hosts_of(None), own.hosts_of(STORE)) == (
        True,
        frozenset(),
        frozenset(),
        {"www.shop.example"},
    )
    proxied = Joint(base_url="https://proxy.example/")
    assert proxied.hosts_of(STORE) == proxied.hosts_of(None) == {"proxy.example"}
    known = {"joint": own}
    assert parse_menu_url(known, "https://www.shop.example/menu/", "joint") == ("joint", "www.shop.example/menu")
    with pytest.raises(InvalidField):
        parse_menu_url(known, "https://www.shop.example/menu/")
    with pytest.raises(InvalidField, match="JOINT_BASE_URL"):
        parse_menu_url({"joint": JOINT}, f"https://shop.example{NEW}")


# Pages of sites.


def page(script: str, head: str = "<title>Shop &amp; Co</title>") -> bytes:
    return f'<html><head>{head}<script>x={{"nonce":"99999999"}}</script></head><body><script>{script}</script></body></html>'.encode()


def test_a_page() -> None:
    found = read_page(page(
        r'window.jointEcommerce = {"ajax":{"nonce":"aaaaaaaa"},"api":"https:\/\/s\/wp-json\/joint-api\/v1","nonce":"e19b245f40"};'
        'jointEcommerce.currentStore = {"businessId":5731,"name":"Shop","address":{"city":"Trenton"}};'
    ))  # fmt: skip
    assert (found.uses_joint, found.whole, found.business_id, found.nonce, found.title) == (
        True,
        True,
        "5731",
        "e19b245f40",
        "Shop & Co",
    )
    assert (found.store.text("name"), found.store.text("address.city")) == ("Shop", "Trenton")


@pytest.mark.parametrize(
    ("script", "business", "nonce"),
    [
        ('window.jointEcommerce={"nonce":"abcdef12","currentStore":{"businessId":"77"}}', "77", "abcdef12"),
        (
            "jointEcommerce.currentStore = {businessId: 78, name: 'x'}; jointEcommerce.nonce = 'abcdef12'",
            "78",
            "abcdef12",
        ),
        ('jointEcommerce.currentStore = {"id": 79}', "79", None),
        ('jointEcommerce.currentStore = {"businessId": null}', None, None),
        ("jointEcommerce", None, None),
        ("nothing", None, None),
    ],
)
def test_other_pages(script: str, business: str | None, nonce: str | None) -> None:
    found = read_page(page(script))
    assert (found.business_id, found.nonce, found.uses_joint) == (business, nonce, script != "nothing")


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"<html>joint-ecommerce currentStore = {", b"jointEcommerce.currentStore=" + b"{" * 9999]
)
def test_broken_pages(body: bytes) -> None:
    assert read_page(body).business_id is None


# Requests.


class World:
    """Answers each request with what `reply` says of (method, URL, JSON, headers)."""

    def __init__(self, reply: Callable[[str, str, Any, Mapping[str, str]], tuple[int, bytes]]) -> None:
        self.reply = reply
        self.asked: list[tuple[str, str]] = []

    async def request(
        self, method: str, url: str, *, json: Any = None, headers: Mapping[str, str] | None = None, **_: Any
    ) -> Response:
        self.asked.append((method, url.removeprefix("https://www.shop.example")))
        status, body = self.reply(method, url, json, headers or {})
        return Response(status=status, headers={}, body=body, url=url, elapsed_ms=1.0)


async def no_wait(_: float) -> None:
    return None


def asked() -> Joint:
    return Joint(base_url="own", retry_base_seconds=0, sleep=no_wait)


async def test_no_request_without_its_setting_or_a_site() -> None:
    world = World(lambda *_: (200, b""))
    for asking in (JOINT.fetch_menu(world, STORE), JOINT.resolve(world, "www.shop.example")):
        with pytest.raises(Permanent, match="JOINT_BASE_URL is not set"):
            await asking
    with pytest.raises(Permanent, match="business 5731 has no site"):
        await asked().fetch_menu(world, "5731")
    assert world.asked == []


@pytest.mark.parametrize("total", [None, 230, {"value": 230, "relation": "eq"}])
async def test_a_menu_page_by_page(total: Any) -> None:
    rows = [item(n) for n in range(230)]
    queries = []

    def reply(_method: str, _url: str, query: Any, _headers: Mapping[str, str]) -> tuple[int, bytes]:
        queries.append(query)
        return 200, hits(rows[query["from"] :][: query["size"]], total)

    world = World(reply)
    menu = await asked().fetch_menu(world, STORE)
    assert (menu.product_count, menu.complete, len(menu.pages)) == (230, True, 3)
    assert world.asked == [("POST", NEW)] * 3
    assert [query["from"] for query in queries] == [0, 100, 200]
    assert queries[0]["query"]["bool"]["filter"] == [
        {"bool": {"should": [{"term": {"businessId": "5731"}}]}}, {"bool": {"should": [{"term": {"menuType": "RECREATIONAL"}}]}},
    ]  # fmt: skip
    assert queries[0]["_source"] == {"includes": list(SOURCE)}


async def test_the_old_address_is_found_and_remembered() -> None:
    world = World(
        lambda _m, url, *_: (200, hits([item()], 1)) if url.endswith(OLD) else wordpress(404, "rest_no_route")
    )
    adapter = asked()
    for _ in range(2):
        assert (await adapter.fetch_menu(world, STORE)).product_count == 1
    assert world.asked == [("POST", NEW), ("POST", OLD), ("POST", OLD)]
    gone = World(lambda *_: wordpress(404, "rest_no_route"))
    with pytest.raises(Permanent, match="no Joint menu at the known addresses"):
        await asked().fetch_menu(gone, STORE)


PAGE = page(
    'window.jointEcommerce = {"api":"x/joint-ecommerce/v1","nonce":"aaaa1111"}; jointEcommerce.currentStore = {"businessId":5731}'
)


@pytest.mark.parametrize(
    "refusal", [(403, "rest_cookie_invalid_nonce"), (401, "rest_forbidden"), (403, "rest_forbidden")]
)
async def test_a_nonce_is_read_from_the_page_when_it_is_missed(refusal: tuple[int, str]) -> None:
    def reply(method: str, _url: str, _query: Any, headers: Mapping[str, str]) -> tuple[int, bytes]:
        if method == "GET":
            return 200, PAGE
        return (200, hits([item()], 1)) if headers.get("x-wp-nonce") == "aaaa1111" else wordpress(*refusal)

    world, adapter = World(reply), asked()
    for _ in range(2):
        assert (await adapter.fetch_menu(world, STORE)).product_count == 1
    assert world.asked == [("POST", NEW), ("GET", "/"), ("POST", NEW), ("POST", NEW)], "and kept"
    status, body = wordpress(*refusal)
    verdict = classify_response(status, {}, body, expect="json", now=datetime.now(UTC)).verdict
    assert verdict is Verdict.CLIENT_BUG, "no identity is to blame"


async def test_a_nonce_that_is_refused_again() -> None:
    def world(code: str, html: bytes = PAGE) -> World:
        return World(lambda method, *_: (200, html) if method == "GET" else wordpress(403, code))

    with pytest.raises(Transient, match="may come from a cache"):
        await asked().fetch_menu(world("rest_cookie_invalid_nonce"), STORE)
    with pytest.raises(Permanent, match="also with the nonce of its page"):
        await asked().fetch_menu(world("rest_forbidden"), STORE)
    with pytest.raises(BadPayload, match="without what the menu needs"):
        await asked().fetch_menu(world("rest_forbidden", page("jointEcommerce = {}")), STORE)
    with pytest.raises(Permanent, match="HTTP 401"):
        await asked().fetch_menu(World(lambda *_: (401, b"no")), STORE)


@pytest.mark.parametrize("bad", [[item(1), item(2, business=8)], [item(1), item(2, business="8"), 7]])
async def test_products_of_another_business_are_refused(bad: list[Any]) -> None:
    with pytest.raises(BadPayload, match="products of business 8, not of 5731"):
        await asked().fetch_menu(World(lambda *_: (200, hits(bad))), STORE)


async def test_empty_and_repeated_pages() -> None:
    with pytest.raises(BadPayload, match="has no products") as caught:
        await asked().fetch_menu(World(lambda *_: (200, hits([], 0))), STORE)
    assert caught.value.kind == "empty"
    menu = await asked().fetch_menu(World(lambda *_: (200, hits([item(n) for n in range(100)]))), STORE)
    assert (menu.product_count, menu.complete) == (100, True)


async def test_a_store_of_a_site() -> None:
    script = ('jointEcommerce.currentStore = {"businessId":5731,"name":"Cuzzies ","address":"1 Main St","city":"Trenton",'
              '"state":"New Jersey","zip":"08601","latitude":40.2,"longitude":-74.7}')  # fmt: skip
    world = World(lambda *_: (200, page(script)))
    found = await asked().resolve(world, "www.shop.example/locations/trenton")
    assert found is not None
    assert (found.platform_dispensary_id, found.slug, found.name) == (
        STORE,
        "www.shop.example/locations/trenton",
        "Cuzzies",
    )
    assert (found.address, found.city, found.state, found.zipcode, found.latitude) == (
        "1 Main St",
        "Trenton",
        "NJ",
        "08601",
        40.2,
    )
    assert world.asked == [("GET", "/locations/trenton/")]
    numbered = await asked().resolve(world, "www.shop.example/8")
    assert numbered is not None
    assert (numbered.platform_dispensary_id, numbered.name, numbered.city) == ("www.shop.example/8", "Shop & Co", None)
    assert world.asked[1:] == [("GET", "/")]


async def test_sites_without_a_store() -> None:
    assert await asked().resolve(World(lambda *_: (404, b"")), "www.shop.example") is None
    for html in (
        page("nothing"),
        page("jointEcommerce = {}"),
        b'<html>jointEcommerce.currentStore = {"businessId":5731,"na',
    ):
        world = World(lambda *_, html=html: (200, html))  # type: ignore[misc]
        with pytest.raises(BadPayload, match="is without"):
            await asked().resolve(world, "www.shop.example")
        assert len(world.asked) == 3
    with pytest.raises(Permanent, match="HTTP 400"):
        await asked().resolve(World(lambda *_: (400, b"no")), "www.shop.example")
