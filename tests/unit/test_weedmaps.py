"""Weedmaps items as they should not be, menus that are none, and asking, against a scripted outside world."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.core.errors import BadPayload, Permanent, Transient
from menuwatch.core.http import Response
from menuwatch.platforms.model import FoundStore
from menuwatch.platforms.weedmaps import adapter as weedmaps
from menuwatch.platforms.weedmaps.adapter import Weedmaps
from menuwatch.platforms.weedmaps.normalize import ITEMS

WEEDMAPS = Weedmaps()


def item(number: int = 1, *, listing: int = 7, **attributes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "attributes": {"name": f"Thing {number}", "license_type": "recreational", "prices": {"price_unit": 10},
                       "category_name": "Flower", "sub_category": {"name": "Flower"}, "inventory_quantity": 3, **attributes},
        "links": {"self": "/dispensaries/a-shop/menu/thing", "order": "https://weedmaps.com/dispensaries/a-shop/menu/thing"},
        "relationships": {"listing": {"data": {"id": listing, "type": "dispensary"}}},
    }  # fmt: skip


def variant(label: str, price: str, value: float, unit: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "name": label, "price": {"amount": price}, "weight": {"value": value, "unit": unit}, **more}


def page(items: list[Any], *, number: int = 1, total: int | None = None) -> bytes:
    meta = {"page": number, "per_page": 100, "total": len(items) if total is None else total}
    return json.dumps({"meta": meta, "data": items}).encode()


def normalized(*items: Any) -> tuple[list[Product], list[ProductWarning]]:
    made = WEEDMAPS.normalize(
        [msgspec.Raw(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in items]
    )
    return list(made.products), list(made.warnings)


def one(**attributes: Any) -> Product:
    (product,), warnings = normalized(item(**attributes))
    assert warnings == []
    return product


# Items.


def test_prices_of_a_licence() -> None:
    rec, med = one(), one(license_type="medical")
    assert (rec.price_rec, rec.price_med) == (10, None)
    assert (med.price_rec, med.price_med) == (None, 10)
    sold = [variant("1/8 oz", "35.00", 0.125, "oz")]
    assert [v.price_per_g for v in one(license_type="medical", variants=sold, prices=None).variants] == [10]


def test_a_sale_is_off_the_listed_price_to_the_cent() -> None:
    product = one(sale={"amount": 20, "type": "percentage"}, prices={"price_unit": 31.25})
    assert (product.price_rec, product.price_rec_special) == (Decimal("31.25"), 25)
    assert one(sale={"amount": 15, "type": "percentage"}, prices={"price_unit": 0.1}).price_rec_special == Decimal(
        "0.09"
    )
    for odd in (
        {"amount": 5, "type": "dollars"},
        {"amount": 0, "type": "percentage"},
        {"amount": 100, "type": "percentage"},
    ):
        product = one(sale=odd)
        assert product.price_rec_special is None
        assert [special.kind for special in product.specials] == ["other"]


def test_zero_is_no_price() -> None:
    product = one(prices={"price_unit": 0})
    assert [(v.option, v.price_rec) for v in product.variants] == [("each", None)]
    assert product.price_rec is None
    assert one(variants=[variant("1 g", "0.00", 1, "g")], prices=None).price_rec is None


def test_a_price_by_the_package_beside_weights_is_an_option_unless_it_repeats_one() -> None:
    sold = [variant("1 g", "8.00", 1, "g", inventory_quantity=4), variant("1/8 oz", "28.00", 0.125, "oz")]

    def options(price: object, **more: Any) -> list[tuple[str, Any, int | None]]:
        product = one(variants=sold, prices={"price_unit": price}, inventory_quantity=9, **more)
        return [(v.option, v.price_rec, v.quantity) for v in product.variants]

    by_weight = [("1 g", 8, 4), ("1/8 oz", 28, None)]
    assert options("8.54") == [*by_weight, ("each", Decimal("8.54"), None)]
    for repeated in (0, 8, "28.00"):
        assert options(repeated) == by_weight
    half = {"amount": 50, "type": "percentage"}
    assert options(14, sale=half) == by_weight, "the price after the sale"
    assert one(variants=sold, prices={"price_unit": 10}).price_rec == 8
    gone = [variant("1 g", "8.00", 1, "g", inventory_quantity=0)]
    assert one(variants=gone, prices={"price_unit": 10}, inventory_quantity=0).stock_status == "oos"


def test_ids_of_the_point_of_sale_and_what_the_cart_counts() -> None:
    sold = [
        variant("1 g", "8", 1, "g", compliance_net_mg=1000, cart_quantity_multiplier=3.5),
        variant("2 g", "15", 2, "g"),
    ]
    extra = one(external_id="9969ae|12619997", cart_quantity_multiplier=1, variants=sold).extra
    assert (extra["external_id"], extra["pos_id"], extra["cart_quantity_multiplier"]) == (
        "9969ae|12619997",
        "12619997",
        1,
    )
    assert extra["options"] == {"1 g": {"compliance_net_mg": 1000, "cart_quantity_multiplier": Decimal("3.5")}}
    assert "pos_id" not in one(external_id="16536e2b").extra


def test_prices_by_weight_stand_in_for_variants() -> None:
    product = one(prices={"price_unit": 0, "price_gram": 8, "price_eighth": 28})
    assert [(v.option, v.price_rec, v.weight_g, v.price_per_g) for v in product.variants] == [
        ("1 g", 8, 1, 8), ("1/8 oz", 28, Decimal("3.5"), 8),
    ]  # fmt: skip


def test_stock() -> None:
    two = [variant("1 g", "8", 1, "g", inventory_quantity=4), variant("2 g", "15", 2, "g", inventory_quantity=2)]
    assert (one(variants=two).quantity, one(variants=two, shared_inventory=True).quantity) == (6, 4)
    assert (one(inventory_quantity=None).stock_status, one(inventory_quantity=None).is_in_stock) == ("unknown", None)
    assert (one(inventory_quantity=0).stock_status, one(inventory_quantity=-2).quantity) == ("oos", 0)
    assert (one(inventory_quantity=9999).quantity_capped, one(inventory_quantity=9998).quantity_capped) == (True, False)
    assert one(is_published=False).stock_status == "oos"
    assert one(online_orderable=False).stock_status == "in_stock", "it may be on the shelf"


def test_potency_in_the_unit_that_the_goods_are_sold_by() -> None:
    rows = [{"name": "THC", "unit": "%", "value": "81.7"}, {"name": "THC", "unit": "mg", "value": "300.0"}]
    flower, edible = (
        one(measurements=rows),
        one(measurements=rows, category_name="Edibles", sub_category={"name": "Candy"}),
    )
    assert flower.thc is not None
    assert edible.thc is not None
    assert (flower.thc.lo, flower.thc.unit) == (Decimal("81.7"), "%")
    assert (edible.thc.lo, edible.thc.unit) == (300, "mg")
    nothing = one(measurements=[{"name": "THC", "unit": "%", "value": "0.0"}])
    assert nothing.thc is None
    assert [row.value for row in nothing.cannabinoids] == [0]


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        (b"[]", "", "expected an object"),
        (b"7", "", "expected an object"),
        (json.dumps({"attributes": {"name": "x"}}).encode(), "id", "is missing"),
        (json.dumps({"id": "x" * 300, "attributes": {"name": "x"}}).encode(), "id", "300 characters"),
        (json.dumps({"id": 1}).encode(), "attributes", "is missing"),
        (json.dumps({"id": 1, "attributes": "none"}).encode(), "attributes", "is missing"),
        (json.dumps(item(name=None)).encode(), "attributes.name", "is missing"),
        (json.dumps(item(name=7)).encode(), "attributes.name", "expected str"),
        (json.dumps(item(prices={"price_unit": "dear"})).encode(), "attributes.prices.price_unit", "invalid decimal"),
        (json.dumps(item(prices={"price_unit": -1})).encode(), "attributes.prices.price_unit", "invalid price -1"),
        (b'{"id":1,"attributes":{"name":"x","prices":{"price_unit":1e400}}}', "attributes.prices.price_unit", "invalid price"),
        (json.dumps(item(inventory_quantity="many")).encode(), "attributes.inventory_quantity", "expected int"),
        (json.dumps(item(variants=[{"label": "1 g", "price": {"amount": "x"}}])).encode(), "attributes.variants[0].price.amount", ""),
        (b'{"id":1,"attributes":' * 5000 + b"1" + b"}" * 5000, "", "nested too deeply"),
    ],
)  # fmt: skip
def test_an_item_that_is_no_product_stops_nothing_else(raw: bytes, field: str, says: str) -> None:
    products, warnings = normalized(item(8), raw, item(9))
    assert [product.provider_product_id for product in products] == ["8", "9"]
    (warning,) = warnings
    assert warning.fatal
    assert warning.field == field
    assert says in warning.message


def test_other_bad_values_are_left_out_and_named() -> None:
    odd = item(
        brand_name=7, genetics=[], created_at="yesterday", measurements=[{"name": "THC", "unit": "%", "value": 1e300}]
    )
    (product,), warnings = normalized(odd)
    assert (product.brand_name, product.strain_type, product.platform_created_at, product.thc) == (
        None,
        None,
        None,
        None,
    )
    assert {warning.field for warning in warnings} == {
        "attributes.brand_name", "attributes.genetics", "attributes.created_at", "attributes.measurements[0].value",
    }  # fmt: skip
    assert not any(warning.fatal for warning in warnings)


def test_no_column_takes_nul() -> None:
    (product,), _ = normalized(item(name="a\0b", brand_name="\0", body="x\0y"))
    assert "\0" not in repr(product)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
            ["name", "prices", "variants", "price_unit", "label", "value", "unit", "sale", "amount", "type", "data", "id",
             "measurements", "inventory_quantity", "body"]), inner, max_size=4),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_attributes_give_a_product_or_a_warning(attributes: Any) -> None:
    raw = json.dumps({"id": 1, "attributes": attributes, "relationships": attributes, "links": attributes}).encode()
    products, warnings = normalized(raw)
    assert len(products) + sum(warning.fatal for warning in warnings) == 1


# Items of live menus.


def live(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": number, "name": f"Thing {number}", "license_type": "recreational", "menu_id": 7,
            "edge_category": {"name": "Flower", "ancestors": []},
            "prices": {"grams_per_eighth": 3.5, "ounce": [{"price": 35, "label": "1/8 oz", "weight": {"value": 0.125, "unit": "oz"}}]},
            **fields}  # fmt: skip


def one_live(**fields: Any) -> Product:
    (product,), warnings = normalized(live(**fields))
    assert warnings == []
    return product


def live_options(prices: Any, **fields: Any) -> list[tuple[str, Any, Any, Any]]:
    product = one_live(prices=prices, **fields)
    return [(v.option, v.price_rec, v.special_rec, v.weight_g) for v in product.variants]


def test_live_offers_come_as_lists_single_or_bare() -> None:
    assert live_options(live()["prices"]) == [("1/8 oz", 35, None, Decimal("3.5"))]
    assert live_options({"unit": {"price": 12, "units": "1"}}) == [("each", 12, None, None)]
    assert live_options({"gram": [{"price": "8.50", "units": "1"}, {"price": 16, "units": "2"}], "half_gram": 5}) == [
        ("half gram", 5, None, Decimal("0.5")), ("1 g", Decimal("8.5"), None, 1), ("2 g", 16, None, 2),
    ]  # fmt: skip
    other = {"price": 20, "unit": "ounce", "quantity": "1/4", "original_price": 25, "on_sale": True}
    assert live_options({"grams_per_eighth": 3.5}, price=other) == [("1/4 oz", 25, 20, 7)]
    assert live_options(None) == [("each", None, None, None)]


def test_a_live_sale_has_its_regular_price_beside_it() -> None:
    sale = {"ounce": [{"price": 28, "original_price": 35, "on_sale": True, "label": "1/8 oz"}]}
    product = one_live(prices=sale)
    assert (product.price_rec, product.price_rec_special) == (35, 28)
    assert [special.kind for special in product.specials] == ["other"]
    medical = one_live(prices=sale, license_type="medical")
    assert (medical.price_med, medical.price_med_special, medical.price_rec) == (35, 28, None)
    regular = {"ounce": [{"price": 35, "original_price": 35, "on_sale": False, "label": "1/8 oz"}]}
    assert (one_live(prices=regular).price_rec_special, one_live(prices=regular).specials) == (None, ())


def test_a_live_menu_says_no_stock_and_no_store() -> None:
    product = one_live()
    assert (product.stock_status, product.quantity, product.is_in_stock) == ("unknown", None, None)
    assert WEEDMAPS.store_of([msgspec.Raw(json.dumps(live()).encode())]) is None


def test_live_words() -> None:
    gummies = {"name": "Gummies", "ancestors": [{"name": "Edibles"}]}
    rows = {"cannabinoids": [{"code": "thc", "value": 100}, {"code": "cbd", "value": 0}]}
    product = one_live(edge_category=gummies, metrics=rows, category={"name": "Indica"})
    assert (product.category, product.subcategory, product.category_canon, product.subcategory_canon) == (
        "Edibles", "Gummies", "edible", "gummies",
    )  # fmt: skip
    assert (product.strain_canon, product.thc) == ("indica", None), "milligrams or percent: the menu does not say"
    assert [(row.name, row.value, row.unit) for row in product.cannabinoids] == [("THC", 100, ""), ("CBD", 0, "")]
    flower = one_live(metrics={"aggregates": {"thc": 24, "cbd": 0}}, genetics_tag={"name": "Sativa"})
    assert flower.thc is not None
    assert (flower.thc.lo, flower.thc.unit, flower.cbd, flower.strain_canon) == (24, "%", None, "sativa")
    assert one_live(metrics={"aggregates": {"thc": 800}}).thc is None, "no mass holds more than 100 %"
    older = one_live(edge_category=None, category={"name": "Edible"})
    assert (older.category, older.strain_type, older.category_canon) == ("Edible", None, "edible")


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"name": None}, "name", "is missing"),
        ({"name": 7}, "name", "expected str"),
        ({"prices": {"ounce": [{"price": "dear"}]}}, "prices", "invalid decimal"),
        ({"prices": {"ounce": True}}, "prices", "expected"),
        ({"prices": [1]}, "prices", "expected object"),
        ({"prices": {"unit": {"price": -1}}}, "prices.unit.price", "invalid price -1"),
        ({"prices": {"unit": {"price": 1, "original_price": 1e300}}}, "prices.unit.original_price", "invalid price"),
        ({"id": None}, "id", "is missing"),
    ],
)
def test_a_live_item_that_is_no_product_stops_nothing_else(fields: dict[str, Any], field: str, says: str) -> None:
    products, warnings = normalized(live(8), live(1, **fields), live(9))
    assert [product.provider_product_id for product in products] == ["8", "9"]
    (warning,) = warnings
    assert (warning.fatal, says in warning.message) == (True, True), warning
    assert warning.field.startswith(field)


def test_a_live_option_that_is_offered_twice_counts_once() -> None:
    (product,), warnings = normalized(
        live(prices={"gram": [{"price": 8, "label": "1 g"}, {"price": 9, "label": "1 g"}]})
    )
    assert [(v.option, v.price_rec) for v in product.variants] == [("1 g", 8)]
    assert [(warning.field, warning.fatal) for warning in warnings] == [("prices.gram[1]", False)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
            ["name", "prices", "price", "unit", "label", "units", "value", "on_sale", "ounce", "metrics", "cannabinoids", "code",
             "weight", "tags", "avatar_image", "edge_category", "ancestors"]), inner, max_size=4),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_live_fields_give_a_product_or_a_warning(fields: Any) -> None:
    raw = json.dumps({"name": "x", **(fields if isinstance(fields, dict) else {"prices": fields}), "id": 1}).encode()
    products, warnings = normalized(raw)
    assert len(products) + sum(warning.fatal for warning in warnings) == 1


# Menus.


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "truncated"),
        (b'{"meta":{"page":1},"da', "truncated"),
        (b"<html><title>Just a moment...</title></html>", "html"),
        (b"Forbidden", "html"),
        (b'{"meta":{},"data":[]}', "empty"),
        (b'{"meta":{},"data":null}', "no_data"),
        (b'{"meta":{},"data":{"menu_items":[]}}', "empty"),
        (b'{"meta":{},"data":{"menu_items":null}}', "no_data"),
        (b'{"meta":{},"data":{"listings":[]}}', "no_data"),
        (b'{"errors":[{"detail":"no"}]}', "schema"),
        (b"[1]", "schema"),
    ],
)
def test_what_is_no_menu(body: bytes, kind: str) -> None:
    with pytest.raises(BadPayload) as caught:
        WEEDMAPS.split(body)
    assert (caught.value.kind, caught.value.body) == (kind, body)


def test_totals() -> None:
    assert WEEDMAPS.totals(page([item()], total=238)) == (238, 3)
    assert WEEDMAPS.totals(b'{"meta":{"total":"many"},"data":[]}') == (None, None)


@pytest.mark.parametrize(
    ("data", "strict"),
    [
        ([item(1), item(2)], True),
        ([{"id": "x\0y"}, {"id": ""}, {}, {"id": None}], True),
        ([{"id": True}, {"id": 1.5}, {"id": 10**30}, "text", None, [1]], False),
        ([], True),
    ],
)
def test_a_survey_is_what_reading_gives(data: list[Any], strict: bool) -> None:
    body = page(data, total=250)
    read, found = weedmaps.read(body), weedmaps.inspect(body)
    assert (found.ids, found.total_count, found.total_pages) == (read.inspect(ITEMS.identity).ids, 250, 3)
    assert found.strict == strict


def test_which_store() -> None:
    raw = [msgspec.Raw(json.dumps(one).encode()) for one in ({"id": 1}, item(listing=305566))]
    assert WEEDMAPS.store_of(raw) == "305566"
    assert WEEDMAPS.store_in(raw) == FoundStore(
        platform_dispensary_id="305566", slug="a-shop", name_raw="a-shop", name="a-shop",
        menu_url="https://weedmaps.com/dispensaries/a-shop", is_recreational=True,
    )  # fmt: skip
    both = [*raw, msgspec.Raw(json.dumps(item(2, listing=305566, license_type="medical")).encode())]
    found = WEEDMAPS.store_in(both)
    assert found is not None
    assert (found.is_recreational, found.is_medical) == (True, True)
    elsewhere = [*raw, msgspec.Raw(json.dumps(item(2, listing=8, license_type="medical")).encode())]
    assert WEEDMAPS.store_in(elsewhere) == WEEDMAPS.store_in(raw), "an item of another listing says nothing of this one"
    assert WEEDMAPS.store_in(raw[:1]) is None


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        ("https://weedmaps.com/dispensaries/oso-cannabis-company", "oso-cannabis-company"),
        ("https://www.weedmaps.com/dispensaries/oso/menu/x?y=1", "oso"),
        ("weedmaps.com/deliveries/fast-1", "fast-1"),
        ("https://weedmaps.com/brands/wyld", None),
        ("https://dutchie.com/dispensary/oso", None),
        ("https://notweedmaps.com/dispensaries/oso", None),
        ("https://[", None),
        ("", None),
    ],
)
def test_slug_of(url: str, slug: str | None) -> None:
    assert WEEDMAPS.slug_of(url) == slug


# RequestRetry.


class World:
    """Answers each request with what `reply` says of (path, parameters, number of requests before)."""

    def __init__(self, reply: Callable[[str, Mapping[str, str], int], tuple[int, bytes]]) -> None:
        self.reply = reply
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def request(self, method: str, url: str, *, params: Mapping[str, str] | None = None, **_: Any) -> Response:
        assert method == "GET"
        path = url.removeprefix("https://api.example")
        self.asked.append((path, dict(params or {})))
        status, body = self.reply(path, params or {}, len(self.asked) - 1)
        return Response(status=status, headers={}, body=body, url=url, elapsed_ms=1.0)


async def no_wait(_: float) -> None:
    return None


ASKED = Weedmaps(base_url="https://api.example/", retry_base_seconds=0, sleep=no_wait)


def test_hosts_are_those_that_are_asked() -> None:
    assert ASKED.hosts == {"api.example"}
    assert WEEDMAPS.hosts == frozenset()


async def test_nobody_is_asked_without_an_address() -> None:
    world = World(lambda *_: (200, b""))
    for asking in (WEEDMAPS.fetch_menu(world, "7"), WEEDMAPS.resolve(world, "a-shop")):
        with pytest.raises(Permanent, match="WEEDMAPS_BASE_URL"):
            await asking
    with pytest.raises(Permanent, match="WEEDMAPS_BASE_URL"):
        _ = [store async for store in WEEDMAPS.discover(world)]
    assert world.asked == []


async def test_a_menu_page_by_page() -> None:
    pages = [[item(n) for n in range(1, 101)], [item(n) for n in range(101, 201)], [item(n) for n in range(201, 239)]]
    world = World(
        lambda _, params, __: (200, page(pages[int(params["page"]) - 1], number=int(params["page"]), total=238))
    )
    menu = await ASKED.fetch_menu(world, "305566")
    assert (menu.product_count, menu.total_count, menu.complete, len(menu.pages)) == (238, 238, True, 3)
    assert [params["page"] for _, params in world.asked] == ["1", "2", "3"]
    assert {path for path, _ in world.asked} == {"/discovery/v1/listings/dispensaries/305566/menu_items"}


async def test_a_live_menu_page_by_page() -> None:
    """Its pages do not say how many there are: what is full is followed by another."""
    pages = [[live(n) for n in range(100 * start + 1, min(100 * start + 101, 239))] for start in range(3)]

    def reply(_: str, params: Mapping[str, str], __: int) -> tuple[int, bytes]:
        number = int(params["page"])
        rows = pages[number - 1] if number <= 3 else []
        return 200, json.dumps({"meta": {"total_menu_items": 238}, "data": {"menu_items": rows}}).encode()

    world = World(reply)
    menu = await ASKED.fetch_menu(world, "305566")
    assert (menu.product_count, menu.total_count, menu.complete, len(menu.pages)) == (238, 238, True, 3)
    assert menu.strict == {0, 1, 2}


async def test_trouble_is_asked_again_in_place_and_then_told() -> None:
    answers = [(200, b"<html>"), (503, b""), (200, page([item()]))]
    world = World(lambda _, __, before: answers[before])
    assert (await ASKED.fetch_menu(world, "7")).complete
    down = World(lambda *_: (500, b""))
    with pytest.raises(Transient, match="HTTP 500"):
        await ASKED.fetch_menu(down, "7")
    assert len(down.asked) == 3
    empty = World(lambda *_: (200, page([])))
    with pytest.raises(BadPayload) as caught:
        await ASKED.fetch_menu(empty, "7")
    assert caught.value.kind == "empty"


def listing(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "slug": f"shop-{number}", "name": f"Shop  {number} ", "state": "New Mexico", "city": "Taos",
            "latitude": 36.4, "longitude": -105.57, "zip_code": "87571", "license_type": "hybrid", **more}  # fmt: skip


async def test_stores_of_a_region() -> None:
    lists = [[listing(n) for n in range(100)], [listing(n) for n in range(95, 130)], []]

    def reply(path: str, params: Mapping[str, str], _: int) -> tuple[int, bytes]:
        return 200, json.dumps({"data": {"listings": lists[int(params["page"]) - 1]}}).encode()

    world = World(reply)
    found = [store async for store in ASKED.discover(world, state="New Mexico")]
    assert [store.platform_dispensary_id for store in found] == [str(n) for n in range(130)]
    assert world.asked[0] == (
        "/discovery/v1/listings",
        {"filter[any_retailer_services][]": "storefront", "filter[region_slug[dispensaries]]": "new-mexico",
         "size": "100", "page": "1", "page_size": "100"},
    )  # fmt: skip
    assert len(world.asked) == 2
    first = found[0]
    assert (first.slug, first.name_raw, first.name, first.state, first.zipcode) == (
        "shop-0",
        "Shop  0 ",
        "Shop 0",
        "NM",
        "87571",
    )
    assert (first.latitude, first.longitude, first.is_medical, first.is_recreational) == (36.4, -105.57, True, True)


async def test_one_store_by_its_slug() -> None:
    known = World(lambda *_: (200, json.dumps({"data": {"listing": listing(7)}}).encode()))
    found = await ASKED.resolve(known, "shop-7")
    assert found is not None
    assert found.platform_dispensary_id == "7"
    assert known.asked == [("/discovery/v1/listings/dispensaries/shop-7", {})]
    assert await ASKED.resolve(World(lambda *_: (404, b"{}")), "none") is None


@pytest.mark.parametrize(
    "odd", [7, {"id": None}, {"id": 1, "latitude": "x"}, {"id": 1, "latitude": 0, "longitude": 0}, []]
)
async def test_odd_records_of_stores(odd: Any) -> None:
    world = World(lambda *_: (200, json.dumps({"data": {"listings": [odd]}}).encode()))
    (store,) = [store async for store in ASKED.discover(world)]
    assert (store.problem is None) == (isinstance(odd, dict) and odd["id"] is not None)
    assert (store.latitude, store.longitude) == (None, None)
