"""What no menu can mean is left out with a warning that names it, on every platform."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
from menuwatch.platforms.model import Normalized


def run(**fields: Any) -> Normalized:
    item = {"id": "a", "Name": "A thing", "type": "Flower", "Options": ["1g", "7g"], "recPrices": [10, 60], **fields}
    return ITEMS.normalize([msgspec.Raw(json.dumps(item).encode())])


@pytest.mark.parametrize(
    ("field", "unit", "values", "message"),
    [
        ("THCContent", "PERCENTAGE", [-5], "-5 % is not within 0 to 100 %; left out"),
        ("THCContent", "PERCENTAGE", [340], "340 % is not within 0 to 100 %; left out"),
        ("THCContent", "PERCENTAGE", [20, 100.5], "20 to 100.5 % is not within 0 to 100 %; left out"),
        ("THCContent", "MILLIGRAMS_PER_GRAM", [1200], "120 % is not within 0 to 100 %; left out"),
        ("CBDContent", "PERCENTAGE", [-1, 3], "-1 to 3 % is not within 0 to 100 %; left out"),
        ("CBDContent", "MILLIGRAMS", [-10], "-10 mg is not within 0 and more; left out"),
    ],
)
def test_impossible_content(field: str, unit: str, values: list[float], message: str) -> None:
    made = run(**{field: {"unit": unit, "range": values}})
    (product,) = made.products
    assert product.thc is product.cbd is None
    column = "thc" if field == "THCContent" else "cbd"
    assert [(w.product_id, w.field, w.message, w.fatal) for w in made.warnings] == [("a", column, message, False)]


@pytest.mark.parametrize(
    ("unit", "values"),
    [("PERCENTAGE", [0]), ("PERCENTAGE", [0, 100]), ("MILLIGRAMS", [1000]), ("MILLIGRAMS_PER_GRAM", [1000])],
)
def test_possible_content(unit: str, values: list[float]) -> None:
    made = run(THCContent={"unit": unit, "range": values})
    assert made.products[0].thc is not None
    assert made.warnings == ()


def test_a_special_price_above_the_regular_one() -> None:
    made = run(recSpecialPrices=[12, 45], medicalPrices=[9, 50], medicalSpecialPrices=[9, 51])
    (product,) = made.products
    assert [(v.special_rec, v.special_med) for v in product.variants] == [(None, 9), (45, None)]
    assert (product.price_rec_special, product.price_med_special) == (45, 9)
    # What a gram costs is of the prices that are left: 10 / 1 and 45 / 7.
    assert [v.price_per_g for v in product.variants] == [Decimal("10.0000"), Decimal("6.4286")]
    assert [(w.field, w.message) for w in made.warnings] == [
        ("variants[1g].special_rec", "the special price 12 is above the regular price 10; left out"),
        ("variants[7g].special_med", "the special price 51 is above the regular price 50; left out"),
    ]


def test_it_is_of_every_platform() -> None:
    item = {
        "id": "a",
        "name": "A thing",
        "potencyThc": {"unit": "%", "range": [340]},
        "variants": [{"option": "1g", "priceRec": 10, "specialPriceRec": 11}],
    }
    made = DutchiePlus().normalize([msgspec.Raw(json.dumps(item).encode())])
    assert [w.field for w in made.warnings] == ["thc", "variants[1g].special_rec"]


PRICE = st.none() | st.integers(0, 50)


@given(st.lists(st.tuples(PRICE, PRICE), min_size=1, max_size=4))
def test_what_remains_is_plausible(prices: list[tuple[int | None, int | None]]) -> None:
    options = [f"{n + 1}g" for n in range(len(prices))]
    made = run(
        Options=options, recPrices=[p for p, _ in prices], medicalPrices=[None], recSpecialPrices=[s for _, s in prices]
    )
    (product,) = made.products
    kept = []
    for variant, (price, special) in zip(product.variants, prices, strict=True):
        raised = special is not None and price is not None and special > price
        assert variant.special_rec == (None if raised else special)
        kept.append(variant.special_rec)
    assert product.price_rec_special == min((one for one in kept if one is not None), default=None)
