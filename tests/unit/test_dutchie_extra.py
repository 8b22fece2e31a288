"""What the point of sale says of a Dutchie product, its limits and promotions by option, and ids and stock in other types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from menuwatch.catalog.model import Batch
from tests.unit.test_dutchie_normalize import item, one, run

POS = {
    "canonicalID": 4504771,
    "canonicalSKU": "03620940",
    "canonicalCategory": "Rosin  Disposable",
    "canonicalPackageId": "1A4060300000001",
    "canonicalLabResultUrl": " https://lab.invalid/1.pdf ",
}


def test_package_and_certificate_of_the_point_of_sale() -> None:
    product = one(Options=["1g"], POSMetaData={**POS, "children": [{"option": "1g", "quantity": 3}]})
    assert product.batch == Batch(package_tag="1A4060300000001", certificate_url="https://lab.invalid/1.pdf")
    kept = {
        name: product.extra.get(name) for name in ("pos_id", "sku", "pos_category", "package_ids", "certificate_urls")
    }
    assert kept == {
        "pos_id": "4504771",
        "sku": "03620940",
        "pos_category": "Rosin Disposable",
        "package_ids": None,
        "certificate_urls": None,
    }
    assert one(POSMetaData={"children": None}).batch is None


def test_options_of_several_packages_have_no_one_batch() -> None:
    children = [
        {
            "option": "1g",
            "quantity": 3,
            "canonicalPackageId": "A",
            "canonicalLabResultUrl": "https://lab.invalid/x.pdf",
        },
        {
            "option": "7g",
            "quantity": 3,
            "canonicalPackageId": "B",
            "canonicalLabResultUrl": "https://lab.invalid/x.pdf",
        },
        {"option": "28g", "quantity": 3, "canonicalPackageId": "not on the menu"},
    ]
    product = one(
        Options=["1g", "7g"], recPrices=[1, 2], medicalPrices=[1, 2], POSMetaData={**POS, "children": children}
    )
    assert product.batch == Batch(certificate_url="https://lab.invalid/x.pdf")
    assert product.extra["package_ids"] == {"1g": "A", "7g": "B"}
    assert "certificate_urls" not in product.extra


def test_limits_and_promotions_by_option() -> None:
    product = one(
        Options=["1g", "7g"],
        recPrices=[1, 2],
        medicalPrices=[1, 2],
        limitsPerCustomer=[
            {"key": "1/8oz", "value": "Unlimited"},
            {"key": "1g", "value": 4},
            None,
            {"key": None, "value": 1},
        ],
        specialIdsPerOption=[
            {"option": "1g", "conditionIds": ["b", "a"], "rewardIds": []},
            {"option": "7g", "conditionIds": [], "rewardIds": [7]},
            {"option": "28g", "conditionIds": [], "rewardIds": []},
        ],
        specialData={
            "saleSpecials": [
                {"specialId": "s1", "specialName": "x", "discount": 5, "eligibleProductOptions": ["7g", "1g", None]},
                {"specialId": "s2", "specialName": "y", "discount": 5, "eligibleProductOptions": None},
            ]
        },
        optionsBelowKioskThreshold=["7g", "1g", "not on the menu"],
        provider="dutchie",
        subcategories=[{"name": "premium", "__typename": "Subcategory"}],
        totalTerpenes={"value": 2.41, "unit": "PERCENTAGE"},
    )
    expected = {
        "purchase_limits": {"1/8oz": "Unlimited", "1g": "4"},
        "special_ids_by_option": {"1g": {"conditions": ["a", "b"]}, "7g": {"rewards": ["7"]}},
        "special_options": {"s1": ["1g", "7g"]},
        "kiosk_below_threshold": ["1g", "7g"],
        "provider": "dutchie",
        "subcategories": [{"name": "premium"}],
        "total_terpenes": {"value": Decimal("2.41"), "unit": "PERCENTAGE"},
    }
    assert {name: product.extra.get(name) for name in expected} == expected


@pytest.mark.parametrize("value", [None, "", [], {}, {"__typename": "X"}, ["x"] * 101, "x" * 20_000, 1e300])
def test_a_value_of_unknown_shape_that_says_nothing_is_left_out(value: Any) -> None:
    product = one(subcategories=value, totalTerpenes=value)
    assert not {"subcategories", "total_terpenes"} & product.extra.keys()


def test_ids_may_be_numbers() -> None:
    made = run(item(id=7, _id=7, DispensaryID=12, brandId=3, enterpriseProductId=4, libraryProductId=5))
    (product,) = made.products
    assert made.warnings == ()
    kept = ("dispensary_id", "brand_id", "enterprise_product_id", "library_product_id")
    assert (product.provider_product_id, *(product.extra[name] for name in kept)) == ("7", "12", "3", "4", "5")


@pytest.mark.parametrize("amount", [7, 7.0, "7", "7.0"])
def test_stock_may_be_a_fraction_or_a_text(amount: Any) -> None:
    made = run(item(POSMetaData={"children": [{"option": "1g", "quantity": amount, "quantityAvailable": amount}]}))
    assert (made.products[0].quantity, made.warnings) == (7, ())
    made = run(item(POSMetaData=None, manualInventory=[{"option": "1g", "inventory": amount}]))
    assert (made.products[0].quantity, made.warnings) == (7, ())
