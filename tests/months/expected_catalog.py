"""What the catalogue must show, by the rules as written (docs/explanation/catalog.md), from the shop's own shelves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tests.months.faults import Served
from tests.months.market import Good

OUT_AFTER = 3
"""Good crawls without a product, one after the other, that make it out of stock."""


@dataclass(slots=True)
class Known:
    """How one product must stand. `honest` counts the good crawls without it that told the truth, up to the third."""

    good: Good
    misses: int = 0
    stock: str = "unknown"
    quantity: int | None = None
    honest: int = 0
    deceived: int = 0
    """Of the misses, those of crawls that lied: it lay on the shelf. Only the first steps of a slow shrinking may do that."""

    @property
    def row(self) -> tuple[int, str, int | None, int | None]:
        """(misses, stock status, packages, price in cents)"""
        return self.misses, self.stock, self.quantity, self.good.cents


@dataclass(slots=True)
class Book:
    """One store's products and what every crawl saw of them."""

    products: dict[int, Known] = field(default_factory=dict)
    seen: dict[tuple[datetime, int], tuple[str, int | None, int | None]] = field(default_factory=dict)
    """(crawl, product) → stock status, packages, price in cents; what a crawl did not see is not here."""
    crawls: list[datetime] = field(default_factory=list)
    declared: int = 0

    def take(self, served: Served, truth: dict[int, Good], at: datetime) -> None:
        """A crawl that the catalogue shows; `truth` is what really lay on the shelves."""
        self.crawls.append(at)
        for number, good in served.shown.items():
            known = self.products.setdefault(number, Known(good))
            known.good, known.misses, known.stock, known.quantity = good, 0, good.stock, good.quantity
            known.deceived = 0
            self.seen[at, number] = good.stock, good.quantity, good.cents
        for number, known in self.products.items():
            if number in served.shown or (number in truth and known.honest < OUT_AFTER):
                # What was really gone and has come back stays out of stock until a crawl shows it.
                known.honest = 0
            elif number not in truth and not served.hidden:
                known.honest = min(known.honest + 1, OUT_AFTER)
            if number in served.shown:
                continue
            if number in served.unread:
                known.misses = known.deceived = 0
            elif not served.hidden and known.misses < OUT_AFTER:
                known.misses += 1
                known.deceived += number in truth
                if known.misses == OUT_AFTER:
                    known.stock, known.quantity = "oos", 0
                    self.declared += 1
