"""The rules of the normalizer that no recorded page shows, one at a time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.model import LabValue, Product, ProductWarning, Special
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.dutchie.payload import Item
from menuwatch.platforms.model import Normalized


def item(**fields: Any) -> dict[str, Any]:
    plain = {
        "_id": "a",
        "id": "a",
        "Name": "A thing",
        "type": "Flower",
        "Status": "Active",
        "Options": ["1g"],
        "recPrices": [10],
        "medicalPrices": [9],
        "manualInventory": [{"option": "1g", "inventory": 5}],
    }
    return {**plain, **fields}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(value if isinstance(value, bytes) else json.dumps(value).encode())


def run(*values: Any) -> Normalized:
    return ITEMS.normalize([raw(value) for value in values])


def one(**fields: Any) -> Product:
    made = run(item(**fields))
    assert made.warnings == ()
    (product,) = made.products
    return product


def test_plain_item() -> None:
    product = one()
    assert (product.provider_product_id, product.name, product.category) == ("a", "A thing", "Flower")
    assert (product.price_rec, product.price_med, product.quantity) == (Decimal(10), Decimal(9), 5)


# -- prices ---------------------------------------------------------------------------------------------------------


def test_money_is_exactly_what_the_text_says() -> None:
    body = json.dumps(item()).replace("[10]", "[0.1000000000000000055]").replace("[9]", '["12.50"]').encode()
    (product,) = ITEMS.normalize([raw(body)]).products
    assert str(product.price_rec) == "0.1000000000000000055"
    assert str(product.price_med) == "12.50"


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ({"recPrices": [10], "medicalPrices": [9], "Prices": [1]}, (10, 9)),
        ({"recPrices": [], "medicalPrices": [9], "Prices": [1]}, (1, 9)),
        ({"recPrices": [10], "medicalPrices": None, "Prices": [1]}, (10, 1)),
        ({"recPrices": None, "medicalPrices": [], "Prices": [1]}, (1, 1)),
        ({"recPrices": [], "medicalPrices": [], "Prices": []}, (None, None)),
        ({"recPrices": [None], "medicalPrices": [9], "Prices": [1]}, (None, 9)),
    ],
)
def test_prices_and_their_fallback(prices: dict[str, Any], expected: tuple[int | None, int | None]) -> None:
    product = one(**prices)
    assert (product.price_rec, product.price_med) == expected


def test_lists_that_are_not_aligned_say_nothing() -> None:
    made = run(item(Options=["1g", "2g"], recPrices=[10, 18], medicalPrices=[9], recSpecialPrices=[5], Prices=[10, 18]))
    (product,) = made.products
    assert [(v.price_rec, v.price_med, v.special_rec) for v in product.variants] == [(10, 10, None), (18, 18, None)]
    assert made.warnings == (
        ProductWarning("a", "medicalPrices", "has 1 values for 2 options; ignored"),
        ProductWarning("a", "recSpecialPrices", "has 1 values for 2 options; ignored"),
    )


def test_specials_differ_by_menu_and_are_never_computed() -> None:
    # An Arizona sale: the discount of 17 is a target price, on the recreational menu alone.
    product = one(
        recPrices=[28],
        medicalPrices=[28],
        recSpecialPrices=[17],
        medicalSpecialPrices=[],
        special=True,
        specialData={
            "bogoSpecials": None,
            "saleSpecials": [
                {
                    "specialId": "s1",
                    "specialName": "Eighths for  $17 ",
                    "discount": 17,
                    "percentDiscount": False,
                    "dollarDiscount": False,
                    "targetPrice": True,
                    "menuType": "recreational",
                    "specialRestrictions": {"x": {"discountType": "targetPrice"}},
                }
            ],
        },
    )
    assert (product.price_rec, product.price_rec_special, product.price_med_special) == (28, 17, None)
    assert product.variants[0].price_per_g == Decimal("17.0000")
    assert product.specials == (
        Special(
            name="Eighths for $17",
            kind="target_price",
            value=Decimal(17),
            special_id="s1",
            menu_type="recreational",
        ),
    )


def test_headline_is_the_lowest() -> None:
    product = one(
        Options=["1/8oz", "1g", "1oz"],
        recPrices=[35, 12, 200],
        medicalPrices=[30, None, 180],
        recSpecialPrices=[None, 11, 150],
        manualInventory=None,
    )
    assert (product.price_rec, product.price_med, product.price_rec_special) == (12, 30, 11)
    assert [v.price_per_g for v in product.variants] == [Decimal("10.0000"), Decimal("11.0000"), Decimal("5.3571")]


# -- promotions -----------------------------------------------------------------------------------------------------


def test_bundle_takes_its_number_from_the_conditions() -> None:
    product = one(
        specialData={
            "saleSpecials": None,
            "bogoSpecials": [
                {
                    "specialId": "b1",
                    "specialName": "5 for $75",
                    "menuType": "both",
                    "endStamp": "1762726200000",
                    "itemsForAPrice": None,
                    "discountBundle": {"discountType": "targetPrice", "value": "75"},
                    "bogoConditions": [{"totalQuantity": {"enabled": True, "quantity": 5}, "productIds": ["x"] * 127}],
                    "bogoRewards": [{"totalQuantity": None, "discountAmount": 75, "percentDiscount": None}],
                }
            ],
        }
    )
    (special,) = product.specials
    assert (special.kind, special.value, special.required_quantity, special.reward_quantity) == ("bundle", 75, 5, None)
    assert special.ends_at == datetime(2025, 11, 9, 22, 10, tzinfo=UTC)


def test_bogo_and_items_for_a_price() -> None:
    product = one(
        specialData={
            "bogoSpecials": [
                {
                    "specialName": "Buy 2 get 1 at 40 % off",
                    "bogoConditions": [{"quantity": None, "totalQuantity": {"quantity": 2}}],
                    "bogoRewards": [
                        {"totalQuantity": {"quantity": 1, "maxQuantity": 10000}, "percentDiscount": "40.00"}
                    ],
                },
                {
                    "specialName": "Buy one get one",
                    "bogoConditions": [{"quantity": 1}],
                    "bogoRewards": [{"quantity": 1, "discountType": "dollarDiscount", "discountAmount": 5}],
                },
                {
                    "specialName": "3 for 20",
                    "itemsForAPrice": {"value": 20, "quantity": 3},
                    "bogoConditions": None,
                    "bogoRewards": [],
                },
                {  # as recorded in Florida in September 2025
                    "specialName": "$40 for two",
                    "itemsForAPrice": {"enabled": True, "value": "40"},
                    "bogoConditions": [{"totalQuantity": None, "quantity": None}],
                    "bogoRewards": [
                        {
                            "totalQuantity": {"enabled": True, "quantity": 2},
                            "discountType": "targetPrice",
                            "discountAmount": 40,
                        }
                    ],
                },
                {
                    "specialName": "Not for a price",
                    "itemsForAPrice": {"enabled": False, "value": "40"},
                    "bogoConditions": [{"quantity": 1}],
                    "bogoRewards": [{"quantity": 1, "percentDiscount": 50}],
                },
            ]
        }
    )
    assert [(s.kind, s.value, s.required_quantity, s.reward_quantity) for s in product.specials] == [
        ("bogo", Decimal("40.00"), 2, 1),
        ("bogo", None, 1, 1),
        ("bundle", Decimal(20), 3, None),
        ("bundle", Decimal(40), 2, None),
        ("bogo", Decimal(50), 1, 1),
    ]


@pytest.mark.parametrize(
    ("sale", "expected"),
    [
        ({"discount": 20, "percentDiscount": True}, ("percent", 20)),
        ({"discount": 3, "dollarDiscount": True}, ("amount", 3)),
        ({"saleDiscounts": [{"discountType": "dollarDiscount", "discountAmount": 4}]}, ("amount", 4)),
        ({"discount": 5}, ("other", 5)),
        ({}, ("other", None)),
    ],
)
def test_kinds_of_sale(sale: dict[str, Any], expected: tuple[str, int | None]) -> None:
    (special,) = one(specialData={"saleSpecials": [sale, None]}).specials
    assert (special.kind, special.value) == expected


# -- stock ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "in_stock"),
        ({"manualInventory": [{"option": "1g", "inventory": 0}]}, "oos"),
        ({"manualInventory": None}, "unknown"),
        ({"manualInventory": []}, "unknown"),
        ({"Status": "Inactive"}, "oos"),
        ({"Status": "Inactive", "Options": []}, "oos"),
        ({"Options": [], "recPrices": [], "medicalPrices": []}, "unknown"),
        ({"Options": None, "recPrices": None, "medicalPrices": None}, "unknown"),
        ({"isBelowThreshold": True}, "oos"),
        ({"isBelowThreshold": False}, "in_stock"),
        ({"optionsBelowThreshold": ["1g"]}, "oos"),
        ({"optionsBelowThreshold": ["2g"]}, "in_stock"),
        ({"POSMetaData": {"children": [{"option": "1g", "quantity": 3, "quantityAvailable": 0}]}}, "oos"),
        ({"POSMetaData": {"children": None}}, "in_stock"),
    ],
)
def test_product_stock(fields: dict[str, Any], status: str) -> None:
    made = run(item(**fields))
    (product,) = made.products
    assert product.stock_status == status
    assert product.is_in_stock == {"in_stock": True, "oos": False, "unknown": None}[status]


# -- texts, times, images ---------------------------------------------------------------------------------------------


def test_texts_are_kept_raw_and_trimmed() -> None:
    product = one(
        Name=" Mama J\u2019s:\u00a0 Rock\u202fCandy  -\tPR cafe\u0301 ",
        brandName="Cresco ",
        brand={"id": "b", "name": "Cresco Labs"},
        description=" \u00a0. ",
        subcategory="",
        strainType="20 to 1",
        type="Space Cakes",
    )
    assert product.name_raw == " Mama J’s:\u00a0 Rock\u202fCandy  -\tPR cafe\u0301 "
    assert product.name == "Mama J’s: Rock Candy - PR café"
    assert (product.brand_name_raw, product.brand_name) == ("Cresco ", "Cresco")
    assert product.extra["brand_record_name"] == "Cresco Labs"
    assert product.description is None
    assert (product.category, product.subcategory, product.strain_type) == ("Space Cakes", None, "20 to 1")


def test_brand_from_its_record_when_there_is_no_name() -> None:
    assert one(brandName=None, brand={"name": "Bits"}).brand_name == "Bits"
    assert one(brandName=None, brand=None).brand_name is None
    assert one(brandName="", brand={"name": ""}).brand_name is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1758030118081", datetime(2025, 9, 16, 13, 41, 58, 81000, UTC)),
        (1758030118081, datetime(2025, 9, 16, 13, 41, 58, 81000, UTC)),
        ("2025-10-05T14:47:48.127Z", datetime(2025, 10, 5, 14, 47, 48, 127000, UTC)),
        ("2025-10-05T10:47:48.127-04:00", datetime(2025, 10, 5, 14, 47, 48, 127000, UTC)),
        ("2026-08-01T02:00:00.0000000", datetime(2026, 8, 1, 2, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
def test_times(value: Any, expected: datetime | None) -> None:
    assert one(createdAt=value).platform_created_at == expected


@pytest.mark.parametrize("value", ["yesterday", "99999999999999999999999", "2025-13-01", "١٢٣x"])
def test_what_is_no_time_is_left_out(value: str) -> None:
    made = run(item(updatedAt=value))
    assert made.products[0].platform_updated_at is None
    assert [(w.product_id, w.field, w.fatal) for w in made.warnings] == [("a", "updatedAt", False)]


def test_images() -> None:
    stock = "https://images.dutchie.com/dutchie-images/flower-stock-14-v1.jpg"
    only = one(Image=stock, images=None)
    assert (only.image_url, only.images) == (stock, ())
    several = one(
        Image="",
        images=[
            {"url": "https://x/1", "active": True},
            {"url": "https://x/2", "active": False},
            {"url": "", "active": True},
            {"url": "https://x/3", "active": None, "description": None},
            {"url": "https://x/1", "active": True},
            None,
        ],
    )
    assert (several.image_url, several.images) == ("https://x/1", ("https://x/1", "https://x/3"))
    assert one(Image=None, images=[]).image_url is None


# -- potency --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"unit": "PERCENTAGE", "range": [18, 24.5]}, ("18", "24.5", "%", "PERCENTAGE")),
        ({"unit": "PERCENTAGE", "range": [24.5, 18]}, ("18", "24.5", "%", "PERCENTAGE")),
        ({"unit": "MILLIGRAMS_PER_GRAM", "range": [300, 360]}, ("30", "36", "%", "MILLIGRAMS_PER_GRAM")),
        ({"unit": "MILLIGRAMS_PER_GRAM", "range": [3.33]}, ("0.333", "0.333", "%", "MILLIGRAMS_PER_GRAM")),
        ({"unit": "MILLIGRAMS", "range": [500]}, ("500", "500", "mg", "MILLIGRAMS")),
        ({"unit": "PARTS", "range": [5]}, ("5", "5", "PARTS", "PARTS")),
        ({"unit": "PERCENTAGE", "range": [None, 7]}, ("7", "7", "%", "PERCENTAGE")),
        ({"unit": "PERCENTAGE", "range": None}, None),
        ({"unit": "PERCENTAGE", "range": []}, None),
        ({"unit": None, "range": None}, None),
        (None, None),
    ],
)
def test_potency(content: Any, expected: tuple[str, ...] | None) -> None:
    thc = one(THCContent=content).thc
    found = thc and (thc.lo, thc.hi, thc.unit, thc.raw_unit)
    assert found == (expected and (Decimal(expected[0]), Decimal(expected[1]), expected[2], expected[3]))


def test_lab_rows() -> None:
    product = one(
        cannabinoidsV2=[
            {"value": None, "unit": "PERCENTAGE", "cannabinoid": {"name": "CBN (Cannabinol)"}},
            {"value": 1646.6, "unit": None, "cannabinoid": {"name": '"TAC" - Total Active Cannabinoids'}},
            {"value": 1, "unit": "PERCENTAGE", "cannabinoid": None},
            {"value": 1, "unit": "PERCENTAGE", "cannabinoid": {"name": ""}},
            None,
        ],
        terpenes=[
            {"value": None, "unit": "PERCENTAGE", "libraryTerpene": {"name": "Carene"}},
            {"value": 0.5, "unit": "PERCENTAGE", "libraryTerpene": {"name": "Beta Myrcene"}},
        ],
    )
    assert [(c.name, c.value, c.unit, c.is_total) for c in product.cannabinoids] == [
        ("CBN (Cannabinol)", None, "PERCENTAGE", False),
        ('"TAC" - Total Active Cannabinoids', Decimal("1646.6"), "", True),
    ]
    assert product.terpenes == (LabValue("Beta Myrcene", Decimal("0.5"), "PERCENTAGE"),)


def test_what_stands_beside_the_options_does_not_depend_on_their_order() -> None:
    options, raws, grams = ["1oz", "1/8oz", "1g"], ["28g", None, "1.0g"], [28, 3.5, 1]

    def extra(order: list[int]) -> dict[str, Any]:
        return one(
            Options=[options[i] for i in order],
            rawOptions=[raws[i] for i in order],
            measurements={"netWeight": {"unit": "GRAMS", "values": [grams[i] for i in order]}},
            recPrices=None,
            medicalPrices=None,
        ).extra

    expected = {
        "raw_options": [None, "1.0g", "28g"],
        "net_weight": {"unit": "GRAMS", "values": [Decimal("3.5"), 1, 28]},
    }
    assert extra([0, 1, 2]) == extra([2, 0, 1]) == extra([1, 2, 0]) == expected
    # Lists that are not aligned stay as they came.
    assert one(Options=["b", "a"], rawOptions=["2", "1", "0"], recPrices=None, medicalPrices=None).extra == {
        "raw_options": ["2", "1", "0"]
    }


def test_effects_in_one_spelling_and_flags_only_where_true() -> None:
    product = one(
        effects={"Pain-Relief": 5, "painRelief": 5, "Calm": 9, "Clear_Mind": 0},
        medicalOnly=True,
        recOnly=None,
        special=None,
        weight=1000,
    )
    assert product.extra == {
        "effects": {"pain_relief": 5, "calm": 9, "clear_mind": 0},
        "weight_rank": 1000,
        "medical_only": True,
    }


# -- identity, and what is malformed ----------------------------------------------------------------------------------


def test_last_of_one_id_wins_where_the_first_stood() -> None:
    made = run(item(recPrices=[10]), item(id="b", _id="b"), item(recPrices=[12]))
    assert [(p.provider_product_id, p.price_rec) for p in made.products] == [("a", 12), ("b", 10)]


def test_either_id_will_do() -> None:
    assert run({**item(), "id": None}).products[0].provider_product_id == "a"
    assert run({**item(), "_id": None, "id": "1"}).products[0].provider_product_id == "1"
    made = run(item(_id="other"))
    assert made.products[0].provider_product_id == "a"
    assert made.warnings == (ProductWarning("a", "_id", "is 'other', while id is 'a'; id is used"),)


@pytest.mark.parametrize(
    ("bad", "warning"),
    [
        ({**item(), "id": None, "_id": ""}, ProductWarning(None, "id", "is missing", fatal=True)),
        ({**item(), "Name": None}, ProductWarning("a", "Name", "is missing", fatal=True)),
        ({**item(), "Name": " "}, ProductWarning("a", "Name", "is missing", fatal=True)),
        ({**item(), "Name": 5}, ProductWarning("a", "Name", "expected str or null, got int", fatal=True)),
        (
            {**item(), "recPrices": "free"},
            ProductWarning("a", "recPrices", "expected array or null, got str", fatal=True),
        ),
        ({**item(), "recPrices": ["x"]}, ProductWarning("a", "recPrices[0]", "invalid decimal string", fatal=True)),
        ({**item(), "recPrices": [-1]}, ProductWarning("a", "recPrices[0]", "invalid price -1", fatal=True)),
        ({**item(), "recPrices": ["NaN"]}, ProductWarning("a", "recPrices[0]", "invalid price NaN", fatal=True)),
        ({**item(), "Options": "1g"}, ProductWarning("a", "Options", "expected array or null, got str", fatal=True)),
        (
            {**item(), "POSMetaData": {"children": [{"option": "1g", "quantity": {}}]}},
            ProductWarning(
                "a", "POSMetaData.children[0].quantity", "expected int or float or str or null, got object", fatal=True
            ),
        ),
        (7, ProductWarning(None, "", "expected an object, got a number", fatal=True)),
        (None, ProductWarning(None, "", "expected an object, got null", fatal=True)),
        ([], ProductWarning(None, "", "expected an object, got an array", fatal=True)),
    ],
)
def test_one_malformed_item_stops_no_other(bad: Any, warning: ProductWarning) -> None:
    made = run(item(id="x", _id="x"), bad, item(id="y", _id="y"))
    assert [p.provider_product_id for p in made.products] == ["x", "y"]
    assert made.warnings == (warning,)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("THCContent", "strong", "THCContent"),
        ("THCContent", {"unit": "PERCENTAGE", "range": ["a lot"]}, "THCContent.range[0]"),
        ("THCContent", {"range": [5]}, "THCContent"),
        ("brand", "Bits", "brand"),
        ("images", [{"url": 5}], "images[0].url"),
        ("effects", {"calm": "very"}, "effects[...]"),
        ("specialData", {"saleSpecials": [{"discount": "some"}]}, "specialData.saleSpecials[0].discount"),
        ("createdAt", {}, "createdAt"),
        ("cannabinoidsV2", "none", "cannabinoidsV2"),
        ("weight", "heavy", "weight"),
    ],
)
def test_a_bad_optional_field_is_left_out_and_named(field: str, value: Any, path: str) -> None:
    made = run(item(**{field: value}))
    (product,) = made.products
    assert (product.price_rec, product.stock_status) == (10, "in_stock")
    assert [(w.product_id, w.field, w.fatal) for w in made.warnings] == [("a", path, False)]
    assert made.warnings[0].message.endswith("; left out")


def test_several_faults_are_all_named() -> None:
    made = run(item(THCContent=5, CBDContent=6, brandName=[]))
    assert {w.field for w in made.warnings} == {"brandName", "THCContent", "CBDContent"}
    assert len(made.products) == 1
    hopeless = run(item(pastCNames=[{}] * 60))
    assert hopeless.products == ()
    assert hopeless.warnings[0].fatal


def test_text_that_no_column_takes_is_mended() -> None:
    made = run(
        item(Name="nul\0 here", description="nul\0"),
        rb'{"id":"b","Name":"halved \ud83d emoji"}',
        b'{"id":"c","Name":"not utf-8 \xff"}',
        item(
            id="d", _id="d", brandName="B\0", Options=["1\0g"], pastCNames=["p\0"], recPrices=None, medicalPrices=None
        ),
    )
    assert [p.name for p in made.products] == ["nul here", "halved � emoji", "not utf-8 �", "A thing"]
    assert b"\\u0000" not in msgspec.json.encode(made.products)
    nul, no_character = "contains NUL, which is removed", "contains an invalid character; replaced by U+FFFD"
    assert [(w.product_id, w.field, w.message, w.fatal) for w in made.warnings] == [
        ("a", "Name", nul, False),
        ("a", "description", nul, False),
        ("b", "Name", no_character, False),
        ("c", "Name", no_character, False),
        ("d", "pastCNames[0]", nul, False),
        ("d", "brandName", nul, False),
        ("d", "Options[0]", nul, False),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([name for name in Item.__struct_fields__ if name not in {"DispensaryID", "cName"}])


@given(st.lists(st.dictionaries(FIELDS, JSON, max_size=4), max_size=4))
def test_whatever_comes_is_a_product_or_a_named_fault(changes: list[dict[str, Any]]) -> None:
    values = [item(**change) for change in changes]
    made = run(item(id="first", _id="first"), *values, item(id="last", _id="last"))
    ids = {p.provider_product_id for p in made.products}
    assert {"first", "last"} <= ids
    assert len(ids) == len(made.products)
    lost = len(values) + 2 - len(made.products)
    fatal = sum(w.fatal for w in made.warnings)
    assert fatal <= lost, "an item is lost by a fatal fault or because a later one has its id"
    for product in made.products:
        assert (product.is_in_stock is None) == (product.stock_status == "unknown")
        assert product.name
        assert b"\\u0000" not in msgspec.json.encode(product).replace(b"\\\\u0000", b"")


def test_store_of() -> None:
    assert ITEMS.store_of([raw(5), raw(item()), raw(item(DispensaryID="se4ekt2e7rH5pspyn"))]) == "se4ekt2e7rH5pspyn"
    assert ITEMS.store_of([]) is None
