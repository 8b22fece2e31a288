"""The market: its stores, and the products of every store at every tick.

It depends only on the seed, the sizes, the rates and the tick: not on a clock, the order of requests or the process. Menus are
generated on first use and kept, so any tick can be read again at any time. From one tick to the next, prices, promotions and stock
change, and products vanish, return and are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import Any, Self

from menuwatch.sim.config import IMAGE_BASE, Rates, SimConfig
from menuwatch.sim.model import Brand, Counting, Offer, ProductState, SimStore
from menuwatch.sim.platform import sim_platform
from menuwatch.sim.product_factory import ProductFactory, make_brands, make_lab, meteor_id, object_id, slug_of, uuid
from menuwatch.sim.words import CORNERS, DISTRICTS, ONTARIO, PLACES, SHOP_NAMES

OPENED_MS = 1_767_268_800_000
"""Tick 0 on the market's own calendar: 2026-01-01 12:00 UTC, in milliseconds of Unix time."""
TICK_MS = 4 * 3_600_000
"""Every tick is four hours, the interval of scheduled crawls."""
MANUAL_SHARE = 0.62
"""Stores that count by hand: 62 % of the recorded Pennsylvanian products carry no point-of-sale data."""
OLD_SHARE = 0.15
"""Stores that answer with the key set of 2023."""

_MAX_ABSENCE = 6
"""The longest absence of a product that returns ends before this many ticks: from one miss to beyond the third."""


class _StoreMenu:
    """One store's products, tick by tick."""

    def __init__(self, market: Market, store: SimStore) -> None:
        rng = Random(f"{market.seed}:aisle:{store.index}")
        self.store = store
        self.running: tuple[Offer, ...] = _store_offers(rng, store)
        self._market = market
        self._factory = ProductFactory(store, market.brands, market.image_base, OPENED_MS)
        self._serial = 0
        self._ticks: list[tuple[ProductState, ...]] = [tuple(self._new(rng, OPENED_MS) for _ in range(market.products))]

    def at(self, tick: int) -> tuple[ProductState, ...]:
        while len(self._ticks) <= tick:
            self._ticks.append(self._moved(len(self._ticks)))
        return self._ticks[tick]

    def _moved(self, tick: int) -> tuple[ProductState, ...]:
        rates = self._market.rates
        rng = Random(f"{self._market.seed}:drift:{self.store.index}:{tick}")
        at_ms = OPENED_MS + tick * TICK_MS
        before = self._ticks[-1]
        states = [_advance(rng, state, self.store, self.running, rates, tick, at_ms) for state in before]
        new = rates.new if rates.unchanged is None else rates.new * (1 - rates.unchanged)
        states.extend(self._new(rng, at_ms) for _ in range(self._market.products) if rng.random() < new)
        return tuple(states)

    def _new(self, rng: Random, at_ms: int) -> ProductState:
        product, prices = self._factory.make(rng, self._serial, at_ms)
        self._serial += 1
        return ProductState(
            product=product,
            prices=prices,
            offers=_choose_offers(rng, self.running),
            stock=_new_stock(rng, len(prices)),
            active=rng.random() > 0.012,
            lab=make_lab(rng, product.category, old=self.store.old, pos=product.counting == "pos"),
            updated_ms=at_ms - rng.randrange(TICK_MS),
            listed=prices,
        )


class Market:
    """All stores: `stores` on Dutchie, and so many on each of the `platforms`. `products` is how many each begins with."""

    def __init__(
        self,
        *,
        seed: int = 1,
        stores: int = 12,
        products: int = 150,
        platforms: Mapping[str, int] | None = None,
        rates: Rates | None = None,
        image_base: str = IMAGE_BASE,
    ) -> None:
        self.seed = seed
        self.products = products
        self.rates = rates if rates is not None else Rates()
        self.image_base = image_base.rstrip("/")
        self.stores: tuple[SimStore, ...] = _make_stores(seed, stores) + tuple(
            store for name, count in (platforms or {}).items() for store in _make_stores_on(name, seed, count)
        )
        self._by_key = {key: store for store in self.stores for key in (store.id, store.slug)}
        self._by_platform = {(s.platform, key): s for s in self.stores for key in (s.id, s.slug)}
        self._menus: dict[int, _StoreMenu] = {}

    @classmethod
    def of(cls, config: SimConfig) -> Self:
        """The market of a simulation."""
        return cls(
            seed=config.seed,
            stores=config.stores,
            products=config.products,
            platforms=config.platforms,
            rates=config.rates,
            image_base=config.image_base,
        )

    @cached_property
    def brands(self) -> tuple[Brand, ...]:
        """Brands that all stores share."""
        return make_brands(Random(f"{self.seed}:brands"), self.image_base)

    def on(self, platform: str) -> tuple[SimStore, ...]:
        """The stores whose menus are served there."""
        return tuple(store for store in self.stores if store.platform == platform)

    def find(self, key: str, platform: str | None = None) -> SimStore | None:
        """The store with that id or slug, on that platform where one is named."""
        if platform is not None:
            return self._by_platform.get((platform, key))
        return self._by_key.get(key)

    def states(self, store: SimStore, tick: int) -> tuple[ProductState, ...]:
        """Everything that the store ever had up to that tick, the absent included."""
        if store.index not in self._menus:
            self._menus[store.index] = _StoreMenu(self, store)
        return self._menus[store.index].at(tick)

    def menu(self, store: SimStore, tick: int) -> list[ProductState]:
        """What the store's whole menu shows at that tick, in the order in which it is served: featured products first."""
        return sorted(
            (state for state in self.states(store, tick) if state.away_until is None),
            key=lambda state: (state.product.featured_ms is None, state.product.rank, state.product.serial),
        )


def _store_offers(rng: Random, store: SimStore) -> tuple[Offer, ...]:
    """The promotions that a store runs; products take part in one, two or none of them."""
    percent = (20, 25, 35) if not store.old else (10, 15, 30)
    target = (17, 12, 20, 15, 22)[store.index % 5]
    menus = ("both", "both", "medical") if store.medical else ("both", "both", "recreational")
    offers = [
        Offer(object_id(rng), f"{percent[0]}% OFF Everything ", "percent", percent[0], "both", scope="Flower"),
        Offer(object_id(rng), f"{percent[1]}% OFF Concentrates! *NOT Stackable ", "percent", percent[1], "both",
              scope="Concentrate"),
        Offer(object_id(rng), f"{percent[2]}% OFF House Brands", "percent", percent[2], rng.choice(menus), from_pos=True,  # type: ignore[arg-type]
              scope="Vaporizers"),
        Offer(object_id(rng), "$5 off", "dollar", 500, "both", scope="Pre-Rolls"),
        Offer(object_id(rng), f"Sour Fridays: ${target}", "target", 100 * target, rng.choice(("both", "recreational", "medical")),
              scope="Edible"),
        Offer(object_id(rng), "B1G1 40% off", "bogo", 40, "both", from_pos=True, needs=1, gets=1, scope="categories"),
        Offer(object_id(rng), "B2G3 30% off", "bogo", 30, "both", needs=2, gets=3, scope="brands"),
        Offer(object_id(rng), "5 for $75", "bundle", 7500, "both", needs=5, gets=5, scope="categories"),
    ]  # fmt: skip
    return tuple(offers)


def _choose_offers(rng: Random, running: Sequence[Offer]) -> tuple[Offer, ...]:
    """The promotions of one product: about 28 % have a sale, 9 % a bogo or bundle, as recorded."""
    dice = rng.random()
    if dice < 0.28:
        return tuple(rng.sample(running[:5], 2 if rng.random() < 0.35 else 1))
    if dice < 0.37:
        return (rng.choice(running[5:]),)
    return ()


def _new_stock(rng: Random, options: int) -> tuple[int, ...]:
    """Packages of each option: some are out, many are few, some are beyond what a point of sale shows."""
    return tuple(
        0 if (dice := rng.random()) < 0.06 else rng.randrange(1, 12) if dice < 0.6 else rng.randrange(8, 90)
        for _ in range(options)
    )


def _advance(
    rng: Random, state: ProductState, store: SimStore, running: Sequence[Offer], rates: Rates, tick: int, at_ms: int
) -> ProductState:
    """One product, one tick later. Nothing moved gives the very same object, so that it is rendered to the same bytes."""
    if state.away_until is not None:
        if state.away_until != tick:
            return state
        if rng.random() < 0.5:
            return replace(state, away_until=None)
        return replace(state, away_until=None, stock=_new_stock(rng, len(state.stock)), updated_ms=at_ms)
    lively = 1.0
    if rates.unchanged is not None:
        if rng.random() < rates.unchanged:
            return state
        lively = 1 - rates.unchanged
    if rng.random() < rates.vanish * (lively if rates.unchanged is not None else 1):
        back = -1 if rng.random() < rates.gone_for_good else tick + rng.randrange(1, _MAX_ABSENCE)
        return replace(state, away_until=back)
    prices, offers, stock, active, lab = state.prices, state.offers, state.stock, state.active, state.lab
    price_moves, stock_moves = rng.random() < rates.price, rng.random() < rates.stock
    if rates.unchanged is not None and not price_moves and not stock_moves:
        price_moves, stock_moves = (True, False) if rng.random() < 0.2 else (False, True)
    if price_moves:
        if rng.random() < 0.45:
            offers = () if offers else _choose_offers(rng, running) or (rng.choice(running[:5]),)
        else:
            prices = _repriced(rng, prices, state.listed or prices, whole=not store.old)
    sold = state.sold
    if stock_moves:
        stock = _sold(rng, stock)
        sold += max(0, sum(state.stock) - sum(stock))
    if rng.random() < (rates.status if active else 0.3) * lively:
        active = not active
    if rng.random() < rates.batch * lively:
        lab = make_lab(rng, state.product.category, old=store.old, pos=state.product.counting == "pos")
    if (prices, offers, stock, active, lab) == (state.prices, state.offers, state.stock, state.active, state.lab):
        return state
    return replace(
        state, prices=prices, offers=offers, stock=stock, active=active, lab=lab, updated_ms=at_ms, sold=sold
    )


def _repriced(rng: Random, prices: tuple[int, ...], listed: tuple[int, ...], *, whole: bool) -> tuple[int, ...]:
    """Never below half of what it cost when it was new, nor above one and a half times that."""
    factor = rng.choice((0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15))
    step = 100 if whole else 1
    moved = tuple(
        max(step, round(min(max(price * factor, first * 0.5), first * 1.5) / step) * step)
        for price, first in zip(prices, listed, strict=True)
    )
    if moved != prices:
        return moved
    # A change that rounding or the bounds swallow would be none: a step towards where it began, or away from there.
    return tuple(price - step if price > first else price + step for price, first in zip(prices, listed, strict=True))


def _sold(rng: Random, stock: tuple[int, ...]) -> tuple[int, ...]:
    place = rng.randrange(len(stock))
    left = stock[place]
    if left == 0 or rng.random() < 0.15:
        left += rng.randrange(5, 40)
    elif rng.random() < 0.08:
        left = 0
    else:
        left = max(0, left - rng.randrange(1, 5))
    return (*stock[:place], left, *stock[place + 1 :])


def _make_stores(seed: int, count: int) -> tuple[SimStore, ...]:
    """`count` stores; the first of them are the same however many there are."""
    return tuple(make_store(Random(f"{seed}:store:{index}"), seed, index) for index in range(count))


def make_store(rng: Random, seed: int, index: int) -> SimStore:
    """A store on Dutchie; stores of other platforms are derived from one."""
    # The golden ratio spreads the kinds evenly, so that a market of five stores has its share of each as well.
    place_in_row = (0.1 + seed % 7 * 0.13 + index * 0.6180339887) % 1
    counting: Counting = "manual" if place_in_row < MANUAL_SHARE else "pos"
    old = place_in_row >= 1 - OLD_SHARE
    city, state, country, zipcode, latitude, longitude, timezone = (
        ONTARIO[index % len(ONTARIO)] if old else PLACES[index % len(PLACES)]
    )
    number = rng.randrange(1, 9999)
    shop = store_name(SHOP_NAMES[index % len(SHOP_NAMES)], city, index)
    store_id = meteor_id(rng) if index % 11 == 5 else object_id(rng)
    return SimStore(
        index=index,
        id=store_id,
        slug=store_id if index % 13 == 12 else slug_of(shop),
        name=f"{shop} " if index % 7 == 3 else shop,
        chain=slug_of(SHOP_NAMES[index % len(SHOP_NAMES)]),
        street=f"{number} {rng.choice(('Main St', 'Bayly St W', 'E Camelback Rd', 'Liberty Ave'))}",
        city=city,
        state=state,
        country=country,
        zipcode=zipcode,
        latitude=round(latitude + rng.uniform(-0.05, 0.05), 6),
        longitude=round(longitude + rng.uniform(-0.05, 0.05), 6),
        timezone=timezone,
        phone=f"({rng.randrange(201, 989)}) {rng.randrange(200, 999)}-{rng.randrange(1000, 9999)}",
        recreational=state != "PA",
        medical=state in ("PA", "AZ", "MI") or rng.random() < 0.3,
        enterprise_id=uuid(rng),
        status="open",
        counting=counting,
        reserve=3 if old else 0 if counting == "manual" else rng.choice((0, 0, 5)),
        threshold=0 if counting == "manual" else rng.choice((0, 0, 2)),
        medical_percent=10 if counting == "pos" and not old and rng.random() < 0.25 else 0,
        old=old,
    )


def plain_store(store: SimStore, platform: str, shop: str, **fields: Any) -> SimStore:
    """The store of a chain on another platform, without what only Dutchie has: reserves, thresholds, discounts for patients."""
    return replace(
        store, platform=platform, chain=slug_of(shop), reserve=0, threshold=0, medical_percent=0, old=False, **fields
    )


def store_name(chain: str, city: str, index: int) -> str:
    """`High Tide Phoenix Riverside`. No two stores of a chain are in the same corner of the same district."""
    nth = index // len(SHOP_NAMES)
    district, corner = DISTRICTS[(nth + index) % len(DISTRICTS)], nth // len(DISTRICTS)
    where = CORNERS[corner] if corner < len(CORNERS) else str(corner)
    return f"{chain} {city} {district} {where}".rstrip()


def _make_stores_on(name: str, seed: int, count: int) -> tuple[SimStore, ...]:
    """`count` stores on a platform besides Dutchie; the first of them are the same however many there are."""
    platform = sim_platform(name)
    return tuple(platform.make_store(Random(f"{seed}:{name}:{number}"), seed, number) for number in range(count))
