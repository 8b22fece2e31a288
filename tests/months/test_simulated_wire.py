"""The simulator's items as wires of the months: what is on the shelf is what the menu says."""

from __future__ import annotations

import pytest

from menuwatch.sim.platform import platform_names
from tests.months.market import Good
from tests.months.simulated_wire import SimulatedWire
from tests.platforms.samples import TOTALS


@pytest.mark.parametrize("name", [name for name in platform_names() if name in TOTALS])
def test_goods_are_read_as_they_lie_on_the_shelf(name: str) -> None:
    wire = SimulatedWire(name)
    goods = [wire.visible(good) for good in (Good(10_001, 1200, 5), Good(10_002, 3550, 0), Good(10_003, 900, None))]
    store = wire.store_id(3)
    body = wire.page([wire.item(good, store) for good in goods], number=0, size=25, total=3)
    adapter = wire.platform()
    assert adapter.totals(body)[0] == 3
    assert adapter.store_of(adapter.split(body)) in (store, None)
    products = adapter.normalize(adapter.split(body)).products
    assert [(made.provider_product_id, made.price_rec, made.quantity, made.stock_status) for made in products] == [
        (wire.product_id(good.id), good.cents / 100, good.quantity, good.stock) for good in goods
    ]
    assert wire.renames
    assert len({wire.store_id(number) for number in range(50)}) == 50
