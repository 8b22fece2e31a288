"""Numbers, ids and quantities that no column takes: named and left out, and the rest of the menu is none the worse."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog import copy_format as rows
from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.catalog.taxonomy.limits import bounded, is_in_range
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie import answers
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.model import Normalized


def run(more: str, *, first: str = '"id":"odd","Name":"Odd","Options":["N/A"],"recPrices":[10]') -> Normalized:
    """An item, with other fields as JSON text, between two that are as they should be."""
    good = '{{"id":"{}","Name":"Good","Options":["1g"],"recPrices":[1]}}'
    texts = [good.format("x"), f"{{{first},{more}}}", good.format("y")]
    made = ITEMS.normalize([msgspec.Raw(text.encode()) for text in texts])
    assert [p.provider_product_id for p in made.products if p.name == "Good"] == ["x", "y"]
    return made


def odd(made: Normalized) -> Product:
    (product,) = [p for p in made.products if p.name == "Odd"]
    return product


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("0", True),
        ("-0.0", True),
        ("0.00000000", True),
        ("10", True),
        ("-3", True),
        ("1e5", True),
        ("0.000001", True),
        ("2.2875848", True),
        ("2.79999999999999982236431605997495353221893310546875", True),
        ("999999999.99", True),
        ("1" * 9, True),
        ("1000000000", False),
        ("-1000000000", False),
        ("1e9", False),
        ("1e400", False),
        ("0.0000001", False),
        ("1e-30", False),
        ("0e400", False),
        ("0e-400", False),
        ("0." + "1" * 101, False),
        ("NaN", False),
        ("sNaN", False),
        ("NaN123", False),
        ("Infinity", False),
        ("-Infinity", False),
    ],
)
def test_bounds(text: str, fine: bool) -> None:
    value = Decimal(text)
    assert is_in_range(value) is fine
    if fine:
        assert bounded(value) is value, "not rounded"
    else:
        with pytest.raises(ArithmeticError):
            bounded(value)


BAD = [
    "1e400",
    "1e-30",
    "1e200000",
    "-1e-20000",
    '"NaN"',
    '"Infinity"',
    '"-Infinity"',
    '"sNaN"',
    "9" * 5000,
    "1e99999999999999999999",
]
SALE, BOGO = "specialData.saleSpecials[0]", "specialData.bogoSpecials[0]"


def sale(inner: str) -> str:
    return f'"specialData":{{"saleSpecials":[{{{inner}}}]}}'


def bogo(inner: str) -> str:
    return f'"specialData":{{"bogoSpecials":[{{{inner}}}]}}'


PLACES = {
    "measurements.netWeight.values[0]": '"measurements":{"netWeight":{"unit":"MILLIGRAMS","values":[%s]}}',
    "THCContent.range[0]": '"THCContent":{"unit":"PERCENTAGE","range":[%s]}',
    "CBDContent.range[1]": '"CBDContent":{"unit":"MILLIGRAMS_PER_GRAM","range":[1,%s]}',
    "cannabinoidsV2[0].value": '"cannabinoidsV2":[{"value":%s,"unit":"MG","cannabinoid":{"name":"THC"}}]',
    "terpenes[0].value": '"terpenes":[{"value":%s,"unit":"MG","libraryTerpene":{"name":"Carene"}}]',
    f"{SALE}.discount": sale('"specialName":"s","discount":%s'),
    f"{SALE}.saleDiscounts[0].discountAmount": sale('"saleDiscounts":[{"discountAmount":%s}]'),
    f"{BOGO}.discountBundle.value": bogo('"discountBundle":{"value":%s}'),
    f"{BOGO}.itemsForAPrice.value": bogo('"itemsForAPrice":{"value":%s}'),
    f"{BOGO}.bogoRewards[0].percentDiscount": bogo('"bogoRewards":[{"percentDiscount":%s}]'),
}  # fmt: skip


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("number", BAD, ids=lambda text: text[:12])
def test_a_number_out_of_bounds_is_left_out_and_named(path: str, number: str) -> None:
    made = run(PLACES[path] % number)
    product = odd(made)
    assert (product.price_rec, product.variants[0].weight_g) == (10, None)
    assert [(w.product_id, w.field, w.fatal) for w in made.warnings] == [("odd", path, False)]
    assert made.warnings[0].message.endswith("; left out")
    assert len(made.warnings[0].message) < 100
    takes(product)


def test_the_rest_of_a_field_stays() -> None:
    made = run(
        '"cannabinoidsV2":[{"value":"NaN","unit":"MG","cannabinoid":{"name":"THC"}},{"value":2,"unit":"MG","cannabinoid":{"name":"CBD"}}],'
        '"THCContent":{"unit":"PERCENTAGE","range":[1e400,20]},"CBDContent":{"unit":"PERCENTAGE","range":[0.5]}'
    )
    product = odd(made)
    assert [(c.name, c.value) for c in product.cannabinoids] == [("THC", None), ("CBD", 2)]
    assert product.thc is not None
    assert (product.thc.lo, product.thc.hi) == (20, 20)
    assert product.cbd is not None
    assert product.cbd.lo == Decimal("0.5")
    assert [w.field for w in made.warnings] == ["THCContent.range[0]", "cannabinoidsV2[0].value"]


@pytest.mark.parametrize("field", ["recPrices", "medicalPrices", "recSpecialPrices", "medicalSpecialPrices"])
@pytest.mark.parametrize("number", BAD, ids=lambda text: text[:12])
def test_a_price_out_of_bounds_is_fatal_for_its_item(field: str, number: str) -> None:
    made = run(f'"{field}":[{number}]')
    assert len(made.products) == 2
    assert [(w.product_id, w.field, w.fatal) for w in made.warnings] == [("odd", f"{field}[0]", True)]
    assert len(made.warnings[0].message) < 100


@pytest.mark.parametrize("number", ["1e400", "9" * 5000, '"NaN"', "1e99999999999999999999"], ids=lambda text: text[:12])
def test_a_rank_and_a_level_out_of_bounds_are_left_out(number: str) -> None:
    made = run(f'"weight":{number},"effects":{{"calm":{number}}}')
    assert odd(made).extra == {}
    assert {(w.field, w.fatal) for w in made.warnings} == {("weight", False), ("effects[...]", False)}


def test_a_list_that_is_not_aligned_says_nothing_whatever_stands_in_it() -> None:
    made = run('"medicalPrices":[1e400,5],"THCContent":{"unit":"PERCENTAGE","range":["NaN"]}')
    assert odd(made).price_rec == 10
    assert {(w.field, w.fatal) for w in made.warnings} == {("medicalPrices", False), ("THCContent.range[0]", False)}


def test_sums_of_packages_end_where_the_column_does() -> None:
    def stock(count: int, each: int) -> int | None:
        options = [f"o{i}" for i in range(count)]
        more = json.dumps(
            {
                "Options": options,
                "recPrices": [1] * count,
                "manualInventory": [{"option": option, "inventory": each} for option in options],
            }
        )
        return odd(run(more[1:-1])).quantity

    assert stock(300, 10_000_000) == 2_147_483_647
    assert stock(200, 10_000_000) == 2_000_000_000


@pytest.mark.parametrize("amount", ["10000001", "3000000000", "-10000001", "1e30", "1" * 5000])
def test_a_quantity_that_is_none_is_fatal_for_its_item(amount: str) -> None:
    for text, path in [
        (f'"manualInventory":[{{"option":"N/A","inventory":{amount}}}]', "manualInventory[0].inventory"),
        (f'"POSMetaData":{{"children":[{{"option":"N/A","quantity":{amount}}}]}}', "POSMetaData.children[0].quantity"),
    ]:
        made = run(text)
        assert len(made.products) == 2
        assert [(w.product_id, w.field, w.fatal) for w in made.warnings] == [("odd", path, True)]


def test_an_id_that_no_index_takes_is_fatal_and_told_in_short() -> None:
    rest = '"Name":"Odd","Options":["1g"],"recPrices":[1]'
    made = run(rest, first=f'"id":"{"x" * 30_000}"')
    assert made.warnings == (ProductWarning("x" * 40 + "…", "id", "has 30,000 characters, more than 200", fatal=True),)
    assert odd(run(rest, first=f'"id":"{"x" * 200}"')).provider_product_id == "x" * 200
    (warning,) = run(rest, first=f'"id":"a","_id":"{"x" * 30_000}"').warnings
    assert (warning.product_id, warning.field, warning.fatal) == ("a", "_id", False)
    assert len(warning.message) < 120


@pytest.mark.parametrize("depth", [1500, 100_000])
def test_what_is_nested_too_deeply_costs_its_item(depth: int) -> None:
    made = run('"z":' + "[" * depth + "]" * depth)
    assert [p.provider_product_id for p in made.products] == ["x", "y"]
    assert made.warnings == (ProductWarning(None, "", "is nested too deeply to be read", fatal=True),)
    assert ITEMS.store_of([msgspec.Raw(b'{"z":' + b"[" * depth + b"]" * depth + b"}")]) is None


def test_nesting_that_the_decoder_stands_does_no_harm_where_nobody_reads_it() -> None:
    depth = sys.getrecursionlimit() // 2
    made = run('"z":' + "[" * depth + "]" * depth + ',"weight":"heavy"')
    assert odd(made).price_rec == 10
    assert [w.field for w in made.warnings] == ["weight"]


@pytest.mark.parametrize("status", [200, 503])
def test_a_page_that_is_nested_too_deeply_is_refused_in_words(status: int) -> None:
    body = b'{"data":{"filteredProducts":{"products":[{"id":"a","z":' + b"[" * 1500 + b"]" * 1500 + b"}]}}}"
    with pytest.raises(BadPayload, match="the response is nested too deeply") as caught:
        answers.read(body, status)
    assert (caught.value.kind, caught.value.body) == ("schema", body)
    with pytest.raises(BadPayload):
        answers.read_stores(body)


def test_a_total_beyond_all_products_is_none() -> None:
    body = b'{"data":{"filteredProducts":{"products":[],"queryInfo":{"totalCount":%s,"totalPages":1e300}}}}'
    found = answers.read(body % (b"9" * 30))
    assert (found.total_count, found.total_pages) == (None, None)
    assert answers.read(body % b"999999999").total_count == 999_999_999


@pytest.mark.parametrize("unit", ["mg\\", "\\.", "\\N", "a\tb"])
def test_a_unit_is_written_as_text(unit: str) -> None:
    product = odd(run(f'"THCContent":{{"unit":{json.dumps(unit)},"range":[1]}}'))
    assert product.thc is not None
    takes(product)


def takes(product: Product) -> None:
    """What PostgreSQL's columns ask of a product."""
    line = rows.product_line(1, b"", product)
    assert len(line.split("\t")) == len(rows.PRODUCT_COLUMNS.split(", "))
    for part in (rows.dump(product), rows.dump(product.extra), rows.dump(rows.changed_row(1, b"", product))):

        def refuse(name: str) -> Any:
            raise AssertionError(f"{name} is no JSON")

        json.loads(part, parse_constant=refuse, parse_float=number)
        assert "\\u0000" not in part.replace("\\\\", "")
    assert product.quantity is None or 0 <= product.quantity < 2**31
    for potency in (product.thc, product.cbd):
        if potency is not None:
            number(str(potency.lo))
            number(str(potency.hi))


def number(text: str) -> Decimal:
    value = Decimal(text)
    assert value.is_finite()
    assert value.adjusted() < 20
    assert value.as_tuple().exponent > -120  # type: ignore[operator]
    return value


TOKEN = st.one_of(
    st.sampled_from(
        [*BAD, "null", "0", "-1", '"12.50"', "24.5", "0.0000001", "1e8", "1e9", "true", '"x"', "{}", "-0.0", "1e-6"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f'"{d}"'),
    st.builds("{}e{}".format, st.integers(-99, 99), st.integers(-500, 500)),
)
PRICES = ["recPrices", "medicalPrices", "recSpecialPrices", "Prices"]


@given(
    st.lists(st.tuples(st.sampled_from(sorted(PLACES)), TOKEN), max_size=4, unique_by=lambda p: p[0].split(".")[0]),
    st.lists(st.tuples(st.sampled_from(PRICES), TOKEN), max_size=1),
    st.sampled_from(["N/A", "1g", "1/8oz"]),
)
def test_every_product_fits_the_columns(
    values: list[tuple[str, str]], prices: list[tuple[str, str]], option: str
) -> None:
    more = [f'"Options":["{option}"]']
    more += [PLACES[path] % token for path, token in values]
    more += [f'"{field}":[{token}]' for field, token in prices]
    made = run(",".join(more))
    found = [p for p in made.products if p.name == "Odd"]
    assert len(found) == 1 - sum(w.fatal for w in made.warnings)
    assert not any(w.fatal and w.field.partition("[")[0] not in PRICES for w in made.warnings)
    for product in found:
        takes(product)
    assert json.loads(rows.dump(made.warnings)) is not None
