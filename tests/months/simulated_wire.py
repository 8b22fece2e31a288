"""A platform of the simulator as a wire: items and pages are those that its endpoint serves, so that a new platform needs no wire."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

import msgspec

from menuwatch.config.settings import Settings
from menuwatch.core.http import Response, Session
from menuwatch.platforms.base import Platform
from menuwatch.platforms.conformance.sample import leaves, removed, replaced, steps
from menuwatch.platforms.registry import platforms
from menuwatch.sim.local_session import LocalSession
from menuwatch.sim.market import Market
from menuwatch.sim.model import ProductState, SimStore
from menuwatch.sim.platform import sim_platform
from tests.months.market import Good
from tests.platforms.samples import PAGES, TOTALS

Item = dict[str, Any]
_PAGES_ASKED = 30
_STORES = 300


async def _at_once(_: float) -> None:
    """Waiting takes no time here."""


class _Recording(LocalSession):
    """Keeps the latest request."""

    latest = ""

    async def request(self, method: str, url: str, **given: Any) -> Response:
        self.latest = _key(url, given.get("params") or {}, given.get("json"), self.store.id)
        return await super().request(method, url, **given)


def _key(url: str, params: Mapping[str, str], json: Any, store: str) -> str:
    return repr((url, sorted(params.items()), json)).replace(store, "STORE")


class SimulatedWire:
    """One platform. The request of each page is learned by having the adapter request it once."""

    def __init__(self, name: str) -> None:
        self.name: Any = name
        self._sim = sim_platform(name)
        self._session = _Recording(name, products=60)
        self._stores = Market(seed=5, stores=0, products=1, platforms={name: _STORES}).stores
        self._numbers: dict[str, int] = {}
        self._template = self._choose()
        self._frame: Any = None
        asyncio.run(self._learn())

    def platform(self) -> Platform:
        adapter = platforms(Settings(**self._session.settings))[self.name]
        adapter.retry = dataclasses.replace(adapter.retry, base_seconds=0.0, sleep=_at_once)
        return adapter

    def _choose(self) -> ProductState:
        """A product with one option, whose stock is counted."""
        states = self._session.market.menu(self._session.store, 0)
        counted = [state for state in states if len(state.product.options) == 1 and state.active]
        state = next((state for state in counted if state.product.counting != "none"), counted[0])
        return replace(state, offers=())

    async def _learn(self) -> None:
        adapter, store = self.platform(), self._session.store.id
        for number in range(_PAGES_ASKED):
            body, _ = await adapter.menu_page(cast("Session", self._session), store, number)
            self._numbers.setdefault(self._session.latest, number)
            if not number:
                self._frame = msgspec.json.decode(body)

    def _state(self, good: Good, store: SimStore) -> ProductState:
        product = replace(
            self._template.product, id=self.product_id(good.id), serial=good.id, name=f"Blue Dream {good.id}",
            slug=f"blue-dream-{good.id}", counting="none" if good.quantity is None else self._template.product.counting,
        )  # fmt: skip
        return replace(self._template, product=product, prices=(good.cents,), stock=(good.quantity or 0,))

    def visible(self, good: Good) -> Good:
        """The product as the platform shows it: some cap what is in stock, or say no more than that there is some."""
        store = self._session.store
        (option,) = self._sim.options(self._state(good, store), store)
        return replace(good, quantity=option.quantity, status=option.stock)

    def item(self, good: Good, store: str) -> Item:
        shop = replace(self._session.store, id=store)
        body = self._session.endpoint.render(self._state(good, shop), shop)
        return dict(msgspec.json.decode(body))

    def page(self, items: Sequence[Item], *, number: int, size: int, total: int | None) -> bytes:
        page = replaced(self._frame, steps(self.platform().items_path), list(items))
        page = replaced(page, steps(TOTALS[self.name]), total)
        if self.name in PAGES:
            page = replaced(page, steps(PAGES[self.name]), None if total is None else -(-total // size))
        return msgspec.json.encode(page)

    def product_id(self, good_id: int) -> str:
        return self._sim.product_id(Random(good_id), self._session.store, good_id) or f"{good_id:024x}"

    def store_id(self, number: int) -> str:
        return self._stores[number % _STORES].id

    def number(self, params: Mapping[str, str], json: Any, url: str = "", store: str = "") -> int | None:
        """The page of a request, None for other requests, which the endpoint answers."""
        return self._numbers.get(_key(url, params, json, store))

    async def respond(self, method: str, url: str, **given: Any) -> Response:
        return await self._session.request(method, url, **given)

    def _usable(self, change: Any) -> bool:
        item = change(self.item(Good(1, 1000, 3), self._session.store.id))
        return bool(self.platform().normalize([msgspec.Raw(msgspec.json.encode(item))]).products)

    def _without_name(self, item: Item) -> Item:
        for path, value in list(leaves(item)):
            if isinstance(value, str) and value.startswith("Blue Dream"):
                item = removed(item, path)
        return item

    @property
    def renames(self) -> Mapping[str, Any]:
        changes = {
            "name removed": self._without_name,
            "items wrapped": lambda item: {"node": item},
            "keys renamed": lambda item: {f"{key}V2": value for key, value in item.items()},
        }
        return {name: change for name, change in changes.items() if not self._usable(change)}

    @property
    def malformed(self) -> Mapping[str, Any]:
        return {"no name": self._without_name} if not self._usable(self._without_name) else {}

    def odd_envelopes(self, items: Sequence[Item]) -> Mapping[str, bytes]:
        path = steps(self.platform().items_path)
        return {
            "list an object": msgspec.json.encode(
                replaced(self._frame, path, {str(i): x for i, x in enumerate(items)})
            ),
            "list null": msgspec.json.encode(replaced(self._frame, path, None)),
            "errors": msgspec.json.encode({"errors": [{"message": "Internal server error"}], "data": None}),
        }
