"""The rules of the Sweed adapter, and what it makes of bad input."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.model import Potency, Product, ProductWarning, Special
from menuwatch.platforms.sweed.adapter import Sweed

SWEED = Sweed()


def variant(**fields: Any) -> dict[str, Any]:
    plain = {
        "id": 11, "name": "3.5g", "saleType": "Both", "availableQty": 6.0, "unitSize": {"value": 3.5, "unitAbbr": "G"},
        "unitsInPackage": 1, "price": 50.0, "promoPrice": 35.0, "promos": [], "stockType": "Default", "qtyStepSize": 1.0,
    }  # fmt: skip
    return {**plain, **fields}


def row(*variants: Any, **fields: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": 1, "name": "Blue Fern", "category": {"id": 7, "name": "Flower"}, "subcategory": {"id": 8, "name": "Buds"},
        "brand": {"name": "Kiln"}, "variants": list(variants) or [variant()],
    }  # fmt: skip
    return {**plain, **fields}


def page(*rows: Any, **fields: Any) -> bytes:
    return json.dumps({"list": list(rows), "total": len(rows), "page": 1, "pageSize": 100, **fields}).encode()


def normalized(*rows: Any, **fields: Any) -> tuple[tuple[Product, ...], tuple[ProductWarning, ...]]:
    found = SWEED.normalize([item for items in SWEED.split_menu([page(*rows, **fields)]) for item in items])
    return found.products, found.warnings


def only(*variants: Any, **fields: Any) -> Product:
    (product,), warnings = normalized(row(*variants, **fields))
    assert warnings == ()
    return product


def test_prices_stock_and_weight() -> None:
    (option,) = only().variants
    assert (option.price_rec, option.special_rec, option.price_med) == (Decimal("50.0"), Decimal("35.0"), None)
    assert (option.quantity, option.capped, option.stock_status) == (6, False, "in_stock")
    assert (option.weight_g, option.price_per_g) == (Decimal("3.5"), Decimal("10.0000"))


def test_a_variant_for_patients_has_medical_prices() -> None:
    (option,) = only(variant(saleType="Medical")).variants
    assert (option.price_rec, option.price_med, option.special_med) == (None, Decimal("50.0"), Decimal("35.0"))


@pytest.mark.parametrize(
    ("promo", "special"), [(35, Decimal(35)), (50, None), (0, None), (None, None), ("35.00", Decimal("35.00"))]
)
def test_a_special_price_is_below_the_price(promo: Any, special: Decimal | None) -> None:
    assert only(variant(promoPrice=promo)).variants[0].special_rec == special


def test_a_special_above_the_price_is_left_out() -> None:
    (product,), (warning,) = normalized(row(variant(promoPrice=51)))
    assert product.variants[0].special_rec is None
    assert (warning.field, warning.fatal) == ("variants[0].promoPrice", False)
    assert "51 is above the price" in warning.message


@pytest.mark.parametrize(
    ("amount", "quantity", "status"),
    [(78.0, 78, "in_stock"), (0, 0, "oos"), (-2, 0, "oos"), (None, None, "unknown"), (0.25, 1, "in_stock"), ("7", 7, "in_stock"),
     (250, 250, "in_stock")],
)  # fmt: skip
def test_stock_is_exact(amount: Any, quantity: int | None, status: str) -> None:
    (option,) = only(variant(availableQty=amount)).variants
    assert (option.quantity, option.stock_status, option.capped) == (quantity, status, False)


@pytest.mark.parametrize(
    ("name", "size", "units", "category", "grams", "pieces", "milligrams"),
    [
        ("3.5g", (3.5, "G"), 1, "Flower", "3.5", None, None),
        ("7g", (3.5, "G"), 2, "Flower", "7", 2, None),
        ("1g 2pk", (0.5, "G"), 2, "Pre-Rolls", "1", 2, None),
        ("0.5g", (0.5, "g"), 7, "Pre-Rolls", "3.5", 7, None),
        ("1oz", (1, "OZ"), 1, "Flower", "28", None, None),
        ("100mg", (10, "MG"), 10, "Edibles", None, 10, "100"),
        ("10mg", (10, "MG"), 10, "Edibles", None, 10, "100"),
        ("Mango 10mg", (10, "MG"), 1, "Beverages", None, None, "10"),
        ("180mg", (45, "MG"), 1, "Topicals", None, None, "180"),
        ("Each", (1, "EA"), 1, "Accessories", None, None, None),
        ("50 Pack", (1, "EA"), 50, "Accessories", None, 50, None),
        ("355ml", (355, "ML"), 1, "Beverages", None, None, None),
        ("3.5g", (3.5, "stone"), 1, "Flower", "3.5", None, None),
        ("Big", (3.5, "stone"), 1, "Flower", None, None, None),
        ("1g", (1, "G"), 0, "Concentrates", "1", None, None),
        ("1g", (1, "G"), 1.5, "Concentrates", "1", None, None),
        ("Deli", (-1, "G"), 1, "Flower", None, None, None),
    ],
)
def test_packages(
    name: str, size: tuple[float, str], units: Any, category: str, grams: Any, pieces: Any, milligrams: Any
) -> None:
    told = variant(name=name, unitSize={"value": size[0], "unitAbbr": size[1]}, unitsInPackage=units)
    (option,) = only(told, category={"name": category}, subcategory=None).variants
    expected = [None if text is None else Decimal(text) for text in (grams, milligrams)]
    assert [option.weight_g, option.content_mg] == expected
    assert option.pieces == pieces


def potency_of(thc: Any) -> Potency | None:
    return only(variant(labTests={"thc": thc, "cbd": None, "displayThc": None})).thc


def test_potency() -> None:
    assert potency_of({"value": [22.29], "unitAbbr": "%"}) == Potency(Decimal("22.29"), Decimal("22.29"), "%", "%")
    assert potency_of({"value": [30, 20], "unitAbbr": "%"}) == Potency(Decimal(20), Decimal(30), "%", "%")
    assert potency_of({"value": [100.0], "unitAbbr": "MG"}) == Potency(Decimal("100.0"), Decimal("100.0"), "mg", "MG")
    assert potency_of({"value": [223], "unitAbbr": "mg/g"}) == Potency(Decimal("22.3"), Decimal("22.3"), "%", "mg/g")
    assert potency_of({"value": [0.0], "unitAbbr": "MG"}) == Potency(Decimal("0.0"), Decimal("0.0"), "mg", "MG")
    assert potency_of({"value": 21.5, "unitAbbr": "%"}) == Potency(Decimal("21.5"), Decimal("21.5"), "%", "%")
    for nothing in (None, {"value": [], "unitAbbr": "%"}, {"value": None}, {"value": [None], "unitAbbr": "%"}):
        assert potency_of(nothing) is None


def test_potency_of_several_options() -> None:
    def of(number: int, thc: float, unit: str = "%") -> dict[str, Any]:
        return variant(id=number, name=f"{number}g", labTests={"thc": {"value": [thc], "unitAbbr": unit}})

    thc = only(of(1, 22), of(2, 19), of(3, 30)).thc
    assert thc is not None
    assert (thc.lo, thc.hi) == (19, 30)
    thc = only(of(1, 22), of(2, 500, "MG")).thc
    assert thc is not None
    assert (thc.lo, thc.hi, thc.unit) == (22, 22, "%")


@pytest.mark.parametrize(
    "thc",
    [{"value": [-5], "unitAbbr": "%"}, {"value": [340], "unitAbbr": "%"}, {"value": [20], "unitAbbr": None},
     {"value": ["<1"], "unitAbbr": "%"}, {"value": [1e300], "unitAbbr": "%"}, {"value": {"min": 2}, "unitAbbr": "%"}, "22 %", 22],
)  # fmt: skip
def test_a_bad_potency_is_left_out(thc: Any) -> None:
    (product,), (warning,) = normalized(row(variant(labTests={"thc": thc})))
    assert product.thc is None
    assert product.price_rec == 50
    assert (warning.product_id, warning.field, warning.fatal) == ("1", "variants[0].labTests.thc", False)


@pytest.mark.parametrize(
    ("promo", "special"),
    [
        ({"id": 5, "shortName": "30% Off"}, Special("30% Off", "percent", Decimal(30), special_id="5")),
        ({"id": 5, "name": "50%OFF all"}, Special("50%OFF all", "percent", Decimal(50), special_id="5")),
        ({"id": 5, "name": "$5 off"}, Special("$5 off", "amount", Decimal(5), special_id="5")),
        ({"id": 5, "name": "A", "shortName": "2 for $45"}, Special("A", "bundle", Decimal(45), 2, special_id="5")),
        ({"id": 5, "name": "B1G1", "isBogo": True}, Special("B1G1", "bogo", special_id="5")),
        ({"id": 5, "name": "A", "discountPercent": 0.25}, Special("A", "percent", Decimal(25), special_id="5")),
        ({"id": 5, "name": "A", "discountAmount": 10}, Special("A", "amount", Decimal(10), special_id="5")),
        ({"id": "x", "name": "Happy Hour"}, Special("Happy Hour", "other", special_id="x")),
    ],
)
def test_promotions(promo: dict[str, Any], special: Special) -> None:
    assert only(variant(promos=[promo])).specials == (special,)


def test_the_terms_of_a_promotion_stand_in_the_answer() -> None:
    terms = {"id": 5, "name": "30% Off Storewide", "endDate": "2026-01-03T00:00:00Z", "description": "Cannot stack",
             "scheduleDisplayText": {"full": "Daily"}, "productImages": ["x"]}  # fmt: skip
    (product,), warnings = normalized(
        row(variant(promos=[{"id": 5, "name": None, "shortName": "30% Off"}])),
        promos=[terms, {"id": 6, "name": "other"}, None, "?"],
    )
    assert warnings == ()
    (special,) = product.specials
    assert (special.name, special.value) == ("30% Off Storewide", 30)
    assert str(special.ends_at) == "2026-01-03 00:00:00+00:00"
    assert product.extra["promo_schedules"] == {"5": "Daily"}
    assert product.extra["promo_terms"] == {"5": {"description": "Cannot stack"}}


def test_promotions_that_do_not_hold_now_are_left_out() -> None:
    assert only(variant(promos=[{"id": 5, "name": "10% off", "isActiveBySchedule": False}])).specials == ()
    (product,), (warning,) = normalized(row(variant(promos=[{"id": 5, "name": "10% off"}, {"id": 6, "name": 7}])))
    assert [special.special_id for special in product.specials] == ["5"]
    assert warning.field == "variants[0].promos[1]"


def test_rows_of_one_product_are_one_product() -> None:
    first = row(variant(id=20, name="7g", price=90), images=["a"])
    second = row(variant(id=3, name="3.5g", images=["b"]), images=["a"])
    other = row(variant(id=4), id=2)
    (product, another), _ = normalized(first, other, second)
    assert [option.option for option in product.variants] == ["3.5g", "7g"], "by the ids of the variants"
    assert (product.quantity, product.images, another.provider_product_id) == (12, ("a", "b"), "2")
    assert product.extra["variant_ids"] == {"3.5g": "3", "7g": "20"}
    (again, _), _ = normalized(second, other, first)
    assert again == product, "in whatever order the rows come"


def test_rows_on_several_pages_are_one_product() -> None:
    one, two = page(row(variant(id=1)), total=3, pageSize=1), page(row(variant(id=2, name="7g")), row(id=5), total=3)
    pages = SWEED.split_menu([one, two])
    assert [len(items) for items in pages] == [1, 1]
    products = SWEED.normalize([item for items in pages for item in items]).products
    assert [(p.provider_product_id, len(p.variants)) for p in products] == [("1", 2), ("5", 1)]
    assert [SWEED.row_key(item) for item in SWEED.split(two)] == ["1:2", "5:11"]
    assert SWEED.totals(one) == (3, 3)


def test_a_clamped_page_does_not_tell_the_number_of_pages() -> None:
    """The server repeats the requested size: 147 rows in pages of 40 would otherwise end after two, at the next empty answer."""
    clamped = page(*(row(variant(id=n), id=n) for n in range(1, 41)), total=147, pageSize=100)
    assert SWEED.totals(clamped) == (147, None)
    assert SWEED.totals(page(row(), total=1, pageSize=100)) == (1, 1)


def test_a_repeated_row_changes_nothing() -> None:
    again = page(row())
    assert SWEED.split_menu([again, again])[0] == SWEED.split_menu([again])[0]
    (product,), _ = normalized(row(variant(availableQty=3)), row(variant(availableQty=9)))
    assert product.quantity == 9, "of rows with the same variant the last counts"


@given(st.permutations([row(variant(id=n, name=f"{n}g", promoPrice=n), id=n % 3) for n in range(1, 10)]))
def test_the_order_of_rows_does_not_matter(rows: list[Any]) -> None:
    products, warnings = normalized(*rows)
    assert warnings == ()
    assert {p.provider_product_id: [v.option for v in p.variants] for p in products} == {
        "0": ["3g", "6g", "9g"], "1": ["1g", "4g", "7g"], "2": ["2g", "5g", "8g"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (row(name=None), "name"),
        (row(name="  "), "name"),
        (row(name=5), "name"),
        (row(id=None), "id"),
        (row(id=""), "id"),
        (row(id="x" * 201), "id"),
        (row(variant(price=-1)), "variants[0].price"),
        (row(variant(price="free")), "variants[0].price"),
        (row(variant(price=1e30)), "variants[0].price"),
        (row(variant(promoPrice=-3)), "variants[0].promoPrice"),
        (row(variant(availableQty="many")), "variants[0].availableQty"),
        (row(variant(availableQty=1e12)), "variants[0].availableQty"),
        (row(variants="none"), "variants"),
        (row(variants=[5]), "variants[0]"),
        (7, ""),
    ],
)
def test_items_that_cannot_be_products(item: Any, field: str) -> None:
    (product,), (warning,) = normalized(item, row(id=99))
    assert product.provider_product_id == "99", "the others are read"
    assert (warning.fatal, warning.field) == (True, field)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"unitSize": "3.5g"}, "variants[0].unitSize"),
        ({"unitsInPackage": []}, "variants[0].unitsInPackage"),
        ({"promos": {"id": 1}}, "variants[0].promos"),
        ({"images": "x"}, "variants[0].images"),
        ({"labTests": 5}, "variants[0].labTests"),
        ({"qtyStepSize": "some"}, "variants[0].qtyStepSize"),
        ({"promos": [{"id": 1, "name": "A", "endDate": "soon"}]}, "variants[].promos[].endDate"),
    ],
)
def test_other_bad_values_of_an_option_are_left_out(fields: dict[str, Any], field: str) -> None:
    (product,), (warning,) = normalized(row(variant(**fields)))
    assert (product.price_rec, product.quantity) == (50, 6)
    assert (warning.field, warning.fatal) == (field, False)


@pytest.mark.parametrize("name", ["brand", "category", "strain", "tags", "images", "description", "qualityLine"])
def test_other_bad_values_of_a_product_are_left_out(name: str) -> None:
    (product,), warnings = normalized(row(**{name: 5}))
    assert product.price_rec == 50
    assert [(warning.field, warning.fatal) for warning in warnings] == [(name, False)]


def test_unknown_words_are_kept_and_have_no_meaning() -> None:
    product = only(
        variant(saleType="Staff", stockType="Reserve", strengthLevel=3),
        category={"name": "Deli Style"}, subcategory=None, productType={"name": "??"}, strain={"prevalence": {"name": "Ruderalis"}},
    )  # fmt: skip
    assert (product.category, product.category_canon, product.strain_type, product.strain_canon) == (
        "Deli Style", None, "Ruderalis", None,
    )  # fmt: skip
    assert (product.price_rec, product.extra["stock_types"], product.extra["strength_levels"]) == (
        50,
        {"3.5g": "Reserve"},
        {"3.5g": 3},
    )


def test_categories_that_are_narrow_words() -> None:
    kinds = {
        "Infused Pre-Rolls": ("preroll", "infused"), "All In One Cartridges": ("vaporizer", "disposable"),
        "Infused Flower": ("flower", "infused"), "Cannabis flower ": ("flower", None), "Vapes": ("vaporizer", None),
    }  # fmt: skip
    for word, kind in kinds.items():
        product = only(category={"name": word}, subcategory=None)
        assert (product.category_canon, product.subcategory_canon) == kind


def test_nul_and_half_surrogates() -> None:
    body = page(row(name="Blue@Fern", description="cut &")).replace(b"@", b"\\u0000").replace(b"&", b"\\ud83d")
    (product,) = SWEED.normalize(SWEED.split(body)).products
    assert "\0" not in product.name + (product.description or "")


def test_null_rows_are_no_products() -> None:
    products, warnings = normalized(None, row(), None)
    assert (len(products), warnings) == (1, ())
