"""Dovetail: each rule of its items, its addresses, and bad input."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.model import Batch, LabValue, Product, Special
from menuwatch.config.settings import Settings
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.core.http import Response, Session
from menuwatch.platforms.dovetail.adapter import Dovetail
from menuwatch.platforms.dovetail.answers import wrap
from menuwatch.platforms.dovetail.menu_id import MenuId
from menuwatch.platforms.model import Normalized
from menuwatch.platforms.registry import platforms

DOVETAIL = Dovetail()
MEDICAL = "https://shop.example/wp-json/dovetail-api/v1/products?page=1&perpage=50&retailer=tampa&menutype=medical"
RECREATIONAL = MEDICAL.replace("medical", "recreational")


def variant(**fields: Any) -> dict[str, Any]:
    return {"option": "1/8oz", "name": "1/8oz", "quantity": 7, "price": 30, "regular_price": 40, **fields}


def item(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "name": "A thing", "category": "Premium Flower", "variants": [variant()], **fields}


def answer(*items: Any, **more: Any) -> bytes:
    return json.dumps({"total": len(items), "page": 1, "pages": 1, "next_page": "", "results": items, **more}).encode()


def run(*items: Any, url: str = RECREATIONAL) -> Normalized:
    return DOVETAIL.normalize(DOVETAIL.split(wrap(answer(*items), url)))


def one(**fields: Any) -> Product:
    made = run(item(**fields))
    assert made.warnings == ()
    (product,) = made.products
    return product


@pytest.mark.parametrize(
    ("paid", "regular", "expected"),
    [
        (30, 40, (40, 30)),
        (40, 40, (40, None)),
        ("33.75", "45.00", (Decimal("45.00"), Decimal("33.75"))),
        (40, None, (40, None)),
        (None, 40, (40, None)),
        (None, None, (None, None)),
    ],
)
def test_what_is_paid_and_the_regular_price(paid: Any, regular: Any, expected: tuple[Any, Any]) -> None:
    product = one(variants=[variant(price=paid, regular_price=regular)])
    assert (product.price_rec, product.price_rec_special) == expected
    assert product.price_med is product.price_med_special is None


def test_prices_of_a_medical_menu_are_medical() -> None:
    (product,) = run(item(), url=MEDICAL).products
    assert (product.price_med, product.price_med_special, product.price_rec) == (40, 30, None)
    # 30 / 3.5
    assert product.variants[0].price_per_g == Decimal("8.5714")


@pytest.mark.parametrize(
    ("paid", "regular", "expected", "field"),
    [
        (0, 40, (40, None), "variants[0].price"),
        (30, 0, (30, None), "variants[0].regular_price"),
        (45, 40, (45, None), "variants[0].regular_price"),
    ],
)
def test_odd_prices_are_named(paid: Any, regular: Any, expected: tuple[Any, Any], field: str) -> None:
    made = run(item(variants=[variant(price=paid, regular_price=regular)]))
    (product,) = made.products
    assert (product.price_rec, product.price_rec_special) == expected
    assert [(w.field, w.fatal) for w in made.warnings] == [(field, False)]


@pytest.mark.parametrize("bad", [-1, "free", "NaN", 1e12, [], True, {}])
@pytest.mark.parametrize("name", ["price", "regular_price"])
def test_a_price_that_is_none_is_fatal_for_its_item(name: str, bad: Any) -> None:
    made = run(item(variants=[variant(**{name: bad})]), item(id="b"))
    assert [p.provider_product_id for p in made.products] == ["b"]
    (warning,) = made.warnings
    assert (warning.product_id, warning.field, warning.fatal) == ("a", f"variants[0].{name}", True)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [(7, (7, False, "in_stock")), ("7", (7, False, "in_stock")), (7.0, (7, False, "in_stock")), (25, (25, True, "in_stock")),
     (0, (0, False, "oos")), (-2, (0, False, "oos")), (None, (None, False, "unknown")), ("", (None, False, "unknown"))],
)  # fmt: skip
def test_stock(quantity: Any, expected: tuple[Any, ...]) -> None:
    product = one(variants=[variant(quantity=quantity)])
    (option,) = product.variants
    assert (option.quantity, option.capped, option.stock_status) == expected
    assert product.quantity == expected[0]


@pytest.mark.parametrize("quantity", ["many", 10**9, [], True])
def test_stock_that_cannot_be_read_is_fatal_for_its_item(quantity: Any) -> None:
    (warning,) = run(item(variants=[variant(quantity=quantity)])).warnings
    assert (warning.field, warning.fatal) == ("variants[0].quantity", True)


def test_several_variants() -> None:
    product = one(
        variants=[variant(), None, variant(option="1oz", name=None, price=200, regular_price=200, quantity=3)]
    )
    assert [(v.option, v.weight_g) for v in product.variants] == [("1/8oz", Decimal("3.5")), ("1oz", Decimal(28))]
    assert (product.price_rec, product.price_rec_special, product.quantity) == (40, 30, 10)
    made = run(item(variants=[variant(option="", name=" "), variant(option=None, name="7g")]))
    assert [v.option for v in made.products[0].variants] == ["7g"]
    assert [w.field for w in made.warnings] == ["variants[0].option"]


def test_what_is_sold_by_content_has_no_weight() -> None:
    (option,) = one(category="Edibles", subcategory="Gummies", variants=[variant(option="10pk/100mg")]).variants
    assert (option.weight_g, option.pieces, option.content_mg) == (None, 10, 100)


def test_potency_and_lab_rows() -> None:
    product = one(
        potency_thc={"formatted": "22.8%", "range": [22.8], "unit": "%"},
        potency_cbd={"formatted": None, "range": None, "unit": "%"},
        cannabinoids=[
            {"name": "THCA", "value": 25.4, "unit": "PERCENTAGE", "unit_symbol": "%"},
            {"name": "CBN", "value": None, "unit": "PERCENTAGE"},
            {"name": '"TAC" - Total Active Cannabinoids', "value": 26, "unit": "PERCENTAGE"},
            {"name": "", "value": 1},
            None,
        ],
        terpenes=[
            {"name": "Beta  Myrcene", "value": 0.37, "unit": "PERCENTAGE", "aromas": ["Woody"]},
            {"name": "Camphene", "value": None, "unit": "PERCENTAGE"},
        ],
    )
    assert product.thc is not None
    assert (product.thc.lo, product.thc.hi, product.thc.unit, product.cbd) == (
        Decimal("22.8"),
        Decimal("22.8"),
        "%",
        None,
    )
    assert product.cannabinoids == (
        LabValue("THCA", Decimal("25.4"), "PERCENTAGE"),
        LabValue("CBN", None, "PERCENTAGE"),
        LabValue('"TAC" - Total Active Cannabinoids', Decimal(26), "PERCENTAGE", is_total=True),
    )
    assert product.terpenes == (LabValue("Beta Myrcene", Decimal("0.37"), "PERCENTAGE"),)


def test_the_batch_on_sale() -> None:
    meta = {
        "id": 644087, "category": "Packed", "sku": "CABDC7", "batch_id": "6899180", "batch_name": "F4H525S10930-BIG",
        "alternate_name": " Velvet ", "lab_result_url": " https://lab.invalid/1.pdf ", "packaged_date": "2025-12-21T05:00:00.000Z",
    }  # fmt: skip
    product = one(meta_data=meta)
    assert product.batch == Batch(
        batch_id="F4H525S10930-BIG", packaged_on=date(2025, 12, 21), certificate_url="https://lab.invalid/1.pdf"
    )
    kept = ("pos_id", "pos_category", "sku", "batch_record_id", "alternate_name")
    assert [product.extra[name] for name in kept] == ["644087", "Packed", "CABDC7", "6899180", "Velvet"]
    assert one(meta_data={**meta, "batch_name": None}).batch == msgspec.structs.replace(
        product.batch, batch_id="6899180"
    )
    assert one(meta_data=None).batch is None
    made = run(item(meta_data={**meta, "packaged_date": "soon"}))
    assert [(w.field, w.fatal) for w in made.warnings] == [("meta_data.packaged_date", False)]
    assert made.products[0].batch == msgspec.structs.replace(product.batch, packaged_on=None)


def test_promotions_that_have_a_name() -> None:
    product = one(
        specials=[{"id": 5, "name": "25 % off", "type": "SALE"}, {"id": "x"}, None, "no"],
        variants=[variant(special_ids=["b", 5, None]), variant(option="1oz", special_ids=["a"])],
    )
    assert product.specials == (Special(name="25 % off", kind="other", special_id="5"),)
    assert product.extra["special_ids"] == ["5", "a", "b"]
    assert one(specials={"odd": 1}).specials == ()


def test_an_item_that_cannot_be_a_product_stops_no_other() -> None:
    made = run(item(), 7, None, [], {}, item(id=""), item(id="c", name=" "), item(id=8))
    assert [p.provider_product_id for p in made.products] == ["a", "8"]
    assert len(made.warnings) == 6
    assert all(warning.fatal for warning in made.warnings)


def test_texts_that_no_column_takes() -> None:
    made = DOVETAIL.normalize(DOVETAIL.split(wrap(rb'{"results":[{"id":"a","name":"cut \ud83d off\u0000"}]}', MEDICAL)))
    assert [p.name for p in made.products] == ["cut � off"]
    assert [(w.field, w.fatal) for w in made.warnings] == [("name", False)]


def test_an_item_of_another_retailer_is_of_another_store() -> None:
    mine, other = (
        item(link="https://shop.example/Tampa/shop/x/"),
        item(id="b", link="https://shop.example/miami/shop/y/"),
    )
    items = DOVETAIL.split(wrap(answer(mine, other, item(id="c", link="https://shop.example/shop/z/")), MEDICAL))
    assert DOVETAIL.stores_of(items) == {"shop.example/tampa/medical": 2, "shop.example/miami/medical": 1}


def test_the_menu_is_the_one_that_was_requested_whatever_an_item_says() -> None:
    items = DOVETAIL.split(wrap(answer(item(menu_of="evil.example/x/medical")), RECREATIONAL))
    assert DOVETAIL.store_of(items) == "shop.example/tampa/recreational"
    assert [p.price_rec for p in DOVETAIL.normalize(items).products] == [40]


def test_totals_and_parts() -> None:
    whole = DOVETAIL.read_page(wrap(answer(item(), total=120, pages=3), MEDICAL))
    assert (len(whole.items), whole.total_count, whole.total_pages, whole.partial) == (1, 120, 3, False)
    assert DOVETAIL.read_page(wrap(answer(item()), MEDICAL + "&categories%5B%5D=flower")).partial
    odd = DOVETAIL.read_page(wrap(answer(item(), total="many", pages=-1), MEDICAL))
    assert (odd.total_count, odd.total_pages) == (None, None)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (
            b'{"code":"rest_no_route","message":"No route was found","data":{"status":404}}',
            "errors",
            "rest_no_route: No route",
        ),
        (
            b'{"code":"rest_cookie_invalid_nonce","message":"Cookie check failed","data":{"status":403}}',
            "errors",
            "invalid_nonce",
        ),
        (b'{"results":null}', "no_data", "results is missing or null"),
        (b"{}", "no_data", "results is missing or null"),
        (b'{"results":[]}', "empty", "the menu has no products"),
        (b"<!DOCTYPE html><title>Just a moment...</title>", "html", "Just a moment"),
        (b"", "truncated", "empty"),
        (b'{"results":[{"id"', "truncated", "truncated"),
        (b'{"results":"none"}', "schema", "structure"),
        (b"[]", "schema", "structure"),
    ],
)
def test_answers_that_are_no_menu(body: bytes, kind: str, text: str) -> None:
    with pytest.raises(BadPayload) as refused:
        DOVETAIL.split(body)
    assert refused.value.kind == kind
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("url", "named", "on_site"),
    [
        ("https://Shop.example/wp-json/dovetail-api/v1/products?retailer=tampa&menutype=medical", "shop.example/tampa/medical", ...),
        ("https://shop.example/wp-json/dovetail-api/v1/products?retailer=tampa", "shop.example/tampa", ...),
        ("shop.example:8443/wp-json/dovetail-api/v1/categories?retailer=tampa&menutype=Recreational",
         "shop.example:8443/tampa/recreational", ...),
        ("https://shop.example/wp-json/dovetail-api/v1/products", None, None),
        ("https://shop.example/wp-json/dovetail-api/v1/products?retailer=../x", None, None),
        ("https://shop.example/wp-json/dovetail-api/v1/products?retailer=tampa&menutype=other", None, None),
        ("https://shop.example/tampa/shop/red-velvet-1-8oz/", None, "shop.example/tampa"),
        ("https://shop.example/tampa/", None, "shop.example/tampa"),
        ("https://shop.example/menu/?retailer=tampa&menutype=medical", None, "shop.example/tampa/medical"),
        ("https://shop.example/", None, None),
        ("https://shop.example/shop/", None, None),
        ("https://shop.example/shop/red-velvet/", None, None),
        ("https://shop.example/about/us/", None, None),
        ("/tampa/shop/", None, None),
        ("http://[", None, None),
        ("", None, None),
    ],
)  # fmt: skip
def test_addresses(url: str, named: str | None, on_site: Any) -> None:
    assert DOVETAIL.slug_of(url) == named
    assert DOVETAIL.slug_on_site(url) == (named if on_site is ... else on_site)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "127.0.0.1/tampa",
        "localhost:80/tampa",
        "a.local/tampa",
        "10.1/tampa",
        "/tampa",
        "host/",
        "host/a/b",
        "host/a/medical/x",
        "ho st/a",
        "host/a b",
        "host/..",
    ],
)
def test_what_is_no_id(text: str) -> None:
    assert MenuId.parse(text) is None


@given(st.text(max_size=40))
def test_any_text_is_an_id_or_none(text: str) -> None:
    for read in (MenuId.parse, DOVETAIL.slug_of, DOVETAIL.slug_on_site):
        found = read(text)
        assert found is None or MenuId.parse(str(found)) is not None


def test_hosts() -> None:
    menu = "shop.example/tampa/medical"
    own = platforms(Settings(platforms={"dovetail": {"base_url": "own"}}))["dovetail"]
    assert (own.requested, own.hosts, own.hosts_of(menu), own.hosts_of(None)) == (
        True,
        frozenset(),
        {"shop.example"},
        frozenset(),
    )
    one_url = platforms(Settings(platforms={"dovetail": {"base_url": "http://127.0.0.1:9"}}))["dovetail"]
    assert one_url.hosts_of(menu) == {"127.0.0.1:9"}
    assert DOVETAIL.hosts_of(menu) == frozenset()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [*item(), "brand", "potency_thc", "terpenes", "meta_data", "images", "link", "specials", "informations"]
)


@given(st.dictionaries(NAMES, JSON))
def test_any_item_is_a_product_or_a_warning(fields: dict[str, Any]) -> None:
    raw = msgspec.Raw(json.dumps({**item(), **fields}).encode())
    made = DOVETAIL.normalize([raw])
    assert len(made.products) == 1 or [w.fatal for w in made.warnings] == [True]
    assert [p.provider_product_id for p in made.products] in ([], [DOVETAIL.identity(raw)])


class Shop:
    """A shop's site: what it answers for each type of menu, and what it was asked for."""

    def __init__(self, **menus: bytes) -> None:
        self._menus = menus
        self.asked: list[str] = []

    async def request(self, method: str, url: str, *, params: dict[str, str], **_: Any) -> Response:
        self.asked.append(params["menutype"])
        return Response(200, {}, self._menus[params["menutype"]], url, 1.0)


CHEAP, DEAR, NOTHING = answer(item()), answer(item(variants=[variant(price=39)])), answer()


@pytest.mark.parametrize(
    ("menus", "found"),
    [
        ({"recreational": DEAR, "medical": CHEAP}, "recreational"),
        ({"recreational": NOTHING, "medical": CHEAP}, "medical"),
        ({"recreational": CHEAP, "medical": NOTHING}, "recreational"),
        ({"recreational": NOTHING, "medical": NOTHING}, None),
    ],
)
async def test_the_type_of_a_menu(menus: dict[str, bytes], found: str | None) -> None:
    shop, adapter = Shop(**menus), Dovetail(base_url="own")
    store = await adapter.resolve(cast("Session", shop), "shop.example/tampa")
    assert (store.platform_dispensary_id if store else None) == (f"shop.example/tampa/{found}" if found else None)
    assert shop.asked == ["recreational", "medical"]


async def test_a_shop_that_ignores_the_type_of_menu_is_not_guessed() -> None:
    """Prices for patients would stand in the columns of recreational ones."""
    shop, adapter = Shop(recreational=CHEAP, medical=CHEAP), Dovetail(base_url="own")
    with pytest.raises(Permanent, match="menutype=recreational or menutype=medical"):
        await adapter.resolve(cast("Session", shop), "shop.example/tampa")
    named = await adapter.resolve(cast("Session", shop), "shop.example/tampa/medical")
    assert named is not None
    assert (named.platform_dispensary_id, shop.asked[2:]) == ("shop.example/tampa/medical", ["medical"])
