"""The simulator's items as wires of the months: what is on the shelf is what the menu says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pytest

from menuwatch.core.errors import BadPayload
from menuwatch.core.http import Response, Session
from menuwatch.sim.platform import platform_names
from tests.months.market import Good
from tests.months.simulated_wire import UNSHOWN, SimulatedWire
from tests.platforms.samples import sample_of

SHELF = (Good(10_001, 1200, 5), Good(10_002, 3550, 0), Good(10_003, 900, None))


@dataclass
class _Served:
    """A session whose first page is that one."""

    wire: SimulatedWire
    store: str
    body: bytes

    async def request(self, method: str, url: str, **given: Any) -> Response:
        number = self.wire.number(given.get("params") or {}, given.get("json"), url, self.store)
        if number is None:
            return await self.wire.respond(method, url, **given)
        assert number == 0
        return Response(200, {}, self.body, url, 1.0)


async def _archived(wire: SimulatedWire, store: str, items: list[dict[str, Any]]) -> bytes:
    """The page of these items as the adapter archives it."""
    body = wire.page(items, number=0, size=25, total=len(items))
    session = cast("Session", _Served(wire, store, body))
    archived, info = await wire.platform().menu_page(session, store, 0)
    assert info.total_count == len(items) or not sample_of(wire.name, "simulator").total
    return archived


@pytest.mark.parametrize("name", platform_names())
def test_goods_are_read_as_they_lie_on_the_shelf(name: str) -> None:
    wire = SimulatedWire(name)
    shown = [wire.visible(good) for good in SHELF]
    goods = [good for good in shown if good is not None]
    assert shown[0] is not None
    assert shown[2] is not None
    assert [wire.visible(good) for good in goods] == goods
    store = wire.store_id(3)
    body = asyncio.run(_archived(wire, store, [wire.item(good, store) for good in goods]))
    adapter = wire.platform()
    named = adapter.store_of(adapter.split(body))
    assert named is None or adapter.is_store(store, named)
    products = adapter.normalize(adapter.split(body)).products
    assert [(made.provider_product_id, made.price_rec, made.quantity, made.stock_status) for made in products] == [
        (wire.product_id(good.id), None if good.cents is None else good.cents / 100, good.quantity, good.stock)
        for good in goods
    ]
    assert wire.renames
    assert wire.malformed
    nameless = msgspec.Raw(msgspec.json.encode(wire.nameless(wire.item(goods[0], store))))
    assert adapter.identity(nameless) is None
    assert len({wire.store_id(number) for number in range(50)}) == 50


@pytest.mark.parametrize("name", platform_names())
def test_rows_of_another_store_are_told_apart_where_rows_name_one(name: str) -> None:
    """Where they are not, `UNSHOWN` says why."""
    wire = SimulatedWire(name)
    store, other = wire.store_id(3), wire.store_id(4)
    asyncio.run(_archived(wire, store, [wire.item(SHELF[0], store)]))
    adapter = wire.platform()
    try:
        body = asyncio.run(_archived(wire, store, [wire.item(SHELF[0], other)]))
    except BadPayload:
        told_apart = True
    else:
        named = adapter.store_of(adapter.split(body))
        told_apart = named is not None and not adapter.is_store(store, named)
    assert told_apart != ("one page" in UNSHOWN.get(name, {}))
