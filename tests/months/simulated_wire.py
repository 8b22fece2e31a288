"""A platform of the simulator as a wire: items and pages are those that its endpoint serves, so that a new platform needs no wire."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from menuwatch.sim.model import ProductState, SimStore
from menuwatch.sim.platform import sim_platform
from tests.months.faults import TINY_STRANGER, TINY_THIRD
from tests.months.market import Good
from tests.platforms.samples import sample_of

Item = dict[str, Any]
_PAGES_ASKED = 30
_STORES = 1009
_UNCOUNTED = 5
"""In stock where the shop does not count; most platforms cannot say that, and show a number."""
_SELLING_OUT = 0.2
"""Where what is sold out has no price or no row any more. What sells out on these shelves in a day would be a quarter of the menu."""

_NO_STORE = "rows do not say of which store they are, and a page of new products may well be the shop's own"
_FEW = "rows do not say of which store they are, and few products may all be new ones at once"
_RESTOCKED = (
    "what is sold out has no row, and few products may be sold out and back again: the menu was as small a while ago"
)
UNSHOWN: Mapping[str, Mapping[str, str]] = {
    "sweed": {"one page": _NO_STORE, TINY_STRANGER: _FEW, TINY_THIRD: _RESTOCKED},
    "weedmaps": {"one page": _NO_STORE, TINY_STRANGER: _FEW},
}
"""Variants of faults that a platform cannot show. All pages of another shop, which lack every product, are noticed of larger shops."""


async def _at_once(_: float) -> None:
    """Waiting takes no time here."""


class _Recording(LocalSession):
    """Keeps the latest request."""

    latest = ""

    async def request(self, method: str, url: str, **given: Any) -> Response:
        self.latest = _key(url, given.get("params") or {}, given.get("json"))
        return await super().request(method, url, **given)


def _key(url: str, params: Mapping[str, str], json: Any) -> str:
    return repr((url, sorted(params.items()), json))


class SimulatedWire:
    """One platform. The requests for a store's pages are learned by having the adapter request each once."""

    def __init__(self, name: str) -> None:
        self.name: Any = name
        self.unshown: Mapping[str, str] = UNSHOWN.get(name, {})
        self._sim = sim_platform(name)
        self._session = LocalSession(name, products=60)
        self._market = _Recording(name, products=1, stores=_STORES)
        # Where patients and adults have prices of their own, these shops sell to adults.
        self._stores = [store for store in self._market.market.stores if store.recreational]
        self._numbers: dict[str, dict[str, int]] = {}
        self._template = self._choose()
        self._sample = sample_of(name, "simulator")

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

    async def _learn(self, store: str) -> dict[str, int]:
        adapter = self.platform()
        numbers: dict[str, int] = {}
        for number in range(_PAGES_ASKED):
            await adapter.menu_page(cast("Session", self._market), store, number)
            numbers.setdefault(self._market.latest, number)
        return numbers

    def _state(self, good: Good, store: SimStore) -> ProductState:
        product = replace(
            self._template.product, id=self.product_id(good.id), serial=good.id, name=f"Blue Dream {good.id}",
            slug=f"blue-dream-{good.id}", counting="none" if good.quantity is None else self._template.product.counting,
        )  # fmt: skip
        stock = good.quantity if good.quantity is not None else 0 if good.status == "oos" else _UNCOUNTED
        return replace(self._template, product=product, prices=(good.cents or 1000,), stock=(stock,))

    def visible(self, good: Good) -> Good | None:
        """The product as the platform shows it: some cap what is in stock, or say no more than that there is some; of what is sold out
        some show no price, and some nothing at all."""
        store, state = self._session.store, self._state(good, self._session.store)
        if not self._sim.is_listed(state, store):
            return None
        options = list(self._sim.options(state, store))
        if not options:
            return replace(good, cents=None, quantity=None, status="oos")
        (option,) = options
        return replace(good, quantity=option.quantity, status=option.stock)

    def item(self, good: Good, store: str) -> Item:
        shop = replace(self._session.store, id=store)
        (body,) = self._session.endpoint.render(self._state(good, shop), shop).splitlines()
        return dict(msgspec.json.decode(body))

    def nameless(self, item: Item) -> Item:
        # Where one id is missing, another may stand for it.
        while (name := self.platform().identity(msgspec.Raw(msgspec.json.encode(item)))) is not None:
            item = {key: None if name in str(value) else value for key, value in item.items()}
        return item

    @property
    def selling_out(self) -> float:
        sold_out = self.visible(Good(1, 1000, 0))
        return 1.0 if sold_out is not None and sold_out.cents is not None else _SELLING_OUT

    def page(self, items: Sequence[Item], *, number: int, size: int, total: int | None) -> bytes:
        page = replaced(self._sample.frame, self._sample.items_path, list(items))
        if self._sample.total:
            page = replaced(page, steps(self._sample.total), total)
        if self._sample.total_pages:
            page = replaced(page, steps(self._sample.total_pages), None if total is None else -(-total // size))
        return msgspec.json.encode(page)

    def product_id(self, good_id: int) -> str:
        return self._sim.product_id(Random(good_id), self._session.store, good_id) or f"{good_id:024x}"

    def store_id(self, number: int) -> str:
        return self._stores[number % len(self._stores)].id

    def number(self, params: Mapping[str, str], json: Any, url: str = "", store: str = "") -> int | None:
        """The page of a request, None for other requests, which the endpoint answers."""
        if store not in self._numbers:
            with ThreadPoolExecutor(1) as thread:  # This one has a loop already.
                self._numbers[store] = thread.submit(asyncio.run, self._learn(store)).result()
        return self._numbers[store].get(_key(url, params, json))

    async def respond(self, method: str, url: str, **given: Any) -> Response:
        return await self._market.request(method, url, **given)

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
        frame, path = self._sample.frame, self._sample.items_path
        return {
            "list an object": msgspec.json.encode(replaced(frame, path, {str(i): x for i, x in enumerate(items)})),
            "list null": msgspec.json.encode(replaced(frame, path, None)),
            "errors": msgspec.json.encode({"errors": [{"message": "Internal server error"}], "data": None}),
        }
