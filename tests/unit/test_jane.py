"""Rows of Jane menus as they should not be, menus that are none, and requests against a scripted outside world."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.model import Batch, Product, ProductWarning, Special
from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload, Permanent, Transient
from menuwatch.core.http import Response
from menuwatch.platforms.jane import adapter, stores
from menuwatch.platforms.jane.adapter import Jane
from menuwatch.platforms.jane.lab_results import is_cannabinoid
from menuwatch.platforms.jane.normalize import ITEMS
from menuwatch.platforms.registry import platforms

JANE = Jane()


def row(number: int = 1, *, store: int = 7, **fields: Any) -> dict[str, Any]:
    return {
        "product_id": number, "objectID": f"prod_{number}_store_{store}", "store_id": store, "name": f"Thing {number}",
        "kind": "flower", "store_types": ["recreational"], "available_weights": ["gram"], "price_gram": 10, **fields,
    }  # fmt: skip


def page(rows: list[Any], *, number: int = 0, total: int | None = None, size: int = 1000, **more: Any) -> bytes:
    count = len(rows) if total is None else total
    answer = {"hits": rows, "nbHits": count, "page": number, "nbPages": -(-count // size), "hitsPerPage": size, **more}
    return json.dumps(answer).encode()


def normalized(*rows: Any) -> tuple[list[Product], list[ProductWarning]]:
    made = JANE.normalize([msgspec.Raw(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in rows])
    return list(made.products), list(made.warnings)


def one(**fields: Any) -> Product:
    (product,), warnings = normalized(row(**fields))
    assert warnings == []
    return product


def warned(**fields: Any) -> tuple[Product, str, str]:
    (product,), (warning,) = normalized(row(**fields))
    assert not warning.fatal
    return product, warning.field, warning.message


# Rows.


def test_for_whom_a_price_is() -> None:
    prices = {
        types: (product.price_rec, product.price_med)
        for types in ("recreational", "medical", "medical recreational", "Medical", "")
        for product in [one(store_types=types.split())]
    }
    assert prices == {
        "recreational": (10, None), "medical": (None, 10), "medical recreational": (10, 10), "Medical": (None, 10), "": (10, None),
    }  # fmt: skip
    assert one(store_types=None).price_rec == 10


def test_every_weight_of_a_row() -> None:
    weights = ("each", "half gram", "gram", "two gram", "eighth ounce", "quarter ounce", "half ounce", "ounce")
    prices = {f"price_{weight.replace(' ', '_')}": 5 * place for place, weight in enumerate(weights, 1)}
    product = one(available_weights=list(reversed(weights)), **prices)
    assert [(v.option, v.price_rec, v.weight_g) for v in product.variants] == [
        ("each", 5, None), ("1/2 g", 10, Decimal("0.5")), ("1 g", 15, 1), ("2 g", 20, 2), ("1/8 oz", 25, Decimal("3.5")),
        ("1/4 oz", 30, 7), ("1/2 oz", 35, 14), ("1 oz", 40, 28),
    ]  # fmt: skip
    assert (product.price_rec, product.quantity, product.stock_status) == (5, None, "in_stock")


def test_what_can_be_bought_is_in_stock() -> None:
    product = one(available_weights=["Eighth Ounce"], price_eighth_ounce="30.50", max_cart_quantity_eighth_ounce=4)
    assert [(v.option, v.stock_status, v.quantity) for v in product.variants] == [
        ("1 g", "oos", None), ("1/8 oz", "in_stock", None),
    ]  # fmt: skip
    assert product.extra["max_cart_quantity"] == {"1/8 oz": 4}, "a cart limit is no stock"
    unknown = one(available_weights=None)
    assert (unknown.stock_status, unknown.is_in_stock) == ("unknown", None)
    assert one(available_weights=[], price_gram=None).stock_status == "oos"
    assert one(available_weights=[]).stock_status == "oos"
    hidden = one(visible=False)
    assert (hidden.stock_status, hidden.status_raw, hidden.variants[0].stock_status) == ("oos", "hidden", "oos")
    unpriced = one(price_gram=None)
    assert [(v.option, v.price_rec, v.stock_status) for v in unpriced.variants] == [("1 g", None, "in_stock")]


def test_specials() -> None:
    special = {"price": "10.0", "special_id": 5, "discount_type": "percent", "discount_price": "7.5", "discount_amount": 2.5,
               "discount_percent": "25.0"}  # fmt: skip
    titled = {"special_id": 5, "special_title": " Quarter  off ", "special_amount": "25% OFF"}
    product = one(special_price_gram=special, discounted_price_gram=7.5, **titled)
    assert (product.price_rec, product.price_rec_special) == (10, Decimal("7.5"))
    assert product.specials == (Special(name="Quarter off", kind="percent", value=Decimal("25.0"), special_id="5"),)
    assert one(special_price_gram={}).specials == ()
    assert one(discounted_price_gram="8.25").price_rec_special == Decimal("8.25")
    assert one(special_price_gram=9).price_rec_special == 9, "described as a number"
    assert one(special_price_gram={**special, "discount_price": "9"}, discounted_price_gram=8).price_rec_special == 8
    nothing = one(
        special_price_gram={
            **special,
            "discount_price": "10.0",
            "discount_type": "dollar_amount",
            "discount_amount": "0.0",
        }
    )
    assert (nothing.price_rec_special, nothing.specials[0].kind, nothing.specials[0].value) == (None, "amount", None)
    assert one(special_price_gram={**special, "discount_type": "mystery"}).specials[0].kind == "other"
    assert [(s.kind, s.value) for s in one(**titled).specials] == [("percent", 25)], "a title alone"
    assert [(s.kind, s.value) for s in one(**{**titled, "special_amount": "$5 off"}).specials] == [("amount", 5)]
    assert [(s.kind, s.value) for s in one(**{**titled, "special_amount": 3}).specials] == [("other", None)]


def test_a_refund_is_a_special_that_changes_no_price() -> None:
    refund = {"price": "8.5", "title": "15% back", "brand_special_id": 886}
    product = one(brand_special_prices={"gram": refund, "ounce": refund})
    assert (product.price_rec_special, product.specials) == (
        None,
        (Special(name="15% back", kind="other", special_id="886"),),
    )
    bundles = one(applicable_special_ids=[1, 2], applicable_bundle_special_ids={"qualify": [3], "discount": [4]},
                  applicable_bundle_brand_special_ids=[3, 9])  # fmt: skip
    assert (bundles.extra["special_ids"], bundles.extra["bundle_special_ids"]) == (["1", "2"], ["3", "4", "9"])


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"price_gram": 0}, "price_gram", "is 0"),
        ({"discounted_price_gram": 12}, "discounted_price_gram", "special price 12 of a regular price of 10"),
        ({"special_price_gram": {"discount_price": "0"}}, "special_price_gram", "special price 0"),
        ({"available_weights": ["gram", "pound"]}, "available_weights", "unknown weight 'pound'"),
        ({"inventory_potencies": [{"price_id": "gram", "thc_potency": 340}]}, "inventory_potencies[0].thc_potency", "340 %"),
        ({"percent_thc": -5}, "percent_thc", "-5 %"),
        ({"lab_results": [{"price_id": "gram", "lab_results": [{"compound_name": "THC", "value": 101, "unit": "%"}]}]},
         "lab_results[0].lab_results[0].value", "101 %"),
        ({"indexed_at": "yesterday"}, "indexed_at", "invalid time"),
        ({"brand": 7}, "brand", "expected str"),
        ({"percent_tac": 1e300}, "percent_tac", "out of bounds"),
        ({"image_urls": "https://x.example/a.png"}, "image_urls", "expected array"),
    ],
)  # fmt: skip
def test_bad_values_are_left_out_and_named(fields: dict[str, Any], field: str, says: str) -> None:
    product, at, message = warned(**fields)
    assert at == field
    assert says in message
    assert product.price_rec_special is None
    assert product.thc is None
    assert product.cannabinoids == ()


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        (b"[]", "", "expected an object"),
        (b"7", "", "expected an object"),
        (b"null", "", "expected an object"),
        (json.dumps(row(product_id=None)).encode(), "id", "is missing"),
        (json.dumps(row(product_id=True)).encode(), "id", "is missing"),
        (json.dumps(row(product_id="x" * 300)).encode(), "id", "300 characters"),
        (json.dumps(row(name=None)).encode(), "name", "is missing"),
        (json.dumps(row(name=" ")).encode(), "name", "is missing"),
        (json.dumps(row(name=7)).encode(), "name", "expected str"),
        (json.dumps(row(price_gram="dear")).encode(), "price_gram", "invalid decimal"),
        (json.dumps(row(price_gram=-1)).encode(), "price_gram", "invalid price -1"),
        (json.dumps(row(price_gram=10**7)).encode(), "price_gram", "invalid price"),
        (json.dumps(row(discounted_price_gram=-3)).encode(), "discounted_price_gram", "invalid price -3"),
        (json.dumps(row(special_price_gram={"discount_price": "x"})).encode(), "special_price_gram.discount_price", "invalid decimal"),
        (json.dumps(row(available_weights="gram")).encode(), "available_weights", "expected array"),
        (b'{"product_id":1,"name":"x","price_gram":1e400}', "price_gram", "invalid price"),
        (b'{"product_id":1,"name":"x","brand_special_prices":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_row_that_is_no_product_stops_nothing_else(raw: bytes, field: str, says: str) -> None:
    products, warnings = normalized(row(8), raw, row(9))
    assert [product.provider_product_id for product in products] == ["8", "9"]
    (warning,) = warnings
    assert warning.fatal
    assert warning.field == field
    assert says in warning.message


def test_no_column_takes_nul_or_half_an_emoji() -> None:
    (product,), _ = normalized(row(name="a\0b", brand="\0", description="x\0y", feelings=["a\0", "\ud83d"]))
    assert "\0" not in repr(product)
    assert "\\ud83d" not in repr(product)


def test_potency_is_of_the_weights_sold() -> None:
    rows = [{"price_id": "gram", "thc_potency": 20.5, "cbd_potency": 0.0}, {"price_id": "ounce", "thc_potency": 30.5},
            {"price_id": "eighth_ounce", "thc_potency": 22}]  # fmt: skip
    product = one(
        inventory_potencies=rows, percent_thc=99, available_weights=["gram", "eighth ounce"], price_eighth_ounce=30
    )
    assert product.thc is not None
    assert (product.thc.lo, product.thc.hi, product.thc.unit, product.cbd) == (Decimal("20.5"), 22, "%", None)
    whole = one(inventory_potencies=rows[1:2], percent_thc=18, percent_cbd=2)
    assert whole.thc is not None
    assert whole.cbd is not None
    assert (whole.thc.hi, whole.cbd.hi) == (18, 2)


def test_content_of_edibles_is_the_laboratorys() -> None:
    """`percent_thc` of an edible may be milligrams: nothing says so."""
    lab = [{"price_id": "each", "lab_results": [{"compound_name": "THC", "value": 100, "unit": "mg"}]}]
    fields: dict[str, Any] = {
        "kind": "edible",
        "available_weights": ["each"],
        "price_gram": None,
        "price_each": 20,
        "percent_thc": 100,
    }
    product = one(**fields, lab_results=lab, net_weight_grams=50)
    assert product.thc is not None
    assert (product.thc.hi, product.thc.unit, product.variants[0].weight_g) == (100, "mg", None)
    unsaid = one(**fields)
    assert (unsaid.thc, unsaid.extra["percent_thc"]) == (None, 100)


def test_laboratory_values_are_those_of_the_smallest_weight_sold() -> None:
    def lab(weight: str, thca: float) -> dict[str, Any]:
        rows = (("THCA", thca), ("Total THC", thca + 1), ("Limonene", 0.5), ("", 1))
        return {"price_id": weight, "lab_results": [{"compound_name": n, "value": v, "unit": "%"} for n, v in rows]}

    labs = [lab("half_gram", 10), lab("ounce", 30), lab("gram", 20), {"price_id": None}, None]
    product = one(lab_results=labs, available_weights=["ounce", "gram"], price_ounce=99)
    assert [(one.name, one.value, one.is_total) for one in product.cannabinoids] == [
        ("THCA", 20, False),
        ("Total THC", 21, True),
    ]
    assert [(one.name, one.value, one.unit) for one in product.terpenes] == [("Limonene", Decimal("0.5"), "%")]
    by_option = product.extra["lab_results_by_option"]
    assert [(option, rows[0]["value"]) for option, rows in by_option.items()] == [("1 g", 20), ("1 oz", 30)]
    assert "lab_results_by_option" not in one(lab_results=labs).extra
    assert one(lab_results=labs[:1]).cannabinoids[0].value == 10, "better than nothing"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in (
            "THC", "THCA", "thc-a", "THCV", "Δ9-THC", "Delta-8 THC", "delta 9-thc", "D9-THC", "CBD", "CBDa", "CBG", "CBN", "CBC",
            "CBT", "Total THC", "TAC", "Total Cannabinoids", "Cannabidiol", "Cannabigerol", "Total Active Cannabinoids", "HHC")),
        *((name, False) for name in (
            "Limonene", "b-Pinene", "Caryophyllene", "Camphene", "D-Limonene", "Delta-3-Carene", "Total Terpenes", "Terpinolene",
            "Cymene", "Nerolidol 1", "Valencene", "alpha-Bisabolol")),
    ],
)  # fmt: skip
def test_cannabinoids_and_terpenes(name: str, expected: bool) -> None:
    assert is_cannabinoid(name) is expected


def test_weights_of_single_items() -> None:
    each: dict[str, Any] = {"kind": "vape", "available_weights": ["each"], "price_gram": None, "price_each": 40}
    weights = [
        one(**each, **more).variants[0].weight_g
        for more in (
            {"net_weight_grams": 0.5}, {"net_weight_grams": 0, "quantity_value": "500", "quantity_units": "mg"},
            {"quantity_value": 2, "quantity_units": "G"}, {"quantity_value": 2, "quantity_units": "pieces"}, {"amount": "1g"}, {},
        )
    ]  # fmt: skip
    assert weights == [Decimal("0.5"), Decimal("0.5"), 2, None, 1, None]


def test_words() -> None:
    kinds = {"flower": "flower", "pre-roll": "preroll", "pre_roll": "preroll", "vape": "vaporizer", "vaporizer": "vaporizer",
             "extract": "concentrate", "edible": "edible", "tincture": "tincture", "topical": "topical", "gear": "accessory",
             "merch": "apparel", "grow": "cultivation", "capsule": "oral", "clone": "cultivation", "moonbeam": None}  # fmt: skip
    assert {word: one(kind=word).category_canon for word in kinds} == kinds
    product = one(kind_subtype="Some Grind", root_subtype="Infused Flower", brand_subtype="")
    assert (product.category, product.subcategory, product.subcategory_canon) == ("flower", "Some Grind", "infused")
    # Two descriptions: the strain type is `category`, or that repeats the kind.
    assert one(category="indica", type="hybrid").strain_canon == "indica"
    assert one(kind="extract", category="extract", type="sativa").strain_canon == "sativa"
    assert one(kind="extract", category="extract", type="extract").strain_type is None
    assert one(category="purple").strain_type == "purple"


def test_images_times_and_certificates() -> None:
    photos = [{"position": 1, "urls": {"original": "https://x.example/b.png"}}, {"position": 0, "urls": {"original": "https://x.example/a.png"}},
              {"position": 2, "urls": None}, None]  # fmt: skip
    product = one(product_photos=photos, image_urls=["https://x.example/c.png"], indexed_at="2026-06-22T14:30:00Z",
                  lab_result_urls=["https://lab.example/1.pdf"])  # fmt: skip
    assert product.images == ("https://x.example/a.png", "https://x.example/b.png")
    assert product.batch == Batch(certificate_url="https://lab.example/1.pdf")
    assert str(product.platform_updated_at) == "2026-06-22 14:30:00+00:00"
    assert one(indexed_at=1782138600).platform_updated_at == one(indexed_at=1782138600000).platform_updated_at
    assert one(image_urls=["https://x.example/c.png", "", None]).image_url == "https://x.example/c.png"
    several = one(lab_result_urls=["https://lab.example/1.pdf", "https://lab.example/2.pdf"])
    assert (several.batch, len(several.extra["lab_result_urls"])) == (None, 2)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
            ["name", "price_gram", "special_price_gram", "discounted_price_gram", "discount_price", "available_weights", "lab_results",
             "price_id", "compound_name", "value", "unit", "inventory_potencies", "thc_potency", "product_photos", "urls", "position",
             "special_title", "brand_special_prices", "pos_product_lookup", "indexed_at", "visible", "kind", "amount", "_geoloc"]),
            inner, max_size=5),
        max_leaves=14,
    )
)  # fmt: skip
def test_any_row_gives_a_product_or_a_warning(fields: Any) -> None:
    plain = {"product_id": 1, "name": "x", **fields} if isinstance(fields, dict) else fields
    products, warnings = normalized(json.dumps(plain).encode())
    assert len(products) + sum(warning.fatal for warning in warnings) == 1
    if products:
        msgspec.json.encode(products)


# Menus.


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "truncated"),
        (b'{"hits":[{"product_id":1},', "truncated"),
        (b"<html><title>Just a moment...</title></html>", "html"),
        (b"Sorry, you have been blocked", "html"),
        (b'{"hits":[],"nbHits":0,"nbPages":0}', "empty"),
        (b'{"hits":null}', "no_data"),
        (b'{"message":"Index does not exist","status":404}', "no_data"),
        (b'{"hits":{"hits":[]}}', "schema"),
        (b'{"products":[]}', "schema"),
        (b'{"products":[{"id":"5f","Name":"x"}]}', "schema"),
        (b'{"products":[{"object_id":"1","product_id":2},{"object_id":"3","product_id":4}]}', "empty"),
        (b"[]", "schema"),
        (b"[1]", "schema"),
        (b'[{"id":1,"name":"x"}]', "schema"),
        (json.dumps({"hits": [row(1), row(2, store=8)]}).encode(), "errors"),
    ],
)
def test_what_is_no_menu(body: bytes, kind: str) -> None:
    with pytest.raises(BadPayload) as caught:
        JANE.split(body)
    assert (caught.value.kind, caught.value.body) == (kind, body)


def test_totals_and_bare_ids() -> None:
    assert JANE.totals(page([row()], total=2380)) == (2380, 3)
    assert JANE.totals(page([row()], total=2380, exhaustiveNbHits=False)) == (None, 3)
    assert JANE.totals(b'{"hits":[],"nbHits":"many","nbPages":-1}') == (None, None)
    bare = {"object_id": "5", "product_id": 6}
    whole = {**bare, "search_attributes": row()}
    merchandised = [whole, bare, {**bare, "search_attributes": None}, {**bare, "search_attributes": {}}]
    for body in (merchandised, {"products": merchandised}, {"products": merchandised, "nb_hits": 3}):
        read = JANE.read_page(json.dumps(body).encode())
        assert (len(read.items), read.total_count, read.total_pages) == (1, 4, None)
    more = JANE.read_page(json.dumps({"products": [whole, None, 5], "nb_hits": 90}).encode())
    assert (len(more.items), more.total_count) == (3, 90), "what is no row is named in a warning"
    assert JANE.read_page(json.dumps([row(), row(2)]).encode()).total_count is None


@pytest.mark.parametrize(
    ("rows", "strict"),
    [
        ([row(1), row(2)], True),
        ([{"product_id": "x\0y"}, {"product_id": ""}, {}, {"product_id": None}], True),
        ([{"product_id": True}, {"product_id": 1.5}, {"product_id": 10**30}, "text", None, [1]], False),
        ([], True),
    ],
)
def test_paging_data_are_what_reading_gives(rows: list[Any], strict: bool) -> None:
    body = page(rows, total=2500)
    read, found = adapter.read(body), adapter.inspect(body, 200, "7")
    assert (found.ids, found.total_count, found.total_pages) == (read.inspect(ITEMS.identity).ids, 2500, 3)
    assert found.strict == strict


def test_rows_of_another_store_are_refused() -> None:
    for body in (page([row(1), row(2, store=8)]), page([row(1, store=8), "text"])):
        with pytest.raises(BadPayload, match="the menu of store 7 has rows of store 8"):
            adapter.inspect(body, 200, "7")


def test_which_store() -> None:
    place = {"_geoloc": {"lat": 40.5, "lng": -79.5}}
    raw = [
        msgspec.Raw(json.dumps(one).encode()) for one in ({"product_id": 1}, row(2, store_types=["medical"], **place))
    ]
    assert JANE.store_of(raw) == "7"
    found = JANE.store_in(raw)
    assert found is not None
    assert (found.platform_dispensary_id, found.slug, found.is_medical, found.is_recreational) == ("7", "7", True, None)
    assert (found.latitude, found.longitude) == (40.5, -79.5)
    assert JANE.store_in(raw[:1]) is None


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        ("https://www.iheartjane.com/stores/477/people-s-kush/menu", "477-people-s-kush"),
        ("https://www.iheartjane.com/stores/477/people-s-kush?filter=x", "477-people-s-kush"),
        ("https://www.iheartjane.com/stores/477", "477"),
        ("iheartjane.com/embed/stores/4536/menu/vapes", "4536"),
        ("https://www.iheartjane.com/embed/stores/4536", "4536"),
        ("https://api.iheartjane.com/v1/stores/00477/", "477"),
        ("https://www.iheartjane.com/menu?store_id=12&x=1", "12"),
        ("https://www.iheartjane.com/menu?storeId=12", "12"),
        ("https://www.iheartjane.com/brands/477", None),
        ("https://www.iheartjane.com/stores/kush", None),
        ("https://notiheartjane.com/stores/477", None),
        ("https://shop.example/stores/477", None),
        ("https://weedmaps.com/dispensaries/oso", None),
        ("https://[", None),
        ("", None),
    ],
)
def test_slug_of(url: str, slug: str | None) -> None:
    assert JANE.slug_of(url) == slug


def test_slugs_on_shops_own_sites_name_the_store() -> None:
    assert JANE.slug_on_site("https://shop.example/menu/?store_id=5876") == "5876"
    assert JANE.slug_on_site("https://shop.example/embed/stores/5876/menu") == "5876"
    assert JANE.slug_on_site("https://shop.example/menu/") is None
    assert [stores.store_id_of(slug) for slug in ("477", "477-people-s-kush", "kush", "", "4 77")] == [
        "477",
        "477",
        None,
        None,
        None,
    ]


def test_store_records_that_are_odd() -> None:
    def found(record: Any) -> Any:
        return stores.found_store(msgspec.Raw(json.dumps(record).encode()))

    assert found([]).problem == "the record is not a JSON object"
    assert found({}).problem == "the record has no id"
    assert found({"id": "x1"}).problem == "the record's id is 'x1', not a number"
    hit = found(
        {"objectID": "12", "name": "A", "state": "on", "_geoloc": {"lat": 1, "lng": 2}, "full_address": "1 Main St"}
    )
    assert (hit.platform_dispensary_id, hit.slug, hit.state, hit.latitude, hit.address, hit.problem) == (
        "12", "12", "ON", 1.0, "1 Main St", None,
    )  # fmt: skip
    assert [found({"id": 1, "state": text}).state for text in ("California", "CA", "Ontario", "Bavaria", None)] == [
        "CA", "CA", "ON", "Bavaria", None,
    ]  # fmt: skip
    zones = ("Mountain Time (US & Canada)", "America/Boise", "Mars", 5)
    assert [found({"id": 1, "time_zone_identifier": zone}).timezone for zone in zones] == [
        "America/Denver", "America/Boise", None, None,
    ]  # fmt: skip


# Requests.


class World:
    """Answers each request with what `reply` says of (path, question, number of requests before)."""

    def __init__(self, reply: Callable[[str, dict[str, Any], int], tuple[int, bytes]]) -> None:
        self.reply = reply
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.headers: dict[str, str] = {}

    async def request(
        self, method: str, url: str, *, json: Any | None = None, headers: Any | None = None, **_: Any
    ) -> Response:
        self.asked.append((method, url, dict(json or {})))
        self.headers = dict(headers or {})
        status, body = self.reply(url.removeprefix("https://api.example"), json or {}, len(self.asked) - 1)
        return Response(status=status, headers={}, body=body, url=url, elapsed_ms=1.0)


async def no_wait(_: float) -> None:
    return None


ASKED = Jane(base_url="https://api.example/", api_key="key", retry_base_seconds=0, sleep=no_wait)


def test_hosts() -> None:
    assert JANE.hosts == frozenset()
    assert (ASKED.hosts, ASKED.api_url, ASKED.app_id) == ({"api.example"}, "https://api.example", "VFM4X0N23A")
    for host in ("search.iheartjane.com", "vfm4x0n23a-dsn.algolia.net"):
        own = Jane(base_url=f"https://{host}", api_key="key")
        assert (own.hosts, own.api_url) == ({host, "api.iheartjane.com"}, "https://api.iheartjane.com")
        assert own.hosts_of("477") == own.hosts


def test_settings() -> None:
    def configured(**given: str) -> Any:
        return platforms(Settings(platforms={"jane": given}))["jane"]

    assert configured().requested is False
    assert configured(api_key="k").requested is False
    made = configured(base_url="http://127.0.0.1:9", api_key="k", app_id="OTHER")
    assert (made.requested, made.api_key, made.app_id) == (True, "k", "OTHER")
    assert made.lacks() == ()
    assert configured(base_url="http://127.0.0.1:9").lacks() == ("JANE_API_KEY",)
    assert configured().lacks() == ("JANE_BASE_URL", "JANE_API_KEY")


async def test_no_requests_without_an_address_or_a_key() -> None:
    world = World(lambda *_: (200, b""))
    for jane, missing in ((JANE, "JANE_BASE_URL"), (Jane(base_url="https://api.example"), "JANE_API_KEY")):
        for asking in (jane.fetch_menu(world, "7"), jane.resolve(world, "7")):
            with pytest.raises(Permanent, match=missing):
                await asking
        with pytest.raises(Permanent, match=missing):
            _ = [store async for store in jane.discover(world)]
    assert world.asked == []


async def test_a_menu_page_by_page() -> None:
    pages = [[row(n) for n in range(1000)], [row(n) for n in range(1000, 2000)], [row(n) for n in range(2000, 2380)]]
    world = World(lambda _, question, __: (200, page(pages[question["page"]], number=question["page"], total=2380)))
    menu = await ASKED.fetch_menu(world, "7")
    assert (menu.product_count, menu.total_count, menu.complete, len(menu.pages)) == (2380, 2380, True, 3)
    assert world.asked == [
        ("POST", "https://api.example/1/indexes/menu-products-production/query",
         {"query": "", "filters": "store_id:7", "hitsPerPage": 1000, "page": number})
        for number in range(3)
    ]  # fmt: skip
    assert {name: world.headers[name] for name in ("x-algolia-application-id", "x-algolia-api-key", "origin", "referer")} == {
        "x-algolia-application-id": "VFM4X0N23A", "x-algolia-api-key": "key", "origin": "https://www.iheartjane.com",
        "referer": "https://www.iheartjane.com/",
    }  # fmt: skip


async def test_pages_that_are_not_as_they_should_be() -> None:
    first = [row(n) for n in range(1000)]
    repeated = World(lambda *_: (200, page(first, total=1500)))
    menu = await ASKED.fetch_menu(repeated, "7")
    assert (menu.complete, menu.product_count) == (False, 1000)
    withheld = World(lambda _, q, __: (200, page(first if q["page"] == 0 else [], number=q["page"], total=1500)))
    assert not (await ASKED.fetch_menu(withheld, "7")).complete
    foreign = World(lambda *_: (200, page([row(store=8)])))
    with pytest.raises(BadPayload, match="has rows of store 8"):
        await ASKED.fetch_menu(foreign, "7")
    empty = World(lambda *_: (200, page([])))
    with pytest.raises(BadPayload) as caught:
        await ASKED.fetch_menu(empty, "7")
    assert caught.value.kind == "empty"
    with pytest.raises(Permanent, match="Jane's stores have numbers"):
        await ASKED.fetch_menu(empty, "7 OR store_id:8")


async def test_faults_are_retried_in_place() -> None:
    answers = [(200, b"<html>"), (503, b""), (200, page([row()]))]
    world = World(lambda _, __, before: answers[before])
    assert (await ASKED.fetch_menu(world, "7")).complete
    down = World(lambda *_: (500, b""))
    with pytest.raises(Transient, match="HTTP 500"):
        await ASKED.fetch_menu(down, "7")
    assert len(down.asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (
            403,
            b'{"message":"Invalid Application-ID or API key","status":403}',
            "Invalid Application-ID or API key.*JANE_API_KEY",
        ),
        (401, b"{}", "HTTP 401.*JANE_API_KEY"),
        (400, b'{"message":"filters: Unexpected token","status":400}', r"HTTP 400, filters: Unexpected token\)$"),
    ],
)
async def test_a_refused_request_is_not_repeated(status: int, body: bytes, says: str) -> None:
    world = World(lambda *_: (status, body))
    with pytest.raises(Permanent, match=says):
        await ASKED.fetch_menu(world, "7")
    assert len(world.asked) == 1


async def test_one_store() -> None:
    record = json.dumps({"store": {"id": 477, "name": "A", "url_slug": "a"}}).encode()
    world = World(lambda path, *_: (200, record) if path == "/v1/stores/477" else (404, b"{}"))
    found = await ASKED.resolve(world, "477-people-s-kush")
    assert found is not None
    assert (found.slug, found.problem) == ("477-a", None)
    assert "x-algolia-api-key" not in world.headers
    assert await ASKED.resolve(world, "478") is None
    assert await ASKED.resolve(world, "kush") is None
    assert len(world.asked) == 2
    other = World(lambda *_: (200, record.replace(b"477", b"478")))
    with pytest.raises(BadPayload, match="another store's: the record of store 477 has the id 478"):
        await ASKED.resolve(other, "477")
    for body in (b'{"store":null}', b"{}"):
        odd = World(lambda *_, body=body: (200, body))  # type: ignore[misc]
        with pytest.raises(BadPayload, match="no store"):
            await ASKED.resolve(odd, "477")


def _stores(_: str, question: dict[str, Any], __: int) -> tuple[int, bytes]:
    """1,300 stores, alternately in Arizona and Maine, of which an answer without a place holds the first 1,000 alone."""
    hits = [
        {"objectID": str(n), "name": f"S{n}", "state": ("Arizona", "Maine")[n % 2], "city": f"C{n % 4}"}
        for n in range(1300)
    ]
    if "aroundLatLng" in question:
        latitude = float(question["aroundLatLng"].split(",")[0])
        hits = [hit for hit in hits if (latitude > 40) == (hit["state"] == "Maine")]
    shown = hits[:1000] if question["page"] == 0 else []
    return 200, page(shown, number=question["page"], total=len(hits))


async def test_all_stores_though_the_index_holds_some_back() -> None:
    world = World(_stores)
    found = [store.platform_dispensary_id async for store in ASKED.discover(world)]
    assert sorted(map(int, found)) == list(range(1300))
    assert "aroundLatLng" not in world.asked[0][2]
    world = World(_stores)
    arizona = [store async for store in ASKED.discover(world, state="az")]
    assert (len(arizona), {store.state for store in arizona}) == (650, {"AZ"})
    assert [question for _, _, question in world.asked] == [
        {"query": "", "hitsPerPage": 1000, "page": 0, "aroundLatLng": "34.3, -111.7", "aroundRadius": 430_000}
    ]
    assert len([store async for store in ASKED.discover(World(_stores), state="ME", city="c1")]) == 325
    assert [store async for store in ASKED.discover(World(_stores), state="NM")] == []
