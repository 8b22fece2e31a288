"""A shop's true month: what really lies on its shelves at each crawl. It knows nothing of menus, answers or catalogues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

CLEARED = (0.66, 0.9)
"""What a clearance takes of the shelves, for good: least and most share."""


@dataclass(frozen=True, slots=True)
class Good:
    """One product on a shelf: `cents` per package, None where the platform shows none; `quantity` in packages, None where the shop
    does not count it."""

    id: int
    cents: int | None
    quantity: int | None
    status: str | None = None
    """What the platform says of its stock, where the quantity does not tell."""

    @property
    def stock(self) -> str:
        """in_stock, oos, or unknown, which is not zero."""
        if self.status is not None:
            return self.status
        return "unknown" if self.quantity is None else "in_stock" if self.quantity > 0 else "oos"


@dataclass(slots=True)
class _Away:
    good: Good
    until: int | None
    """The crawl at which it is back; None: never."""


class Shelves:
    """Moves from crawl to crawl: prices, sales, deliveries, products that are taken off (some for good) and new ones."""

    def __init__(self, rng: Random, size: int, first_id: int, selling_out: float = 1.0) -> None:
        """`selling_out` is the share of the goods about to sell out that do; of the others one is left."""
        self._selling_out = selling_out
        self._rng = rng
        self._size = size
        self._serial = first_id
        self._tick = 0
        self._away: list[_Away] = []
        self.goods: dict[int, Good] = {}
        for _ in range(size):
            self._deliver()

    def _deliver(self) -> None:
        rng = self._rng
        counted = rng.random() < 0.85
        good = Good(self._serial, rng.randrange(5, 90) * 100, rng.randrange(1, 24) if counted else None)
        self._serial += 1
        self.goods[good.id] = good

    def move(self) -> None:
        """One crawl later."""
        rng = self._rng
        self._tick += 1
        for away in [a for a in self._away if a.until == self._tick]:
            self._away.remove(away)
            self.goods[away.good.id] = away.good
        for good in list(self.goods.values()):
            dice = rng.random()
            if dice < 0.015:
                back = None if rng.random() < 0.3 else self._tick + rng.randrange(1, 8)
                self._away.append(_Away(self.goods.pop(good.id), back))
            elif dice < 0.06:
                self.goods[good.id] = replace(
                    good, cents=max(100, (good.cents or 0) + 100 * rng.choice((-3, -2, -1, 1, 2, 4)))
                )
            elif dice < 0.3 and good.quantity is not None:
                left = max(0, good.quantity - rng.randrange(1, 5)) if good.quantity else rng.randrange(5, 24)
                if not left and self._selling_out < 1 and rng.random() >= self._selling_out:
                    left = 1
                self.goods[good.id] = replace(good, quantity=left)
        # A shop that lost products gets new ones, few at a time.
        if len(self.goods) < self._size:
            for _ in range(rng.randrange(3)):
                self._deliver()

    def clear(self) -> None:
        """The shop really gives up most of what it has, for good."""
        gone = self._rng.uniform(*CLEARED)
        for good_id in self._rng.sample(sorted(self.goods), round(gone * len(self.goods))):
            del self.goods[good_id]
        self._away.clear()
        self._size = len(self.goods)

    def sell_out(self) -> None:
        """A great day: most of what is in stock is sold, and stays on the menu as sold out."""
        share = self._rng.uniform(0.6, 0.85)
        for good in list(self.goods.values()):
            if good.quantity and self._rng.random() < share:
                self.goods[good.id] = replace(good, quantity=0)
