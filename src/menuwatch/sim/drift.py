"""How one store's shelves move from one tick to the next: prices, specials, stock, what vanishes, what comes back, what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from menuwatch.sim.goods import make_lab, object_id
from menuwatch.sim.model import Offer, Rates, Shelf, SimStore

_WORST = 6
"""The longest absence of a product that returns ends before this many ticks: from one miss to beyond the third."""


def campaigns(rng: Random, store: SimStore) -> tuple[Offer, ...]:
    """The promotions that a store runs; products take part in one, two or none of them."""
    percent = (20, 25, 35) if not store.old else (10, 15, 30)
    menus = ("both", "both", "medical") if store.medical else ("both", "both", "recreational")
    offers = [
        Offer(object_id(rng), f"{percent[0]}% OFF Everything ", "percent", percent[0], "both", scope="Flower"),
        Offer(object_id(rng), f"{percent[1]}% OFF Concentrates! *NOT Stackable ", "percent", percent[1], "both",
              scope="Concentrate"),
        Offer(object_id(rng), f"{percent[2]}% OFF House Brands", "percent", percent[2], rng.choice(menus), from_pos=True,  # type: ignore[arg-type]
              scope="Vaporizers"),
        Offer(object_id(rng), "$5 off", "dollar", 500, "both", scope="Pre-Rolls"),
        Offer(object_id(rng), "Sour Fridays: $17", "target", 1700, rng.choice(("both", "recreational", "medical")),
              scope="Edible"),
        Offer(object_id(rng), "B1G1 40% off", "bogo", 40, "both", from_pos=True, needs=1, gets=1, scope="categories"),
        Offer(object_id(rng), "B2G3 30% off", "bogo", 30, "both", needs=2, gets=3, scope="brands"),
        Offer(object_id(rng), "5 for $75", "bundle", 7500, "both", needs=5, gets=5, scope="categories"),
    ]  # fmt: skip
    return tuple(offers)


def choose_offers(rng: Random, running: Sequence[Offer]) -> tuple[Offer, ...]:
    """The promotions of one product: about 28 % have a sale, 9 % a bogo or bundle, as recorded."""
    dice = rng.random()
    if dice < 0.28:
        return tuple(rng.sample(running[:5], 2 if rng.random() < 0.35 else 1))
    if dice < 0.37:
        return (rng.choice(running[5:]),)
    return ()


def fresh_stock(rng: Random, options: int) -> tuple[int, ...]:
    """Packages of each option: some are out, many are few, some are beyond what a point of sale shows."""
    return tuple(
        0 if (dice := rng.random()) < 0.06 else rng.randrange(1, 12) if dice < 0.6 else rng.randrange(8, 90)
        for _ in range(options)
    )


def move(
    rng: Random, shelf: Shelf, store: SimStore, running: Sequence[Offer], rates: Rates, tick: int, at_ms: int
) -> Shelf:
    """One product, one tick later. Nothing moved gives the very same object, so that it is rendered to the same bytes."""
    if shelf.away_until is not None:
        if shelf.away_until != tick:
            return shelf
        if rng.random() < 0.5:
            return replace(shelf, away_until=None)
        return replace(shelf, away_until=None, stock=fresh_stock(rng, len(shelf.stock)), updated_ms=at_ms)
    lively = 1.0
    if rates.unchanged is not None:
        if rng.random() < rates.unchanged:
            return shelf
        lively = 1 - rates.unchanged
    if rng.random() < rates.vanish * (lively if rates.unchanged is not None else 1):
        back = -1 if rng.random() < rates.gone_for_good else tick + rng.randrange(1, _WORST)
        return replace(shelf, away_until=back)
    prices, offers, stock, active, lab = shelf.prices, shelf.offers, shelf.stock, shelf.active, shelf.lab
    price_moves, stock_moves = rng.random() < rates.price, rng.random() < rates.stock
    if rates.unchanged is not None and not price_moves and not stock_moves:
        price_moves, stock_moves = (True, False) if rng.random() < 0.2 else (False, True)
    if price_moves:
        if rng.random() < 0.45:
            offers = () if offers else choose_offers(rng, running) or (rng.choice(running[:5]),)
        else:
            prices = _repriced(rng, prices, shelf.listed or prices, whole=not store.old)
    if stock_moves:
        stock = _sold(rng, stock)
    if rng.random() < (rates.status if active else 0.3) * lively:
        active = not active
    if rng.random() < rates.batch * lively:
        lab = make_lab(rng, shelf.good.category, old=store.old, pos=shelf.good.counting == "pos")
    if (prices, offers, stock, active, lab) == (shelf.prices, shelf.offers, shelf.stock, shelf.active, shelf.lab):
        return shelf
    return replace(shelf, prices=prices, offers=offers, stock=stock, active=active, lab=lab, updated_ms=at_ms)


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
