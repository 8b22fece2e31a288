"""The market: what every store's shelves hold at every tick.

It depends on the seed, the sizes, the rates and the tick, and on nothing else: no clock, no order of requests, no process. Shelves
are made when first asked for and kept, so any tick can be looked up again at any time.
"""

from __future__ import annotations

from functools import cached_property
from random import Random

from menuwatch.sim.drift import campaigns, choose_offers, fresh_stock, move
from menuwatch.sim.goods import Maker, make_brands, make_lab
from menuwatch.sim.model import Brand, Offer, Platform, Rates, Shelf, SimStore
from menuwatch.sim.stores import make_stores, make_weedmaps_stores

OPENED_MS = 1_767_268_800_000
"""Tick 0 on the market's own calendar: 2026-01-01 12:00 UTC, in milliseconds of Unix time."""
TICK_MS = 4 * 3_600_000
"""Every tick is four hours, the interval of scheduled crawls."""

IMAGE_BASE = "http://images.invalid"
"""Where pictures are said to be; the name exists nowhere, and is the same in every run."""


class _Aisle:
    """One store's shelves, tick by tick."""

    def __init__(self, market: Market, store: SimStore) -> None:
        rng = Random(f"{market.seed}:aisle:{store.index}")
        self.store = store
        self.running: tuple[Offer, ...] = campaigns(rng, store)
        self._market = market
        self._maker = Maker(store, market.brands, market.image_base, OPENED_MS)
        self._serial = 0
        self._ticks: list[tuple[Shelf, ...]] = [tuple(self._new(rng, OPENED_MS) for _ in range(market.products))]

    def at(self, tick: int) -> tuple[Shelf, ...]:
        while len(self._ticks) <= tick:
            self._ticks.append(self._moved(len(self._ticks)))
        return self._ticks[tick]

    def _moved(self, tick: int) -> tuple[Shelf, ...]:
        rates = self._market.rates
        rng = Random(f"{self._market.seed}:drift:{self.store.index}:{tick}")
        at_ms = OPENED_MS + tick * TICK_MS
        before = self._ticks[-1]
        shelves = [move(rng, shelf, self.store, self.running, rates, tick, at_ms) for shelf in before]
        new = rates.new if rates.unchanged is None else rates.new * (1 - rates.unchanged)
        shelves.extend(self._new(rng, at_ms) for _ in range(self._market.products) if rng.random() < new)
        return tuple(shelves)

    def _new(self, rng: Random, at_ms: int) -> Shelf:
        good, prices = self._maker.make(rng, self._serial, at_ms)
        self._serial += 1
        return Shelf(
            good=good,
            prices=prices,
            offers=choose_offers(rng, self.running),
            stock=fresh_stock(rng, len(prices)),
            active=rng.random() > 0.012,
            lab=make_lab(rng, good.category, old=self.store.old, pos=good.counting == "pos"),
            updated_ms=at_ms - rng.randrange(TICK_MS),
            listed=prices,
        )


class Market:
    """All stores: so many on Dutchie, and so many on Weedmaps. `products` is how many each begins with."""

    def __init__(
        self,
        *,
        seed: int = 1,
        stores: int = 12,
        products: int = 150,
        weedmaps: int = 0,
        rates: Rates | None = None,
        image_base: str = IMAGE_BASE,
    ) -> None:
        self.seed = seed
        self.products = products
        self.rates = rates if rates is not None else Rates()
        self.image_base = image_base.rstrip("/")
        self.stores: tuple[SimStore, ...] = make_stores(seed, stores) + make_weedmaps_stores(seed, weedmaps)
        self._by_key = {key: store for store in self.stores for key in (store.id, store.slug)}
        self._aisles: dict[int, _Aisle] = {}

    @cached_property
    def brands(self) -> tuple[Brand, ...]:
        """Brands that all stores share."""
        return make_brands(Random(f"{self.seed}:brands"), self.image_base)

    def on(self, platform: Platform) -> tuple[SimStore, ...]:
        """The stores whose menus are served there."""
        return tuple(store for store in self.stores if store.platform == platform)

    def find(self, key: str, platform: Platform | None = None) -> SimStore | None:
        """The store with that id or slug, on that platform where one is named."""
        found = self._by_key.get(key)
        return found if found is not None and platform in (None, found.platform) else None

    def shelves(self, store: SimStore, tick: int) -> tuple[Shelf, ...]:
        """Everything that the store ever had up to that tick, the absent included."""
        aisle = self._aisles.get(store.index)
        if aisle is None:
            aisle = self._aisles[store.index] = _Aisle(self, store)
        return aisle.at(tick)

    def menu(self, store: SimStore, tick: int) -> list[Shelf]:
        """What the store's whole menu shows at that tick, in the order in which it is served: featured products first."""
        return sorted(
            (shelf for shelf in self.shelves(store, tick) if shelf.away_until is None),
            key=lambda shelf: (shelf.good.featured_ms is None, shelf.good.rank, shelf.good.serial),
        )
