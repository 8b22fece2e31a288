"""What is a price, and the lowest of several."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from menuwatch.catalog.canon.bounds import fits, shown
from menuwatch.platforms.items import Unusable

HIGHEST_PRICE = Decimal(1_000_000)


def check(value: Decimal | None, field: str) -> None:
    """Raises Unusable that names the field for what is no price; None is that there is none."""
    if value is not None and not (fits(value) and 0 <= value <= HIGHEST_PRICE):
        raise Unusable(field, f"{shown(value)} is no price")


def lowest(prices: Sequence[Decimal | None]) -> Decimal | None:
    """The lowest of those that there are."""
    return min((price for price in prices if price is not None), default=None)
