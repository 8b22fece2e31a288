"""Steps of a price chart."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from menuwatch.catalog.history import ProductState, price_step

AT = datetime(2026, 11, 1, tzinfo=UTC)


def state(**more: Any) -> ProductState:
    none = dict.fromkeys(ProductState.__struct_fields__)
    return ProductState(**{**none, "from_": AT, "present": True, "stock_status": "in_stock", **more})


@pytest.mark.parametrize(
    ("prices", "regular", "special", "price"),
    [
        ({"price_rec": 40}, 40, None, 40),
        ({"price_rec": 40, "price_rec_special": 30}, 40, 30, 30),
        ({"price_rec": 40, "price_rec_special": 40}, 40, None, 40),
        ({"price_rec": 40, "price_rec_special": 45}, 40, None, 40),
        ({"price_rec_special": 30}, 30, None, 30),
        ({"price_med": 20, "price_med_special": 15}, 20, 15, 15),
        ({"price_rec": 40, "price_med": 20, "price_med_special": 15}, 40, None, 40),
        ({}, None, None, None),
    ],
)
def test_prices(prices: dict[str, int], regular: int | None, special: int | None, price: int | None) -> None:
    found = price_step(state(**{name: Decimal(value) for name, value in prices.items()}))
    assert (found.regular, found.special, found.price) == (regular, special, price)


def test_stock_and_presence() -> None:
    assert [price_step(state(stock_status=s)).in_stock for s in ("in_stock", "oos", "unknown")] == [True, False, None]
    assert not price_step(state(present=False)).listed
