"""What Dispense items mean, and items as they should not be."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menuwatch.catalog.model import Batch, LabValue, Product, ProductWarning, Special
from menuwatch.platforms.dispense.adapter import Dispense

DISPENSE = Dispense()
VENUE = "041444e70b831110"


def item(number: int = 1, *, venue: str = VENUE, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{number:016x}", "_id": f"{number:016x}", "venue": venue, "name": f"Thing {number}", "price": 20,
        "priceWithDiscounts": 20, "quantity": 3, "quantityTotal": 3, "quantitySold": 9, "enable": True, "deleted": False,
        "cannabisComplianceType": "FLOWER",
        "productCategoryName": "🌿Flower", "subType": "Flower", "weight": 3.5, "weightUnit": "GRAMS", "weightFormatted": "3.5g",
        **more,
    }  # fmt: skip


def grouped(*variants: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row with these variants, the first of which is the product itself."""
    return {**variants[0], "variants": [{"variants": [], **one} for one in variants], **more}


def normalized(*items: Any) -> tuple[list[Product], list[ProductWarning]]:
    made = DISPENSE.normalize(
        [msgspec.Raw(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in items]
    )
    return list(made.products), list(made.warnings)


def one(**fields: Any) -> Product:
    (product,), warnings = normalized(item(**fields))
    assert warnings == []
    return product


# Items.


def test_prices() -> None:
    assert (one().price_rec, one().price_rec_special) == (20, None)
    assert one(priceWithDiscounts=15.99).price_rec_special == Decimal("15.99")
    assert one(price="20.50", priceWithDiscounts=None).price_rec == Decimal("20.50")
    assert one(price=0, priceWithDiscounts=0).price_rec is None
    assert (one(price=0, priceWithDiscounts=5).price_rec, one(price=0, priceWithDiscounts=5).price_rec_special) == (
        5,
        None,
    )
    (raised,), (warning,) = normalized(item(priceWithDiscounts=25))
    assert (raised.price_rec, raised.price_rec_special) == (20, None)
    assert warning.field == "priceWithDiscounts"


def test_several_variants() -> None:
    rows = [item(1), item(2, weightFormatted="7g", price=36, quantity=0), item(3, weightFormatted="14g", enable=False),
            item(4, weightFormatted="28g", deleted=True)]  # fmt: skip
    (product,), warnings = normalized(grouped(*rows))
    assert warnings == []
    assert [(v.option, v.price_rec, v.quantity, v.stock_status, v.weight_g) for v in product.variants] == [
        ("3.5g", 20, 3, "in_stock", Decimal("3.5")), ("7g", 36, 0, "oos", 7), ("14g", 20, 3, "oos", 14),
    ]  # fmt: skip
    assert (product.provider_product_id, product.quantity, product.quantity_sold) == (f"{1:016x}", 6, 27)
    assert product.extra["variant_ids"] == [f"{n:016x}" for n in (1, 2, 3)]


def test_the_product_is_read_once_whatever_its_variants_say() -> None:
    without_itself = {**item(1), "variants": [item(2, weightFormatted="7g")]}
    nameless = {**item(1), "variants": [{"weightFormatted": "1g", "price": 8, "quantity": 2}]}
    for odd, options in ((without_itself, ["3.5g", "7g"]), (nameless, ["1g"]), (item(1, variants=[]), ["3.5g"]),
                         (item(1, variants=None), ["3.5g"]), (item(1, variants=[None]), ["3.5g"])):  # fmt: skip
        (product,), _ = normalized(odd)
        assert [v.option for v in product.variants] == options


@pytest.mark.parametrize(
    ("fields", "option", "grams"),
    [
        ({"weightFormatted": "", "weight": 1, "weightUnit": "OUNCES"}, "1oz", 28),
        ({"weightFormatted": None, "weight": 0.5, "weightUnit": "GRAMS"}, "0.5g", Decimal("0.5")),
        ({"weightFormatted": "1/8oz"}, "1/8oz", Decimal("3.5")),
        ({"weightFormatted": "big", "weight": 2, "weightUnit": "GRAMS"}, "big", 2),
        ({"weightFormatted": "", "weight": 3, "weightUnit": "STONES"}, "3STONES", None),
        ({"weightFormatted": "", "weight": 0, "size": "Large"}, "Large", None),
        ({"weightFormatted": "", "weight": None}, "each", None),
    ],
)
def test_options(fields: dict[str, Any], option: str, grams: Decimal | None) -> None:
    (variant,) = one(**fields).variants
    assert (variant.option, variant.weight_g) == (option, grams)


@pytest.mark.parametrize(
    ("name", "text", "milligrams"),
    [("Gummies - 100mg", "100mg", 100), ("Gummies", "100mg", 100), ("Gummies - 100mg", "10mg", None),
     ("5mg x 20 - 100 mg", "100mg", 100), ("Bar 1,000mg", "1000mg", 1000)],
)  # fmt: skip
def test_content_that_a_name_contradicts_is_left_out(name: str, text: str, milligrams: int | None) -> None:
    edible = one(name=name, weightFormatted=text, cannabisComplianceType="EDIBLES", subType="Edibles")
    (variant,) = edible.variants
    assert (variant.option, variant.content_mg, variant.weight_g) == (text, milligrams, None)
    assert (variant.price_per_mg is None) == (milligrams is None)


def test_stock() -> None:
    assert (one(quantity=112).quantity, one(quantity=112).quantity_capped) == (112, False)
    assert (one(quantity="7").quantity, one(quantity=7.0).quantity, one(quantity=-2).quantity) == (7, 7, 0)
    assert (one(quantity=None).quantity, one(quantity=None, quantityTotal=None).stock_status) == (3, "unknown")
    assert (one(enable=False).stock_status, one(enable=False).status_raw) == ("oos", "disabled")
    assert one(deleted=True).status_raw == "deleted"


def test_sold_packages() -> None:
    product = one(quantitySold=193, totalSold=146, totalQuantitySold=190)
    assert (product.quantity_sold, product.extra["total_sold"], product.extra["total_quantity_sold"]) == (193, 146, 190)
    assert one(quantitySold="many").quantity_sold is None
    assert one(quantitySold=0).quantity_sold == 0


def test_batches() -> None:
    tag = "1A4110300003201000015815"
    assert one(leaflogix={"batchId": 7, "batchName": tag}).batch == Batch(batch_id="7", package_tag=tag)
    assert one(leaflogix={"batchId": "7", "batchName": "BAC-04"}).batch == Batch(batch_id="BAC-04")
    assert one(leaflogix={"batchId": "7"}).batch == Batch(batch_id="7")
    assert one().batch is None
    two = grouped(item(1, leaflogix={"batchName": "A"}), item(2, weightFormatted="7g", leaflogix={"batchName": "B"}))
    (product,), _ = normalized(two)
    assert product.batch is None, "several"


def test_categories() -> None:
    specials = one(productCategoryName="🔥Specials", cannabisComplianceType="PRE_ROLLS", subType="Pre Rolls - Single")
    assert (specials.category, specials.category_canon, specials.subcategory_canon) == (
        "🔥Specials",
        "preroll",
        "single",
    )
    assert one(cannabisComplianceType=None, productCategoryName="🍬Edibles🍫", subType=None).category_canon == "edible"
    assert one(cannabisComplianceType="NEW", productCategoryName="New", subType="New").category_canon is None
    words = (
        "BEVERAGES",
        "CAPSULES",
        "MERCHANDISE",
        "SEEDS",
        "ACCESSORIES",
        "TINCTURES",
        "TOPICALS",
        "VAPORIZERS",
        "CONCENTRATES",
    )
    assert [one(cannabisComplianceType=word, subType=None).category_canon for word in words] == [
        "edible", "oral", "apparel", "cultivation", "accessory", "tincture", "topical", "vaporizer", "concentrate",
    ]  # fmt: skip


def test_lab_values() -> None:
    product = one(labs={"thc": 0.8, "thcMax": 27.5, "thcContentUnit": "%", "thcA": 26.7, "thcAContentUnit": "%", "cbd": 0, "cbdMax": 0,
                        "cbdContentUnit": "%", "betaMyrcene": 0.4, "betaMyrceneContentUnit": "%", "guaiol": 0,
                        "terpenes": ["betamyrcene", "alphapinene", None], "alphaPinene": 0})  # fmt: skip
    assert product.thc is not None
    assert (product.thc.hi, product.thc.unit, product.cbd) == (Decimal("27.5"), "%", None)
    assert product.cannabinoids == (LabValue("THC", Decimal("0.8"), "%"), LabValue("THCA", Decimal("26.7"), "%"))
    assert product.terpenes == (LabValue("Beta Myrcene", Decimal("0.4"), "%"), LabValue("Alpha Pinene", None, ""))
    assert one(labs={"thc": 5}).thc is None, "without a unit"
    sent = json.dumps({"labs.thc": 5, "labs.thcContentUnit": "mg", "name": "x"})
    (known,) = one(labs={"thc": 0}, posLastSyncData=sent).cannabinoids
    assert known == LabValue("THC", Decimal(5), "mg")
    assert one(labs={"thc": 1, "thcContentUnit": "%"}, posLastSyncData="{").thc is not None, (
        "what is not needed is not read"
    )


def test_lab_values_that_cannot_be() -> None:
    odd = {
        "thc": 340,
        "thcContentUnit": "%",
        "cbd": "much",
        "cbg": -1,
        "cbn": 1e300,
        "limonene": [],
        "linalool": {"x": 1},
    }
    (product,), warnings = normalized(item(labs=odd, posLastSyncData="[1]"))
    assert (product.thc, product.cannabinoids, product.terpenes) == (None, (), ())
    assert {warning.field for warning in warnings} == {"labs.thc", "labs.cbd", "labs.cbg", "labs.cbn", "labs.linalool"}
    assert not any(warning.fatal for warning in warnings)
    _, (warning,) = normalized(item(labs=None, posLastSyncData="{"))
    assert warning.field == "posLastSyncData"


def test_specials() -> None:
    sale = {"productOffer": "a", "productOfferType": "SALE", "value": 0.25, "type": "PERCENT"}
    flat = {"productOffer": "b", "productOfferType": "SALE", "value": 5, "type": "FLAT"}
    deal = {"productOffer": "c", "productOfferType": "BOGO", "value": 0.5, "type": "PERCENT"}
    odd = {"productOffer": 7, "value": 3, "type": "PERCENT"}
    assert one(discounts=[sale, flat, None, deal, odd, {}], priceWithDiscounts=15).specials == (
        Special("25% off", "percent", Decimal(25), special_id="a"), Special("$5 off", "amount", Decimal(5), special_id="b"),
        Special("BOGO", "other", Decimal("0.5"), special_id="c"), Special("PERCENT", "other", Decimal(3), special_id="7"),
    )  # fmt: skip
    assert one(discounts=[], discountValueFinal=0.1, discountTypeFinal="PERCENT").specials == (
        Special("10% off", "percent", Decimal(10)),
    )
    assert one(discounts=[], discountValueFinal=0, discountTypeFinal="PERCENT").specials == ()


def test_texts_images_and_times() -> None:
    product = one(description="Sweet.<br /><br />Soy&amp;free", brand=" Grön ", image="https://i/1",
                  images=[{"fileUrl": "https://i/3", "order": 2}, {"fileUrl": "https://i/2", "order": 1}, None, {"fileUrl": "https://i/1"}],
                  created="2024-08-22T16:21:51.619Z")  # fmt: skip
    assert (product.description, product.brand_name) == ("Sweet. Soy&free", "Grön")
    assert (product.image_url, product.images) == ("https://i/1", ("https://i/1", "https://i/2", "https://i/3"))
    assert product.platform_created_at == datetime(2024, 8, 22, 16, 21, 51, 619_000, tzinfo=UTC)
    assert one(brand={"name": None}).brand_name is None
    assert one(brand={"id": 7, "name": "Kiva"}).extra["brand_id"] == "7"


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        (b"[]", "", "expected an object"),
        (json.dumps({"name": "x"}).encode(), "id", "is missing"),
        (json.dumps(item(id="x" * 300)).encode(), "id", "300 characters"),
        (json.dumps(item(name=None)).encode(), "name", "is missing"),
        (json.dumps(item(name=7)).encode(), "name", "expected str"),
        (json.dumps(item(price="dear")).encode(), "price", "invalid decimal"),
        (json.dumps(item(price=-1)).encode(), "price", "invalid price -1"),
        (json.dumps(item(priceWithDiscounts=-1)).encode(), "priceWithDiscounts", "invalid price -1"),
        (json.dumps(item()).replace('"price": 20', '"price": 1e400').encode(), "price", "invalid price"),
        (json.dumps(item(quantity="many")).encode(), "quantity", "invalid quantity"),
        (json.dumps(grouped(item(1), item(2, price=-3))).encode(), "variants[1].price", "invalid price -3"),
        (json.dumps(item(variants=[7])).encode(), "variants[0]", "expected object"),
        (b'{"id":1,"labs":' * 5000 + b"1" + b"}" * 5000, "", "nested too deeply"),
    ],
)  # fmt: skip
def test_an_item_that_is_no_product_stops_nothing_else(raw: bytes, field: str, says: str) -> None:
    products, warnings = normalized(item(8), raw, item(9))
    assert [product.provider_product_id for product in products] == [f"{8:016x}", f"{9:016x}"]
    (warning,) = warnings
    assert (warning.fatal, warning.field) == (True, field)
    assert says in warning.message


def test_other_bad_values_are_left_out_and_named() -> None:
    odd = item(
        brand=7,
        cannabisType=[],
        created="yesterday",
        labs="none",
        images="none",
        flowerEquivalentInGrams=1e300,
        priceNet=1e300,
        leaflogix=[],
    )
    (product,), warnings = normalized(odd)
    assert (product.brand_name, product.strain_type, product.platform_created_at, product.images) == (
        None,
        None,
        None,
        (),
    )
    assert {warning.field for warning in warnings} == {
        "brand", "cannabisType", "created", "labs", "images", "flowerEquivalentInGrams", "leaflogix", "priceNet",
    }  # fmt: skip
    assert not any(warning.fatal for warning in warnings)


def test_no_column_takes_nul_or_half_an_emoji() -> None:
    raw = json.dumps(item(name="a\0b", brand="\0", labs={"potency": "x\0", "terpenes": ["y\0"]})).replace("Thing", "x")
    (product,), _ = normalized(
        raw.encode(),
    )
    assert "\0" not in repr(product)
    (product,), _ = normalized(json.dumps(item(name="Gummies \ud83c")).encode())
    assert product.name == "Gummies \ufffd"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["name", "price", "variants", "quantity", "labs", "discounts", "leaflogix", "brand", "images", "weight",
                         "weightFormatted", "posLastSyncData", "terpenes", "enable", "created", "quantitySold"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                st.sampled_from(["id", "name", "value", "type", "thc", "thcContentUnit", "terpenes", "price", "batchName", "order"]),
                inner, max_size=4),
            max_leaves=12,
        ),
    )
)  # fmt: skip
def test_any_fields_give_a_product_or_a_warning(fields: dict[str, Any]) -> None:
    products, warnings = normalized(json.dumps({**item(), **fields}).encode())
    assert len(products) + sum(warning.fatal for warning in warnings) == 1
