"""A simulated market with known prices: items that come and go, prices that move, and what a crawler sees of them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta

from menuwatch.db.pool import Pool
from tests import market

DRIFT = {"flower": 0.0015, "edible": -0.001, "vaporizer": 0.0}
"""By category, what a day adds to the logarithm of what items cost."""


@dataclass(slots=True)
class Item:
    """An item; `prices` by day, while it is sold; `out` are the days on which it is out of stock."""

    name: str
    store: int
    state: str
    category: str
    base: float
    gone: int | None = None
    prices: dict[int, float] = field(default_factory=dict)
    out: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Faults:
    """What a crawler does not see: the share of crawls that are missing, days on which a store is not crawled, and stores whose prices
    are multiplied on a day by mistake."""

    missing: float = 0.2
    silent: frozenset[tuple[int, int]] = frozenset()
    factors: dict[tuple[int, int], float] = field(default_factory=dict)


class PriceMarket:
    """Stores 0 … n-1, of which the even ones are in CO and the odd ones in AZ. Every price of every day is known."""

    def __init__(
        self,
        seed: int,
        *,
        stores: int = 12,
        items: int = 60,
        days: int = 60,
        churn: float = 0.05,
        specials: float = 0.0,
    ) -> None:
        self.random = random.Random(seed)
        self.stores, self.days = stores, days
        self.items: list[Item] = []
        for store in range(stores):
            for _ in range(items):
                self._add(store, 0, dearer=0.0)
        trends = {(store, category): self.random.gauss(0, 0.0004) for store in range(stores) for category in DRIFT}
        for day in range(days):
            for item in [one for one in self.items if one.gone is None]:
                if day and self.random.random() < churn / 7:
                    # What leaves is replaced by something dearer: a mean of prices would rise.
                    item.gone = day
                    item = self._add(item.store, day, dearer=0.4)
                trend = DRIFT[item.category] + trends[item.store, item.category]
                target = item.base + trend * day + self.random.gauss(0, 0.01)
                if day in item.prices or self.random.random() < 0.2 or day - 1 not in item.prices:
                    special = 0.2 if self.random.random() < specials else 0.0
                    item.prices[day] = round(math.exp(target - special), 2)
                else:
                    item.prices[day] = item.prices[day - 1]
                if day and self.random.random() < 0.02:
                    item.out |= set(range(day, day + self.random.randint(1, 6)))

    def _add(self, store: int, day: int, *, dearer: float) -> Item:
        category = self.random.choice(list(DRIFT))
        item = Item(
            name=f"i{len(self.items)}",
            store=store,
            state="CO" if store % 2 == 0 else "AZ",
            category=category,
            base=math.log(self.random.uniform(8, 60)) + dearer * self.random.random() * 2 - DRIFT[category] * day,
        )
        self.items.append(item)
        return item

    def true_index(self, of: Callable[[Item], bool]) -> list[float]:
        """By day: the chained geometric mean of price relatives over all items that are sold on both days, at true prices."""
        level, levels = 0.0, [100.0]
        for day in range(1, self.days):
            changes = [
                math.log(one.prices[day] / one.prices[day - 1])
                for one in self.items
                if of(one) and day in one.prices and day - 1 in one.prices
            ]
            level += sum(changes) / len(changes)
            levels.append(100 * math.exp(level))
        return levels

    async def crawl(self, pool: Pool, faults: Faults, *, stores: int | None = None) -> None:
        """Crawls every store, or the first ones, once a day at noon, as far as faults let it."""
        menus: dict[int, list[Item]] = defaultdict(list)
        for item in self.items:
            menus[item.store].append(item)
        chance = random.Random(self.days)
        async with pool.connection() as conn:
            for month in (market.START, market.START + timedelta(days=32), market.START + timedelta(days=62)):
                await conn.execute("SELECT ensure_product_history_partition(%s)", [month])
            ids = [await market.add_store(conn, f"store-{store}") for store in range(self.stores)]
            await conn.execute(
                "UPDATE dispensaries SET state = CASE WHEN id %% 2 = %s THEN 'CO' ELSE 'AZ' END", [ids[0] % 2]
            )
            for day in range(self.days):
                for store in range(stores or self.stores):
                    # The first menu of each store is always there, as the base of the index.
                    if day and ((store, day) in faults.silent or chance.random() < faults.missing):
                        continue
                    factor = faults.factors.get((store, day), 1.0)
                    menu = [
                        market.item(
                            one.name,
                            price=f"{one.prices[day] * factor:.2f}",
                            qty=0 if day in one.out else 5,
                            category_canon=one.category,
                        )
                        for one in menus[store]
                        if day in one.prices
                    ]
                    await market.crawl(conn, ids[store], day * 24, menu, trusted=True)


def day_of(number: int) -> date:
    """The date of a day of the market."""
    return market.START.date() + timedelta(days=number)
