"""Lines of COPY's text format, read back by its rules: tabs between fields, a backslash before what would be mistaken."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog import copy_format as rows
from menuwatch.catalog.diff import prices_of, stock_of
from menuwatch.catalog.model import Batch, LabValue, Potency, Product, Variant
from tests.market import product as plain

PLAIN = plain({"id": "a", "name": "Thing", "price": "10", "qty": 5})
MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def fields(line: str) -> list[str | None]:
    """The values of a line as the server reads them."""
    assert "\n" not in line
    assert "\r" not in line
    assert line != "\\.", "the end of the data"
    return [None if part == "\\N" else unescaped(part) for part in line.split("\t")]


def unescaped(part: str) -> str:
    assert re.fullmatch(r"(?:[^\\]|\\[^0-7x])*", part), "a lone backslash, or an octal or hexadecimal escape"
    return re.sub(r"\\(.)", lambda escape: MEANT.get(escape[1], escape[1]), part)


def named(product: Product) -> dict[str, str | None]:
    found = fields(rows.product_line(7, b"\x01\x02", product))
    columns = rows.PRODUCT_COLUMNS.split(", ")
    assert len(found) == len(columns)
    return dict(zip(columns, found, strict=True))


def test_a_plain_product() -> None:
    found = named(PLAIN)
    assert {key: value for key, value in found.items() if value is not None} == {
        "id": "7",
        "content_hash": "\\x0102",
        "name_raw": "Thing",
        "name": "Thing",
        "status_raw": "Active",
        "price_rec": "10",
        "stock_status": "in_stock",
        "is_in_stock": "t",
        "quantity": "5",
        "quantity_capped": "f",
        "variants": '[{"option":"each","price_rec":10,"quantity":5,"stock_status":"in_stock"}]',
        "extra": "{}",
    }


@pytest.mark.parametrize("unit", ["mg\\", "\\.", "\\N", "a\tb", "a\nb\r", "ß"])
def test_a_unit_is_a_text_like_any_other(unit: str) -> None:
    strong = Potency(Decimal("1.5"), Decimal(2), unit, unit)
    product = msgspec.structs.replace(PLAIN, thc=strong, cbd=strong)
    found = named(product)
    assert (found["thc_lo"], found["thc_hi"], found["thc_unit"]) == ("1.5", "2", unit)
    assert (found["cbd_lo"], found["cbd_hi"], found["cbd_unit"]) == ("1.5", "2", unit)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_any_text_comes_back_whole(text: str) -> None:
    product = msgspec.structs.replace(
        PLAIN,
        provider_product_id=text,
        name_raw=text,
        category=text,
        thc=Potency(Decimal(1), Decimal(1), text, text),
        cannabinoids=(LabValue(text, Decimal(1), text),),
        images=(text,),
        extra={text: [text]},
    )
    kept = text.replace("\0", "\ufffd")
    found = named(product)
    assert (found["name_raw"], found["category"], found["thc_unit"]) == (kept, kept, kept)
    assert json.loads(found["images"] or "") == [kept]
    assert json.loads(found["extra"] or "") == {kept: [kept]}
    assert json.loads(found["cannabinoids"] or "")[0]["name"] == kept
    assert fields(rows.identity_line(3, "dutchie", product, "2026-01-01"))[2] == kept


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\0b", "a\ufffdb"),
        ("\\u0000", "\\u0000"),  # a backslash and five characters: no NUL
        ("\\\0", "\\\ufffd"),
        ("\\\\u0000\0", "\\\\u0000\ufffd"),
        ('quote " and \\ and \n', 'quote " and \\ and \n'),
    ],
)
def test_json_has_no_nul_and_keeps_the_rest(value: str, expected: str) -> None:
    assert json.loads(rows.dump([value])) == [expected]
    assert json.loads(unescaped(rows.json([value]))) == [expected]


def test_numbers_stay_exact() -> None:
    assert rows.json([Decimal("0.1000000000000000055"), Decimal("12.50")]) == "[0.1000000000000000055,12.50]"


VARIANTS = st.builds(
    Variant,
    option=st.sampled_from(["1/8oz", "1g", "1oz", "N/A"]),
    price_rec=st.none() | st.integers(0, 3).map(Decimal),
    quantity=st.none() | st.integers(0, 3),
)


def variants_of(product: Product) -> Any:
    return json.loads(named(product)["variants"] or "")


def test_options_are_written_by_their_text() -> None:
    made = [Variant("1g", Decimal(1)), Variant("1/8oz", Decimal(3)), Variant("1g", Decimal(2))]
    product = msgspec.structs.replace(PLAIN, variants=tuple(made))
    assert [(v["option"], v["price_rec"]) for v in variants_of(product)] == [("1/8oz", 3), ("1g", 1), ("1g", 2)]
    assert product.variants == tuple(made), "the product itself keeps the menu's order"


@given(
    st.lists(VARIANTS, max_size=4, unique_by=lambda v: v.option).flatmap(
        lambda v: st.tuples(st.just(v), st.permutations(v))
    )
)
def test_another_order_of_options_is_written_alike(both: tuple[list[Variant], list[Variant]]) -> None:
    one, other = (msgspec.structs.replace(PLAIN, variants=tuple(variants)) for variants in both)
    assert rows.product_line(1, b"", one) == rows.product_line(1, b"", other)
    assert rows.dump(rows.changed_row(1, b"", one)) == rows.dump(rows.changed_row(1, b"", other))
    assert (prices_of(one), stock_of(one)) == (prices_of(other), stock_of(other))


@pytest.mark.parametrize(
    ("image_url", "images", "stored"),
    [
        (None, (), None),
        ("a", ("a",), None),
        ("a", ("a", "b"), ["a", "b"]),
        ("a", ("b",), ["b"]),
        ("a", (), []),
        (None, ("a",), ["a"]),
    ],
)
def test_images_that_follow_from_the_first_are_not_stored(
    image_url: str | None, images: tuple[str, ...], stored: list[str] | None
) -> None:
    product = msgspec.structs.replace(PLAIN, image_url=image_url, images=images)
    assert json.loads(named(product)["images"] or "null") == stored
    assert json.loads(rows.dump(rows.changed_row(1, b"", product)))["images"] == stored


AMOUNTS = st.none() | st.decimals(0, 10**6, places=3)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LAB_VALUES = st.builds(LabValue, TEXTS, AMOUNTS, TEXTS).map(lambda value: (value,)) | st.just(())
PRODUCTS = st.builds(
    lambda **fields: msgspec.structs.replace(PLAIN, **fields),
    name=TEXTS,
    brand_name=st.none() | TEXTS,
    variants=st.lists(VARIANTS, max_size=3, unique_by=lambda v: v.option).map(tuple),
    price_rec=AMOUNTS,
    is_in_stock=st.none() | st.booleans(),
    quantity_sold=st.none() | st.integers(0, 2**40),
    thc=st.none() | st.just(Potency(Decimal("0.10"), Decimal("1E+2"), "%", "%")),
    cannabinoids=LAB_VALUES,
    images=st.lists(TEXTS, max_size=2).map(tuple),
    platform_created_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    extra=st.dictionaries(TEXTS | st.just("brand_description"), TEXTS, max_size=2),
    batch=st.none() | st.builds(Batch, TEXTS),
)


@given(PRODUCTS)
def test_a_changed_row_has_the_values_of_the_line(product: Product) -> None:
    line = named(product)
    row = json.loads(rows.dump(rows.changed_row(7, b"\x01\x02", product)), parse_float=Decimal)
    assert set(row) | {"thc_lo", "thc_hi", "thc_unit", "cbd_lo", "cbd_hi", "cbd_unit"} == {*line, "prices", "stock"}
    for column, text in line.items():
        value = row.get(column)
        if text is None or value is None:
            assert text is value, column
        elif isinstance(value, bool):
            assert text == ("t" if value else "f"), column
        elif isinstance(value, list | dict):
            assert json.loads(text, parse_float=Decimal) == value, column
        elif isinstance(value, int | Decimal):
            assert Decimal(text) == value, column
        elif column.startswith("platform_"):
            assert datetime.fromisoformat(text) == datetime.fromisoformat(value), column
        else:
            assert text == value, column
