"""Steps of a price chart."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from menuwatch.operations.price_series import step

AT = datetime(2026, 11, 1, tzinfo=UTC)


def state(**more: Any) -> dict[str, Any]:
    none = dict.fromkeys(("price_rec", "price_rec_special", "price_med", "price_med_special"))
    return {"from": AT, "to": None, "present": True, "stock_status": "in_stock", **none, **more}


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
    found = step(state(**{name: Decimal(value) for name, value in prices.items()}))
    assert (found.regular, found.special, found.price) == (regular, special, price)


def test_stock_and_presence() -> None:
    assert [step(state(stock_status=s)).in_stock for s in ("in_stock", "oos", "unknown")] == [True, False, None]
    assert not step(state(present=False)).listed
