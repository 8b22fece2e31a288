"""What Joint items mean, and items as they should not be."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menuwatch.catalog.model import LabValue, Product, ProductWarning, Special
from menuwatch.platforms.joint.adapter import Joint

JOINT = Joint()


def variant(option: str = "1g", **more: Any) -> dict[str, Any]:
    return {
        "option": option,
        "price": "30.00",
        "specialPrice": None,
        "quantity": "5",
        "menuType": "RECREATIONAL",
        **more,
    }


def item(number: int = 1, *, business: Any = 5731, **more: Any) -> dict[str, Any]:
    return {"jointId": f"joint-{number}", "posId": f"pos-{number}", "businessId": business, "name": f"Thing {number}",
            "category": "FLOWER", "subCategory": "DEFAULT", "menuType": ["RECREATIONAL"], "variants": [variant()], **more}  # fmt: skip


def normalized(*items: Any) -> tuple[list[Product], list[ProductWarning]]:
    made = JOINT.normalize([msgspec.Raw(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in items])
    return list(made.products), list(made.warnings)


def one(**fields: Any) -> Product:
    (product,), warnings = normalized(item(**fields))
    assert warnings == []
    return product


@pytest.mark.parametrize(
    ("price", "special", "expected"),
    [
        ("30.00", "19.50", (30, Decimal("19.50"))),
        (30, 18, (30, 18)),
        (27.5, 17.88, (Decimal("27.5"), Decimal("17.88"))),
        ("30.00", "30.00", (30, None)),
        ("30.00", "", (30, None)),
        ("30.00", "0", (30, None)),
        (" 30.00 ", None, (30, None)),
        ("", None, (None, None)),
        (None, None, (None, None)),
        ("0.00", "0.00", (None, None)),
        (".5", None, (Decimal("0.5"), None)),
    ],
)
def test_prices_are_texts_or_numbers(price: Any, special: Any, expected: Any) -> None:
    product = one(variants=[variant(price=price, specialPrice=special)])
    assert (product.price_rec, product.price_rec_special) == expected


def test_a_special_above_the_price_is_left_out() -> None:
    (product,), (warning,) = normalized(item(variants=[variant(specialPrice="31")]))
    assert (product.price_rec_special, warning.field) == (None, "variants[0].specialPrice")


def test_menus() -> None:
    medical = one(variants=[variant(menuType="MEDICAL", specialPrice="20")])
    assert (medical.price_rec, medical.price_med, medical.price_med_special) == (None, 30, 20)
    twins = [variant(), variant(menuType="MEDICAL", price="25", quantity="7"), variant("2g", price="50")]
    first, second = one(variants=twins).variants
    assert (first.option, first.price_rec, first.price_med, first.quantity, first.price_per_g) == ("1g", 30, 25, 7, 30)
    assert (second.option, second.price_rec, second.price_med) == ("2g", 50, None)
    assert len(one(variants=[variant(), variant(price="31")]).variants) == 2, "one menu: two options of the same size"
    nameless = variant(menuType=None)
    assert (one(variants=[nameless]).price_rec, one(variants=[nameless], menuType=["MEDICAL"]).price_med) == (30, 30)
    assert one(variants=[nameless], menuType="MEDICAL").extra["menu_types"] == ["MEDICAL"]


@pytest.mark.parametrize(
    ("category", "name", "option", "expected"),
    [
        ("FLOWER", "x", "1/8oz", (Decimal("3.5"), None)),
        ("FLOWER", "x 100mg", ".5g", (Decimal("0.5"), None)),
        ("EDIBLES", "x", ".1g", (None, 100)),
        ("EDIBLES", "x 100mg", ".1g", (None, 100)),
        ("EDIBLES", "x 10mg", ".1g", (None, None)),
        ("EDIBLES", "x", "100mg", (None, 100)),
        ("EDIBLES", "x 10mg", "100mg", (None, None)),
        ("TOPICALS", "x", "2oz", (None, None)),
        ("TOPICALS", "x", "30g", (None, None)),
        ("EDIBLES", "x", "N/A", (None, None)),
        ("ACCESSORIES", "x", "each", (None, None)),
    ],
)
def test_weights_and_content(category: str, name: str, option: str, expected: Any) -> None:
    (made,) = one(category=category, name=name, variants=[variant(option)]).variants
    assert (made.option, made.weight_g, made.content_mg) == (option, *expected)
    assert (made.price_per_mg is None) == (made.content_mg is None)


def test_stock() -> None:
    quantities = [
        ("25", 25, True),
        ("30", 30, True),
        ("24", 24, False),
        (7, 7, False),
        ("0", 0, False),
        ("-1", 0, False),
    ]
    for written, quantity, capped in quantities:
        (made,) = one(variants=[variant(quantity=written)]).variants
        assert (made.quantity, made.capped, made.stock_status) == (quantity, capped, "in_stock" if quantity else "oos")
    for unknown in (None, ""):
        assert one(variants=[variant(quantity=unknown)]).stock_status == "unknown"
    assert one(variants=[]).stock_status == "unknown"


def test_identity() -> None:
    assert one().provider_product_id == "joint-1"
    assert one(jointId=None).provider_product_id == "pos-1"
    assert one(jointId=17).provider_product_id == "17"
    assert one().extra["pos_id"] == "pos-1"


def test_potencies() -> None:
    rows = [
        {"type": "CBD", "rangeLow": "1", "rangeHigh": 2.5, "unit": "%"},
        None,
        {"type": "THC", "rangeLow": "180", "rangeHigh": "220", "unit": "mg/g"},
    ]
    product = one(potencies=rows)
    assert product.thc is not None
    assert product.cbd is not None
    assert (product.thc.lo, product.thc.hi, product.thc.unit, product.thc.raw_unit) == (18, 22, "%", "mg/g")
    assert (product.cbd.lo, product.cbd.hi) == (1, Decimal("2.5"))
    repeated = one(potencyThcRangeLow="18", potencyThcRangeHigh="22", potencyThcUnit="%", potencyCbdRangeHigh="5")
    assert repeated.thc is not None
    assert (repeated.thc.lo, repeated.thc.hi, repeated.cbd) == (18, 22, None)
    for low, high in (("-5", "1"), ("1", "340"), ("much", "1"), ("1e400", "1")):
        (product,), (warning,) = normalized(
            item(potencies=[{"type": "THC", "rangeLow": low, "rangeHigh": high, "unit": "%"}])
        )
        assert (product.thc, warning.field, warning.fatal) == (None, "potencies[0]", False)


def test_lab_values() -> None:
    rows = [{"name": "CBG (Cannabigerol)", "value": 0.25, "unit": "mg/g"}, {"name": "Total THC", "value": "22.5", "unit": "%"},
            {"name": "CBN", "value": None, "unit": None}, {"name": " ", "value": 1}, None]  # fmt: skip
    assert one(cannabinoids=rows).cannabinoids == (
        LabValue("CBG (Cannabigerol)", Decimal("0.25"), "mg/g"), LabValue("Total THC", Decimal("22.5"), "%", is_total=True),
        LabValue("CBN", None, ""),
    )  # fmt: skip
    odd = [
        {"name": "A", "value": "x"},
        {"name": "B", "value": 101, "unit": "%"},
        {"name": "C", "value": [1]},
        {"name": "D", "value": 1},
    ]
    (product,), warnings = normalized(item(terpenes=odd))
    assert [row.name for row in product.terpenes] == ["D"]
    assert [warning.field for warning in warnings] == [f"terpenes[{n}].value" for n in range(3)]


def test_specials() -> None:
    def row(number: int, **more: Any) -> dict[str, Any]:
        return {
            "specialId": f"s{number}",
            "specialName": f"Sale {number}",
            "discountAmount": 0,
            "discountType": "DOLLAR_AMOUNT",
            **more,
        }

    applied = [row(2, posSpecialId="p2"), row(4, discountAmount="20", discountType="PERCENTAGE")]
    product = one(applicableSpecials=[row(1), row(2, posSpecialId="p2"), None, row(3, discountAmount="5.00"), {}],
                  variants=[variant(appliedSpecials=applied)])  # fmt: skip
    assert product.specials == (
        Special("Sale 1", "other", special_id="s1"), Special("Sale 2", "other", special_id="s2"),
        Special("Sale 3", "amount", Decimal("5.00"), special_id="s3"), Special("Sale 4", "percent", Decimal(20), special_id="s4"),
    )  # fmt: skip
    assert product.extra["pos_special_ids"] == ["p2"]
    (bad,), (warning,) = normalized(item(applicableSpecials=[row(1, discountAmount="lots")]))
    assert (bad.specials[0].value, warning.fatal) == (None, False)


def test_texts_images_and_times() -> None:
    product = one(description="Sweet.<br />Soy&amp;free", primaryImage="https://i/1", images=["https://i/2", None, "https://i/1"],
                  effects=["CLEAR_MIND"],
                  variants=[variant(createdAt="2025-06-10T21:01:08.512Z", updatedAt="2025-06-27T21:31:10Z"),
                            variant("2g", createdAt="2025-06-01T00:00:00Z", updatedAt="2025-06-20T00:00:00Z")])  # fmt: skip
    assert (product.description, product.images) == ("Sweet. Soy&free", ("https://i/1", "https://i/2"))
    assert product.extra["effects"] == ["clear_mind"]
    assert product.platform_created_at == datetime(2025, 6, 1, tzinfo=UTC)
    assert product.platform_updated_at == datetime(2025, 6, 27, 21, 31, 10, tzinfo=UTC)
    assert one(description=None, descriptionHtml="<p>Only here</p>").description == "Only here"


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        (b"[]", "", "expected an object"),
        (json.dumps({"name": "x"}).encode(), "id", "is missing"),
        (json.dumps(item(jointId="x" * 300)).encode(), "id", "300 characters"),
        (json.dumps(item(name=None)).encode(), "name", "is missing"),
        (json.dumps(item(name=7)).encode(), "name", "expected str"),
        (json.dumps(item(variants=[variant(price="dear")])).encode(), "variants[0].price", "invalid number"),
        (json.dumps(item(variants=[variant(price="-1")])).encode(), "variants[0].price", "invalid price -1"),
        (json.dumps(item(variants=[variant(specialPrice={})])).encode(), "variants[0].specialPrice", "invalid number"),
        (json.dumps(item(variants=[variant(price="9" * 40)])).encode(), "variants[0].price", "invalid number"),
        (json.dumps(item(variants=[variant(price="NaN")])).encode(), "variants[0].price", "invalid number"),
        (json.dumps(item(variants=[variant(quantity="many")])).encode(), "variants[0].quantity", "invalid quantity"),
        (json.dumps(item(variants=[variant(quantity=[])])).encode(), "variants[0].quantity", "expected"),
        (json.dumps(item(variants="none")).encode(), "variants", "expected array"),
        (b'{"jointId":1,"brand":' * 5000 + b"1" + b"}" * 5000, "", "nested too deeply"),
    ],
)  # fmt: skip
def test_an_item_that_is_no_product_stops_nothing_else(raw: bytes, field: str, says: str) -> None:
    products, warnings = normalized(item(8), raw, item(9))
    assert [product.provider_product_id for product in products] == ["joint-8", "joint-9"]
    (warning,) = warnings
    assert (warning.fatal, warning.field) == (True, field)
    assert says in warning.message


def test_other_bad_values_are_left_out_and_named() -> None:
    odd = item(
        brandName=7,
        strainType=[],
        images="none",
        staffPick="yes",
        variants=[variant(), variant(""), variant("2g", createdAt="soon")],
    )
    (product,), warnings = normalized(odd)
    assert (product.brand_name, product.strain_type, product.images, len(product.variants)) == (None, None, (), 2)
    assert {warning.field for warning in warnings} == {
        "brandName", "strainType", "images", "staffPick", "variants[1].option", "variants[2].createdAt",
    }  # fmt: skip
    assert not any(warning.fatal for warning in warnings)


def test_no_column_takes_nul_or_half_an_emoji() -> None:
    (product,), _ = normalized(
        item(name="a\0b", brandName="\0", cannabinoids=[{"name": "x\0", "value": 1}], variants=[variant("1g\0")])
    )
    assert "\0" not in repr(product)
    (product,), _ = normalized(json.dumps(item(name="Gummies \ud83c")).encode())
    assert product.name == "Gummies \ufffd"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["name", "variants", "potencies", "cannabinoids", "terpenes", "applicableSpecials", "menuType", "images",
                         "brandName", "potencyThcRangeLow", "potencyThcUnit", "category", "description", "effects"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                st.sampled_from(["option", "price", "specialPrice", "quantity", "name", "value", "unit", "type", "rangeLow",
                                 "rangeHigh", "specialId", "specialName", "discountAmount", "createdAt", "menuType"]),
                inner, max_size=4),
            max_leaves=12,
        ),
    )
)  # fmt: skip
def test_any_fields_give_a_product_or_a_warning(fields: dict[str, Any]) -> None:
    products, warnings = normalized(json.dumps({**item(), **fields}).encode())
    assert len(products) + sum(warning.fatal for warning in warnings) == 1
