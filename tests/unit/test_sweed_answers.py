"""The answers that the Sweed adapter reads, its stores, hosts and addresses, and what it requests."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from menuwatch.core.errors import BadPayload, NotAMenu, Permanent
from menuwatch.core.http import Response
from menuwatch.platforms.store_records import state_code
from menuwatch.platforms.sweed.adapter import LAST_ID, MAX_GAP, Sweed
from menuwatch.platforms.sweed.stores import found_store, slug
from tests.unit.test_sweed import SWEED, page, row, variant


def test_a_list_of_one_category_is_a_part_of_the_menu() -> None:
    filters = [{"key": "category", "options": [{"id": 1}, {"id": 2}]}]
    other = row(id=2, category={"name": "Edibles"})
    assert SWEED.read_page(page(row(), row(id=2), filters=filters)).partial
    assert not SWEED.read_page(page(row(), other, filters=filters)).partial
    assert not SWEED.read_page(page(row(), filters=[{"key": "category", "options": [{"id": 1}]}])).partial
    assert not SWEED.read_page(page(row())).partial


@pytest.mark.parametrize(
    "answer",
    [
        [{"name": "Flower", "total": 9, "products": [row()]}],
        [row()],
        row(),
        {"url": "x", "status": 200, "data": [{"name": "Flower", "total": 9, "products": [row()]}]},
        {"url": "x", "status": 200, "data": row()},
    ],
)
def test_parts_of_a_menu(answer: Any) -> None:
    found = SWEED.read_page(json.dumps(answer).encode())
    assert (found.partial, found.total_count, len(found.items)) == (True, None, 1)


def test_the_page_of_a_shop_names_its_store() -> None:
    queries = [
        {"queryKey": ["/Store/GetStoreInfo"], "state": {"data": {"id": 376, "name": "gLeaf", "saleTypes": ["Medical"]}}},
        {"queryKey": ["/Store/GetStoreConfig", {}], "state": {"data": {"id": 376, "licenseCode": " DA-1 ", "secret": 1}}},
        {"queryKey": ["/Products/GetProductList", {}], "state": {"data": {"pages": [json.loads(page(row(), row(id=2)))]}}},
    ]  # fmt: skip
    body = f"<!doctype html><script>window.__sw_qc = {json.dumps({'queries': queries})};</script>".encode()
    items = SWEED.split(body)
    assert (len(items), SWEED.store_of(items)) == (2, "376")
    store = SWEED.store_in(items)
    assert store is not None
    assert (store.platform_dispensary_id, store.slug, store.is_medical, store.raw["licenseCode"]) == (
        "376", "gleaf-376", True, "DA-1",
    )  # fmt: skip
    assert SWEED.normalize(items).warnings == ()
    with pytest.raises(BadPayload, match="cut off") as cut:
        SWEED.split(body[:300])
    assert cut.value.kind == "truncated"
    with pytest.raises(NotAMenu, match="without products"):
        SWEED.split(b'<html><script>window.__sw_qc = {"queries": []};</script>')


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "truncated"),
        (page(row())[:-9], "truncated"),
        (b"<html><title>Just a moment...</title></html>", "html"),
        (b'{"errors":[{"message":"no"}],"data":null}', "errors"),
        (b'{"url":"x","status":200,"data":null}', "no_data"),
        (b'{"list":null,"total":0}', "no_data"),
        (b'{"list":[{"id":1}],"total":1}', "no_data"),
        (b"[]", "no_data"),
        (b"[1]", "no_data"),
        (b"5", "schema"),
        (page(), "empty"),
    ],
)
def test_answers_that_are_no_menus(body: bytes, kind: str) -> None:
    with pytest.raises(BadPayload) as error:
        SWEED.split(body)
    assert error.value.kind == kind


def test_addresses() -> None:
    host = "https://web-ui-production.sweedpos.com"
    assert SWEED.slug_of(f"{host}/s376") == "376"
    assert SWEED.slug_of(f"{host}/s17/medical?x=1") == "17"
    assert SWEED.slug_of("web-ui-kiosk-production.sweedpos.com/s583/welcome") == "583"
    assert SWEED.slug_of("https://web-ui-curaleaf.sweedpos.com/s128") == "curaleaf:128"
    for other in (
        host,
        f"{host}/menu",
        "https://www.gleaf.com/s376",
        "https://sweedpos.com/s1",
        f"{host}/s0",
        "https://[",
    ):
        assert SWEED.slug_of(other) is None
    curaleaf = Sweed(base_url="https://web-ui-curaleaf.sweedpos.com")
    assert curaleaf.slug_of("https://web-ui-curaleaf.sweedpos.com/s128") == "128"
    assert curaleaf.slug_of(f"{host}/s376") == "production:376"
    address = "https://www.gleaf.com/stores/maryland/rockville/shop/"
    assert SWEED.slug_of(address) is None
    assert SWEED.slug_on_site(address) == "www.gleaf.com/stores/maryland/rockville/shop"
    assert SWEED.slug_on_site(f"{host}/s376") == "376"


def test_hosts() -> None:
    adapter = Sweed(base_url="https://web-ui-production.sweedpos.com")
    assert adapter.hosts == {"web-ui-production.sweedpos.com"}
    assert adapter.hosts_of("376") == {"web-ui-production.sweedpos.com"}
    assert adapter.hosts_of("curaleaf:128") == {"web-ui-curaleaf.sweedpos.com"}
    assert "web-ui-curaleaf.sweedpos.com" in adapter.hosts_of(None)
    assert Sweed(base_url="http://127.0.0.1:9").hosts_of(None) == {"127.0.0.1:9"}
    assert Sweed().hosts_of(None) == frozenset()


@pytest.mark.parametrize(
    ("text", "code"),
    [("Maryland", "MD"), ("new  york", "NY"), ("md", "MD"), ("Ontario", "ON"), ("Atlantis", "Atlantis"), (None, None)],
)
def test_state_codes(text: str | None, code: str | None) -> None:
    assert state_code(text) == code


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"id": 1, "name": "Shop"}, "a test shop of the platform"),
        ({"id": 9, "name": "Sweed Autotests 2"}, "a test shop of the platform"),
        ({"id": 9, "name": "Shop", "url": "https://x.sweed.app/"}, "a test shop of the platform"),
        ({"id": 9, "name": "Shop", "isMock": True}, "a mock shop of the platform"),
        ({"id": 9, "name": None}, "the record has no name"),
        ({"name": "Shop"}, "the record has no id"),
        ({"id": 9, "name": "The Greatest Contest Shop"}, None),
        ({"id": 9, "name": "Shop", "location": None, "contacts": None, "saleTypes": None}, None),
    ],
)
def test_stores_that_cannot_be_crawled(record: dict[str, Any], problem: str | None) -> None:
    assert found_store(msgspec.Raw(json.dumps(record).encode())).problem == problem


def test_slugs_end_with_the_id() -> None:
    assert slug("gLeaf - Rockville", "376") == "gleaf-rockville-376"
    assert slug("", "376") == "376"
    assert slug("Βeta", "curaleaf:128") == "eta-curaleaf:128"


class Shops:
    """A session that answers from a table of (operation, store number, page or sale type)."""

    def __init__(self, records: dict[tuple[str, str], Any]) -> None:
        self.records = records
        self.requests: list[tuple[str, str, str, Any]] = []

    async def request(self, method: str, url: str, *, json: Any, headers: Any, **_: Any) -> Response:
        host, operation, number = url.split("/")[2], url.rpartition("/")[2], headers.get("storeid", "")
        self.requests.append((host, operation, number, json))
        found = self.records.get(
            (operation, number if operation != "GetProductList" else f"{number}:{json['saleType']}")
        )
        if found is None:
            return Response(404, {}, b'{"message":"not found"}', url, 1.0)
        if isinstance(found, list):
            found = found.pop(0)
        return Response(200, {}, found if isinstance(found, bytes) else msgspec.json.encode(found), url, 1.0)


async def no_wait(_: float) -> None:
    pass


def adapter(base: str = "https://web-ui-production.sweedpos.com") -> Sweed:
    return Sweed(base_url=base, sleep=no_wait)


def info(number: int, state: str = "Maryland", **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"Shop {number}",
        "location": {"region": {"name": state}},
        "saleTypes": ["Recreational"],
        **fields,
    }


async def test_counting_ends_after_a_long_gap() -> None:
    shops = Shops(
        {("GetStoreInfo", str(n)): info(n, state) for n, state in ((1, "Maryland"), (8, "Maryland"), (150, "Ohio"))}
    )
    found = [store async for store in adapter().discover(shops, state="MD")]  # type: ignore[arg-type]
    assert [(s.platform_dispensary_id, s.problem) for s in found] == [("1", "a test shop of the platform"), ("8", None)]
    counted = [number for _, operation, number, _ in shops.requests if operation == "GetStoreInfo"]
    assert counted == [str(n) for n in range(1, 150 + MAX_GAP + 1)]
    configured = [number for _, operation, number, _ in shops.requests if operation == "GetStoreConfig"]
    assert configured == ["8"], "only for stores that are wanted"
    assert LAST_ID >= 1000


async def test_an_unreadable_answer_does_not_end_the_count() -> None:
    shops = Shops(
        {("GetStoreInfo", "2"): [b'{"errors":[1],"data":null}', b"<html>", info(2)], ("GetStoreInfo", "3"): [b"null"]}
    )
    found = [store.platform_dispensary_id async for store in adapter().discover(shops)]  # type: ignore[arg-type]
    assert found == ["2"]


async def test_a_store_of_another_host() -> None:
    shops = Shops({("GetStoreInfo", "128"): info(128), ("GetStoreConfig", "128"): {"id": 128, "licenseCode": "X-1"}})
    store = await adapter().resolve(shops, "curaleaf:128")  # type: ignore[arg-type]
    assert store is not None
    assert (store.platform_dispensary_id, store.slug, store.state, store.raw["licenseCode"]) == (
        "curaleaf:128", "shop-128-curaleaf:128", "MD", "X-1",
    )  # fmt: skip
    assert await adapter().resolve(shops, store.slug) == store  # type: ignore[arg-type]
    assert {host for host, *_ in shops.requests} == {"web-ui-curaleaf.sweedpos.com"}


async def test_the_record_of_another_store_is_refused() -> None:
    shops = Shops({("GetStoreInfo", "7"): info(8)})
    with pytest.raises(BadPayload, match="another store's: the record of store 7 has the id 8"):
        await adapter().resolve(shops, "shop-7")  # type: ignore[arg-type]
    assert await adapter().resolve(shops, "9") is None  # type: ignore[arg-type]
    assert await adapter().resolve(shops, "no number") is None  # type: ignore[arg-type]


async def test_the_menu_of_a_shop_for_patients_alone() -> None:
    shops = Shops({
        ("GetProductList", "7:Recreational"): page(), ("GetStoreInfo", "7"): info(7, saleTypes=["Medical"]),
        ("GetProductList", "7:Medical"): page(row(variant(saleType="Medical"))),
    })  # fmt: skip
    assert (await adapter().fetch_menu(shops, "7")).product_count == 1  # type: ignore[arg-type]
    shops.records["GetStoreInfo", "7"] = info(7, saleTypes=["Medical", "Recreational"])
    with pytest.raises(BadPayload, match="has no products"):
        await adapter().fetch_menu(shops, "7")  # type: ignore[arg-type]


async def test_rows_are_paged_and_products_counted() -> None:
    rows = [row(variant(id=n), id=n // 2) for n in range(2, 152)]
    pages = [page(*rows[:100], total=150), page(*rows[100:], total=150)]
    shops = Shops({("GetProductList", "7:Recreational"): pages})
    menu = await adapter().fetch_menu(shops, "7")  # type: ignore[arg-type]
    assert (menu.complete, menu.total_count, menu.product_count, menu.notes) == (True, 150, 75, ())
    assert [asked["page"] for *_, asked in shops.requests] == [1, 2]
    assert [len(items) for items in SWEED.split_menu(menu.pages)] == [50, 25]


async def test_without_a_base_url_nothing_is_requested() -> None:
    with pytest.raises(Permanent, match="SWEED_BASE_URL is not set"):
        await SWEED.fetch_menu(Shops({}), "7")  # type: ignore[arg-type]
    with pytest.raises(Permanent, match="not a store id of Sweed"):
        await adapter().fetch_menu(Shops({}), "abc")  # type: ignore[arg-type]
